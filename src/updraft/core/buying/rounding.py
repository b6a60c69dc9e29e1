"""Whole machines for whole jobs: a greedy's list of what can be bought.

The most valuable item leads, each lot near its best price is filled up around it, and the machine that brings
most for its price is taken as often as the demand carries.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from updraft.core.buying.bound import prices
from updraft.core.buying.market import Flags, Floats, Ints, Lots
from updraft.core.buying.patterns import Patterns, Ranking, Taste, fill, room_of
from updraft.core.demand.fitting import ENDLESS

_NEAR = 4
_FEW = 40
ALMOST = 1e-6
NEARLY = 0.97
_TURNS = 6
_POOR = 0.005
_AGAIN = 12


@dataclass(frozen=True, slots=True)
class Lines:
    """`count` machines of a lot, each with `number[t]` jobs of `item[t]`."""

    lot: int
    item: Ints
    number: Ints
    count: int


@dataclass(frozen=True, slots=True)
class Effort:
    """How far to go: bounds that depend on the size of the question only, never on the time.

    `rounds` of new patterns at first and `again` after each step of the dive, `dives` steps, `depth` items
    looked at for each lot, how many times the list is `renewed` at the end, how many items are in a `deck` of
    the first greedy, of how many one leads in each of its `turns`, and how many `steps` the bound is climbed.
    """

    rounds: int
    again: int
    dives: int
    depth: int
    renewals: int
    deck: int = 80
    turns: int = _TURNS
    steps: int = 40


class Remainder:
    """The jobs still to be held and the stock left of each lot, while lines are settled."""

    def __init__(self, market: Lots, need: Floats, stock: Floats, lines: Sequence[Lines] = ()) -> None:
        self.market = market
        self.need = need.copy()
        self.stock = stock.copy()
        self.lines = list(lines)

    def copy(self) -> "Remainder":
        """A copy to go on with."""
        return Remainder(self.market, self.need, self.stock, self.lines)

    def settle(self, lot: int, item: Ints, number: Ints, most: float) -> int:
        """Take as many such machines as the rest carries, `most` at most; returns how many."""
        count = int(min((self.need[item] // number).min(), self.stock[lot], most))
        if count > 0:
            self.need[item] -= number * count
            self.stock[lot] -= count
            self.lines.append(Lines(lot, item, number, count))
        return max(0, count)

    @property
    def price(self) -> float:
        """The cost of the lines so far."""
        return float(sum(self.market.price[line.lot] * line.count for line in self.lines))

    def better_than(self, other: "Remainder") -> bool:
        """Holds more, or the same for less."""
        mine, theirs = float(self.need.sum()), float(other.need.sum())
        return mine < theirs or (mine == theirs and self.price < other.price - ALMOST * other.price)


# ---------------------------------------------------------------------------------------------- the greedy


def greedy(rest: Remainder, taste: Taste, depth: int, deck: int = 0, turns: int = _TURNS) -> Remainder:
    """Settle lines until nothing is left that has a lot; returns the same `rest`. Looks at `depth` items.

    Of the items that wait, one of so many as there are `turns` leads at a time, the most worthy ones first.
    With a `deck`, items are dealt out into decks of about so many, and machines filled up from the deck of
    the item that leads: otherwise all of a turn would want the same few, and most would come too late.
    """
    market = rest.market
    taste = Taste(np.maximum(taste.worth, 1e-12), taste.scarce)
    search, order = LotSearch(market, taste, rest.need, deck), np.argsort(-taste.worth, kind="stable")
    whole = was = float(rest.need @ taste.worth)
    poor = 0.0
    while True:
        shut = (market.copies <= 0) | (rest.stock < 1)
        alive = order[(rest.need[order] > 0) & ~shut[order].all(axis=1)]
        if not len(alive):
            return rest
        lead = alive[: max(8, len(alive) // turns)]
        leads, lot = search.candidates(lead, shut)
        found = around(rest, leads, lot, taste, search.fillers(leads, lot, rest.need, depth))
        ratio = found.value(taste.worth) / np.maximum(market.price[found.lot], 1e-12)
        begin = len(rest.lines)
        for row in search.best(lead, found, ratio):
            _take(rest, found, row, taste.worth, float(ratio[row]))
        behind = float(rest.need @ taste.worth)
        paid = sum(market.price[line.lot] * line.count for line in rest.lines[begin:])
        poor = poor + paid - (was - behind)
        was = behind
        if poor > _POOR * whole and rest.need.any():
            # What would have filled up these machines is used up: what is left is worth something else now.
            worth, scarce = prices(market, rest.need, _AGAIN, taste.scarce)
            taste = Taste(np.maximum(worth, 1e-12), scarce)
            search, order = LotSearch(market, taste, rest.need, deck), np.argsort(-taste.worth, kind="stable")
            was, poor = float(rest.need @ taste.worth), 0.0


class LotSearch:
    """Which lots are looked at for a leading item: at first some, later those that were best before."""

    def __init__(self, market: Lots, taste: Taste, need: Floats, deck: int = 0) -> None:
        self._market = market
        room = room_of(market, taste.scarce)
        self._cost = room * market.price
        # Dealt in the order of worth, so that each deck has something of everything.
        alive = np.argsort(-taste.worth, kind="stable")
        alive = alive[need[alive] > 0]
        count = max(1, len(alive) // deck) if deck else 1
        self._deck = np.zeros(len(need), dtype=np.int64)
        self._deck[alive] = np.arange(len(alive)) % count
        self._rankings = [Ranking(market, taste, np.sort(alive[n::count]), room) for n in range(count)]
        self._liked = np.full((len(market.need), 2), -1, dtype=np.int64)
        self._ratio = np.zeros(len(market.need))

    def candidates(self, lead: Ints, shut: Flags) -> tuple[Ints, Ints]:
        """Pairs of leading items and lots: where its room costs least, and the cheapest machine for a job."""
        mine = np.where(shut[lead], np.inf, self._cost[lead])
        near = np.argsort(mine, axis=1, kind="stable")[:, :_NEAR]
        plain = np.where(shut[lead], np.inf, self._market.price).argmin(axis=1)[:, None]
        look = ~shut[lead[:, None], near]
        liked = self._liked[lead]
        look &= (liked[:, :1] < 0) | (near == liked[:, :1]) | (near == liked[:, 1:])
        extra = ~(look & (near == plain)).any(axis=1, keepdims=True)
        lot, look = np.concatenate([near, plain], axis=1), np.concatenate([look, extra], axis=1)
        return np.repeat(lead, lot.shape[1])[look.ravel()], lot[look]

    def fillers(self, lead: Ints, lot: Ints, need: Floats, depth: int) -> Ints:
        """For each lead and lot the items to fill up with, of its deck; -1 where there are no more."""
        found = np.full((len(lead), depth), -1, dtype=np.int64)
        deck, width = self._deck[lead], 0
        for number, ranking in enumerate(self._rankings):
            rows = np.flatnonzero(deck == number)
            if len(rows):
                top = ranking.top(need, depth)
                found[rows, : top.shape[1]] = top[lot[rows]]
                width = max(width, top.shape[1])
        return found[:, :width]

    def best(self, lead: Ints, found: Patterns, ratio: Floats) -> list[int]:
        """The best row of each leading item, in their order."""
        place = np.empty(len(self._ratio), dtype=np.int64)
        place[lead] = np.arange(len(lead))
        led = place[found.item[:, 0]]
        ranked = np.lexsort((-ratio, led))
        begin = np.unique(led[ranked], return_index=True)[1]
        first = ranked[begin]
        # Of the rows of one item the second best, where there is one, is the next.
        following = np.minimum(begin + 1, len(ranked) - 1)
        second = ranked[np.where(led[ranked[following]] == led[first], following, begin)]
        worse = ratio[first] < NEARLY * self._ratio[lead]
        self._liked[lead, 0] = np.where(worse, -1, found.lot[first])
        self._liked[lead, 1] = found.lot[second]
        self._ratio[lead] = np.where(worse, 0.0, ratio[first])
        return [int(row) for row in first]


def _take(rest: Remainder, found: Patterns, row: int, worth: Floats, ratio: float) -> None:
    """Settle a pattern; where others have taken some of its jobs, its rest if that is nearly as good."""
    some = found.number[row] > 0
    lot, item, number = int(found.lot[row]), found.item[row][some], found.number[row][some]
    left = np.minimum(number, rest.need[item])
    if (left < number).any():
        if not left[0] or worth[item] @ left < NEARLY * ratio * rest.market.price[lot]:
            return
        item, number = item[left > 0], left[left > 0]
    rest.settle(lot, item, number.astype(np.int64), np.inf)


def around(rest: Remainder, lead: Ints, lot: Ints, taste: Taste, fillers: Ints) -> Patterns:
    """Patterns around a leading item: as many of it as there may be, and once more with a single one."""
    order = np.where(fillers < 0, lead[:, None], fillers)
    item = np.concatenate([lead[:, None], order], axis=1)
    most = rest.need[item]
    most[:, 1:][order == lead[:, None]] = 0.0
    single = most.copy()
    single[:, 0] = 1.0
    most = np.concatenate([most, single])
    return fill(rest.market, [taste], np.tile(lot, 2), np.tile(item, (2, 1)), most, led=True)


def in_one(rest: Remainder, taste: Taste) -> Remainder | None:
    """The cheapest single machine that holds everything, if one does."""
    market = rest.market
    if len(market.need) > _FEW or not rest.need.all():
        return None
    lot = np.flatnonzero(rest.stock >= 1)
    item = Ranking(market, taste).top(rest.need, _FEW)[lot]
    found = fill(market, [taste], lot, item, rest.need[item])
    whole = np.flatnonzero(found.number.sum(axis=1) >= rest.need.sum())
    if not len(whole):
        return None
    row = int(whole[np.argmin(market.price[found.lot[whole]])])
    some = found.number[row] > 0
    one = rest.copy()
    one.settle(int(found.lot[row]), found.item[row][some], found.number[row][some].astype(np.int64), 1.0)
    return one


def shrunk(market: Lots, full: Remainder, worth: Floats) -> list[Lines]:
    """The lines, each on the cheapest lot without end that holds the same.

    By the prices of the bound no lot holds jobs that are `worth` more than it costs: those aren't looked at.
    """
    found = list(full.lines)
    for at, lots in _cheaper(market, full.lines, worth):
        line = full.lines[at]
        fits = lots[_hold(market, line, lots)]
        if len(fits):
            lot = int(fits[np.argmin(market.price[fits])])
            found[at] = Lines(lot, line.item, line.number, line.count)
    return found


def _cheaper(market: Lots, lines: Sequence[Lines], worth: Floats) -> Iterator[tuple[int, Ints]]:
    """The lines for which there are cheaper lots that may hold the same, by the least that jobs ask for."""
    if not lines:
        return
    price = market.price[np.array([line.lot for line in lines])][:, None]
    value = np.array([worth[line.item] @ line.number for line in lines])[:, None] * (1.0 - ALMOST)
    least = market.asks.min(axis=2)
    load = np.array([least[:, line.item] @ line.number for line in lines])
    fits = (market.price < price) & (market.price >= value)
    fits &= (market.stock >= ENDLESS) & (market.slots == 1)
    for d in range(load.shape[1]):
        fits &= load[:, d : d + 1] <= market.size[d]
    for at in np.flatnonzero(fits.any(axis=1)).tolist():
        yield at, np.flatnonzero(fits[at])


def _hold(market: Lots, line: Lines, lots: Ints) -> Flags:
    """Which of these lots hold what a machine of a line holds."""
    block = np.ix_(line.item, lots)
    fits = np.asarray((market.copies[block] >= line.number[:, None]).all(axis=0))
    for d in range(len(market.asks)):
        asks = market.asks[d][block]
        fits &= line.number @ asks <= market.size[d, lots]
        fits &= (market.least[d][block] <= asks).all(axis=0)
    return fits
