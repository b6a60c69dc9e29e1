"""A negotiator and its schedds that match in bulk, as HTCondor's do with their default configuration.

In a cycle the negotiator gives each slot away once at most: of the slots that match a job, the one with the
fewest free cores (NEGOTIATOR_PRE_JOB_RANK). Submitters come by their priority, and each has its share of the
pool (`_spins`). What a match leaves of a partitionable slot its schedd fills, with the same user's jobs by
their priority and age and without any rank (CLAIM_PARTITIONABLE_LEFTOVERS, `_fill`).
docs/explanation/simulator.md names the source of each rule, and what is left out.
"""

import bisect
import heapq
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Set
from dataclasses import dataclass

from updraft.core.model import Resources, Shares, Verdict
from updraft.sim.world.fastqueue import FastQueue, Front, Group
from updraft.sim.world.fleet import Claim, Floor, Place, Room, Worker

HALF_LIFE = 86400.0  # PRIORITY_HALFLIFE
LEAST_PRIORITY = 0.5
PRIORITY_FACTOR = 1000.0  # DEFAULT_PRIO_FACTOR

Judge = Callable[[Group, Worker], Verdict]
_Shape = tuple[Resources, tuple[str, ...]]
_Submitter = tuple[str, str]  # an owner, and one of the schedds where he has jobs


class Matchmaker:
    """Keeps users' priorities between cycles. `judge` says whether a group may run on a slot, and how.

    `factors` are the users' priority factors: who has twice another's gets half as much. Who has none has the
    usual one, as has everybody where there are no factors.
    """

    def __init__(self, queue: FastQueue, floor: Floor, judge: Judge, factors: Mapping[str, float]) -> None:
        self._queue = queue
        self._floor = floor
        self._judge = judge
        self._factors = factors
        self._priority: dict[str, float] = {}
        self._held: dict[str, int] = {}
        self._cycle_at: float | None = None

    def took(self, owner: str, cores: int) -> None:
        """The owner holds so many cores more, or (negative) less."""
        self._held[owner] = self._held.get(owner, 0) + cores

    def cycle(self, now: float) -> Iterator[Claim]:
        """Claims, one after the other; whoever iterates gives each a job before the next is made.

        First all that the negotiator matches, then what the schedds make of the leftovers.
        """
        self._age(now)
        if not self._queue.waiting:
            return
        shelf = _Shelf(self._floor, self._judge)
        if shelf.empty:
            return
        lines = self._lines(now)
        matched: deque[Claim] = deque()
        for claim in self._spins(lines, shelf, now):
            matched.append(claim)
            yield claim
        yield from self._fill(matched, lines, now)

    def shares(self) -> Shares | None:
        """What the collector is told of this: effective priorities; None where no factors are set."""
        names = {*self._priority, *self._factors}
        return Shares({name: self._effective(name) for name in sorted(names)}) if self._factors else None

    # ------------------------------------------------------------------------------------- the negotiator

    def _spins(self, lines: "dict[_Submitter, _Line]", shelf: "_Shelf", now: float) -> Iterator[Claim]:
        """Matches, shared out as `negotiateWithGroup` does: the pie is spun until nobody gets more of it.

        A submitter's limit is its share of all cores less what it has, and a slot counts with all that is
        free of it. Who has what it wants, or only running jobs, has no part in the next spin.
        """
        used = {owner: float(cores) for owner, cores in self._held.items() if cores > 0}
        total = sum(one.kind.resources.cpus * one.kind.slots for one in self._floor.workers.values())
        content = used.keys() - {owner for owner, _ in lines}
        turns, first = sorted(lines), True
        while turns and not shelf.empty:
            shares = self._parts({owner for owner, _ in turns} | content)
            limits = {name: max(0.0, part * total - used.get(name, 0.0)) for name, part in shares.items()}
            if first:
                turns.sort(key=lambda turn: self._place_of(turn[0], used, limits))
            left = whole = sum(limits[owner] for owner, _ in turns) + sum(limits[owner] for owner in content)
            stay = []
            for turn in turns:
                owner, before = turn[0], used.get(turn[0], 0.0)
                served = _Served(min(max(0.0, shares[owner] * total - before), left))
                yield from self._serve(lines[turn], served, shelf, now)
                used[owner] = before + served.spent
                left -= served.spent
                if served.limited:
                    stay.append(turn)
            if left >= whole and len(stay) == len(turns) and not content:
                return
            turns, content, first = stay, set(), False

    def _serve(self, line: "_Line", served: "_Served", shelf: "_Shelf", now: float) -> Iterator[Claim]:
        """A submitter's matches in one spin, by its jobs' order; a group that is refused is passed over."""
        at = 0
        while at < len(line) and served.spent < served.limit:
            found = shelf.best(line[at])
            # The first may be more than the limit, so that no crumbs are left that nobody can take.
            if found is None or (served.spent and served.spent + found[0].free.cpus > served.limit):
                served.limited |= found is not None
                at += 1
                continue
            room, share = found
            served.spent += room.free.cpus
            shelf.taken.add(room)
            yield self._give(room, line[at], share, now)
            line.served(at)
        served.limited |= served.spent >= served.limit

    def _parts(self, owners: Set[str]) -> dict[str, float]:
        """Everybody's part of the pool: in proportion to one over the priority."""
        weights = {owner: 1 / self._effective(owner) for owner in owners}
        whole = sum(weights.values())
        return {owner: weight / whole for owner, weight in weights.items()}

    def _place_of(
        self, owner: str, used: Mapping[str, float], limits: Mapping[str, float]
    ) -> tuple[float, float]:
        """By what submitters are sorted: the least priority first, then who has the least of his share."""
        has, may = used.get(owner, 0.0), limits[owner]
        return self._effective(owner), has / (has + may) if has + may > 0 else math.inf

    def _give(self, room: Room, group: Group, share: Resources, now: float) -> Claim:
        self.took(group.owner, max(1, share.cpus))
        return self._floor.claim(room, group, share, now)

    # ----------------------------------------------------------------------------------------- the schedds

    def _lines(self, now: float) -> "dict[_Submitter, _Line]":
        """What waits, by submitter, at schedds that answer."""
        queue, groups = self._queue, dict[_Submitter, list[Group]]()
        for owner, mine in queue.waiting.items():
            for group in mine:
                if queue.answers(group.schedd, now):
                    groups.setdefault((owner, group.schedd), []).append(group)
        return {submitter: _Line(queue, found) for submitter, found in groups.items()}

    def _fill(self, claimed: deque[Claim], lines: "dict[_Submitter, _Line]", now: float) -> Iterator[Claim]:
        """What is left of partitionable slots, claim after claim, for the same submitter's jobs.

        A slot's leftovers come back with the answer to its claim, and are claimed after those that are asked
        for already: so slots are filled in turn, a job each.
        """
        while claimed:
            claim = claimed.popleft()
            room, line = claim.room, lines[claim.group.owner, claim.group.schedd]
            if not room.worker.kind.partitionable or not room.free.cpus:
                continue
            for at in range(len(line)):
                group = line[at]
                verdict = self._judge(group, room.worker)
                share = room.share(verdict, group.request) if verdict.copies else None
                if share is not None:
                    more = self._give(room, group, share, now)
                    yield more
                    line.served(at)
                    claimed.append(more)
                    break

    # -------------------------------------------------------------------------------------- the accountant

    def _effective(self, owner: str) -> float:
        return self._priority.get(owner, LEAST_PRIORITY) * self._factors.get(owner, PRIORITY_FACTOR)

    def _age(self, now: float) -> None:
        """Real user priority: it follows the cores in use, with the half-life of a day."""
        beta = 1.0 if self._cycle_at is None else 0.5 ** ((now - self._cycle_at) / HALF_LIFE)
        self._cycle_at = now
        for owner, held in self._held.items():
            before = self._priority.get(owner, LEAST_PRIORITY)
            self._priority[owner] = max(LEAST_PRIORITY, beta * before + (1 - beta) * held)


@dataclass(slots=True)
class _Served:
    """What a submitter may have and has got in one spin, in cores; `limited` where it could use more."""

    limit: float
    spent: float = 0.0
    limited: bool = False


class _Line:
    """A submitter's waiting groups, in the order of their first jobs."""

    def __init__(self, queue: FastQueue, groups: list[Group]) -> None:
        self._queue = queue
        self._groups = sorted([(queue.front(group), group.serial, group) for group in groups], key=_front)

    def __len__(self) -> int:
        return len(self._groups)

    def __getitem__(self, at: int) -> Group:
        return self._groups[at][2]

    def served(self, at: int) -> None:
        """This group's first job is matched: the group stands where its next one belongs."""
        _, serial, group = self._groups.pop(at)
        if group.idle:
            # The next job comes after the one that was served, and so after those that were passed over.
            bisect.insort(self._groups, (self._queue.front(group), serial, group), lo=at, key=_front)


def _front(entry: tuple[Front, int, Group]) -> Front:
    return entry[0]


class _Shelf:
    """Slots for jobs, those with the fewest free cores first, for each shape of job that asks in one cycle.

    `taken` are the slots that were matched in this cycle: none is matched twice.
    """

    def __init__(self, floor: Floor, judge: Judge) -> None:
        self._judge = judge
        self._places = floor.places
        self._workers = {place[0]: next(iter(rooms)).worker for place, rooms in self._places.items()}
        self._heaps: dict[_Shape, list[tuple[int, int, int, Place]]] = {}
        self._shapes: dict[Group, _Shape] = {}
        self.taken: set[Room] = set()
        self._open = sum(map(len, self._places.values()))

    @property
    def empty(self) -> bool:
        """Whether nothing is left for anybody."""
        return len(self.taken) >= self._open

    def best(self, group: Group) -> tuple[Room, Resources] | None:
        """The slot that the negotiator prefers for one of the group's jobs, and the share that it gets."""
        heap = self._heap(group)
        while heap:
            room = self._first(heap[0][3])
            if room is not None:
                share = room.share(self._judge(group, room.worker), group.request)
                if share is not None:
                    return room, share
            heapq.heappop(heap)
        return None

    def _first(self, place: Place) -> Room | None:
        """The first slot of a place that isn't taken: one that has come to it in this cycle stands behind."""
        room = next(iter(self._places.get(place, ())), None)
        return None if room in self.taken else room

    def _heap(self, group: Group) -> list[tuple[int, int, int, Place]]:
        shape = self._shapes.get(group)
        if shape is None:
            fits = tuple(name for name, one in self._workers.items() if self._judge(group, one).copies > 0)
            shape = self._shapes[group] = (group.request, fits)
        heap = self._heaps.get(shape)
        if heap is None:
            heap = self._heaps[shape] = [
                (place[1].cpus, place[1].memory, at, place)
                for at, place in enumerate(self._places)
                if place[0] in shape[1] and place[1].holds(group.request)
            ]
            heapq.heapify(heap)
        return heap
