"""Which machines to buy for jobs that found no room: a cheap mix, within what may be bought.

First a list is drawn up as if everything could be had (see `listing`). Then a few machines are asked for at a
time, of the lines whose turn it is by the rule of the negotiator (`shares`): first those that whoever has
least could use (`slices`), of these the lines of the submitter who was bought least.
What was refused is put on a new list of other offers; when a list brings nothing more, groups try the offers
that are still open one by one, again by turns. An offer without a price is taken only by a group that no
priced offer serves.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import heapify, heappop, heappush

import numpy as np

from updraft.core.buying.listing import Line, Listing, few, machines
from updraft.core.buying.market import Flags, Ints, sale
from updraft.core.buying.orders import PurchaseOrder, Queues, as_order
from updraft.core.buying.reach import within_reach
from updraft.core.buying.slices import Slices
from updraft.core.demand.filling import Bin, fill
from updraft.core.demand.fitting import ENDLESS, Demand
from updraft.core.matching.match import asked
from updraft.core.model import JobGroup, Kind, Offer, Reason, Verdicts
from updraft.core.sharing.shares import Standing

Allowed = Callable[[Offer, int], tuple[int, Reason | None]]

_REASONS = 6
_LISTS = 4
_PART = 4  # of what was bought for a submitter, what it may ask for at a turn

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
    """The purchases. `left` counts the jobs of each group that stay without room, `unmet` says why."""

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
    return _ShoppingTour(left, offers, kinds, verdicts, allowed, who, most).run()


class _ShoppingTour:
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
        self.listing = Listing(this)
        self.verdicts = verdicts
        self.allowed = allowed
        self.who = who
        self.most = most
        self.row = {group.key: row for row, group in enumerate(this.groups)}
        counts = {group.key: max(0, count) for group, count in left}
        self.left: Ints = np.array([counts[group.key] for group in this.groups], dtype=np.int64)
        self.cpus: Ints = np.maximum(this.request[:, 0], 1.0).astype(np.int64)
        self.stock: Ints = np.array(
            [ENDLESS if offer.left is None else max(0, offer.left) for offer in this.offers], dtype=np.int64
        )
        self.bought: list[PurchaseOrder] = []
        self.reasons: dict[int, Reason] = {}
        self.capped: dict[str, dict[Reason, None]] = {}
        self.barred: set[tuple[int, str]] = set()
        self.spent: dict[str, int] = {}
        self.ranks: dict[str, tuple[int, tuple[int, float]]] = {}
        self.several = len({group.submitter for group in this.groups}) > 1
        submitters = dict.fromkeys(group.submitter for group in self.listing.order)
        self.rank = {name: at for at, name in enumerate(submitters)}
        rows = [self.row[group.key] for group in self.listing.order]
        self.slices = Slices(this, rows, self.left * self.cpus, who) if self.several else None

    # ------------------------------------------------------------------------------------------- the whole

    def run(self) -> Shopping:
        for turn in range(_LISTS):
            before = len(self.bought)
            wanted = self._within_reach()
            refused = self._grant(self._list(wanted, quick=turn > 0))
            whole = wanted is self.left
            if len(self.bought) == before or (whole and not refused):
                break
        self._by_turns()
        rows = np.flatnonzero(self.left > 0)
        left = {self.sale.groups[row].key: int(self.left[row]) for row in rows.tolist()}
        return Shopping(self._purchases(), left, self._unmet(rows))

    def _list(self, wanted: Ints, quick: bool) -> list[Line]:
        """A list, of fewer and larger machines where there may not be as many as a cheap one takes."""
        if not self._may_be_had():
            return []  # nothing more may be bought: what remains is to ask why
        if not quick and self._scarce():
            self.listing = Listing(self.sale, surcharge=1.0)
            return self.listing.lines(wanted, self.stock, self._open(), quick=True)
        lines = self.listing.lines(wanted, self.stock, self._open(), quick=quick)
        if not quick and machines(lines) > self.most:
            self.listing, lines = few(self.sale, wanted, self.stock, self._open(), self.most)
        return lines

    def _may_be_had(self) -> int:
        """How many machines may still be bought."""
        return max(0, self.most - sum(order.got for order in self.bought))

    def _largest(self) -> int:
        return max((offer.resources.cpus for offer in self.sale.offers), default=1) or 1

    def _scarce(self) -> bool:
        """Whether the largest machines alone would be too many."""
        return int((self.left * self.cpus).sum()) > self.most * self._largest()

    def _within_reach(self) -> Ints:
        """What is left; where that is far too much for the machines that may be had, what they may be for."""
        queues: dict[str, list[int]] = {name: [] for name in self.rank}
        some = self._served(self._open())
        for group in self.listing.order:
            row = self.row[group.key]
            if some[row] and self.left[row] > 0:
                queues[group.submitter].append(row)
        return within_reach(
            self.left, self.cpus, queues, self._turn_of, self.spent, self._largest(), self._may_be_had()
        )

    def _served(self, open_: Flags) -> Flags:
        """Which groups some of these offers would serve."""
        kinds = np.unique(self.sale.of_kind[open_])
        return np.asarray((self.sale.kind_copies[:, kinds] > 0).any(axis=1))

    def _useful(self, rows: Sequence[int]) -> Flags:
        """The open offers that would serve some of these groups."""
        serves = np.asarray((self.sale.kind_copies[rows] > 0).any(axis=0))
        return np.asarray(self._open() & serves[self.sale.of_kind])

    def _open(self) -> Flags:
        """The offers that may still be asked for."""
        open_: Flags = self.stock > 0
        open_[list(self.reasons)] = False
        return open_

    def _grant(self, lines: Sequence[Line]) -> bool:
        """Ask for the lines of a list by turns; True where something was refused."""
        first = [self._order(line, place) for place, line in enumerate(lines)]
        queues = Queues(first, self.slices, self._turn, self.rank)
        refused = False
        while queues:
            orders = queues.next()
            order = orders[-1]
            closed = order.offer in self.reasons or self.stock[order.offer] <= 0
            got = 0
            if not closed and (most := self._cut(orders)):
                order = orders[-1]
                got = self._ask(order, most)
            refused = refused or not got
            if not order.count or not got:
                self._settle(orders.pop())
            queues.go_on()
        return refused

    def _order(self, line: Line, place: int = 0) -> PurchaseOrder:
        return as_order(line, self.row, self.sale.groups, self.cpus, place)

    def _turn(self, submitter: str) -> tuple[int, float]:
        if self.who.shares.groups or self.who.high or not self.several:
            return self._turn_of(submitter, self.spent)
        # Without accounting groups a submitter's turn depends on what was bought for it alone.
        now = self.spent.get(submitter, 0)
        then, rank = self.ranks.get(submitter, (-1, (0, 0.0)))
        if then != now:
            rank = self._turn_of(submitter, self.spent)
            self.ranks[submitter] = now, rank
        return rank

    def _turn_of(self, submitter: str, bought: Mapping[str, int]) -> tuple[int, float]:
        return self.who.rank(submitter, bought) if self.several else (0, 0.0)

    def _cut(self, queue: list[PurchaseOrder]) -> int:
        """How many machines of a queue's last order caps allow; jobs beyond them are taken out of it."""
        order = queue[-1]
        if self.who.caps is None:
            return order.count
        jobs = self._jobs(order.content)
        cut = self.who.caps.fit(self.sale.offers[order.offer], jobs)
        for key, why in cut.stops.items():
            self.capped.setdefault(key, {})[why] = None
            if self.slices and (key not in cut.content or not cut.most):
                self.slices.stop(self.row[key], order.offer)
        lead = next((g.key for g, _ in jobs if g.submitter == order.submitter and g.key in cut.content), None)
        if lead is None or not cut.most:
            return 0
        if cut.content != order.content:
            self._settle(order)
            queue[-1] = order = self._order(Line(order.offer, cut.content, order.count, lead), order.place)
        return min(order.count, cut.most)

    def _jobs(self, content: Mapping[str, int]) -> list[tuple[JobGroup, int]]:
        return [(self.sale.groups[self.row[key]], number) for key, number in content.items()]

    def _ask(self, order: PurchaseOrder, most: int) -> int:
        """Ask for a part of an order, up to `most`, and book what is granted: so many machines."""
        cores = max(1, self.sale.offers[order.offer].resources.cpus)
        share = max(1, self.spent.get(order.submitter, 0) // (_PART * cores)) if self.several else order.count
        wanted = min(order.count, most, share, int(self.stock[order.offer]))
        granted = self._granted(order.offer, wanted)
        if granted:
            self._book(order, granted)
        return granted

    def _granted(self, at: int, wanted: int) -> int:
        offer = self.sale.offers[at]
        granted, reason = self.allowed(offer, wanted)
        granted = max(0, min(granted, wanted))
        if granted < wanted:
            self.reasons[at] = reason or Reason("not-allowed", f"{offer.key} may not be bought now")
        self.stock[at] -= granted
        return granted

    def _book(self, order: PurchaseOrder, count: int) -> None:
        if not order.got:
            self.bought.append(order)
        order.got += count
        order.count -= count
        for name, cores in order.cores.items():
            self.spent[name] = self.spent.get(name, 0) + cores * count
        if self.slices:
            self.slices.give(order.offer, count)
        if self.who.caps is not None:
            self.who.caps.take(self.sale.offers[order.offer], self._jobs(order.content), count)

    def _settle(self, order: PurchaseOrder) -> None:
        """An order that no more is asked for: its jobs wait no longer."""
        self.left[order.rows] -= order.numbers * order.got

    # ------------------------------------------------------------------------------------- what was refused

    def _by_turns(self) -> None:
        """Try the offers that are still open, one by one, for the submitter whose turn it is."""
        waiting = [self.row[group.key] for group in self.listing.order if self.left[self.row[group.key]]]
        if not self._may_be_had():
            self._ask_why(waiting)
        turn = [(self._turn(self.sale.groups[row].submitter), at, row) for at, row in enumerate(waiting)]
        heapify(turn)
        open_ = self._useful(waiting)
        while turn and open_.any():
            then, at, row = heappop(turn)
            name = self.sale.groups[row].submitter
            if (now := self._turn(name)) > then:
                heappush(turn, (now, at, row))
                continue
            offer = self._cheapest_per_job(row, open_) if self.left[row] else -1
            if offer < 0:
                continue
            # One machine first: most of what is asked for here is refused.
            if self._may(row, offer) and self._granted(offer, 1):
                queue = [self._order(self._line(row, offer))]
                self._cut(queue)
                self._book(queue[-1], 1)
                if queue[-1].count and self.stock[offer] > 0 and (most := self._cut(queue)):
                    self._ask(queue[-1], most)
                self._settle(queue[-1])
            open_[offer] = offer not in self.reasons and self.stock[offer] > 0
            heappush(turn, (self._turn(name), at, row))

    def _ask_why(self, waiting: list[int]) -> None:
        """Ask each offer that would serve who waits once: no machine may be had, but the reasons may."""
        serves = np.ascontiguousarray((self.sale.kind_copies[waiting] > 0).T)  # kind by kind
        for at in np.flatnonzero(self._useful(waiting)).tolist():
            mine = serves[self.sale.of_kind[at]]
            some = np.flatnonzero(mine).tolist() if self.who.caps else [int(mine.argmax())]
            row = next((waiting[one] for one in some if self._may(waiting[one], at)), -1)
            if row >= 0 and self._granted(at, 1):
                queue = [self._order(self._line(row, at))]
                self._cut(queue)
                self._book(queue[-1], 1)
                self._settle(queue[-1])
                break

    def _may(self, row: int, at: int) -> bool:
        """Whether caps allow a machine of this offer for a job of this group; if not, none of its class."""
        if self.who.caps is None:
            return True
        offer, group = self.sale.offers[at], self.sale.groups[row]
        cut = self.who.caps.fit(offer, [(group, 1)])
        if not cut.most:
            self.barred.add((row, offer.worker_class))
            self.capped.setdefault(group.key, {}).update(dict.fromkeys(cut.stops.values()))
        return cut.most > 0

    def _cheapest_per_job(self, row: int, open_: Flags) -> int:
        """The open offer that is cheapest for one job of this group; -1 where there is none."""
        this = self.sale
        held = this.kind_copies[row, this.of_kind] * this.slots[this.of_kind]
        usable = np.flatnonzero(open_ & (held > 0))
        if self.barred:
            usable = usable[
                [(row, this.offers[at].worker_class) not in self.barred for at in usable.tolist()]
            ]
        if not len(usable):
            return -1
        priced = usable[~np.isnan(this.price[usable])]
        mine = priced if len(priced) else usable
        price = np.array([this.offers[at].dearness[1] for at in mine.tolist()])
        return int(mine[np.argmin(price / np.minimum(held[mine], self.left[row]))])

    def _line(self, row: int, at: int) -> Line:
        """A machine of this offer with as many jobs of a group as it holds, and then of others."""
        this, kind = self.sale, self.sale.kinds[self.sale.of_kind[at]]
        lead, copies = this.groups[row], this.kind_copies[:, this.of_kind[at]]
        others = [
            (group, int(self.left[other]))
            for other, group in enumerate(this.groups)
            if other != row and copies[other] and self.left[other]
        ]
        known, asks = {kind.key: kind}, asked(lead.request, kind)
        slots = [Bin(f"{number:03d}", kind.key, kind.resources) for number in range(kind.slots)]
        placed = fill([(lead, int(self.left[row]))], slots, self.verdicts, known).placed
        there = placed.get(lead.key, {})
        slots = [replace(one, free=one.free - asks.times(there.get(one.key, 0))) for one in slots]
        placed = {**placed, **fill(others, slots, self.verdicts, known).placed}
        content = {key: sum(where.values()) for key, where in placed.items()}
        count = min(int(self.left[self.row[key]]) // number for key, number in content.items())
        return Line(at, content, count, lead.key)

    # ----------------------------------------------------------------------------------------- the answer

    def _purchases(self) -> tuple[Purchase, ...]:
        counts: dict[int, int] = {}
        holds: dict[int, dict[str, int]] = {}
        for order in self.bought:
            counts[order.offer] = counts.get(order.offer, 0) + order.got
            mine = holds.setdefault(order.offer, {})
            for key, number in order.content.items():
                mine[key] = mine.get(key, 0) + number * order.got
        offers = self.sale.offers
        return tuple(
            Purchase(offers[at], counts[at], dict(sorted(holds[at].items()))) for at in sorted(counts)
        )

    def _unmet(self, rows: Ints) -> dict[str, tuple[Reason, ...]]:
        """The reasons that held jobs of these groups back: the reasons of refused offers that would have
        served them.
        """
        serves = self.sale.kind_copies[rows] > 0
        texts = list(dict.fromkeys(reason for _, reason in sorted(self.reasons.items())))
        number = {reason: at for at, reason in enumerate(texts)}
        kinds = np.zeros((len(self.sale.kinds), len(texts)), dtype=np.float32)
        for at, reason in self.reasons.items():
            kinds[self.sale.of_kind[at], number[reason]] = 1.0
        hits = serves.astype(np.float32) @ kinds > 0
        found: dict[str, tuple[Reason, ...]] = {}
        for at, row in enumerate(rows.tolist()):
            key = self.sale.groups[row].key
            whys = *self.capped.get(key, ()), *(texts[each] for each in np.flatnonzero(hits[at]))
            found[key] = whys[:_REASONS] or ((SOLD_OUT,) if serves[at].any() else (NO_OFFER,))
        return found
