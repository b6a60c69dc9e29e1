"""A plan that fails is made again without what it fails for, so that everybody else is served meanwhile.

Nothing that a job says should make planning fail; this is for the day on which something does. Which jobs it
is for is found by planning with parts of the demand alone: first by schedd, then by owner, then by group.
They are left out and named like jobs that can't be evaluated, while everything else of their schedds counts:
where their jobs run, above all.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from updraft.core.kinds import problem_ad
from updraft.core.model import NO_TERMS, JobGroup, Known, Plan, Resources, Snapshot
from updraft.core.settings import Policy

T = TypeVar("T")
Decide = Callable[[Snapshot, Policy], Plan]

AGAIN = 600.0
"""Seconds until those that were left out are planned for again: what made it fail may be over."""
# Questions in one search; what is not told apart by then is taken together. Nothing else is decided
# meanwhile, and a plan for 10,000 machines takes about a second.
_QUESTIONS = 100
_PLANS = 40
_MOST_JOBS = 1 << 31


def without(snapshot: Snapshot, keys: Collection[str], why: str) -> Snapshot:
    """The snapshot with the groups of these keys left out, for this reason."""
    schedds = dict(snapshot.schedds)
    for name, seen in snapshot.schedds.items():
        if isinstance(seen, Known) and any(group.key in keys for group in seen.value.groups):
            groups = tuple(_left_out(g, why) if g.key in keys else g for g in seen.value.groups)
            schedds[name] = replace(seen, value=replace(seen.value, groups=groups))
    return replace(snapshot, schedds=schedds)


def why_spared(error: Exception) -> str:
    """What is said of jobs that are left out because planning for them ends with this error."""
    return f"planning for it fails ({type(error).__name__}), which is a fault of updraft: please report it"


def sparing(
    decide: Decide, snapshot: Snapshot, policy: Policy, error: Exception
) -> tuple[Plan, frozenset[str]]:
    """The plan without those that it fails for, and their keys; `error` again where it isn't for jobs.

    `decide` is called some dozens of times at most.
    """
    why = why_spared(error)
    groups = {group.key: group for group in _groups(snapshot)}
    planned = 0

    def fails(keys: Iterable[str]) -> bool:
        nonlocal planned
        planned += 1
        try:
            decide(without(snapshot, groups.keys() - set(keys), why), policy)
        except Exception:
            return True
        return False

    if not groups or fails(()):
        raise error
    culprits = tuple(groups)
    for apart in (_schedd, _owner, _itself):
        parts = _parts(groups, culprits, apart)
        found = failing(
            parts, lambda some: fails(key for part in some for key in part), known=True, most=_PLANS - planned
        )
        if not found:  # only together
            break
        culprits = tuple(key for part in found for key in part)
    return decide(without(snapshot, culprits, why), policy), frozenset(culprits)


def failing(
    items: Sequence[T],
    fails: Callable[[Sequence[T]], bool],
    *,
    known: bool = False,
    most: int = _QUESTIONS,
) -> list[T]:
    """Those of `items` that fail, found by halves; `known` where it is known that some do.

    What isn't told apart within `most` questions is taken together. The largest part is always the next to be
    halved, so that it is as little as may be.
    """
    parts = [items] if items and (known or fails(items)) else []
    asked = 1
    while parts and len(parts[-1]) > 1 and asked < most:
        part = parts.pop()
        middle = len(part) // 2
        parts += [half for half in (part[:middle], part[middle:]) if fails(half)]
        parts.sort(key=len)
        asked += 2
    return [one for part in parts for one in part]


def _groups(snapshot: Snapshot) -> Iterable[JobGroup]:
    for seen in snapshot.schedds.values():
        if isinstance(seen, Known):
            yield from seen.value.groups


def _parts(
    groups: Mapping[str, JobGroup], keys: Iterable[str], apart: Callable[[JobGroup], object]
) -> list[tuple[str, ...]]:
    found: dict[object, list[str]] = {}
    for key in keys:
        found.setdefault(apart(groups[key]), []).append(key)
    return [tuple(part) for part in found.values()]


def _schedd(group: JobGroup) -> object:
    return group.schedd


def _owner(group: JobGroup) -> object:
    return group.schedd, group.owner


def _itself(group: JobGroup) -> object:
    return group.key


def _left_out(group: JobGroup, why: str) -> JobGroup:
    """A group of which nothing counts but whose it is, and how many."""
    return JobGroup(
        key=group.key,
        schedd=group.schedd,
        owner=group.owner,
        submitter=group.owner,
        ad=problem_ad(why),
        request=Resources(1, 1, 1),
        idle=_count(group.idle, 1),
        running=_count(group.running, 0),
        first_id=group.first_id,
        evaluable=False,
        terms=NO_TERMS,
    )


def _count(number: object, least: int) -> int:
    return min(max(number, least), _MOST_JOBS) if isinstance(number, int) else least
