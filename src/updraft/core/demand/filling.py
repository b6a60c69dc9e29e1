"""Which waiting jobs find room on slots that are there: whole groups at a time, by verdicts only.

A sound greedy. Groups that few kinds can run, and big ones, choose first; each prefers the kind of which
it wastes least, so that GPUs and big memory are left to those who need them. Nothing loops over single jobs,
and nothing over single slots: a group looks at all slots of a kind at once.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from updraft.core.demand.fitting import ENDLESS, Demand, FitGrid, Fits, Flags, Floats, Ints, Vector, choosing
from updraft.core.demand.runtimes import needs
from updraft.core.model import Kind, Resources, Verdicts

NONE_BARRED: Mapping[str, Collection[str]] = {}
_PAIRS = 4096  # group × kind pairs whose numbers are worked out at a time
_BLOCK = 64  # slots that a group looks at first; twice as many each time that those have not enough room


@dataclass(frozen=True, slots=True)
class Bin:
    """One slot with room: `free` is what it has left, `kind` the key of its kind.

    Among bins of one kind those of the smaller `order` are filled first. A job that may need more than `life`
    seconds is not put there. `total` is the whole slot, None where it is its kind's: machines of one kind
    differ by a few KiB of disk, or by a MiB.
    """

    key: str
    kind: str
    free: Resources
    order: float = 0.0
    life: float = float("inf")
    total: Resources | None = None


@dataclass(frozen=True, slots=True)
class Filling:
    """`placed` counts the jobs of each group in each bin (zeroes left out), `left` those without room."""

    placed: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    left: Mapping[str, int] = field(default_factory=dict)


def fill(
    groups: Demand,
    bins: Iterable[Bin],
    verdicts: Verdicts,
    kinds: Mapping[str, Kind] | None = None,
    barred: Mapping[str, Collection[str]] = NONE_BARRED,
) -> Filling:
    """Place as many of the waiting jobs as the bins hold, without buying anything.

    Which group goes first: see `choosing`. Within a group the kinds it wastes least of go first, and of one
    kind the bins by their `order`. A bin without cpus or memory left is full. `kinds` tells what whole slots
    are like; without it, requirements that want more room than the job takes aren't seen on a slot that is
    partly used, and waste isn't known. `barred` are the bins, by their keys, that are none for a group.
    """
    left = {group.key: max(0, count) for group, count in groups}
    waiting = [group for group, count in groups if count > 0]
    open_ = [item for item in bins if item.free.cpus > 0 and item.free.memory > 0]
    if not waiting or not open_:
        return Filling({}, left)
    known = kinds or {}
    grid = FitGrid(waiting, {item.kind: known.get(item.kind) for item in open_}, verdicts)
    shelf = _BinTable(open_, grid.names)
    placed: dict[str, dict[str, int]] = {}
    order = choosing(waiting, grid.serves.sum(axis=1).tolist(), grid.names)
    pages = _Pages(grid, order)
    for turn, at in enumerate(order):
        group = waiting[at]
        candidates = shelf.candidates(group.request.amounts(), grid.serves[at], needs(group))
        if group.key in barred:
            candidates = shelf.without(candidates, barred[group.key])
        if not len(candidates):
            continue
        mine = shelf.put(candidates, *pages.of(turn), left[group.key])
        if mine:
            placed[group.key] = mine
            left[group.key] -= sum(mine.values())
    return Filling(placed, left)


class _Pages:
    """How groups go onto kinds, worked out for a few groups at a time: those that come next in the order."""

    def __init__(self, grid: FitGrid, order: list[int]) -> None:
        self._grid = grid
        self._order = order
        self._size = max(1, _PAIRS // max(1, grid.serves.shape[1]))
        self._first = -self._size
        self._page: Fits | None = None

    def of(self, turn: int) -> tuple[Fits, int]:
        """The page on which the group of this turn is, and its row there."""
        if self._page is None or turn >= self._first + self._size:
            self._first = turn
            self._page = self._grid.fits(self._order[turn : turn + self._size])
        return self._page, turn - self._first


class _BinTable:
    """All bins, sorted by kind and by their order, with what is left of each; full ones are closed (-1)."""

    def __init__(self, bins: Iterable[Bin], names: Sequence[str]) -> None:
        found = sorted(bins, key=lambda item: (item.kind, item.order, item.key))
        width = 4 + len(names)
        self.keys = [item.key for item in found]
        self.kinds = sorted({item.kind for item in found})
        column = {key: at for at, key in enumerate(self.kinds)}
        self._kind = np.array([column[item.kind] for item in found], dtype=np.intp)
        free = np.array([item.free.amounts(names) for item in found], dtype=np.int64)
        self._free = free.reshape(-1, width).T.copy()
        # Where nobody has said how much of something the whole slot has, it is as much as its kind has.
        endless = (ENDLESS,) * width
        wholes = [endless if one.total is None else one.total.amounts(names, ENDLESS) for one in found]
        self._total = np.array(wholes, dtype=np.int64).reshape(-1, width).T.copy()
        self._life = np.array([item.life for item in found], dtype=np.float64)
        self._shortest = min((item.life for item in found), default=0.0)
        # The number of the bin in each place, as places are closed up when bins are full.
        self._bin = np.arange(len(found), dtype=np.intp)
        self._most = self._free.max(axis=1).tolist() if found else [0] * width
        self._full = 0

    def candidates(self, request: Vector, serves: Flags, time: float) -> Ints:
        """The places of bins of a kind that serves a job, with what it requests for its `time`."""
        most = self._most
        if request[0] > most[0] or request[1] > most[1] or request[2] > most[2] or request[3] > most[3]:
            return self._bin[:0]
        open_ = self._free[1] >= request[1]
        for d in (0, 2, 3):
            if request[d]:
                open_ &= self._free[d] >= request[d]
        if time > self._shortest:
            open_ &= self._life >= time
        places: Ints = open_.nonzero()[0]
        return places[serves[self._kind[places]]] if len(places) else places

    def without(self, places: Ints, barred: Collection[str]) -> Ints:
        """Those of these places that aren't of these bins."""
        open_ = [self.keys[at] not in barred for at in self._bin[places].tolist()]
        return places[np.array(open_, dtype=np.bool_)]

    def put(self, places: Ints, page: Fits, row: int, count: int) -> dict[str, int]:
        """Put up to `count` jobs of a group into these places; how many went into each bin."""
        placed: dict[str, int] = {}
        for block in _blocks(places, self._kind[places], page.waste[row]):
            kind = self._kind[block]
            number = self._held(block, kind, page, row)
            np.minimum(number, page.copies[row, kind], out=number)
            some = number > 0
            block, kind, number = block[some], kind[some], number[some]
            before = np.cumsum(number) - number
            number = np.minimum(number, np.maximum(count - before, 0))
            used = int(np.count_nonzero(number))
            block, kind, number = block[:used], kind[:used], number[:used]
            self._take(block, kind, number, page, row)
            keys, bins = self.keys, self._bin[block].tolist()
            placed.update(zip([keys[at] for at in bins], number.tolist(), strict=True))
            count -= int(number.sum())
            if not count:
                break
        self._close()
        return placed

    def _held(self, places: Ints, kind: Ints, page: Fits, row: int) -> Ints:
        """How many jobs start in each place, the last one where the least is left."""
        number: Ints = np.full(len(places), ENDLESS, dtype=np.int64)
        for d in page.asked:
            # What was learned of a whole slot of the kind is true of this one, too, when it is whole.
            least = np.minimum(page.least[d][row, kind], self._total[d][places])
            asks, rest = page.asks[d][row, kind], self._free[d][places] - least
            # Where nothing is asked for, there is room for all or, below the least, for none.
            many = np.where(asks > 0, rest // np.maximum(asks, 1) + 1, np.where(rest < 0, 0, ENDLESS))
            np.minimum(number, many, out=number)
        return number

    def _take(self, places: Ints, kind: Ints, number: Ints, page: Fits, row: int) -> None:
        for d in page.asked:
            rest = self._free[d][places] - number * page.asks[d][row, kind]
            self._free[d][places] = np.maximum(rest, 0)
        full = places[(self._free[0][places] == 0) | (self._free[1][places] == 0)]
        self._free[:, full] = -1
        self._full += len(full)

    def _close(self) -> None:
        """Close up what is full, once that is a good part of all."""
        if 4 * self._full > len(self._bin):
            keep = self._free[0] >= 0
            self._kind, self._bin, self._free = self._kind[keep], self._bin[keep], self._free[:, keep]
            self._life, self._total = self._life[keep], self._total[:, keep]
            self._full = 0
            self._most = self._free.max(axis=1).tolist() if len(self._bin) else [-1] * len(self._free)


def _blocks(places: Ints, kind: Ints, waste: Floats) -> Iterator[Ints]:
    """The places, kinds of the least waste first, in blocks that grow."""
    begins = np.flatnonzero(np.concatenate(([True], kind[1:] != kind[:-1])))
    if len(begins) > 1:
        ranked = np.argsort(waste[kind[begins]], kind="stable")
        ends = np.append(begins[1:], len(places))
        sizes = (ends - begins)[ranked]
        # Each kind's places one after the other: the kind's beginning, and how far into it we are.
        into = np.arange(len(places)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places = places[np.repeat(begins[ranked], sizes) + into]
    begin, size = 0, _BLOCK
    while begin < len(places):
        yield places[begin : begin + size]
        begin += size
        size *= 2
