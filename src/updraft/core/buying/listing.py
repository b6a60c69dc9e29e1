"""A shopping list as if everything could be had: priced offers first, then those whose price nobody knows.

The list is drawn up for items and lots (see `market`), and dealt out to the job groups behind the items.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from updraft.core.buying.bound import prices
from updraft.core.buying.market import Flags, Ints, Lots, Sale, lots, many
from updraft.core.buying.patterns import Taste
from updraft.core.buying.program import improved
from updraft.core.buying.rounding import Effort, Lines, Remainder, greedy, in_one, shrunk
from updraft.core.demand.fitting import turns

# From so many items on, less is tried.
_EFFORTS = (
    (40, Effort(rounds=12, again=2, dives=24, depth=24, renewals=8)),
    (150, Effort(rounds=8, again=1, dives=3, depth=24, renewals=6)),
    (400, Effort(rounds=0, again=0, dives=0, depth=24, renewals=4)),
    (5000, Effort(rounds=0, again=0, dives=0, depth=24, renewals=2)),
)
_QUICK_EFFORT = Effort(rounds=0, again=0, dives=0, depth=24, renewals=0)
_LEAST_EFFORT = Effort(rounds=0, again=0, dives=0, depth=24, renewals=0, deck=25, turns=12, steps=20)
_SMALLER = 0.001  # how much cheaper per core twice the machine must be
_SURCHARGES = tuple(4.0**-n for n in range(7, -1, -1))


@dataclass(slots=True)
class Line:
    """`count` machines of one offer, each with the same `content`; `lead` is the group it was chosen for."""

    offer: int
    content: dict[str, int]
    count: int
    lead: str


class Listing:
    """Draws up lists for one sale, for whatever is left of its demand and open of its offers.

    Of offers at about the same price per core the smaller one is taken: it is empty sooner, and what runs on
    it holds less of what is paid for. With a `surcharge` a list is one of fewer machines instead: each counts
    as if it cost that part of the dearest one's price besides its own. Where `rough`, lists are a greedy's.
    """

    def __init__(self, this: Sale, *, surcharge: float = 0.0, rough: bool = False) -> None:
        self.sale = this
        self.order = turns(this.groups)
        place = {group.key: at for at, group in enumerate(self.order)}
        self._turn = np.array([place[group.key] for group in this.groups], dtype=np.int64)
        self._priced = ~np.isnan(this.price)
        size = np.array([float(offer.resources.cpus) for offer in this.offers])
        true = np.array([offer.dearness[1] for offer in this.offers])
        if surcharge and len(size):
            self._price = true + surcharge * true.max()
        else:
            self._price = true * (1.0 + _SMALLER * np.log2(np.maximum(size, 1.0)))
        self._rough = rough

    def lines(self, left: Ints, stock: Ints, open_: Flags, quick: bool = False) -> list[Line]:
        """Lines for `left` jobs of each group, on open offers of which there are `stock`.

        A `quick` list is a greedy's and no more, where the question isn't small.
        """
        left, stock = left.copy(), stock.copy()
        open_ = open_ & (stock > 0)
        serves = self.sale.kind_copies > 0
        priced = serves[:, np.unique(self.sale.of_kind[open_ & self._priced])].any(axis=1)
        found: list[Line] = []
        # Groups that only offers without a price serve; all others; what found the priced ones sold out.
        for rows, which in ((~priced, ~self._priced), (priced, self._priced), (priced, ~self._priced)):
            wanted = np.flatnonzero(rows & (left > 0))
            found += self._some(wanted, left, stock, np.flatnonzero(open_ & which & (stock > 0)), quick)
        return found

    def _some(self, rows: Ints, left: Ints, stock: Ints, offers: Ints, quick: bool) -> list[Line]:
        if not len(rows) or not len(offers):
            return []
        kinds = np.unique(self.sale.of_kind[offers])
        rows = rows[(self.sale.kind_copies[np.ix_(rows, kinds)] > 0).any(axis=1)]
        if not len(rows):
            return []
        rows = rows[np.argsort(self._turn[rows], kind="stable")]
        market = lots(self.sale, rows, left[rows], offers, self._price, stock)
        found = cheapest(market, quick, self._rough)
        mine = self._dealt(market, found, left)
        at = {group.key: n for n, group in enumerate(self.sale.groups)}
        for line in mine:
            stock[line.offer] -= line.count
            for key, number in line.content.items():
                left[at[key]] -= number * line.count
        return mine

    def _dealt(self, market: Lots, found: Sequence[Lines], left: Ints) -> list[Line]:
        """Lines for groups instead of items: an item's groups get their jobs placed in the order of turns."""
        queues = [[[int(row), int(left[row])] for row in members] for members in market.members]
        for queue in queues:
            queue.reverse()  # the first one is at the end, where it is taken from
        dealt: list[Line] = []
        for line in found:
            count = line.count
            items = list(zip(line.item.tolist(), line.number.tolist(), strict=True))
            while count > 0:
                times = max(1, min(count, *(queues[item][-1][1] // number for item, number in items)))
                content: dict[str, int] = {}
                for item, number in items:
                    _take(queues[item], number, times, self.sale, content)
                lead = max(content, key=lambda key: (content[key], key))
                dealt.append(Line(int(market.offer[line.lot]), content, times, lead))
                count -= times
        return dealt


def few(this: Sale, left: Ints, stock: Ints, open_: Flags, most: int) -> tuple[Listing, list[Line]]:
    """A list of at most so many machines, or of as few as can be; and the listing that it is of.

    Of the surcharges that make it short enough it has the least: more would make it shorter, and dearer.
    """
    low, high = 0, len(_SURCHARGES) - 1
    tried: list[Line] | None = None
    while low < high:
        middle = (low + high) // 2
        lines = Listing(this, surcharge=_SURCHARGES[middle], rough=True).lines(left, stock, open_, quick=True)
        if machines(lines) > most:
            low = middle + 1
        else:
            high, tried = middle, lines
    listing = Listing(this, surcharge=_SURCHARGES[high])
    lines = listing.lines(left, stock, open_)
    # With more effort a list is cheaper, and may be a little longer.
    return listing, lines if tried is None or machines(lines) <= most else tried


def machines(lines: Sequence[Line]) -> int:
    """How many machines are on a list."""
    return sum(line.count for line in lines)


def _take(queue: list[list[int]], number: int, times: int, this: Sale, content: dict[str, int]) -> None:
    """Take jobs for `times` machines from an item's first group, or for one from several."""
    if queue[-1][1] >= number * times:
        row, has = queue[-1]
        content[this.groups[row].key] = number
        queue[-1][1] = has - number * times
    else:
        missing = number
        while missing:
            row, has = queue[-1]
            got = min(has, missing)
            content[this.groups[row].key] = content.get(this.groups[row].key, 0) + got
            missing -= got
            queue[-1][1] -= got
            if not queue[-1][1] and len(queue) > 1:
                queue.pop()
    if not queue[-1][1] and len(queue) > 1:
        queue.pop()


def cheapest(market: Lots, quick: bool, rough: bool = False) -> list[Lines]:
    """The cheapest list found for all that a market needs, as far as its stock goes."""
    effort = _effort(len(market.need), float(market.need.sum()), quick, rough)
    rest = Remainder(market, market.need, market.stock)
    taste = Taste(*prices(market, market.need, effort.steps))
    least = float(market.need @ taste.worth) * (1.0 + 1e-9)  # none costs less: one for this ends the search
    best = greedy(rest.copy(), taste, effort.depth, effort.deck, effort.turns)
    alone = in_one(rest, taste)
    if alone is not None and alone.better_than(best):
        best = alone
    if effort.dives and (best.need.any() or best.price > least):
        best = improved(rest, best, taste, effort, least)
    return shrunk(market, renewed(best, taste, effort.renewals, effort.depth, least), taste.worth)


def _effort(items: int, jobs: float, quick: bool, rough: bool) -> Effort:
    if many(items, jobs):
        return _LEAST_EFFORT
    if rough or (quick and items > _EFFORTS[0][0]):
        return _QUICK_EFFORT
    return next((each for most, each in _EFFORTS if items <= most), _LEAST_EFFORT)


_GOOD = 0.95
_PARTS = 4
_STEPS = 20


def renewed(best: Remainder, taste: Taste, rounds: int, depth: int, least: float) -> Remainder:
    """The best list after some `rounds`, in each of which a part of it is given up and held anew.

    A greedy takes what fits well first, and has nothing to fill up the last machines with. So the machines
    whose jobs are worth less than they cost are given up, with some good ones whose jobs can mix with theirs;
    what jobs and room are worth is reckoned again for what was given up, and the greedy holds it anew. The
    cheaper of the two lists is kept. Each round gives up another fourth.

    Ends early with one that costs no more than `least`, or when every part has been given up in vain.
    """
    market, vain = best.market, 0
    for turn in range(rounds):
        if best.price <= least or vain == _PARTS:
            break
        kept = Remainder(market, market.need, market.stock)
        for at, line in enumerate(best.lines):
            good = taste.worth[line.item] @ line.number >= _GOOD * market.price[line.lot]
            if good and (at + turn) % _PARTS:
                kept.settle(line.lot, line.item, line.number, line.count)
        worth, scarce = prices(market, kept.need, _STEPS, taste.scarce)
        other = greedy(kept, Taste(np.where(worth > 0, worth, taste.worth), scarce), depth)
        vain = 0 if other.better_than(best) else vain + 1
        best = best if vain else other
    return best
