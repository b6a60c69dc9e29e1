"""How many jobs of a group go onto a slot, in plain numbers, and which group chooses first.

As a startd does, the last job on a slot may take what is left, where that is less than `asks` and at least
what the job requested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from updraft.core.matching.match import QUANTUM
from updraft.core.matching.verdicts import table_of
from updraft.core.model import NOTHING, JobGroup, Kind, Verdicts, counted

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

Vector = tuple[int, ...]
"""Cpus, memory, disk, GPUs, and then whatever custom resources are counted."""
Demand = Sequence[tuple[JobGroup, int]]

ENDLESS = 1_000_000_000
_GPU_WASTE = 10.0
_NONE = -1
_QUANTA = (1, QUANTUM.memory, QUANTUM.disk, 1)


def turns(groups: Iterable[JobGroup]) -> list[JobGroup]:
    """Groups in the order of their turns: owners in rotation, each owner's by job priority, oldest first.

    Owners begin in the order of their oldest group. No shares by user priority: an equal turn for everyone.
    """
    mine: dict[str, list[JobGroup]] = {}
    for group in sorted(groups, key=lambda g: (-g.priority, g.oldest, g.key)):
        mine.setdefault(group.owner, []).append(group)
    owners = sorted(mine, key=lambda owner: (min(group.oldest for group in mine[owner]), owner))
    longest = max((len(queue) for queue in mine.values()), default=0)
    return [mine[owner][turn] for turn in range(longest) for owner in owners if turn < len(mine[owner])]


def choosing(groups: Sequence[JobGroup], choices: Sequence[int], names: Sequence[str] = ()) -> list[int]:
    """The positions of groups as they choose: those with the fewest `choices` first, then the biggest."""
    place = {group.key: at for at, group in enumerate(turns(groups))}
    asked = [group.request.amounts(names) for group in groups]
    scale = [max((request[d] for request in asked), default=0) or 1 for d in range(4 + len(names))]

    def rank(at: int) -> tuple[int, int, float, int]:
        size = max(amount / most for amount, most in zip(asked[at], scale, strict=True))
        return (choices[at], -sum(asked[at][3:]), -size, place[groups[at].key])

    return sorted(range(len(groups)), key=rank)


@dataclass(frozen=True, slots=True)
class Fits:
    """How some groups (rows) go onto some kinds (columns), in plain numbers.

    A job starts where at least `least` is free and takes `asks` of it (or all there is): a table for each
    quantity; `asked` are the numbers of those that anybody asks for. `copies` start on an empty slot; where
    that is 0, nothing else counts. `waste` is the share of an empty slot that lies idle when only this group
    is on it.
    """

    asks: tuple[Ints, ...]
    least: tuple[Ints, ...]
    copies: Ints
    waste: Floats
    asked: tuple[int, ...]


class FitGrid:
    """Groups × kinds: who can go onto what is known of all pairs; how, is worked out for the rows asked for.

    For a kind that isn't known (None), jobs go by their quantities and the verdict's copies alone. The
    quantities are cpus, memory, disk, GPUs and the custom resources in `names`.
    """

    def __init__(
        self, groups: Sequence[JobGroup], kinds: Mapping[str, Kind | None], verdicts: Verdicts
    ) -> None:
        names = sorted(kinds)
        found = [kinds[name] for name in names]
        table = table_of(
            verdicts,
            groups,
            [kind or Kind(name, "", NOTHING) for name, kind in zip(names, found, strict=True)],
        )
        sizes = [kind.resources if kind else NOTHING for kind in found]
        self.names = counted((group.request for group in groups), sizes)
        whole = [size.amounts(self.names, _NONE) for size in sizes]
        self._request = _columns([group.request.amounts(self.names) for group in groups], self.names)
        self._has = [column >= 0 for column in _columns(whole, self.names)]
        self._size = [np.maximum(column, 0) for column in _columns(whole, self.names)]
        self._static = np.array(
            [kind is not None and not kind.partitionable for kind in found], dtype=np.bool_
        )
        self._known = np.array([kind is not None for kind in found], dtype=np.bool_)
        self._copies = table.copies
        loose = self._static | ~self._known
        self.serves: Flags = table.copies > 0
        for want, size, has in zip(self._request, self._size, self._has, strict=True):
            self.serves &= (want[:, None] <= size) | loose | ~has

    def fits(self, rows: Sequence[int]) -> Fits:
        """How these groups go onto each kind."""
        each = range(4 + len(self.names))
        request = [column[rows][:, None] for column in self._request]
        for d in each[4:]:  # of what a slot has none of, not even a name, nothing is taken
            request[d] = np.where(self._has[d], request[d], 0)
        size, static, known = self._size, self._static, self._known
        asks = [self._asked(d, request[d]) for d in each]
        copies = np.where(self.serves[rows], self._copies[rows], 0).astype(np.int64)
        most = np.full(copies.shape, ENDLESS, dtype=np.int64)
        for d in each:
            number = (size[d] - request[d]) // np.maximum(asks[d], 1) + 1
            np.minimum(most, np.where(asks[d] > 0, number, ENDLESS), out=most)
        # A kind that isn't known has no size to go by.
        copies = np.where(known, np.minimum(copies, most), copies)
        strict = known & ~static & (copies < most)
        least = []
        for d in each:
            # Requirements that want more than the request: a job is known to start with this much left.
            more = np.maximum(size[d] - (copies - 1) * asks[d], request[d])
            need = np.where(strict, more, request[d])
            least.append(np.where(static, size[d], need))
        copies = np.where(static, np.minimum(copies, 1), copies)
        waste = self._wasted([np.where(static, r, a) for r, a in zip(request, asks, strict=True)], copies)
        asked = tuple(d for d in each if asks[d].any() or least[d].any())
        return Fits(tuple(asks), tuple(least), copies, waste, asked)

    def _asked(self, d: int, request: Ints) -> Ints:
        """The amount that a job takes of one quantity, rounded as a startd rounds it: see
        `matching.match.asked`.
        """
        size, quantum = self._size[d], _QUANTA[d] if d < 4 else 1
        rounded = -(-request // quantum) * quantum
        over = self._known & (request <= size) & (size < rounded)
        return np.where(over | self._static, size, rounded)

    def _wasted(self, takes: Sequence[Ints], copies: Ints) -> Floats:
        idle = []
        for take_, size in zip(takes, self._size, strict=True):
            share = np.minimum(1.0, copies * take_ / np.maximum(size, 1))
            idle.append(np.where(size > 0, 1.0 - share, 0.0))
        waste: Floats = idle[0] + idle[1] + 0.1 * idle[2] + _GPU_WASTE * idle[3]
        for more in idle[4:]:
            waste = waste + _GPU_WASTE * more
        return waste


def _columns(rows: Sequence[Vector], names: Sequence[str]) -> list[Ints]:
    width = 4 + len(names)
    table = np.array(rows, dtype=np.int64).reshape(-1, width)
    return [np.ascontiguousarray(table[:, d]) for d in range(width)]
