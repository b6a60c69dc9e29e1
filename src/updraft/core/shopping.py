"""Which machines to buy for jobs that found no room: a cheap mix, within what may be bought.

First a list is drawn up as if everything could be had (see `listing`). Then each submitter in turn asks for a
few machines of the lines that its groups lead; whose turn it is, the negotiator's own rule says (`shares`).
What was refused is put on a new list of other offers; when a list brings nothing more, groups try the offers
that are still open one by one, again by turns. An offer without a price is taken only by a group that no
priced offer serves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

import numpy as np

from updraft.core.drafting import Line
from updraft.core.fitting import ENDLESS, Demand, Vector, fit, room, take, vector
from updraft.core.listing import Listing
from updraft.core.market import Flags, Ints, sale
from updraft.core.match import asked
from updraft.core.model import Kind, Offer, Reason, Verdict, Verdicts
from updraft.core.shares import Standing

Allowed = Callable[[Offer, int], tuple[int, Reason | None]]

_REASONS = 6
_LISTS = 4

NO_OFFER = Reason("no-offer", "no offer on sale can run these jobs")
SOLD_OUT = Reason("sold-out", "the clouds say that they have no more of the offers that fit")


@dataclass(frozen=True, slots=True)
class Purchase:
    """Buy `count` machines of `offer`; `holds` is how many jobs of each group they are for, all together."""

    offer: Offer
    count: int
    holds: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Shopping:
    """What to buy. `left` counts the jobs of each group that stay without room, `unmet` says why."""

    purchases: tuple[Purchase, ...] = ()
    left: Mapping[str, int] = field(default_factory=dict)
    unmet: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)


def buy(
    left: Demand,
    offers: Sequence[Offer],
    kinds: Mapping[str, Kind],
    verdicts: Verdicts,
    allowed: Allowed,
    who: Standing = Standing(),  # noqa: B008 - frozen
    most: int = ENDLESS,
) -> Shopping:
    """The cheapest mix found that holds what is `left`, as far as `allowed` goes.

    `allowed(offer, n)` says how many of n machines may be bought, and what stops the rest; what it grants is
    taken. It is never asked again for an offer that it once granted less of than asked for. Whose turn it is
    when not all can be had is up to `who`: by what each submitter has already, and what is bought for it.
    `most` is how many machines may be bought in all: where that is fewer than the jobs want, large ones are.
    """
    return _Shop(left, offers, kinds, verdicts, allowed, who, most).run()


class _Shop:
    def __init__(
        self,
        left: Demand,
        offers: Sequence[Offer],
        kinds: Mapping[str, Kind],
        verdicts: Verdicts,
        allowed: Allowed,
        who: Standing,
        most: int,
    ) -> None:
        self.sale = this = sale(left, offers, kinds, verdicts)
        self.verdicts = verdicts
        self.listing = Listing(this, verdicts)
        self.allowed = allowed
        self.who = who
        self.most = most
        self.row = {group.key: row for row, group in enumerate(this.groups)}
        counts = {group.key: max(0, count) for group, count in left}
        self.left: Ints = np.array([counts[group.key] for group in this.groups], dtype=np.int64)
        self.stock: Ints = np.array(
            [ENDLESS if offer.left is None else max(0, offer.left) for offer in this.offers], dtype=np.int64
        )
        self.bought: list[Line] = []
        self.reasons: dict[int, Reason] = {}
        self.spent: dict[str, int] = {}
        self.several = len({group.submitter for group in this.groups}) > 1
        submitters = dict.fromkeys(group.submitter for group in self.listing.order)
        self.rank = {name: at for at, name in enumerate(submitters)}

    # ------------------------------------------------------------------------------------------- the whole

    def run(self) -> Shopping:
        for turn in range(_LISTS):
            before = len(self.bought)
            lines = self._list(quick=turn > 0)
            refused = self._grant(lines)
            if not refused or len(self.bought) == before:
                break
        self._by_turns()
        rows = np.flatnonzero(self.left > 0)
        left = {self.sale.groups[row].key: int(self.left[row]) for row in rows.tolist()}
        return Shopping(self._purchases(), left, self._unmet(rows))

    def _list(self, quick: bool) -> list[Line]:
        """A list, of few and large machines where there may not be as many as a cheap one takes."""
        if self.most <= sum(line.count for line in self.bought):
            return []  # nothing more may be bought: what remains is to ask why
        if not quick and self._scarce():
            self.listing = Listing(self.sale, self.verdicts, scarce=True)
            return self.listing.lines(self.left, self.stock, self._open(), quick=True)
        lines = self.listing.lines(self.left, self.stock, self._open(), quick=quick)
        if quick or sum(line.count for line in lines) <= self.most:
            return lines
        self.listing = Listing(self.sale, self.verdicts, scarce=True)
        return self.listing.lines(self.left, self.stock, self._open(), quick=quick)

    def _scarce(self) -> bool:
        """Whether the largest machines alone would be too many."""
        wanted = int((self.left * self.sale.request[:, 0].astype(np.int64)).sum())
        largest = max((offer.resources.cpus for offer in self.sale.offers), default=0)
        return wanted > self.most * max(1, largest)

    def _open(self) -> Flags:
        """The offers that may still be asked for."""
        open_: Flags = self.stock > 0
        open_[list(self.reasons)] = False
        return open_

    def _grant(self, lines: Sequence[Line]) -> bool:
        """Ask for the lines of a list, submitters by turns; True where something was refused."""
        queues: dict[str, list[Line]] = {}
        for line in reversed(lines):
            queues.setdefault(self._submitter(line), []).append(line)
        turn = [(self._turn(name), self.rank[name], name) for name in queues]
        heapify(turn)
        refused = False
        while turn:
            then, rank, name = heappop(turn)
            if (now := self._turn(name)) > then:  # others' machines had room for its jobs
                heappush(turn, (now, rank, name))
                continue
            line = queues[name][-1]
            closed = line.offer in self.reasons or self.stock[line.offer] <= 0
            got = 0 if closed else self._ask(line, name)
            refused = refused or not got
            line.count -= got
            if not line.count or not got:
                queues[name].pop()
            if queues[name]:
                heappush(turn, (self._turn(name), rank, name))
        return refused

    def _submitter(self, line: Line) -> str:
        return self.sale.groups[self.row[line.lead]].submitter

    def _turn(self, submitter: str) -> tuple[int, float]:
        return self.who.rank(submitter, self.spent) if self.several else (0, 0.0)

    def _ask(self, line: Line, submitter: str) -> int:
        """Ask for a part of a line and book what is granted; returns how many machines that was."""
        offer = self.sale.offers[line.offer]
        cores = max(1, offer.resources.cpus)
        share = max(1, self.spent.get(submitter, 0) // (8 * cores)) if self.several else line.count
        wanted = min(line.count, share, int(self.stock[line.offer]))
        granted = self._granted(line.offer, wanted)
        if granted:
            self._book(line, granted)
        return granted

    def _granted(self, at: int, wanted: int) -> int:
        offer = self.sale.offers[at]
        granted, reason = self.allowed(offer, wanted)
        granted = max(0, min(granted, wanted))
        if granted < wanted:
            self.reasons[at] = reason or Reason("not-allowed", f"{offer.key} may not be bought now")
        self.stock[at] -= granted
        return granted

    def _book(self, line: Line, count: int) -> None:
        self.bought.append(Line(line.offer, line.content, count, line.lead))
        for key, number in line.content.items():
            row = self.row[key]
            self.left[row] -= number * count
            group = self.sale.groups[row]
            cores = number * count * max(1, group.request.cpus)
            self.spent[group.submitter] = self.spent.get(group.submitter, 0) + cores

    # ------------------------------------------------------------------------------------- what was refused

    def _by_turns(self) -> None:
        """Try the offers that are still open, one by one, for the submitter whose turn it is."""
        waiting = [self.row[group.key] for group in self.listing.order if self.left[self.row[group.key]]]
        turn = [(self._turn(self.sale.groups[row].submitter), at, row) for at, row in enumerate(waiting)]
        heapify(turn)
        open_ = self._open()
        while turn and open_.any():
            then, at, row = heappop(turn)
            name = self.sale.groups[row].submitter
            if (now := self._turn(name)) > then:
                heappush(turn, (now, at, row))
                continue
            offer = self._cheapest(row, open_) if self.left[row] else -1
            if offer < 0:
                continue
            # One machine first: most of what is asked for here is refused.
            if self._granted(offer, 1):
                line = self._line(row, offer)
                self._book(line, 1)
                line.count -= 1
                if line.count and self.stock[offer] > 0:
                    self._ask(line, name)
            open_[offer] = offer not in self.reasons and self.stock[offer] > 0
            heappush(turn, (self._turn(name), at, row))

    def _cheapest(self, row: int, open_: Flags) -> int:
        """The open offer that is cheapest for one job of this group; -1 where there is none."""
        this = self.sale
        held = this.kind_copies[row, this.of_kind] * this.slots[this.of_kind]
        usable = np.flatnonzero(open_ & (held > 0))
        if not len(usable):
            return -1
        priced = usable[~np.isnan(this.price[usable])]
        mine = priced if len(priced) else usable
        price = this.price[mine] if len(priced) else this.size[this.of_kind[mine], 0]
        return int(mine[np.argmin(price / np.minimum(held[mine], self.left[row]))])

    def _line(self, row: int, at: int) -> Line:
        """A machine of this offer with as many jobs of a group as it holds, and then of others."""
        this, kind = self.sale, self.sale.kinds[self.sale.of_kind[at]]
        copies = this.kind_copies[:, this.of_kind[at]]
        lead = this.groups[row].key
        rows = [row] + [
            other for group in self.listing.order if (other := self.row[group.key]) != row and copies[other]
        ]
        content: dict[str, int] = {}
        slots = kind.slots
        frees: list[Vector] = [vector(kind.resources)] * slots
        for other in rows:
            group, wanted = this.groups[other], int(self.left[other])
            one = fit(group, kind, Verdict(int(copies[other]), asked(group.request, kind)))
            if one is None or not wanted:
                continue
            for slot, free in enumerate(frees):
                number = min(room(free, one.asks, one.least), one.copies, wanted)
                if number:
                    content[group.key] = content.get(group.key, 0) + number
                    wanted -= number
                    frees[slot] = take(free, one.asks, number)
                if not wanted:
                    break
        count = min(int(self.left[self.row[key]]) // number for key, number in content.items())
        return Line(at, content, count, lead)

    # ----------------------------------------------------------------------------------------- the answer

    def _purchases(self) -> tuple[Purchase, ...]:
        counts: dict[int, int] = {}
        holds: dict[int, dict[str, int]] = {}
        for line in self.bought:
            counts[line.offer] = counts.get(line.offer, 0) + line.count
            mine = holds.setdefault(line.offer, {})
            for key, number in line.content.items():
                mine[key] = mine.get(key, 0) + number * line.count
        offers = self.sale.offers
        return tuple(
            Purchase(offers[at], counts[at], dict(sorted(holds[at].items()))) for at in sorted(counts)
        )

    def _unmet(self, rows: Ints) -> dict[str, tuple[Reason, ...]]:
        """What held jobs of these groups back: the reasons of refused offers that would have served them."""
        serves = self.sale.kind_copies[rows] > 0
        texts = list(dict.fromkeys(reason for _, reason in sorted(self.reasons.items())))
        number = {reason: at for at, reason in enumerate(texts)}
        kinds = np.zeros((len(self.sale.kinds), len(texts)), dtype=np.float32)
        for at, reason in self.reasons.items():
            kinds[self.sale.of_kind[at], number[reason]] = 1.0
        hits = serves.astype(np.float32) @ kinds > 0
        found: dict[str, tuple[Reason, ...]] = {}
        for at, row in enumerate(rows.tolist()):
            why = tuple(texts[each] for each in np.flatnonzero(hits[at])[:_REASONS])
            found[self.sale.groups[row].key] = why or ((SOLD_OUT,) if serves[at].any() else (NO_OFFER,))
        return found
