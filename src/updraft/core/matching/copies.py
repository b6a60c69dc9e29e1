"""How many jobs of many groups fit on empty slots of many kinds, by their quantities. All in one go.

The same numbers, pair by pair, are `matching.match.asked` and `matching.match.by_quantity`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from updraft.core.matching.match import QUANTUM
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
    """The sizes of these slots and the room in them for these groups' jobs."""
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
