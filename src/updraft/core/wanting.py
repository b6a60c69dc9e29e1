"""How many of the jobs without room are worth a machine: ceilings of users and groups, and whose turn comes.

A job for which nothing is bought here still runs where room comes free.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from updraft.core.filling import Filling
from updraft.core.fitting import turns as in_order
from updraft.core.model import JobGroup, Reason, Snapshot
from updraft.core.sequence import Paces, turns
from updraft.core.settings import Policy
from updraft.core.shares import Standing, short
from updraft.core.verdicts import VerdictTable


@dataclass(frozen=True, slots=True)
class Wanted:
    """Jobs of each group to buy for, and what held the others back."""

    groups: tuple[tuple[JobGroup, int], ...] = ()
    held: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)


def wanted(
    left: Sequence[tuple[JobGroup, int]],
    here: Filling,
    coming: Filling,
    table: VerdictTable,
    snapshot: Snapshot,
    policy: Policy,
    who: Standing,
) -> Wanted:
    """What to buy for, of the jobs that are `left` after those placed `here` and on what is `coming`."""
    ceilings = _Ceilings(policy, who, [group for group, _ in left], (here, coming))
    timed = any(group.run_time is not None for group, _ in left)
    paces = Paces(snapshot.offers, table, snapshot.ledger, policy) if timed else None
    counts = {group.key: number for group, number in left}
    held: dict[str, tuple[Reason, ...]] = {}
    found: dict[str, int] = {}
    for group in in_order([group for group, _ in left]):
        number, stops = ceilings.grant(group, counts[group.key])
        if paces is not None and group.run_time is not None:
            known = paces.of(group)
            placed = _placed(here, group.key), _placed(coming, group.key)
            turn = turns(group, number, *placed, known, snapshot.now)
            number = turn.slots
            stops = stops if turn.reason is None else (*stops, turn.reason)
        found[group.key] = number
        if stops:
            held[group.key] = stops
    return Wanted(tuple((group, found[group.key]) for group, _ in left if found[group.key] > 0), held)


def _placed(filling: Filling, key: str) -> int:
    return sum(filling.placed.get(key, {}).values())


class _Ceilings:
    """What submitters and accounting groups may still have, in cores; taken from as it is granted."""

    def __init__(
        self, policy: Policy, who: Standing, groups: Iterable[JobGroup], fillings: Sequence[Filling]
    ) -> None:
        self._each = policy.limits.cores_per_user
        self._who = who
        self._granted: dict[str, int] = {}
        for group in groups:
            jobs = sum(_placed(filling, group.key) for filling in fillings)
            if jobs:
                self._take(group, jobs)

    def grant(self, group: JobGroup, number: int) -> tuple[int, tuple[Reason, ...]]:
        """How many of a group's jobs may be bought for, and what stops the rest."""
        stops: list[Reason] = []
        for most, reason in self._ceilings(group):
            if most < number:
                number = max(0, most)
                stops.append(reason)
        self._take(group, number)
        return number, tuple(stops)

    def _ceilings(self, group: JobGroup) -> Iterable[tuple[int, Reason]]:
        name, cpus = short(group.submitter), max(1, group.request.cpus)
        if self._each is not None:
            has = self._who.cores.get(name, 0) + self._granted.get(name, 0)
            text = f"{name} has {has} cores, and the limit of cores_per_user is {self._each}"
            yield (self._each - has) // cpus, Reason("user-limit", text)
        ceiling = self._who.ceiling(group)
        if ceiling is not None:
            found = self._who.group_of(name)
            inside = 0 if found is None else self._granted.get(found.name + ".", 0)
            yield (ceiling[0] - inside) // cpus, ceiling[1]

    def _take(self, group: JobGroup, number: int) -> None:
        name, cores = short(group.submitter), number * max(1, group.request.cpus)
        self._granted[name] = self._granted.get(name, 0) + cores
        found = self._who.group_of(name)
        if found is not None:
            self._granted[found.name + "."] = self._granted.get(found.name + ".", 0) + cores
