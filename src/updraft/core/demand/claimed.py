"""Which waiting jobs have a claim already: their users' slots that are claimed and run nothing yet.

Between the match and the job's start, and between two jobs of one claim, a job is still idle at its schedd
while its dynamic slot is claimed.
"""

from collections.abc import Callable, Iterable, Sequence

from updraft.core.demand.fitting import turns
from updraft.core.demand.room import Demand
from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import Child, JobGroup
from updraft.core.sharing.submitters import short, user_of


def matched(queue: Demand, claims: Sequence[tuple[Child, str]], table: VerdictTable) -> dict[str, int]:
    """Jobs of each group that claimed and idle slots will take, one a claim: they must not count twice."""
    if not claims:
        return {}
    order = turns([group for group in queue.all if group.evaluable])
    left = [group.idle for group in order]
    users = _users(order)
    # The groups that a claim like this one may take jobs of, those that want none any more left out.
    takers: dict[tuple[Child, str], list[int]] = {}
    taken: dict[str, int] = {}
    for child, kind in claims:
        mine = takers.get((child, kind))
        if mine is None:
            mine = takers[child, kind] = _takers(child, kind, users(child.user), order, table)
        while mine and not left[mine[-1]]:
            mine.pop()
        if mine:
            at = mine[-1]
            left[at] -= 1
            taken[order[at].key] = taken.get(order[at].key, 0) + 1
    return taken


def _takers(
    child: Child, kind: str, mine: Iterable[int], order: Sequence[JobGroup], table: VerdictTable
) -> list[int]:
    """Of a user's groups those that the claim can take, the last ones first."""
    column = table.kind_at.get(kind)
    if column is None:
        return []
    return [
        at
        for at in sorted(mine, reverse=True)
        if table.copies[table.group_at[order[at].key], column] > 0
        and child.resources.holds(order[at].request) > 0
    ]


def _users(groups: Sequence[JobGroup]) -> Callable[[str], set[int]]:
    """Finds the groups of a slot's user: they are named with their domain, or one of them without."""
    whole: dict[str, set[int]] = {}
    named: dict[str, set[int]] = {}
    for at, group in enumerate(groups):
        if group.ready:
            continue
        whole.setdefault(user_of(group), set()).add(at)
        for name in (group.owner, short(user_of(group))):
            named.setdefault(name, set()).add(at)

    def of(user: str) -> set[int]:
        return whole[user] if user in whole else named.get(user, set()) | named.get(short(user), set())

    return of
