"""A shopping list as if everything could be had: the machines that hold a demand at a low price.

The choosiest group leads; the offer with the lowest price per useful content is taken, its machine is filled
up with other groups, and as many such machines as the demand carries are put down at once. A group's worth
per job is what it would cost alone at the best offer for what is left of it, so an offer that mixes well
costs less than it is worth. No pattern is taken that costs more than a machine for each of its jobs.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import nsmallest
from itertools import chain

from updraft.core.buying.market import Sale
from updraft.core.demand.fitting import Fit, Vector, choosy, fit, room, take
from updraft.core.matching.match import asked
from updraft.core.model import JobGroup, Verdict

Row = tuple[JobGroup, Fit]

_CANDIDATES = 6
_CENT = 1e-9


@dataclass(slots=True)
class Line:
    """`count` machines of one offer, each with the same `content`; `lead` is the group it was chosen for."""

    offer: int
    content: dict[str, int]
    count: int
    lead: str


class Market:
    """The offers on sale and the groups that can use them: nothing here changes while the shopping goes
    on.
    """

    def __init__(self, this: Sale) -> None:
        self.offers = this.offers
        self.kinds = {kind.key: kind for kind in this.kinds}
        self.fits = _fits(this)
        self.order = choosy(this.groups, self.fits, this.names)
        self.by_kind: dict[str, list[Row]] = {
            key: [(g, self.fits[g.key][key]) for g in self.order if key in self.fits[g.key]]
            for key in self.kinds
        }
        self._least = {key: _least(rows) for key, rows in self.by_kind.items()}

    def price(self, at: int) -> float:
        """The price of an offer; without one, its size, to compare it with others that have none."""
        return self.offers[at].dearness[1]

    def pattern(self, kind: str, rows: Iterable[Row], left: Mapping[str, int]) -> dict[str, int]:
        """The jobs that one machine of this kind holds when these groups, in this order, go onto it.

        A group may come twice; the second time it finds nothing left to do.
        """
        whole = self.kinds[kind]
        content: dict[str, int] = {}
        if whole.partitionable:
            order = rows if whole.slots == 1 else list(rows)
            for _ in range(whole.slots):
                if not self._one_slot(kind, order, left, content):
                    break
            return content
        slots = whole.slots
        for group, _ in rows:
            number = min(slots, left.get(group.key, 0) - content.get(group.key, 0))
            if number:
                content[group.key] = content.get(group.key, 0) + number
                slots -= number
                if not slots:
                    break
        return content

    def _one_slot(
        self, kind: str, rows: Iterable[Row], left: Mapping[str, int], content: dict[str, int]
    ) -> bool:
        size = self.kinds[kind].resources
        free = size.amounts(size.names)
        least = self._least[kind]
        some = False
        for group, fitting in rows:
            key = group.key
            wanted = left.get(key, 0) - content.get(key, 0)
            if wanted <= 0:
                continue
            number = room(free, fitting.asks, fitting.least)
            if not number:
                continue
            number = min(number, fitting.copies, wanted)
            some = True
            content[key] = content.get(key, 0) + number
            free = take(free, fitting.asks, number)
            if free[0] < least[0] or free[1] < least[1] or free[2] < least[2]:
                break
        return some


def _fits(this: Sale) -> dict[str, dict[str, Fit]]:
    """How each group goes onto each kind that takes it."""
    found: dict[str, dict[str, Fit]] = {}
    for group, copies in zip(this.groups, this.kind_copies.tolist(), strict=True):
        mine = found[group.key] = {}
        for kind, number in zip(this.kinds, copies, strict=True):
            if number > 0 and (one := fit(group, kind, Verdict(number, asked(group.request, kind)))):
                mine[kind.key] = one
    return found


def _least(rows: Sequence[Row]) -> Vector:
    if not rows:
        return (0, 0, 0, 0)
    return (
        min(fitting.least[0] for _, fitting in rows),
        min(fitting.least[1] for _, fitting in rows),
        min(fitting.least[2] for _, fitting in rows),
        0,
    )


class Draft:
    """A list of lines for what is left, drawn up line by line; changes `left` and `stock` as it goes."""

    def __init__(
        self,
        market: Market,
        left: dict[str, int],
        stock: list[int],
        is_open: Callable[[int], bool] | None = None,
    ) -> None:
        self._market = market
        self._left = left
        self._stock = stock
        self._cheapest_of_kind: dict[str, int] = {}
        for at, offer in enumerate(market.offers):
            if stock[at] > 0 and (is_open is None or is_open(at)):
                self._cheapest_of_kind.setdefault(offer.kind, at)
        self._is_open = is_open
        self._worth: dict[str, float] = {}
        self._alone: dict[str, float] = {}

    def all(self) -> list[Line]:
        """Lines for everything that can be had at all."""
        lines: list[Line] = []
        for group in self._market.order:
            while self._left[group.key] > 0:
                line = self.line(group)
                if line is None:
                    break
                lines.append(line)
                self._book(line)
        return lines

    def _book(self, line: Line) -> None:
        self._stock[line.offer] -= line.count
        for key, number in line.content.items():
            self._left[key] -= number * line.count
            self._worth.pop(key, None)
        if self._stock[line.offer] <= 0:
            self._restock(line.offer)

    def _restock(self, gone: int) -> None:
        offers = self._market.offers
        kind = offers[gone].kind
        for at, offer in enumerate(offers):
            if offer.kind == kind and self._stock[at] > 0 and (self._is_open is None or self._is_open(at)):
                self._cheapest_of_kind[kind] = at
                break
        else:
            del self._cheapest_of_kind[kind]
        self._worth.clear()
        self._alone.clear()

    def line(self, group: JobGroup) -> Line | None:
        """The best line that this group can lead now, as long as the demand carries it."""
        best: tuple[float, float, int, dict[str, int]] | None = None
        candidates = self._candidates(group)
        for at in candidates:
            content = self._content(group, self._market.offers[at].kind)
            price = self._market.price(at)
            useful = self._useful(at, content)
            worth = sum(number * self._worth_of(key) for key, number in useful.items())
            if at != candidates[-1] and price > self._naive(useful) + _CENT:
                continue
            ranking = (price / worth if worth > 0 else 1.0, -worth, at, content)
            if best is None or (round(ranking[0], 9), ranking[1], at) < (round(best[0], 9), best[1], best[2]):
                best = ranking
        if best is None or not best[3]:
            return None
        content, at = best[3], best[2]
        count = min(self._left[key] // number for key, number in content.items())
        return Line(at, content, min(count, self._stock[at]), group.key)

    def _candidates(self, group: JobGroup) -> list[int]:
        """Offers worth a look for this group: the best alone by price per job, last the cheapest machine."""
        left = self._left[group.key]
        rows = [(self._market.price(at), copies, at) for at, copies in self._options(group.key)]
        if not rows:
            return []
        some = nsmallest(
            _CANDIDATES, ((price / min(copies, left), -copies, at) for price, copies, at in rows)
        )
        cheapest = min((price, -copies, at) for price, copies, at in rows)[2]
        return [at for _, _, at in some if at != cheapest] + [cheapest]

    def _options(self, key: str) -> list[tuple[int, int]]:
        """The offers that serve a group, with how many of its jobs a machine holds; priced ones if any."""
        rows = [
            (at, fitting.copies * self._market.kinds[kind].slots)
            for kind, fitting in self._market.fits[key].items()
            if (at := self._cheapest_of_kind.get(kind, -1)) >= 0
        ]
        return [row for row in rows if self._market.offers[row[0]].price is not None] or rows

    def _content(self, group: JobGroup, kind: str) -> dict[str, int]:
        lead = (group, self._market.fits[group.key][kind])
        return self._market.pattern(kind, chain((lead,), self._market.by_kind[kind]), self._left)

    def _worth_of(self, key: str) -> float:
        if key not in self._worth:
            left = max(1, self._left[key])
            rows = self._options(key)
            self._worth[key] = min((self._market.price(at) / min(n, left) for at, n in rows), default=0.0)
        return self._worth[key]

    def _naive(self, content: Mapping[str, int]) -> float:
        return sum(number * self._alone_of(key) for key, number in content.items())

    def _alone_of(self, key: str) -> float:
        if key not in self._alone:
            self._alone[key] = min((self._market.price(at) for at, _ in self._options(key)), default=0.0)
        return self._alone[key]

    def _useful(self, at: int, content: Mapping[str, int]) -> dict[str, int]:
        """The part of a content that counts: on an offer without a price, only groups that have no other."""
        if self._market.offers[at].price is not None:
            return dict(content)
        unpriced = self._market.offers
        return {
            key: number
            for key, number in content.items()
            if all(unpriced[other].price is None for other, _ in self._options(key))
        }
