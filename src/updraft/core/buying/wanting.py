"""How many of the jobs without room are worth a machine: ceilings of users and groups, and whose turn comes.

A job for which nothing is bought here still runs where room comes free.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from updraft.core.buying.market import Ints
from updraft.core.demand.filling import Filling
from updraft.core.demand.fitting import turns as in_order
from updraft.core.demand.sequence import Paces, turns
from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import PLAIN, JobGroup, Offer, Reason, Snapshot
from updraft.core.settings import Policy
from updraft.core.sharing.caps import MANY
from updraft.core.sharing.shares import Standing
from updraft.core.sharing.submitters import short, user_of, weight


@dataclass(frozen=True, slots=True)
class Shortfall:
    """Jobs of each group to buy for, and what held the others back."""

    groups: tuple[tuple[JobGroup, int], ...] = ()
    held: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)


def wanted(
    left: Sequence[tuple[JobGroup, int]],
    queue: Iterable[JobGroup],
    here: Filling,
    coming: Filling,
    table: VerdictTable,
    snapshot: Snapshot,
    policy: Policy,
    who: Standing,
) -> Shortfall:
    """The jobs to buy for, of those that are `left` after those placed `here` and on what is `coming`.

    `queue` are the groups of all that wait: what was placed counts for users who want more of something else.
    """
    ceilings = _JobCeilings(who, queue, (here, coming), _CapReach(who, table, snapshot))
    timed = any(group.run_time is not None for group, _ in left)
    paces = Paces(snapshot.offers, table, snapshot.ledger, policy) if timed else None
    counts = {group.key: number for group, number in left}
    held: dict[str, tuple[Reason, ...]] = {}
    found: dict[str, int] = {}
    for group in sorted(in_order([group for group, _ in left]), key=lambda one: not weight(one.submitter)):
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
    return Shortfall(tuple((group, found[group.key]) for group, _ in left if found[group.key] > 0), held)


def _placed(filling: Filling, key: str) -> int:
    return sum(filling.placed.get(key, {}).values())


class _CapReach:
    """How many jobs the machines may hold that caps leave to a user; the list need not be for more."""

    def __init__(self, who: Standing, table: VerdictTable, snapshot: Snapshot) -> None:
        self._caps, self._table = who.caps, table
        self._classes: dict[str, tuple[Offer, Ints, Ints]] = {}
        if who.caps is None:
            return
        kinds: dict[str, dict[int, int]] = {}
        some: dict[str, Offer] = {}
        for offer in snapshot.offers:
            if offer.kind in table.kind_at:
                if offer.worker_class not in some:
                    some[offer.worker_class] = replace(offer, variant=PLAIN)
                slots = snapshot.kinds[offer.kind].slots
                kinds.setdefault(offer.worker_class, {})[table.kind_at[offer.kind]] = slots
        for worker, columns in kinds.items():
            self._classes[worker] = some[worker], np.array([*columns]), np.array([*columns.values()])

    def of(self, group: JobGroup) -> tuple[int, Reason] | None:
        """The jobs of a group that its user's machines may hold yet, and why no more; None for any."""
        if self._caps is None or not self._caps.narrow(group):
            return None
        copies = self._table.copies[self._table.group_at[group.key]]
        found, why = 0, None
        for offer, columns, slots in self._classes.values():
            held = int((copies[columns] * slots).max())
            if held > 0:
                cut = self._caps.held(offer, [(group, held)])
                why = next(iter(cut.stops.values()), why)
                found += min(MANY, cut.most * cut.content.get(group.key, 0))
        return None if why is None else (found, why)


class _JobCeilings:
    """The cores that users and accounting groups may still have; taken from as it is granted."""

    def __init__(
        self, who: Standing, queue: Iterable[JobGroup], fillings: Sequence[Filling], reach: _CapReach
    ) -> None:
        self._who = who
        self._reach = reach
        self._users: dict[str, int] = {}
        self._groups: dict[str, int] = {}
        for group in queue if who.shares.groups else ():
            jobs = sum(_placed(filling, group.key) for filling in fillings)
            if jobs:
                self._take(group, jobs)
        self._users.clear()  # what was placed is in the caps already

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
        cpus = max(1, group.request.cpus)
        if self._who.caps is not None:
            own = self._who.caps.user_cores(group, self._users.get(user_of(group), 0))
            if own is not None:
                yield own[0] // cpus, own[1]
            reach = self._reach.of(group)
            if reach is not None:
                yield reach
        ceiling = self._who.ceiling(group)
        if ceiling is not None:
            found = self._who.group_of(short(group.submitter))
            inside = 0 if found is None else self._groups.get(found.name, 0)
            yield (ceiling[0] - inside) // cpus, ceiling[1]

    def _take(self, group: JobGroup, number: int) -> None:
        name, cores = user_of(group), number * max(1, group.request.cpus)
        self._users[name] = self._users.get(name, 0) + cores
        found = self._who.group_of(short(group.submitter))
        if found is not None:
            self._groups[found.name] = self._groups.get(found.name, 0) + cores
