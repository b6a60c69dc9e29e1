"""A negotiator that matches in bulk, in the order of HTCondor's.

Users take turns, the one with the least first (what he has, weighed with past usage); of a user's jobs the
one of the highest priority, then the oldest; of the slots that match, the fullest. A group that found no room
waits for the next cycle, and so does every other that asks for the same and may run on the same kinds.
"""

import heapq
from collections.abc import Callable, Iterator, Mapping

from updraft.core.model import Resources, Shares, Verdict
from updraft.sim.world.fastqueue import FastQueue, Front, Group
from updraft.sim.world.fleet import Claim, Floor, Place, Room, Worker

HALF_LIFE = 86400.0  # PRIORITY_HALFLIFE
LEAST_PRIORITY = 0.5
PRIORITY_FACTOR = 1000.0  # DEFAULT_PRIO_FACTOR

Judge = Callable[[Group, Worker], Verdict]
_Shape = tuple[Resources, tuple[str, ...]]


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
        """Claims, one after the other; whoever iterates gives each a job before the next is made."""
        self._age(now)
        if not self._queue.waiting:
            return
        shelf = _Shelf(self._floor, self._judge)
        if shelf.empty:
            return
        lines: dict[str, list[tuple[Front, int, Group]]] = {}
        turns = [(self._weight(owner), owner) for owner in self._queue.waiting]
        heapq.heapify(turns)
        while turns and not shelf.empty:
            _, owner = turns[0]
            if owner not in lines:
                lines[owner] = self._line(owner, now)
            claim = self._next(lines[owner], shelf, now)
            if claim is None:
                heapq.heappop(turns)
                continue
            yield claim
            group = claim.group
            if group.idle:
                heapq.heappush(lines[owner], (self._queue.front(group), group.serial, group))
            heapq.heapreplace(turns, (self._weight(owner), owner))

    def shares(self) -> Shares | None:
        """What the collector is told of this: effective priorities; None where no factors are set."""
        names = {*self._priority, *self._factors}
        return Shares({name: self._effective(name) for name in sorted(names)}) if self._factors else None

    def _line(self, owner: str, now: float) -> list[tuple[Front, int, Group]]:
        queue = self._queue
        line = [
            (queue.front(group), group.serial, group)
            for group in queue.waiting[owner]
            if queue.answers(group.schedd, now)
        ]
        heapq.heapify(line)
        return line

    def _next(self, line: list[tuple[Front, int, Group]], shelf: "_Shelf", now: float) -> Claim | None:
        """A claim for the owner's first group that finds room; those that don't are taken from the line."""
        while line:
            _, _, group = heapq.heappop(line)
            found = shelf.best(group)
            if found is not None:
                room, share = found
                claim = self._floor.claim(room, group, share, now)
                shelf.moved(room)
                self.took(group.owner, max(1, share.cpus))
                return claim
        return None

    def _weight(self, owner: str) -> float:
        return (1 + self._held.get(owner, 0)) * self._effective(owner)

    def _effective(self, owner: str) -> float:
        return self._priority.get(owner, LEAST_PRIORITY) * self._factors.get(owner, PRIORITY_FACTOR)

    def _age(self, now: float) -> None:
        """Real user priority: it follows the cores in use, with the half-life of a day."""
        beta = 1.0 if self._cycle_at is None else 0.5 ** ((now - self._cycle_at) / HALF_LIFE)
        self._cycle_at = now
        for owner, held in self._held.items():
            before = self._priority.get(owner, LEAST_PRIORITY)
            self._priority[owner] = max(LEAST_PRIORITY, beta * before + (1 - beta) * held)


class _Shelf:
    """Places for jobs, the fullest first, for each shape of job that asks in one cycle."""

    def __init__(self, floor: Floor, judge: Judge) -> None:
        self._judge = judge
        self._places = floor.places
        self._workers = {place[0]: next(iter(rooms)).worker for place, rooms in self._places.items()}
        self._heaps: dict[_Shape, list[tuple[int, int, int, Place]]] = {}
        self._shapes: dict[Group, _Shape] = {}
        self._count = 0

    @property
    def empty(self) -> bool:
        """Whether nothing is left for anybody."""
        return not self._places

    def best(self, group: Group) -> tuple[Room, Resources] | None:
        """The fullest slot with room for one more of the group's jobs, and the share that it gets."""
        heap = self._heap(group)
        while heap:
            rooms = self._places.get(heap[0][3])
            if rooms:
                room = next(iter(rooms))
                share = room.share(self._judge(group, room.worker), group.request)
                if share is not None:
                    return room, share
            heapq.heappop(heap)
        return None

    def moved(self, room: Room) -> None:
        """This slot has given something away: it stands somewhere else now."""
        place = room.place
        if place is not None and len(self._places[place]) == 1:
            for shape, heap in self._heaps.items():
                self._push(heap, shape, place)

    def _heap(self, group: Group) -> list[tuple[int, int, int, Place]]:
        shape = self._shapes.get(group)
        if shape is None:
            fits = tuple(name for name, one in self._workers.items() if self._judge(group, one).copies > 0)
            shape = self._shapes[group] = (group.request, fits)
        heap = self._heaps.get(shape)
        if heap is None:
            heap = self._heaps[shape] = []
            for place in self._places:
                self._push(heap, shape, place)
        return heap

    def _push(self, heap: list[tuple[int, int, int, Place]], shape: _Shape, place: Place) -> None:
        (request, fits), (matched, free) = shape, place
        if matched in fits and free.holds(request):
            self._count += 1
            heapq.heappush(heap, (free.cpus, free.memory, self._count, place))
