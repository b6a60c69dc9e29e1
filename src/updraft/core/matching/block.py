"""One look at the pairs that are open: requirements of both sides, then how many jobs a slot takes on."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from updraft.core.matching.cells import Mask
from updraft.core.matching.devices import Devices
from updraft.core.matching.grid import Grid
from updraft.core.matching.match import QUANTUM
from updraft.core.matching.memory import Memo
from updraft.core.matching.pairs import LEFT
from updraft.core.matching.tables import ABSENT, Facts, Numbers, Places, Side, reached
from updraft.core.matching.verdicts import MISSING, UNDECIDED, Counts
from updraft.core.model import JobGroup, Kind, counted

Quantities = npt.NDArray[np.int64]

_ENDLESS = 1_000_000_000
_NONE = -1
_QUANTA = (1, QUANTUM.memory, QUANTUM.disk, 1)


@dataclass(frozen=True, slots=True)
class Sizes:
    """Quantities of a whole slot (1 × kinds), and what one job takes of it (groups × kinds); `most` is how
    many jobs that is room for. The quantities are cpus, memory, disk, GPUs and the custom ones in `names`."""

    totals: tuple[Quantities, ...]
    asks: tuple[Quantities, ...]
    most: Quantities
    names: tuple[str, ...] = ()

    def free(self, before: Quantities) -> tuple[Quantities, ...]:
        """What `before` jobs leave of each."""
        return tuple(total - ask * before for total, ask in zip(self.totals, self.asks, strict=True))


def sizes(groups: Sequence[JobGroup], kinds: Sequence[Kind]) -> Sizes:
    """The sizes of these slots and the room in them for these groups' jobs, by quantities alone, in one go.

    The same numbers, pair by pair, are `matching.match.asked` and `matching.match.by_quantity`.
    """
    static = np.array([not kind.partitionable for kind in kinds])[None, :]
    names = counted([group.request for group in groups], [kind.resources for kind in kinds])
    width = 4 + len(names)
    whole = np.array([kind.resources.amounts(names, _NONE) for kind in kinds], dtype=np.int64)
    wants = np.array([group.request.amounts(names) for group in groups], dtype=np.int64)
    whole, wants = whole.reshape(-1, width), wants.reshape(-1, width)
    totals, asks = [], []
    most = np.full((len(groups), len(kinds)), _ENDLESS, dtype=np.int64)
    fits = np.ones(most.shape, dtype=bool)
    for at, quantum in enumerate((*_QUANTA, *(1 for _ in names))):
        total, want = whole[None, :, at], wants[:, None, at]
        if at >= 4:  # of what a slot has none of, not even a name, nothing is taken
            total, want = np.maximum(total, 0), np.where(total == _NONE, 0, want)
        rounded = -(-want // quantum) * quantum
        ask = np.where((want <= total) & (total < rounded), total, rounded) if quantum > 1 else rounded
        ask = np.broadcast_to(np.where(static, total, ask), most.shape) if static.any() else ask
        fits &= total >= want
        takes = np.broadcast_to(ask > 0, most.shape)
        count = 1 + (total - want) // np.maximum(ask, 1)
        most = np.where(takes, np.minimum(most, count), most)
        totals.append(total)
        asks.append(ask)
    most = np.where(static, 1, most)
    return Sizes(tuple(totals), tuple(asks), np.where(fits, most, 0), names)


_LEFT = ("cpus", "memory", "disk", "gpus")


class Block:
    """Groups × kinds with their facts. What it can't decide is MISSING in what it finds, and the questions
    about it wait at the memo's oracle; their rows are places among these groups."""

    def __init__(
        self,
        memo: Memo,
        groups: Sequence[JobGroup],
        kinds: Sequence[Kind],
        jobs: Sequence[Facts],
        slots: Sequence[Facts],
        now: float,
    ) -> None:
        self._memo, self._jobs, self._slots = memo, jobs, slots
        self._gpus = np.array([group.request.gpus for group in groups], dtype=np.int64)
        self._sizes = sizes(groups, kinds)
        lexicon = memo.lexicon
        self._grid = Grid(Side(lexicon, jobs), Side(lexicon, slots), memo.oracle, now)

    def run(self, wanted: Mask) -> tuple[Counts, Mask | None]:
        """How many jobs fit, for the `wanted` pairs; and which pairs depend on the time (None: none do)."""
        chance, timed = self._doubtful()
        most = self._sizes.most
        alive = wanted & (most > 0)
        if chance is not None:
            alive &= ~chance
        mine, waiting = self._grid.hold(0, alive)
        found, more = self._grid.hold(1, mine)
        waiting = (waiting | more) & found
        most = np.where(found, most, 0)
        some = found & ~waiting & (most > 1)
        if some.any():
            most, late = self._verified(most, some)
            waiting |= late
        copies = np.where(waiting, MISSING, most).astype(np.int32)
        if chance is not None:
            copies = np.where(chance, np.int32(UNDECIDED), copies)
        return copies, timed

    # --------------------------------------------------------------------------------- time and chance

    def _doubtful(self) -> tuple[Mask | None, Mask | None]:
        """The pairs that chance decides about, and those that the time does."""
        uses = self._memo.lexicon.uses
        jobs = np.array([facts.skeleton for facts in self._jobs])
        slots = np.array([facts.skeleton for facts in self._slots])
        mine, theirs = np.unique(jobs).tolist(), np.unique(slots).tolist()
        odd = {number for number in (*mine, *theirs) if uses[number].timed or uses[number].undecidable}
        if not odd:
            return None, None
        chance, timed = np.zeros(self._grid.shape, dtype=bool), np.zeros(self._grid.shape, dtype=bool)
        for job in mine:
            for slot in theirs:
                if job not in odd and slot not in odd:
                    continue
                names = reached(uses[job], uses[slot])
                place = np.ix_(jobs == job, slots == slot)
                chance[place] = any(names & uses[one].undecidable.keys() for one in (job, slot))
                timed[place] = any(names & uses[one].timed for one in (job, slot))
        return (chance if chance.any() else None), (timed if timed.any() else None)

    # ---------------------------------------------------------------------------------- what a slot has left

    def _verified(self, most: Quantities, some: Mask) -> tuple[Quantities, Mask]:
        """The largest counts up to `most` whose last job still starts on what the others left, where `some`;
        and the pairs for which that isn't known yet."""
        starts, waiting = self._start(most - 1, some)
        bad = some & ~starts & ~waiting
        if not bad.any():
            return most, waiting
        low, high = np.where(bad, 1, most), most
        while (open_ones := bad & ~waiting & (high - low > 1)).any():
            middle = (low + high) // 2
            starts, late = self._start(middle - 1, open_ones)
            waiting |= late
            low = np.where(open_ones & starts, middle, low)
            high = np.where(open_ones & ~starts, middle, high)
        return low, waiting

    def _start(self, before: Quantities, some: Mask) -> tuple[Mask, Mask]:
        """Whether one more job starts where `before` others have; and where that is open."""
        rows = np.flatnonzero(some.any(axis=1))
        whole = len(rows) == len(some)
        if not whole:
            before, some = before[rows], some[rows]
        left: dict[str, Numbers] = {}
        names = (*_LEFT, *self._sizes.names)
        for name, total, ask in zip(names, self._sizes.totals, self._sizes.asks, strict=True):
            taken = ask if len(ask) == 1 or whole else ask[rows]
            left[name] = (total - taken * before).astype(np.float64)
        left["numdynamicslots"] = before.astype(np.float64)
        grid = self._grid if whole else self._grid.part(rows, None)
        devices = self._devices(grid, rows, before)
        grid = Grid(grid.jobs, grid.slots, grid.oracle, grid.now, left, devices)
        reading = LEFT.union(self._sizes.names)
        mine, waiting = grid.hold(0, some, reading)
        found, more = grid.hold(1, mine, reading)
        waiting = (waiting | more) & found
        if whole:
            return found, waiting
        starts, late = np.zeros(self._grid.shape, dtype=bool), np.zeros(self._grid.shape, dtype=bool)
        starts[rows], late[rows] = found, waiting
        return starts, late

    def _devices(
        self, grid: Grid, rows: Places, before: Quantities
    ) -> Callable[[int, int], str | None] | None:
        wants = self._gpus[rows]
        if not wants.any() or bool((grid.slots.column("availablegpus")[0] == ABSENT).all()):
            return None
        order = Devices(grid)

        def text(row: int, column: int) -> str | None:
            return order.after(row, column, int(wants[row] * before[row, column]), int(wants[row]))

        return text
