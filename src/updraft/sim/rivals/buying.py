"""What a rival buys: the one flavor that most of them know, and how much the site's limits leave."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from updraft.core.limits.ceilings import Use
from updraft.core.model import Instance, JobGroup, Known, Offer, Resources, Snapshot
from updraft.core.settings import Limits, Policy
from updraft.sim.workloads.workload import Arrival


def slot_of(offer: Offer, snapshot: Snapshot) -> Resources:
    """What a machine of this offer brings to the pool."""
    kind = snapshot.kinds.get(offer.kind)
    return offer.resources if kind is None else kind.resources.times(kind.slots)


def on_demand(offers: Iterable[Offer]) -> list[Offer]:
    """Those that nobody takes away."""
    return [offer for offer in offers if offer.market == "on-demand"]


def price_of(offer: Offer) -> float:
    """Its price; where none is known, its cores."""
    return float(offer.resources.cpus) if offer.price is None else offer.price


@dataclass(slots=True)
class OneFlavor:
    """The one flavor of a rival that knows no more, as a careful site would choose it.

    Of the on-demand offers that hold every job it was shown (those that no offer holds apart), the cheapest
    per core; of equals the smallest, which leaves least idle. Where the rival counts jobs per machine
    (`jobs`), it is the cheapest per job that it counts on, at one core each, and of equals the one that
    holds just so many. `name` decides it instead. The choice is made again only when a job comes that it
    can't hold.
    """

    name: str = ""
    jobs: int | None = None
    shapes: set[Resources] = field(default_factory=set)
    _chosen: str = ""

    def see_workload(self, workload: Iterable[Arrival]) -> None:
        """What the site knows of its jobs beforehand."""
        self._note(one.request for one in workload)

    def see(self, groups: Iterable[JobGroup]) -> None:
        """What waits now."""
        self._note(group.request for group in groups)

    def _note(self, requests: Iterable[Resources]) -> None:
        before = len(self.shapes)
        self.shapes.update(requests)
        if len(self.shapes) != before:
            self._chosen = ""

    def offer(self, snapshot: Snapshot) -> Offer | None:
        """The offer to launch from; None where nothing is sold, or not the flavor that was named."""
        sold = on_demand(snapshot.offers)
        if self.name:
            sold = [offer for offer in sold if offer.flavor == self.name]
        if self._chosen:
            kept = next((offer for offer in sold if offer.key == self._chosen), None)
            if kept is not None:
                return kept
        best = self._best(sold, snapshot)
        if best is not None and self.shapes:
            self._chosen = best.key
        return best

    def _best(self, sold: Sequence[Offer], snapshot: Snapshot) -> Offer | None:
        room = {offer.key: slot_of(offer, snapshot) for offer in sold}
        possible = [shape for shape in self.shapes if any(slot.holds(shape) for slot in room.values())]
        fitting = [offer for offer in sold if all(room[offer.key].holds(shape) for shape in possible)]
        return min(fitting or sold, key=self._rank, default=None)

    def _rank(self, offer: Offer) -> tuple[float, int, int, str]:
        cores = max(1, offer.resources.cpus)
        units = cores if self.jobs is None else min(self.jobs, cores)
        short = 0 if self.jobs is None else self.jobs - units
        return round(price_of(offer) / units, 9), short, cores, offer.key


# ------------------------------------------------------------------------------------------------ limits


def ceiling(policy: Policy, offer: Offer) -> int | None:
    """How many machines of this offer alone the site's limits allow; None where there is no end."""
    cores, price = max(1, offer.resources.cpus), offer.price or 0.0
    numbers: list[int] = []
    for limits in (policy.limits, policy.cloud_limits.get(offer.cloud, Limits())):
        if limits.machines is not None:
            numbers.append(limits.machines)
        if limits.cores is not None:
            numbers.append(limits.cores // cores)
        if limits.memory is not None:
            numbers.append(limits.memory // max(1, offer.resources.memory))
        if limits.cost_per_hour is not None and price > 0:
            numbers.append(int(limits.cost_per_hour / price + 1e-9))
    worker = policy.classes.get(offer.worker_class)
    if worker is not None and worker.max_machines is not None:
        numbers.append(worker.max_machines)
    return min(numbers, default=None)


class Headroom:
    """What limits and quotas leave for a rival that keeps to several flavors or clouds. Made for one look."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        machines: Iterable[Instance],
        coming: Iterable[tuple[int, Offer]],
    ) -> None:
        self._policy = policy
        self._taken: defaultdict[str, Use] = defaultdict(Use)
        self._class: defaultdict[str, int] = defaultdict(int)
        self._quota = {name: view.quota for name, view in snapshot.clouds.items()}
        self._new: defaultdict[str, Use] = defaultdict(Use)
        sizes = {(o.cloud, o.flavor, o.market): (o.resources, o.price or 0.0) for o in snapshot.offers}
        alike = Counter((one.cloud, one.flavor, one.market, one.worker_class) for one in machines)
        for (cloud, flavor, market, name), count in alike.items():
            self._count(cloud, name, count, *sizes.get((cloud, flavor, market), (Resources(), 0.0)))
        for count, offer in coming:
            self.take(offer, count)

    def _count(self, cloud: str, worker_class: str, count: int, resources: Resources, price: float) -> None:
        for name in ("", cloud):
            self._taken[name].add(count, resources, price)
        self._class[worker_class] += count

    def take(self, offer: Offer, count: int) -> None:
        """So many more of this offer."""
        self._count(offer.cloud, offer.worker_class, count, offer.resources, offer.price or 0.0)
        self._new[offer.cloud].add(count, offer.resources, None)

    def fill(self, cloud: str) -> float:
        """How full a cloud is, from 0 to 1; 0 where nothing limits it."""
        limits, taken = self._policy.cloud_limits.get(cloud, self._policy.limits), self._taken[cloud]
        shares = [taken.machines / limits.machines] if limits.machines else []
        shares += [taken.cores / limits.cores] if limits.cores else []
        shares += [taken.memory / limits.memory] if limits.memory else []
        return max(shares, default=0.0)

    def room(self, offer: Offer) -> int:
        """How many more of this offer there may be."""
        cores, price = max(1, offer.resources.cpus), offer.price or 0.0
        room = 1_000_000_000
        for name, limits in (
            ("", self._policy.limits),
            (offer.cloud, self._policy.cloud_limits.get(offer.cloud)),
        ):
            if limits is None:
                continue
            taken = self._taken[name]
            if limits.machines is not None:
                room = min(room, limits.machines - taken.machines)
            if limits.cores is not None:
                room = min(room, (limits.cores - taken.cores) // cores)
            if limits.memory is not None:
                room = min(room, (limits.memory - taken.memory) // max(1, offer.resources.memory))
            if limits.cost_per_hour is not None and price > 0:
                room = min(room, int((limits.cost_per_hour - taken.cost) / price + 1e-9))
        worker = self._policy.classes.get(offer.worker_class)
        if worker is not None and worker.max_machines is not None:
            room = min(room, worker.max_machines - self._class[offer.worker_class])
        return max(0, min(room, self._quota_room(offer, cores)))

    def _quota_room(self, offer: Offer, cores: int) -> int:
        known, room = self._quota.get(offer.cloud), 1_000_000_000
        new = self._new[offer.cloud]
        if isinstance(known, Known) and known.value.machines is not None:
            room = min(room, known.value.machines - new.machines)
        if isinstance(known, Known) and known.value.cores is not None:
            room = min(room, (known.value.cores - new.cores) // cores)
        return room if offer.left is None else min(room, offer.left)
