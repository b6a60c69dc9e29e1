"""The last machines of a list: changed for smaller ones that hold the same, or struck.

A line is moved to the cheapest offer that holds its content. Then lines of few machines are looked at, those
with the least on them first: a line whose jobs all find room on the machines of other lines is struck.
"""

from collections.abc import Iterator, Mapping, Sequence

from updraft.core.buying.greedy import Line, Market
from updraft.core.demand.filling import Bin, fill
from updraft.core.demand.fitting import ENDLESS, take
from updraft.core.model import JobGroup, Resources, Verdicts, of_amounts

_TAIL_LINES = 40
_TAIL_MACHINES = 3
_BINS_PER_LINE = 20


class Tail:
    """The end of lists drawn up for one market."""

    def __init__(
        self, market: Market, groups: Mapping[str, JobGroup], stock: Sequence[int], verdicts: Verdicts
    ) -> None:
        self.market = market
        self.groups = groups
        self.stock = stock
        self.verdicts = verdicts

    def without(self, lines: list[Line]) -> list[Line]:
        """Move machines to cheaper offers that hold the same; strike those whose load fits elsewhere."""
        for line in lines:
            self._shrink(line)
        price = [offer.price or 0.0 for offer in self.market.offers]
        small = [line for line in lines if line.count <= _TAIL_MACHINES]
        small.sort(key=lambda line: (sum(line.content.values()), -price[line.offer], line.lead))
        for line in small[:_TAIL_LINES]:
            if not any(line is other for other in lines):
                continue  # it took in another's load and is a new line now
            others = [other for other in lines if other is not line]
            moved = self._moved(line, others)
            if moved is not None:
                lines = moved
        return lines

    def _shrink(self, line: Line) -> None:
        price = self.market.offers[line.offer].price
        if price is None:
            return
        cpus = sum(self.groups[key].request.cpus * number for key, number in line.content.items())
        for at, offer in enumerate(self.market.offers):
            if offer.price is None or offer.price >= price:
                return
            if self.stock[at] == ENDLESS and self._holds(offer.kind, line.content, cpus):
                line.offer = at
                return

    def _holds(self, kind: str, content: Mapping[str, int], cpus: int) -> bool:
        whole = self.market.kinds[kind]
        if cpus > whole.resources.cpus * whole.slots or any(
            kind not in self.market.fits[key] for key in content
        ):
            return False
        rows = [row for row in self.market.by_kind[kind] if row[0].key in content]
        return self.market.pattern(kind, rows, content) == content

    def _moved(self, line: Line, others: list[Line]) -> list[Line] | None:
        """The other lines with this line's load on top, if they have room for all of it."""
        load = [(self.groups[key], number * line.count) for key, number in line.content.items()]
        bins = []
        for at, other in enumerate(others):
            for slot, free in enumerate(self._rest(other)):
                bins += [
                    Bin(f"{at:05d}/{machine:05d}/{slot:03d}", self.market.offers[other.offer].kind, free)
                    for machine in range(min(other.count, _BINS_PER_LINE))
                ]
        filling = fill(load, bins, self.verdicts, self.market.kinds)
        if any(filling.left.values()):
            return None
        extra: dict[tuple[int, int], dict[str, int]] = {}
        for key, where in filling.placed.items():
            for name, number in where.items():
                at, machine = (int(part) for part in name.split("/")[:2])
                more = extra.setdefault((at, machine), {})
                more[key] = more.get(key, 0) + number
        return _split(others, extra)

    def _rest(self, line: Line) -> Iterator[Resources]:
        """The room left in each partitionable slot of one machine of a line, if it is worth a look."""
        kind = self.market.kinds[self.market.offers[line.offer].kind]
        if not kind.partitionable or kind.slots != 1:
            return
        names = kind.resources.names
        free = kind.resources.amounts(names)
        for key, number in line.content.items():
            free = take(free, self.market.fits[key][kind.key].asks, number)
        if free[0] and free[1]:
            yield of_amounts(free, names)


def _split(lines: list[Line], extra: Mapping[tuple[int, int], Mapping[str, int]]) -> list[Line]:
    """Lines with single machines taken out of them that carry something on top."""
    changed: list[Line] = []
    for at, line in enumerate(lines):
        mine = [more for (where, _), more in sorted(extra.items(), key=lambda e: e[0]) if where == at]
        for more in mine:
            content = dict(line.content)
            for key, number in more.items():
                content[key] = content.get(key, 0) + number
            changed.append(Line(line.offer, content, 1, line.lead))
        if line.count > len(mine):
            changed.append(Line(line.offer, line.content, line.count - len(mine), line.lead))
    return changed
