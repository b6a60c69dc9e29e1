"""Who is made: machines for jobs without room, and machines to keep a minimum, each launch with its key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from updraft.core.buying.shopping import Shopping
from updraft.core.limits.budget import Budget
from updraft.core.machines.entries import Entry, plain_ones
from updraft.core.model import Annex, Known, Launch, LaunchRecord, LaunchState, Offer, Reason, Snapshot
from updraft.core.reasons import counted
from updraft.core.settings import Policy, WorkerClass


@dataclass(frozen=True, slots=True)
class PlannedLaunch:
    """So many machines of an offer, for a reason; for an annex, if there is one."""

    offer: Offer
    count: int
    reason: Reason
    annex: Annex | None = None


def minimum(
    staying: Sequence[Entry],
    promised: Mapping[str, int],
    shopping: Shopping,
    snapshot: Snapshot,
    policy: Policy,
    money: Budget,
) -> tuple[PlannedLaunch, ...]:
    """Machines to keep each class's minimum: of its cheapest offer that may be bought."""
    if policy.closing or not isinstance(snapshot.collector, Known):
        return ()
    counts = dict(promised)
    for name, number in plain_ones(staying).items():
        counts[name] = counts.get(name, 0) + number
    for purchase in shopping.purchases:
        if not purchase.offer.variant:
            name = purchase.offer.worker_class
            counts[name] = counts.get(name, 0) + purchase.count
    wishes: list[PlannedLaunch] = []
    for name, worker in sorted(policy.classes.items()):
        missing = worker.min_machines - counts.get(name, 0)
        if missing > 0:
            wishes.extend(_lift(worker, missing, _in_order(name, snapshot.offers, policy), money.allow))
    return tuple(wishes)


def _in_order(worker_class: str, offers: Sequence[Offer], policy: Policy) -> list[Offer]:
    """A class's offers of plain machines: by priority, then the cheapest; an unknown price is the dearest."""
    mine = [offer for offer in offers if offer.worker_class == worker_class and not offer.variant]
    return sorted(mine, key=lambda o: (policy.rule(o.cloud).priority, *o.dearness, o.key))


def _lift(
    worker: WorkerClass,
    missing: int,
    offers: Sequence[Offer],
    allowed: Callable[[Offer, int], tuple[int, Reason | None]],
) -> list[PlannedLaunch]:
    """Wishes for `missing` machines of a class, of the first offers that may be bought."""
    wishes: list[PlannedLaunch] = []
    for offer in offers:
        if missing <= 0:
            break
        count, _ = allowed(offer, missing)
        if count:
            least = counted(worker.min_machines, "machine")
            reason = Reason("below-minimum", f"class {worker.name} keeps at least {least}")
            wishes.append(PlannedLaunch(offer, count, reason))
            missing -= count
    return wishes


def launches(shopping: Shopping, others: Sequence[PlannedLaunch], snapshot: Snapshot) -> list[Launch]:
    """One launch for each offer; its key is made of the class and of the decision's time.

    `others` are machines that no waiting job is the reason for.
    """
    owners = _owners(snapshot)
    wishes = [
        PlannedLaunch(p.offer, p.count, _why(p.holds, owners)) for p in shopping.purchases if p.count > 0
    ]
    wishes.extend(others)
    stamp = f"{int(snapshot.now * 1000):x}"
    return [
        Launch(f"{wish.offer.worker_class}-{stamp}-{number}", wish.offer, wish.count, wish.reason, wish.annex)
        for number, wish in enumerate(wishes)
    ]


def _owners(snapshot: Snapshot) -> dict[str, str]:
    """The owner of each job group whose schedd has answered."""
    return {
        group.key: group.owner
        for source in snapshot.schedds.values()
        if isinstance(source, Known)
        for group in source.value.groups
    }


def _why(holds: Mapping[str, int], owner_of: Mapping[str, str]) -> Reason:
    owners = {owner_of[key] for key in holds if key in owner_of}
    jobs = sum(holds.values())
    names = ", ".join(sorted(owners)[:3]) + (" and others" if len(owners) > 3 else "")
    if jobs == 1:
        return Reason("demand", f"a waiting job of {names} has no room")
    return Reason("demand", f"{jobs} waiting jobs of {names} have no room")


def intended(key: str, offer: Offer, count: int, now: float) -> LaunchRecord:
    """The record of a launch of so many of this offer, before the cloud is asked at the time `now`."""
    return LaunchRecord(
        key=key,
        cloud=offer.cloud,
        zone=offer.zone,
        flavor=offer.flavor,
        market=offer.market,
        worker_class=offer.worker_class,
        image=offer.image,
        generation=offer.generation,
        count=count,
        resources=offer.resources,
        price=offer.price,
        asked_at=now,
        state=LaunchState.INTENDED,
        variant=offer.variant,
    )
