"""Who gets the cores of machines that are bought: slices of them, as the negotiator cuts its pie.

A shopping list counts certain jobs onto each machine. The negotiator doesn't know of it: it fills a machine
with jobs of all who can use it, and gives first to whoever has least by its rule (see `shares`). So what is
bought counts for these; and of two kinds of machines the one is due that somebody who has less could use.
Slices are parts of cores: a machine shared by many counts for each of them as much as it should.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from updraft.core.buying.market import Flags, Floats, Ints, Sale
from updraft.core.model import NEW_PRIORITY
from updraft.core.sharing.shares import Standing
from updraft.core.sharing.submitters import is_ready, short, weight

Turn = tuple[int, float]

_LITTLE = 1e-6  # of a core
_PART = 50  # of what was bought, what may be bought before turns are looked at again
_HIGH, _QUOTA, _USER, _SPARE, _NOBODY = -1, 0, 1, 2, 3


class Slices:
    """Each submitter's part of the purchases so far, and what its jobs still want.

    Jobs of a submitter that the same kinds can run are one bundle; bundles are sorted by submitter, each
    one's in the `order` of its jobs (rows of the sale).
    """

    def __init__(self, this: Sale, order: Iterable[int], cores: Ints, who: Standing) -> None:
        self._sale = this
        self._who = who
        serves = this.kind_copies > 0
        packed = np.packbits(serves, axis=1)
        bundles: dict[tuple[str, bytes, int | None], list[int]] = {}
        for row in order:
            group = this.groups[row]
            key = (group.submitter, packed[row].tobytes(), group.terms.type_limit)
            bundles.setdefault(key, []).append(row)
        self.names = sorted({name for name, _, _ in bundles})
        place = {name: at for at, name in enumerate(self.names)}
        mine = [rows for _, rows in sorted(bundles.items(), key=lambda item: item[0][0])]
        self._of = np.array([place[this.groups[rows[0]].submitter] for rows in mine], dtype=np.int64)
        self._starts = np.searchsorted(self._of, np.arange(len(self.names)))
        self._left: Floats = np.array([float(cores[rows].sum()) for rows in mine])
        self._serves: Flags = np.ascontiguousarray(serves[[rows[0] for rows in mine]].T)
        self._cores = cores.astype(np.float64)
        self._job = np.maximum(this.request[:, 0], 1.0)
        self._bundles = np.zeros(len(this.groups), dtype=np.int64)
        for at, rows in enumerate(mine):
            self._bundles[rows] = at
        self._takes: dict[int, Floats] = {}
        self._new: dict[int, int] = {}
        self._bought = 0
        self._got: Floats = np.zeros(len(self.names))
        self._standing()

    def _standing(self) -> None:
        """The standing of each submitter, by which turns go; users whose accounting group has a quota
        also by that.
        """
        who, names = self._who, self.names
        short_ = [short(name) for name in names]
        priority = [who.shares.priorities.get(name, NEW_PRIORITY) for name in short_]
        times = [weight(name) if who.high else 0 for name in names]
        spare = [is_ready(name) for name in names]
        self._has: Floats = np.array([float(who.cores.get(name, 0)) for name in short_])
        self._each: Floats = np.array([p / (t or 1) for p, t in zip(priority, times, strict=True)])
        self._tier: Ints = np.array(
            [_SPARE if s else _HIGH if t else _USER for s, t in zip(spare, times, strict=True)]
        )
        place = {name: at for at, name in enumerate(names)}
        parts = [(place[n], place[p]) for n in who.high if n in place for p in who.high[n] if p in place]
        self._parties: Ints = np.array(parts, dtype=np.int64).reshape(-1, 2)
        found = [who.group_of(name) for name in short_]
        self._groups = list({g.name: g for g in found if g is not None and g.quota > 0}.values())
        number = {group.name: at for at, group in enumerate(self._groups)}
        self._group: Ints = np.array([number.get(g.name, -1) if g else -1 for g in found])
        self._used = np.array([float(who.used_by(group.name)) for group in self._groups])

    # ------------------------------------------------------------------------------------------- whose turn

    def alike(self, offer: int) -> bytes:
        """The same for offers that the same jobs can use."""
        return np.packbits(self._serves[self._sale.of_kind[offer]]).tobytes()

    def turns(self, offers: Sequence[int]) -> list[Turn]:
        """For each of these offers the turn of whoever comes first of those whose jobs it can run."""
        self._settle()
        serves = self._serves[self._sale.of_kind[offers]]
        wanting = np.add.reduceat(serves * self._left, self._starts, axis=1) > _LITTLE
        tier, level = self._levels()
        first = np.where(wanting, tier, _NOBODY).min(axis=1)
        least = np.where(wanting & (tier == first[:, None]), level, np.inf).min(axis=1)
        return list(zip(first.tolist(), np.round(least, 6).tolist(), strict=True))

    def got(self) -> dict[str, float]:
        """The cores of each submitter's slices."""
        self._settle()
        return dict(zip(self.names, self._got.tolist(), strict=True))

    def ranks(self) -> dict[str, Turn]:
        """The turn of each submitter, as `Standing.rank` has it."""
        self._settle()
        tier, level = self._levels()
        return dict(zip(self.names, zip(tier.tolist(), level.tolist(), strict=True), strict=True))

    def _levels(self) -> tuple[Ints, Floats]:
        has = self._has + self._got
        if len(self._parties):
            np.add.at(has, self._parties[:, 0], self._got[self._parties[:, 1]])
        tier, level = self._tier, np.where(self._tier == _SPARE, 0.0, has * self._each)
        if self._groups:
            used, quota = self._quotas()
            below = (self._group >= 0) & (tier == _USER) & (used < quota)[self._group]
            tier = np.where(below, _QUOTA, tier)
            part = np.divide(used, quota, out=np.zeros_like(used), where=quota > 0)
            level = np.where(below, part[self._group], level)
        return tier, level

    def _quotas(self) -> tuple[Floats, Floats]:
        """Cores that each accounting group uses, and those of its quota."""
        mine = self._group >= 0
        got = np.bincount(self._group[mine], self._got[mine], len(self._groups))
        more = float(self._got.sum())
        quota = np.array([self._who.quota(group, more) for group in self._groups])
        return self._used + got, quota

    # ------------------------------------------------------------------------------------------ what is given

    def give(self, offer: int, count: int) -> None:
        """So many machines of an offer are bought: they go to those who can use them, by turns."""
        kind = int(self._sale.of_kind[offer])
        self._bought += count
        self._new[kind] = self._new.get(kind, 0) + count

    def due(self) -> bool:
        """Whether so much was bought since turns were asked for that they may be others'."""
        return sum(self._new.values()) > self._bought // _PART

    def _settle(self) -> None:
        for kind, count in self._new.items():
            self._cut(kind, count * self._cpus(kind))
        self._new.clear()

    def _cut(self, kind: int, rest: float) -> None:
        while rest > _LITTLE:
            usable = np.where(self._serves[kind], self._left, 0.0)
            wants = np.add.reduceat(usable, self._starts)
            tier, level = self._levels()
            wanting = wants > _LITTLE
            first = int(np.where(wanting, tier, _NOBODY).min())
            if first == _NOBODY:
                break
            mine = np.flatnonzero(wanting & (tier == first))
            takes = np.add.reduceat(usable * self._taken(kind), self._starts)[mine]
            if first == _QUOTA:
                parts = self._by_quota(mine, wants[mine], takes, rest)
            else:
                parts = poured(level[mine], self._each[mine] * wants[mine] / takes, takes, rest)
            self._take(usable, mine, parts * wants[mine] / takes)
            rest -= float(parts.sum())

    def _cpus(self, kind: int) -> float:
        """Cores of a machine."""
        return float(max(1.0, self._sale.size[kind, 0]) * self._sale.slots[kind])

    def _taken(self, kind: int) -> Floats:
        """Cores of a machine that a core of each bundle's jobs takes: more than one where memory is short."""
        if kind not in self._takes:
            room = self._sale.kind_copies[:, kind] * self._sale.slots[kind] * self._job
            takes = np.where(room > 0, np.maximum(1.0, self._cpus(kind) / np.maximum(room, 1.0)), 1.0)
            all_ = np.bincount(self._bundles, self._cores * takes, len(self._left))
            self._takes[kind] = all_ / np.bincount(self._bundles, self._cores, len(self._left))
        return self._takes[kind]

    def stop(self, row: int, offer: int) -> None:
        """Jobs like these may have no more machines of an offer's class."""
        this = self._sale
        like = [one.worker_class == this.offers[offer].worker_class for one in this.offers]
        self._serves[this.of_kind[like], self._bundles[row]] = False

    def _by_quota(self, mine: Ints, wants: Floats, takes: Floats, rest: float) -> Floats:
        """Groups by what each uses of its quota, and inside a group its users by their priorities."""
        used, quota = self._quotas()
        of = self._group[mine]
        some = np.unique(of)
        all_ = np.bincount(of, takes, len(self._groups))[some]
        each = np.bincount(of, wants, len(self._groups))[some] / all_
        room = np.minimum((quota - used)[some] / each, all_)
        shares = poured((used / quota)[some], each / quota[some], room, rest)
        parts = np.zeros(len(mine))
        has = (self._has + self._got)[mine] * self._each[mine]
        for group, share in zip(some.tolist(), shares.tolist(), strict=True):
            at = np.flatnonzero(of == group)
            parts[at] = poured(has[at], (self._each[mine] * wants / takes)[at], takes[at], share)
        return parts

    def _take(self, usable: Floats, mine: Ints, slices: Floats) -> None:
        """Each one's slice is for its first jobs among the usable ones."""
        self._got[mine] += slices
        whole = np.zeros(len(self.names))
        whole[mine] = slices
        before = np.cumsum(usable) - usable
        before -= before[self._starts][self._of]
        self._left -= np.clip(whole[self._of] - before, 0.0, usable)


def poured(level: Floats, each: Floats, most: Floats, amount: float) -> Floats:
    """Parts of an amount that bring all to one level, from where each is; a core raises one by `each`.

    Nobody is given more than `most`.
    """
    if float(most.sum()) <= amount + _LITTLE:
        return most
    point = np.concatenate([level, level + most * each])
    order = np.argsort(point, kind="stable")
    point = point[order]
    rate = np.cumsum(np.concatenate([1.0 / each, -1.0 / each])[order])
    gone = np.concatenate([[0.0], np.cumsum(rate[:-1] * np.diff(point))])
    at = min(int(np.searchsorted(gone, amount, side="right")) - 1, len(point) - 2)
    # Where nobody is between two levels, the rate is what rounding left of nothing.
    more = (amount - gone[at]) / rate[at] if rate[at] > 0 else 0.0
    full = min(point[at] + more, point[at + 1])
    return np.asarray(np.clip((full - level) / each, 0.0, most))
