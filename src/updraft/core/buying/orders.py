"""Lines of a shopping list on their way to be bought."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heapreplace

import numpy as np

from updraft.core.buying.listing import Line
from updraft.core.buying.market import Ints
from updraft.core.buying.slices import Slices, Turn
from updraft.core.model import JobGroup
from updraft.core.sharing.submitters import weight


@dataclass(slots=True, eq=False)
class PurchaseOrder:
    """A line on its way: `count` machines are still to be asked for, `got` were granted.

    `rows` and `numbers` are its content by rows of the sale, `cores` what the jobs of one machine ask for, by
    submitter; `submitter` is whose turn it is asked for in, `place` where it stands in the list.
    """

    offer: int
    content: Mapping[str, int]
    count: int
    submitter: str
    rows: Ints
    numbers: Ints
    cores: Mapping[str, int]
    place: int = 0
    got: int = 0


def as_order(
    line: Line, row: Mapping[str, int], groups: Sequence[JobGroup], cpus: Ints, place: int = 0
) -> PurchaseOrder:
    """A line as it is asked for part by part. `row` finds the groups, a job of which takes `cpus`."""
    rows = [row[key] for key in line.content]
    cores: dict[str, int] = {}
    for at, number in zip(rows, line.content.values(), strict=True):
        name = groups[at].submitter
        cores[name] = cores.get(name, 0) + number * int(cpus[at])
    numbers = np.array(list(line.content.values()), dtype=np.int64)
    lead = groups[row[line.lead]].submitter
    # Whoever fills up a machine with jobs of high priority doesn't make these wait for his turn.
    first = max(cores, key=lambda name: (weight(name), name == lead))
    return PurchaseOrder(line.offer, line.content, line.count, first, np.array(rows), numbers, cores, place)


class Queues:
    """Orders that wait for their turn. First come the machines that whoever lacks most could use (by
    `slices`, where there are several submitters); of the orders for these, those of the submitter whose
    `turn` it is, by what was bought for it; in the end ranks decide, and the order of the list.
    """

    def __init__(
        self,
        orders: Sequence[PurchaseOrder],
        slices: Slices | None,
        turn: Callable[[str], Turn],
        rank: Mapping[str, int],
    ) -> None:
        self._slices = slices
        self._turn = turn
        self._offers: dict[bytes, int] = {}
        self._queues: dict[bytes, _OrderQueue] = {}
        self._at = b""
        for order in reversed(orders):
            alike = slices.alike(order.offer) if slices else b""
            self._offers.setdefault(alike, order.offer)
            self._queues.setdefault(alike, _OrderQueue()).add(order)
        for queue in self._queues.values():
            queue.begin(turn, rank)

    def __bool__(self) -> bool:
        return bool(self._queues)

    def next(self) -> list[PurchaseOrder]:
        """Orders of the submitter who comes next, the first of them at the end."""
        if self._at not in self._queues or (self._slices and self._slices.due()):
            first = {at: queue.first(self._turn) for at, queue in self._queues.items()}
            self._at = next(iter(first))
            if len(first) > 1 and self._slices:
                offers = [self._offers[at] for at in first]
                due = dict(zip(first, self._slices.turns(offers), strict=True))
                self._at = min(first, key=lambda at: (due[at], first[at]))
        self._queues[self._at].first(self._turn)
        return self._queues[self._at].orders()

    def go_on(self) -> None:
        """Whoever came last has had its turn; orders that it has no more of are taken from its list."""
        if not self._queues[self._at].go_on(self._turn):
            del self._queues[self._at]


@dataclass(slots=True)
class _OrderQueue:
    """Orders for machines that the same jobs can use: submitters by turns, each one's as they were listed."""

    _orders: dict[str, list[PurchaseOrder]] = field(default_factory=dict)
    _turns: list[tuple[Turn, int, str]] = field(default_factory=list)

    def add(self, order: PurchaseOrder) -> None:
        """One more order, which comes before those of its submitter that were added."""
        self._orders.setdefault(order.submitter, []).append(order)

    def begin(self, turn: Callable[[str], Turn], rank: Mapping[str, int]) -> None:
        """All were added; turns that are equal come by rank."""
        self._turns = [(turn(name), rank[name], name) for name in self._orders]
        heapify(self._turns)

    def first(self, turn: Callable[[str], Turn]) -> tuple[Turn, int, int]:
        """Turn and rank of the submitter who comes first, and the place of its order in the list."""
        while (now := turn(self._turns[0][2])) > self._turns[0][0]:  # others' machines had room for its jobs
            heapreplace(self._turns, (now, *self._turns[0][1:]))
        then, rank, name = self._turns[0]
        return then, rank, self._orders[name][-1].place

    def orders(self) -> list[PurchaseOrder]:
        """The orders of the submitter who comes first."""
        return self._orders[self._turns[0][2]]

    def go_on(self, turn: Callable[[str], Turn]) -> bool:
        """Whoever was first has had its turn; False when nobody is left."""
        _, rank, name = self._turns[0]
        if self._orders[name]:
            heapreplace(self._turns, (turn(name), rank, name))
        else:
            heappop(self._turns)
        return bool(self._turns)
