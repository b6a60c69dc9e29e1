"""Annexes: which machines are still to come, what stops them, and how each annex stands.

An annex buys before the queue does, and what it buys is room on its way for the jobs that may use it. All
machines that carry its name count as its own until they have ended, whatever else is known of them; one that
left for want of work is never replaced, one that broke is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from updraft.core.annexes.use import may_have
from updraft.core.buying.launches import PlannedLaunch, intended
from updraft.core.demand.holdings import caps
from updraft.core.demand.room import Room
from updraft.core.limits.budget import Budget
from updraft.core.limits.purses import paid
from updraft.core.limits.standings import SpendingBudgets
from updraft.core.machines.cooldowns import CLOUD_ERROR, NEVER_JOINED, Outstanding
from updraft.core.machines.lifecycle import LEASE, SPOT_NOTICE
from updraft.core.machines.witnesses import borne_out
from updraft.core.model import (
    Annex,
    AnnexOutlook,
    AnnexState,
    JobGroup,
    Known,
    Machine,
    MachineRecord,
    Offer,
    Phase,
    Reason,
    Snapshot,
)
from updraft.core.reasons import moment
from updraft.core.settings import Policy
from updraft.core.sharing.caps import MANY, Caps
from updraft.core.sharing.shares import Held, standing
from updraft.core.slots.variants import Want, Wants

REPLACED = frozenset({NEVER_JOINED, CLOUD_ERROR, SPOT_NOTICE, "vanished", "gone"})
"""The codes of ends that an annex's machine has not chosen: another one takes its place."""

WHOLE = Reason("annex-whole", "all of its machines are there or on their way")
OVER = Reason("annex-over", "none of its machines is left")
_POOL_UNKNOWN = Reason("pool-unknown", "the pool does not answer: nothing is launched")
_CLOSING = Reason("destroy", "all machines of the pool are to go")


@dataclass(frozen=True, slots=True)
class Annexed:
    """The purchases for annexes; `coming` is the same as launches on their way; how each annex stands."""

    wishes: tuple[PlannedLaunch, ...] = ()
    coming: tuple[Outstanding, ...] = ()
    outlooks: tuple[AnnexOutlook, ...] = ()


NOTHING = Annexed()


def on_sale(annexes: Iterable[Annex], wants: Wants, policy: Policy) -> Wants:
    """The wanted variants, with the machines of annexes that may still grow."""
    found = {name: list(some) for name, some in wants.items()}
    for annex in sorted(annexes, key=lambda one: one.name):
        worker = policy.classes.get(annex.worker_class)
        if worker is not None and not annex.deleted and annex.stopped is None:
            clouds = frozenset(annex.clouds or worker.clouds)
            found.setdefault(worker.name, []).append(Want(annex.variant, clouds))
    return {name: tuple(some) for name, some in found.items()}


def parted(snapshot: Snapshot) -> tuple[Snapshot, Mapping[str, Sequence[Offer]]]:
    """The snapshot with what is on sale for jobs only, and what is for each annex."""
    if not snapshot.annexes:
        return snapshot, {}
    own: dict[str, list[Offer]] = {}
    rest: list[Offer] = []
    for offer in snapshot.offers:
        name = offer.variant.annex
        (own.setdefault(name, []) if name else rest).append(offer)
    return replace(snapshot, offers=tuple(rest)), own


def left_of_itself(record: MachineRecord) -> bool:
    """Has this machine, which has ended, left for a cause of its own or by hand? Then none replaces it.

    One that ended with the lease that it knew was to stay, where its annex has a later one.
    """
    drain = record.drain
    if drain is not None and drain.accepted_at is not None:
        if drain.reason.code == LEASE:
            return False
        if drain.reason.code != SPOT_NOTICE:
            return True
    return record.end is not None and record.end.code not in REPLACED


# ----------------------------------------------------------------------------------------- what is bought


def annexed(
    own: Mapping[str, Sequence[Offer]],
    machines: Sequence[Machine],
    waiting: Sequence[Outstanding],
    snapshot: Snapshot,
    policy: Policy,
    money: Budget,
    held: Held,
) -> Annexed:
    """The launches for every annex, in the order in which they were asked for, and how each stands.

    `own` are the offers for each, `machines` all that we know of, `waiting` the launches of which some are
    still to be seen. What is bought is taken from `money`.
    """
    if not snapshot.annexes:
        return NOTHING
    there = _counted(machines, waiting, snapshot, policy)
    bounds = _Bounds(machines, waiting, snapshot, policy, held, money.spending)
    wishes: list[PlannedLaunch] = []
    outlooks: list[AnnexOutlook] = []
    for annex in sorted(snapshot.annexes, key=lambda one: (one.since, one.name)):
        has = there[annex.name]
        mine, stop = _bought(annex, has, own.get(annex.name, ()), snapshot, policy, money, bounds)
        wishes.extend(mine)
        outlooks.append(_outlook(annex, has, mine, stop, snapshot.now))
    coming = tuple(
        Outstanding(intended(f"annex#{at}", wish.offer, wish.count, snapshot.now), wish.count)
        for at, wish in enumerate(wishes)
    )
    return Annexed(tuple(wishes), coming, tuple(outlooks))


@dataclass(slots=True)
class _Has:
    """The machines of an annex, those on their way included."""

    machines: int = 0
    cores: int = 0
    joined: int = 0
    busy: int = 0
    coming: int = 0


def _counted(
    machines: Iterable[Machine], waiting: Iterable[Outstanding], snapshot: Snapshot, policy: Policy
) -> Mapping[str, _Has]:
    found = {annex.name: _Has() for annex in snapshot.annexes}
    for machine in machines:
        has = found.get(machine.record.variant.annex)
        if has is None or (_replaceable(machine) and borne_out(machine, snapshot, policy)):
            continue
        has.machines += 1
        has.cores += machine.record.resources.cpus
        has.joined += machine.phase is Phase.JOINED and bool(machine.slots)
        has.busy += machine.busy
        has.coming += machine.phase in (Phase.REQUESTED, Phase.BOOTING)
    for item in waiting:
        has = found.get(item.launch.variant.annex)
        if has is not None:
            has.machines += item.count
            has.cores += item.count * item.launch.resources.cpus
            has.coming += item.count
    return found


def _replaceable(machine: Machine) -> bool:
    """Has it gone in a way for which there is another?

    One that left of itself stands for itself until its end is in the ledger; from then on it is counted among
    those that have left.
    """
    return machine.phase is Phase.GONE and not left_of_itself(machine.record)


def _bought(
    annex: Annex,
    has: _Has,
    offers: Sequence[Offer],
    snapshot: Snapshot,
    policy: Policy,
    money: Budget,
    bounds: "_Bounds",
) -> tuple[list[PlannedLaunch], Reason | None]:
    """Machines to launch for an annex, of its cheapest offers, and what stops the rest."""
    missing = _missing(annex, has)
    if missing <= 0 or annex.over(snapshot.now):
        return [], None
    if policy.closing:
        return [], _CLOSING
    if not isinstance(snapshot.collector, Known):
        return [], _POOL_UNKNOWN
    fitting, stop = _fitting(annex, offers, policy)
    wishes: list[PlannedLaunch] = []
    for offer in fitting:
        count = missing if annex.machines else -(-missing // max(1, offer.resources.cpus))
        most, why = bounds.most(annex, offer)
        granted, refused = money.allow(offer, min(count, most)) if most > 0 else (0, None)
        stop = refused or (why if most < count else None) or stop
        if granted:
            bounds.take(annex, offer, granted)
            reason = Reason("annex", f"annex {annex.name} was asked for until {moment(annex.until)}")
            wishes.append(PlannedLaunch(offer, granted, reason, annex))
            missing -= granted if annex.machines else granted * offer.resources.cpus
        if missing <= 0:
            return wishes, None
    return wishes, stop


def _missing(annex: Annex, has: _Has) -> int:
    """Machines, or cores where it counts these, that are still wanted."""
    if annex.machines:
        return annex.machines - annex.left - has.machines
    return annex.cores - annex.left_cores - has.cores


def _fitting(annex: Annex, offers: Sequence[Offer], policy: Policy) -> tuple[list[Offer], Reason | None]:
    """The offers that an annex may have, best first, and why some or all are none."""
    if annex.worker_class not in policy.classes:
        return [], Reason("no-class", f"there is no class {annex.worker_class} any more")
    sold = [one for one in offers if may_have(annex, one)]
    if not sold:
        return [], Reason("no-offer", f"no {_wanted(annex)} is on sale now")
    dear = _too_dear(annex, sold)
    if annex.max_price is not None:
        sold = [one for one in sold if one.price is not None and one.price <= annex.max_price]
    sold.sort(key=lambda one: (policy.rule(one.cloud).priority, *_worth(annex, one), one.key))
    return sold, None if sold else dear


def _wanted(annex: Annex) -> str:
    """What it was asked for as, in words."""
    market = {None: "", True: " on the spot market", False: " on demand"}[annex.spot]
    flavors = f" and flavor {' or '.join(annex.flavors)}" if annex.flavors else ""
    clouds = f" in {' or '.join(annex.clouds)}" if annex.clouds else ""
    return f"machine of class {annex.worker_class}{flavors}{market}{clouds}"


def _worth(annex: Annex, offer: Offer) -> tuple[bool, float]:
    """The cost per machine, or per core, where the annex counts these; unknown prices come last."""
    unknown, price = offer.dearness
    return unknown, price / (1 if annex.machines else max(1, offer.resources.cpus))


def _too_dear(annex: Annex, sold: Sequence[Offer]) -> Reason | None:
    if annex.max_price is None:
        return None
    prices = [one.price for one in sold if one.price is not None]
    if not prices:
        text = f"annex {annex.name} has a highest price, and that of no machine is known"
        return Reason("price-unknown", text)
    text = f"the cheapest machine costs {min(prices):g} per hour"
    return Reason("max-price", f"{text}, and annex {annex.name} pays {annex.max_price:g}")


class _Bounds:
    """The caps of users, held against annexes that are for one user's jobs alone."""

    def __init__(
        self,
        machines: Sequence[Machine],
        waiting: Sequence[Outstanding],
        snapshot: Snapshot,
        policy: Policy,
        held: Held,
        spending: SpendingBudgets | None,
    ) -> None:
        self._caps: Caps | None = None
        if isinstance(snapshot.collector, Known):
            who = standing(snapshot.collector.value, policy, held)
            nowhere = Room((), (), {})
            found = caps(policy, who, (), (), nowhere, machines, waiting)
            self._caps = paid(found, spending, (), (), nowhere, machines, waiting)

    def most(self, annex: Annex, offer: Offer) -> tuple[int, Reason | None]:
        """How many machines of an offer the owner may have yet, and why no more."""
        if self._caps is None or annex.for_all:
            return MANY, None
        cut = self._caps.fit(offer, [(_owner(annex, offer), 1)])
        return cut.most, next(iter(cut.stops.values()), None)

    def take(self, annex: Annex, offer: Offer, count: int) -> None:
        if self._caps is not None and not annex.for_all:
            self._caps.take(offer, [(_owner(annex, offer), 1)], count)


def _owner(annex: Annex, offer: Offer) -> JobGroup:
    """The owner as caps know one: by a job that takes the whole machine."""
    return JobGroup(f"annex {annex.name}", "", annex.owner, annex.owner, "[]", offer.resources, 1)


# -------------------------------------------------------------------------------------- how each one stands


def _outlook(
    annex: Annex, has: _Has, mine: Sequence[PlannedLaunch], stop: Reason | None, now: float
) -> AnnexOutlook:
    launching = sum(wish.count for wish in mine)
    bought = _Has(has.machines + launching, has.cores + sum(w.count * w.offer.resources.cpus for w in mine))
    missing = 0 if annex.over(now) else max(0, _missing(annex, bought))
    state, reason = _state(annex, has, launching, stop, now)
    gone = annex.over(now) and not has.machines
    return AnnexOutlook(
        annex.name,
        state,
        reason,
        has.machines,
        has.cores,
        has.joined,
        has.busy,
        has.coming,
        launching,
        missing,
        forget=annex.deleted and gone,
    )


def _state(
    annex: Annex, has: _Has, launching: int, stop: Reason | None, now: float
) -> tuple[AnnexState, Reason]:
    if annex.over(now):
        if not has.machines:
            return "over", OVER
        return "leaving", annex.stopped or Reason("lease-over", f"its lease ended at {moment(annex.until)}")
    if stop is not None:
        return "held", stop
    if launching:
        return "growing", Reason("annex", f"{launching} are launched")
    return "whole", _whole(annex)


def _whole(annex: Annex) -> Reason:
    if not (annex.left or annex.left_cores):
        return WHOLE
    return Reason("annex-shrunk", f"{annex.left} of its machines were idle for too long, and have left")


def unknown(machines: Iterable[Machine], annexes: Iterable[Annex]) -> Iterator[Reason]:
    """A warning for each annex that has machines and that nobody knows: the ledger may have been lost."""
    known = {annex.name for annex in annexes}
    names = {one.record.variant.annex for one in machines if one.record.variant} - known - {""}
    for name in sorted(names):
        text = (
            f"machines of annex {name} are there, and it isn't in the ledger: they leave when they are idle"
        )
        yield Reason("annex-unknown", f"{text}, or by themselves when their lease ends")
