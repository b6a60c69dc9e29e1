"""How many jobs of a group go onto a slot, in plain numbers, and which group chooses first.

What a job takes is its verdict's `asks`. As a startd does, the last job on a slot may take what is left,
where that is less than `asks` and at least what the job requested.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from updraft.core.matching.match import QUANTUM
from updraft.core.matching.verdicts import table_of
from updraft.core.model import NOTHING, JobGroup, Kind, Resources, Verdict, Verdicts

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

Vector = tuple[int, int, int, int]
Demand = Sequence[tuple[JobGroup, int]]

ENDLESS = 1_000_000_000
_GPU_WASTE = 10.0


@dataclass(frozen=True, slots=True)
class Fit:
    """How jobs of one group go onto one kind, in plain numbers.

    A job starts where at least `least` is free and takes `asks` of it (or all there is); `copies` start on an
    empty slot. `waste` is the share of an empty slot that lies idle when only this group is on it.
    """

    asks: Vector
    least: Vector
    copies: int
    waste: float


def vector(resources: Resources) -> Vector:
    """The four quantities as a tuple."""
    return (resources.cpus, resources.memory, resources.disk, resources.gpus)


def fit(group: JobGroup, kind: Kind | None, verdict: Verdict | None) -> Fit | None:
    """How `group` goes onto `kind`; None where the verdict is missing, undecided or no.

    For a kind that isn't known, jobs go by their quantities and the verdict's copies alone.
    """
    if verdict is None or not verdict.decided or verdict.copies < 1:
        return None
    asks, request = vector(verdict.asks), vector(group.request)
    if kind is None:
        return Fit(asks, request, verdict.copies, 0.0)
    total = vector(kind.resources)
    if not kind.partitionable:
        return Fit(total, total, 1, _waste(total, request, 1))
    most = room(total, asks, request)
    copies = min(verdict.copies, most)
    if copies < 1:
        return None
    least = request
    if copies < most:
        # The requirements want more than the request: a job is known to start with this much left.
        before = copies - 1
        least = (
            max(total[0] - before * asks[0], request[0]),
            max(total[1] - before * asks[1], request[1]),
            max(total[2] - before * asks[2], request[2]),
            max(total[3] - before * asks[3], request[3]),
        )
    return Fit(asks, least, copies, _waste(total, asks, copies))


def room(free: Vector, asks: Vector, least: Vector) -> int:
    """How many jobs start in `free`, each taking `asks`, the last one where `least` is left."""
    if free[0] < least[0] or free[1] < least[1] or free[2] < least[2] or free[3] < least[3]:
        return 0
    most = ENDLESS
    if asks[0]:
        most = (free[0] - least[0]) // asks[0]
    if asks[1] and (other := (free[1] - least[1]) // asks[1]) < most:
        most = other
    if asks[2] and (other := (free[2] - least[2]) // asks[2]) < most:
        most = other
    if asks[3] and (other := (free[3] - least[3]) // asks[3]) < most:
        most = other
    return most + 1


def take(free: Vector, asks: Vector, count: int) -> Vector:
    """What is left of `free` after `count` jobs; the last one takes no more than there is."""
    return (
        max(0, free[0] - count * asks[0]),
        max(0, free[1] - count * asks[1]),
        max(0, free[2] - count * asks[2]),
        max(0, free[3] - count * asks[3]),
    )


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


def choosy(groups: Sequence[JobGroup], fits: Mapping[str, Mapping[str, Fit]]) -> list[JobGroup]:
    """Groups as they choose: those that the fewest kinds can run first, then the biggest, then by turns."""
    return [groups[at] for at in choosing(groups, [len(fits[group.key]) for group in groups])]


def choosing(groups: Sequence[JobGroup], choices: Sequence[int]) -> list[int]:
    """The positions of groups as they choose: those with the fewest `choices` first, then the biggest."""
    place = {group.key: at for at, group in enumerate(turns(groups))}
    asked = [vector(group.request) for group in groups]
    scale = [max((request[d] for request in asked), default=0) or 1 for d in range(4)]

    def rank(at: int) -> tuple[int, int, float, int]:
        cpus, memory, disk, gpus = asked[at]
        size = max(cpus / scale[0], memory / scale[1], disk / scale[2], gpus / scale[3])
        return (choices[at], -gpus, -size, place[groups[at].key])

    return sorted(range(len(groups)), key=rank)


def _waste(total: Vector, asks: Vector, copies: int) -> float:
    idle = [1.0 - min(1.0, copies * asks[d] / total[d]) if total[d] else 0.0 for d in range(4)]
    # Disk is seldom scarce; an idle GPU always hurts.
    return idle[0] + idle[1] + 0.1 * idle[2] + _GPU_WASTE * idle[3]


# -------------------------------------------------------------------------------------------- in bulk


@dataclass(frozen=True, slots=True)
class Fits:
    """How some groups (rows) go onto some kinds (columns), as `Fit` says it of one pair.

    `asks` and `least` hold a table for each of the four quantities, `asked` are the numbers of those that
    anybody asks for. Where `copies` is 0, nothing else counts.
    """

    asks: tuple[Ints, Ints, Ints, Ints]
    least: tuple[Ints, Ints, Ints, Ints]
    copies: Ints
    waste: Floats
    asked: tuple[int, ...]


class Grid:
    """Groups × kinds: who can go onto what is known of all pairs; how, is worked out for the rows asked for.

    For a kind that isn't known (None), jobs go by their quantities and the verdict's copies alone.
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
        self._request = _columns([vector(group.request) for group in groups])
        self._size = _columns([vector(kind.resources) if kind else (0, 0, 0, 0) for kind in found])
        self._static = np.array(
            [kind is not None and not kind.partitionable for kind in found], dtype=np.bool_
        )
        self._known = np.array([kind is not None for kind in found], dtype=np.bool_)
        self._copies = table.copies
        loose = self._static | ~self._known
        self.serves: Flags = table.copies > 0
        for want, have in zip(self._request, self._size, strict=True):
            self.serves &= (want[:, None] <= have) | loose

    def fits(self, rows: Sequence[int]) -> Fits:
        """How these groups go onto each kind."""
        request = [column[rows][:, None] for column in self._request]
        size, static, known = self._size, self._static, self._known
        asks = [self._asked(d, request[d]) for d in range(4)]
        copies = np.where(self.serves[rows], self._copies[rows], 0).astype(np.int64)
        most = np.full(copies.shape, ENDLESS, dtype=np.int64)
        for d in range(4):
            number = (size[d] - request[d]) // np.maximum(asks[d], 1) + 1
            np.minimum(most, np.where(asks[d] > 0, number, ENDLESS), out=most)
        # A kind that isn't known has no size to go by.
        copies = np.where(known, np.minimum(copies, most), copies)
        strict = known & ~static & (copies < most)
        least = []
        for d in range(4):
            # Requirements that want more than the request: a job is known to start with this much left.
            more = np.maximum(size[d] - (copies - 1) * asks[d], request[d])
            need = np.where(strict, more, request[d])
            least.append(np.where(static, size[d], need))
        copies = np.where(static, np.minimum(copies, 1), copies)
        waste = self._wasted([np.where(static, r, a) for r, a in zip(request, asks, strict=True)], copies)
        asked = tuple(d for d in range(4) if asks[d].any() or least[d].any())
        return Fits(_four(asks), _four(least), copies, waste, asked)

    def _asked(self, d: int, request: Ints) -> Ints:
        """What a job takes of one quantity, rounded as a startd rounds it: see `matching.match.asked`."""
        size, quantum = self._size[d], vector(QUANTUM)[d]
        rounded = -(-request // quantum) * quantum
        over = self._known & (request <= size) & (size < rounded)
        return np.where(over | self._static, size, rounded)

    def _wasted(self, takes: Sequence[Ints], copies: Ints) -> Floats:
        idle = []
        for take_, size in zip(takes, self._size, strict=True):
            share = np.minimum(1.0, copies * take_ / np.maximum(size, 1))
            idle.append(np.where(size > 0, 1.0 - share, 0.0))
        waste: Floats = idle[0] + idle[1] + 0.1 * idle[2] + _GPU_WASTE * idle[3]
        return waste


def _columns(rows: Sequence[Vector]) -> list[Ints]:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return [np.ascontiguousarray(table[:, d]) for d in range(4)]


def _four(columns: Sequence[Ints]) -> tuple[Ints, Ints, Ints, Ints]:
    return columns[0], columns[1], columns[2], columns[3]
