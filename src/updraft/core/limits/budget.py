"""Limits and quotas: what may still be bought when all that exists and all that was asked for is counted."""

import math
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace

from updraft.core.limits.ceilings import MANY, Use, left_of, quota_room, room
from updraft.core.limits.pace import joins_left, slowed
from updraft.core.limits.standings import SpendingBudgets
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.census import largest
from updraft.core.machines.cooldowns import Outstanding, booted, cooldowns, image_key
from updraft.core.machines.witnesses import borne_out
from updraft.core.model import (
    BudgetScope,
    CloudView,
    Cooldown,
    Known,
    LedgerView,
    Machine,
    MachineRecord,
    Offer,
    Phase,
    Reason,
    Resources,
    Snapshot,
)
from updraft.core.reasons import counted
from updraft.core.settings import Policy


@dataclass(slots=True)
class Budget:
    """How much may still be bought. `allow` takes from it what it grants: it is used up by one plan.

    `joins` is how many machines may be asked for now, whatever they are (None: any number), `slow` why.
    """

    policy: Policy
    clouds: Mapping[str, CloudView]
    now: float
    rests: tuple[Cooldown, ...] = ()
    pool: Use = field(default_factory=Use)
    per_cloud: dict[str, Use] = field(default_factory=dict)
    per_class: dict[str, int] = field(default_factory=dict)
    class_cores: dict[str, int] = field(default_factory=dict)
    on_the_way: dict[str, int] = field(default_factory=dict)
    proven: frozenset[str] = frozenset()
    unlisted: dict[str, Use] = field(default_factory=dict)
    granted: dict[str, int] = field(default_factory=dict)
    joins: int | None = None
    slow: Reason | None = None
    spending: SpendingBudgets | None = None
    _resting: dict[tuple[str, str], Cooldown] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._resting = {(rest.scope, rest.key): rest for rest in self.rests}

    def allow(self, offer: Offer, count: int) -> tuple[int, Reason | None]:
        """How many of `count` machines of this offer may be bought now, and what stops the rest."""
        granted, stop = count, None
        for rule in (
            self._cloud_open,
            self._cloud_answers,
            self._rested,
            self._tried,
            self._joined,
            self._within_pool,
            self._within_cloud,
            self._within_class,
            self._within_quota,
            self._within_spending,
        ):
            most, reason = rule(offer)
            if most < granted:
                granted, stop = max(0, most), reason
            if granted == 0:
                break
        if granted:
            self._take(offer, granted)
        return granted, stop

    def machines_left(self, of: Container[str] | None = None) -> int:
        """How many machines may be bought at most, whatever they are: by limits, maxima and quotas.

        `of` are the clouds that are asked for, None for all.
        """
        policy = self.policy
        pool = left_of(policy.limits.machines, self.pool.machines)
        classes = sum(
            left_of(worker.max_machines, self.per_class.get(name, 0))
            for name, worker in policy.classes.items()
        )
        clouds = 0
        for name, view in self.clouds.items():
            if (of is not None and name not in of) or self._sells_nothing(name, view):
                continue
            limits = policy.cloud_limits.get(name)
            left = left_of(
                None if limits is None else limits.machines, self.per_cloud.get(name, Use()).machines
            )
            if isinstance(view.quota, Known):
                gone = self.unlisted.get(name, Use()).machines
                left = min(left, left_of(view.quota.value.machines, gone))
            clouds += left
        return min(pool, classes, clouds)

    def _sells_nothing(self, cloud: str, view: CloudView) -> bool:
        """Is it disabled, silent, or resting as a whole?"""
        rest = self._resting.get(("cloud", cloud))
        resting = rest is not None and self.now < rest.until
        return resting or self.policy.rule(cloud).closed is not None or not isinstance(view.machines, Known)

    def _take(self, offer: Offer, count: int) -> None:
        self.pool.add(count, offer.resources, offer.price)
        if self.spending is not None:
            self.spending.take(offer, count)
        self.joins = None if self.joins is None else self.joins - count
        for uses in (self.per_cloud, self.unlisted):
            if offer.cloud not in uses:
                uses[offer.cloud] = Use()
            uses[offer.cloud].add(count, offer.resources, offer.price)
        self.count(offer.worker_class, count, offer.resources.cpus)
        image = image_key(offer.worker_class, offer.image, offer.cloud, offer.variant)
        self.on_the_way[image] = self.on_the_way.get(image, 0) + count
        place = _offer_key(offer)
        self.granted[place] = self.granted.get(place, 0) + count

    def count(self, worker: str, count: int, cores: int) -> None:
        """Count `count` machines of a class, each with so many cores."""
        self.per_class[worker] = self.per_class.get(worker, 0) + count
        self.class_cores[worker] = self.class_cores.get(worker, 0) + count * cores

    def _cloud_open(self, offer: Offer) -> tuple[int, Reason | None]:
        closed = self.policy.rule(offer.cloud).closed
        return (MANY, None) if closed is None else (0, closed)

    def _cloud_answers(self, offer: Offer) -> tuple[int, Reason | None]:
        view = self.clouds.get(offer.cloud)
        if view is None or not isinstance(view.machines, Known):
            return 0, Reason("cloud-silent", f"cloud {offer.cloud} does not answer: nothing is bought there")
        return MANY, None

    def _rested(self, offer: Offer) -> tuple[int, Reason | None]:
        if not self._resting:
            return MANY, None
        image = image_key(offer.worker_class, offer.image, offer.cloud, offer.variant)
        place = _offer_key(offer)
        names = [("cloud", offer.cloud), ("image", image), ("offer", place)]
        if offer.variant:
            names.append(("offer", f"{place}?{offer.variant.text}"))
        for name in names:
            rest = self._resting.get(name)
            if rest is None:
                continue
            if self.now < rest.until:
                left = rest.until - self.now
                return 0, Reason("cooling-down", f"{rest.reason.text}; resting for {left:.0f} s more")
            if rest.probe:
                busy = self.on_the_way.get(image, 0)
                return max(0, 1 - busy), Reason("probing", f"{rest.reason.text}; one machine goes out to try")
        return MANY, None

    def _tried(self, offer: Offer) -> tuple[int, Reason | None]:
        image = image_key(offer.worker_class, offer.image, offer.cloud, offer.variant)
        if image in self.proven:
            return MANY, None
        trial = self.policy.timings.trial
        text = f"no machine of image {image} has joined yet: {trial} are tried first"
        return trial - self.on_the_way.get(image, 0), Reason("unproven", text)

    def _joined(self, _offer: Offer) -> tuple[int, Reason | None]:
        return (MANY, None) if self.joins is None else (self.joins, self.slow)

    def _within_pool(self, offer: Offer) -> tuple[int, Reason | None]:
        return room(self.policy.limits, self.pool, offer, "the pool")

    def _within_cloud(self, offer: Offer) -> tuple[int, Reason | None]:
        limits = self.policy.cloud_limits.get(offer.cloud)
        if limits is None:
            return MANY, None
        return room(limits, self.per_cloud.get(offer.cloud, Use()), offer, f"cloud {offer.cloud}")

    def _within_class(self, offer: Offer) -> tuple[int, Reason | None]:
        worker = self.policy.classes[offer.worker_class]
        left, reason = MANY, None
        if worker.max_machines is not None:
            left = worker.max_machines - self.per_class.get(worker.name, 0)
            most = counted(worker.max_machines, "machine")
            reason = Reason("limit-class", f"class {worker.name} may have {most}")
        if worker.max_cores is not None and offer.resources.cpus > 0:
            has = self.class_cores.get(worker.name, 0)
            fit = (worker.max_cores - has) // offer.resources.cpus
            if fit < left:
                text = f"class {worker.name} may have {worker.max_cores} cores, and has {has}"
                left, reason = fit, Reason("limit-class", f"{text}: [classes.{worker.name}] max_cores")
        return left, reason

    def _within_spending(self, offer: Offer) -> tuple[int, Reason | None]:
        return (MANY, None) if self.spending is None else self.spending.allow(offer)

    def _within_quota(self, offer: Offer) -> tuple[int, Reason | None]:
        gone = self.unlisted.get(offer.cloud, Use())
        view = self.clouds[offer.cloud]
        most, reason = MANY, None
        if isinstance(view.quota, Known):
            most, reason = quota_room(view.quota.value, gone, offer)
        if offer.left is not None:
            left = offer.left - self.granted.get(_offer_key(offer), 0)
            if left < most:
                most, reason = (
                    left,
                    Reason("no-capacity", f"{offer.key}: the cloud has {max(0, offer.left)} left"),
                )
        return most, reason


def _offer_key(offer: Offer) -> str:
    return f"{offer.cloud}/{offer.zone}/{offer.flavor}/{offer.market}"


def tried(
    cache: MachineCache, records: Sequence[MachineRecord], snapshot: Snapshot, policy: Policy
) -> tuple[tuple[Cooldown, ...], frozenset[str]]:
    """The cool-downs after failures, and the images that are proven, once these records are in the ledger."""
    images = {image for image, count in cache.proven.items() if count > 0}
    images.update(
        (r.worker_class, booted(r.image, r.variant), r.cloud) for r in records if r.joined_at is not None
    )
    proven = frozenset(image_key(*each) for each in images)
    failing = any(r.joined_at is None and r.end is not None for r in records)
    if not (failing or cache.failing or cache.refused):
        return (), proven
    return cooldowns(_written(snapshot.ledger, records), snapshot.now, policy.timings), proven


def _written(ledger: LedgerView, records: Sequence[MachineRecord]) -> LedgerView:
    """The ledger as it will be once these records are in it: a failure seen now counts now."""
    fresh = {r.key: r for r in records}
    kept = tuple(fresh.pop(r.key, r) for r in ledger.machines)
    return replace(ledger, machines=(*kept, *fresh.values()))


def budget(
    cache: MachineCache,
    waiting: Sequence[Outstanding],
    rests: tuple[Cooldown, ...],
    proven: frozenset[str],
    snapshot: Snapshot,
    policy: Policy,
    spending: SpendingBudgets | None = None,
) -> Budget:
    """The budget for what may still be bought, when all that exists and all that was asked for is counted.

    `rests` is what cools down, `proven` are the images of which a machine has joined, `spending` the budgets
    of money as they stand.
    """
    made = Budget(policy, snapshot.clouds, snapshot.now, rests=rests, proven=proven, spending=spending)
    if (joins := joins_left(snapshot.pace, snapshot.ledger, snapshot.now)) is not None:
        made.joins, made.slow = joins, slowed(snapshot.pace)
    asked = {cloud: _asked(view) for cloud, view in snapshot.clouds.items()}
    counts = Counter([one.account for one in cache.settled])
    latest = min((min(times) for times in asked.values()), default=_NEVER[0])
    young = [one for one in cache.settled if one.machine.record.requested_at > latest]
    for one in (*cache.others, *young):
        machine = one.machine
        if machine.phase is Phase.GONE and borne_out(machine, snapshot, policy):
            continue
        if not one.settled:
            counts[one.account] += 1
        _count_new(made, machine, asked.get(machine.record.cloud, _NEVER))
    costs: dict[str, list[float]] = {}
    for (cloud, worker_class, cores, memory, price), count in counts.items():
        _use(made.per_cloud, cloud).include(Use(count, count * cores, count * memory, 0.0, price is None))
        costs.setdefault(cloud, []).append(count * (price or 0.0))
        made.count(worker_class, count, cores)
    for cloud, each in costs.items():
        made.per_cloud[cloud].cost = math.fsum(each)  # the same in whatever order they were counted
    for item in waiting:
        _count_launch(made, item)
    _count_odd(made, snapshot)
    for _, use in sorted(made.per_cloud.items()):
        made.pool.include(use)
    return made


def _count_odd(made: Budget, snapshot: Snapshot) -> None:
    """Count what a cloud lists in a way of which nothing can be made, but for what we know by its id.

    Each may be ours, and as large as the largest machine that this cloud sells.
    """
    odd = {cloud: view.odd for cloud, view in snapshot.clouds.items() if view.odd}
    if not odd:
        return
    known = {record.key for record in snapshot.ledger.machines}
    for cloud, ids in odd.items():
        count = sum((cloud, one) not in known for one in ids)
        most = largest(snapshot.offers, cloud)
        resources, price = (most.resources, most.price) if most else (Resources(), None)
        _use(made.per_cloud, cloud).add(count, resources, price)
        if made.spending is not None and count:
            cost = None if price is None else count * price
            made.spending.add((BudgetScope.POOL, ""), cost)
            made.spending.add((BudgetScope.CLOUD, cloud), cost)


def _count_new(made: Budget, machine: Machine, asked: tuple[float, float]) -> None:
    """What counts of a machine that is on its way, or that its cloud's last answers may not know of yet."""
    record, (quota_at, offers_at) = machine.record, asked
    cloud = record.cloud
    if machine.phase is Phase.REQUESTED or machine.phase is Phase.BOOTING:
        image = image_key(record.worker_class, record.image, cloud, record.variant)
        made.on_the_way[image] = made.on_the_way.get(image, 0) + 1
    if machine.phase is Phase.REQUESTED or record.requested_at > quota_at:
        _use(made.unlisted, cloud).add(1, record.resources, record.price)
    if record.requested_at > offers_at:
        name = f"{cloud}/{record.zone}/{record.flavor}/{record.market}"
        made.granted[name] = made.granted.get(name, 0) + 1


_NEVER = (float("-inf"), float("-inf"))


def _asked(view: CloudView) -> tuple[float, float]:
    """When a cloud was last asked for its quota and its offers: the answer doesn't count what came after."""
    quota, offers = view.quota, view.offers
    return (
        quota.at if isinstance(quota, Known) else _NEVER[0],
        offers.at if isinstance(offers, Known) else _NEVER[1],
    )


def _use(uses: dict[str, Use], cloud: str) -> Use:
    use = uses.get(cloud)
    if use is None:
        use = uses[cloud] = Use()
    return use


def _count_launch(made: Budget, item: Outstanding) -> None:
    """What was asked for and has not shown itself counts as much as what has."""
    launch, count = item.launch, item.count
    _use(made.per_cloud, launch.cloud).add(count, launch.resources, launch.price)
    _use(made.unlisted, launch.cloud).add(count, launch.resources, launch.price)
    made.count(launch.worker_class, count, launch.resources.cpus)
    image = image_key(launch.worker_class, launch.image, launch.cloud, launch.variant)
    made.on_the_way[image] = made.on_the_way.get(image, 0) + count
