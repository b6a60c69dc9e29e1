"""A pool of any size as one snapshot: a queue, machines in every state of their lives, and what is on sale.

Of twenty machines six are idle, six full, five partly free, two boot and one drains. All of it follows from
the size, so that two runs measure the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tests.bench.decision import crowd
from updraft.core.model import (
    Child,
    CloudOffer,
    CloudState,
    CloudView,
    CollectorView,
    DrainMode,
    DrainRecord,
    Instance,
    JobGroup,
    Kind,
    Known,
    LaunchRecord,
    LaunchState,
    LedgerView,
    MachineRecord,
    Offer,
    Quota,
    Reason,
    Resources,
    ScheddView,
    Slot,
    Snapshot,
)
from updraft.core.settings import Limits, Policy, WorkerClass
from updraft.core.slots.catalogue import imagine, usable
from updraft.core.slots.kinds import kind_key

NOW = 1_700_000_000.0
AGE = 7200.0
CLOUDS = ("c1", "c2", "c3", "c4")
CLASSES = ("batch", "general", "long", "science", "test")
OWNERS = 100
OF_A_LAUNCH = 20
CORES = (1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 56, 64, 80, 96)
# Requirements that no plain comparison decides: one group of twenty has one of them.
ODD = (
    'size(split(TARGET.UpdraftFlavor, "-")) == 2 && ',
    'stringListsIntersect("https,ftp", TARGET.HasFileTransferPluginMethods) && ',
    'ifThenElse(TARGET.Cpus > 1, strcat(TARGET.Arch, "") == "X86_64", true) && ',
)


@dataclass(frozen=True, slots=True)
class Size:
    """How large a pool is. `offers` are as many kinds; at most 2,000, in twenties."""

    jobs: int = 1_000_000
    groups: int = 1_000
    machines: int = 10_000
    offers: int = 2_000


@dataclass(frozen=True, slots=True)
class Sold:
    """One thing on sale: whose class it is for, where, and what a machine of it is like."""

    worker_class: str
    cloud: str
    flavor: str
    size: Resources
    price: float

    @property
    def kind(self) -> str:
        """The key of its kind."""
        return kind_key(self.worker_class, crowd.GENERATION, self.cloud, self.flavor)


def policy(size: Size, more: int | None = None) -> Policy:
    """Five classes on four clouds. `more` is how many machines may still be bought, None is no limit."""
    classes = {
        name: WorkerClass(name, crowd.GENERATION, CLOUDS, images=dict.fromkeys(CLOUDS, crowd.IMAGE))
        for name in CLASSES
    }
    return Policy(crowd.POOL, classes, Limits(machines=None if more is None else size.machines + more))


@lru_cache(maxsize=4)
def sold(size: Size) -> tuple[Sold, ...]:
    """Every class × cloud × flavor, up to the number of offers."""
    flavors = list(_flavors(size.offers // (len(CLOUDS) * len(CLASSES))))
    found = []
    for at, cloud in enumerate(CLOUDS):
        for worker_class in CLASSES:
            for name, whole, price in flavors:
                cost = round(price * (1 + 0.03 * at), 5)
                found.append(Sold(worker_class, cloud, name, whole, cost))
    return tuple(found[: size.offers])


def _flavors(count: int) -> Iterator[tuple[str, Resources, float]]:
    families = list(crowd.FAMILIES.items())
    for number in range(count):
        family, (gib, gpus) = families[number % len(families)]
        # A few flavors are spread over the sizes as many are.
        cpus = CORES[
            (number // len(families)) * len(CORES) * len(families) // max(count, len(families)) % len(CORES)
        ]
        disk = (cpus * (100 if family == "storage" else 20) + 10) << 20
        whole = Resources(cpus, cpus * gib * 1024, disk, gpus * max(1, cpus // 8))
        yield f"{family}-{cpus}", whole, cpus * (0.02 + 0.004 * gib + 0.1 * gpus)


def kinds(size: Size) -> dict[str, Kind]:
    """The kind of each offer, as the catalogue imagines it."""
    classes, found = policy(size).classes, {}
    for one in sold(size):
        offer = CloudOffer(one.cloud, crowd.ZONE, one.flavor, "on-demand", one.size, one.price)
        found[one.kind] = imagine(classes[one.worker_class], offer, crowd.IMAGE, crowd.POOL, one.kind)
    return found


def offers(size: Size) -> tuple[Offer, ...]:
    """All that can be bought."""
    return tuple(
        Offer(
            one.worker_class, one.cloud, crowd.ZONE, one.flavor, "on-demand", crowd.IMAGE, crowd.GENERATION,
            one.size, one.kind, one.price,
        )
        for one in sold(size)
    )  # fmt: skip


# ----------------------------------------------------------------------------------------------- the queue


def queue(size: Size) -> ScheddView:
    """The jobs, in groups of equal numbers; every twentieth group has odd requirements."""
    groups = tuple(_group(number, size) for number in range(size.groups))
    return ScheddView(groups, None, size.jobs, size.machines * 3)


def _group(number: int, size: Size) -> JobGroup:
    owner = f"user{number % OWNERS}"
    gpus = 1 if number % 25 == 7 else 0
    cpus = (1, 1, 2, 4, 8)[number % 5]
    request = Resources(cpus, (500 + 37 * (number % 400)) * max(1, cpus // 2), (1 + number % 9) << 20, gpus)
    needs = crowd.WISHES[number % len(crowd.WISHES)] + (ODD[number % len(ODD)] if number % 20 == 3 else "")
    return JobGroup(
        key=f"{number:016x}",
        schedd=crowd.SCHEDD,
        owner=owner,
        submitter=f"{owner}@{crowd.POOL}.test",
        ad=crowd.job_ad(number, owner, request, needs),
        request=request,
        idle=size.jobs // size.groups,
        running=15,
        oldest=NOW - 60 - number,
        first_id=f"{number + 1}.0",
    )


# -------------------------------------------------------------------------------------------- the machines


@dataclass(frozen=True, slots=True)
class _One:
    """A machine by its number: what was bought, in which launch, and what it does now."""

    number: int
    sold: Sold

    @property
    def name(self) -> str:
        return f"i-{self.number:06d}"

    @property
    def launch(self) -> str:
        return f"launch-{self.sold.kind.replace('/', '-')}-{self.number // OF_A_LAUNCH // 997}"

    @property
    def state(self) -> str:
        at = self.number % 20
        return ("idle", "full", "part", "boots", "drains")[(at >= 6) + (at >= 12) + (at >= 17) + (at >= 19)]


def _machines(size: Size) -> list[_One]:
    catalogue = sold(size)
    return [_One(n, catalogue[n * 7919 % len(catalogue)]) for n in range(size.machines)]


def _slot(one: _One) -> Slot:
    whole = usable(one.sold.size)
    most = min(whole.cpus, whole.memory // 1024)
    jobs = {"idle": 0, "full": most, "part": most // 2, "drains": 1}[one.state]
    # A full machine has no memory left, however many cores it has.
    takes = Resources(1, whole.memory // max(1, most) if one.state == "full" else 1024, 1 << 20)
    child = Child("Claimed", "Busy", takes, f"user{one.number % OWNERS}@{crowd.POOL}.test")
    free = Resources(0, 0, whole.disk, whole.gpus) if one.state == "full" else whole - takes.times(jobs)
    draining = one.state == "drains"
    return Slot(
        name=f"slot1@{one.name}@ip-10-0-0-1.{crowd.POOL}.test",
        instance_id=one.name,
        cloud=one.sold.cloud,
        kind=one.sold.kind,
        total=whole,
        free=free,
        state="Unclaimed",
        activity="Idle",
        heard=NOW - 30,
        started=NOW - AGE + 60,
        children=(child,) * jobs,
        job_starts=7,
        draining=draining,
        drain_reason="updraft operator: asked for" if draining else "",
        launch_key=one.launch,
        address=f"<10.0.{one.number >> 8}.{one.number & 255}:9618?addrs=10.0.0.1-9618&alias={one.name}>",
    )


def _record(one: _One) -> MachineRecord:
    boots, drains = one.state == "boots", one.state == "drains"
    asked = NOW - (40 if boots else AGE)
    drain = DrainRecord(DrainMode.BUSY, NOW - 600, Reason("lifetime", "it is old"), NOW - 600, NOW + 3600)
    return MachineRecord(
        one.name, one.sold.cloud, one.launch, one.sold.worker_class, one.sold.flavor, crowd.GENERATION, asked,
        one.sold.size, crowd.ZONE, "on-demand", crowd.IMAGE, one.sold.price,
        joined_at=None if boots else asked + 60,
        last_claimed_at=None if boots else NOW - 5 - one.number % 900,
        job_starts=None if boots else 7, seen_at=asked + 3, drain=drain if drains else None,
    )  # fmt: skip


def _instance(one: _One) -> Instance:
    return Instance(
        one.name, one.sold.cloud, CloudState.PENDING if one.state == "boots" else CloudState.RUNNING,
        NOW - (40 if one.state == "boots" else AGE), one.sold.worker_class, one.launch, crowd.GENERATION,
        zone=crowd.ZONE, flavor=one.sold.flavor, image=crowd.IMAGE,
    )  # fmt: skip


def _launches(machines: list[_One]) -> Iterator[LaunchRecord]:
    together: dict[str, list[_One]] = {}
    for one in machines:
        together.setdefault(one.launch, []).append(one)
    for key, made in together.items():
        first = made[0].sold
        yield LaunchRecord(
            key, first.cloud, crowd.ZONE, first.flavor, "on-demand", first.worker_class, crowd.IMAGE,
            crowd.GENERATION, len(made), first.size, first.price, NOW - AGE, LaunchState.ACCEPTED,
            tuple(one.name for one in made),
        )  # fmt: skip


def snapshot(size: Size) -> Snapshot:
    """All of it, without verdicts."""
    machines = _machines(size)
    unlimited = Known(Quota(unlimited=frozenset({"machines", "cores", "memory"})), NOW)
    clouds = {
        name: CloudView(
            Known(tuple(_instance(one) for one in machines if one.sold.cloud == name), NOW),
            Known((), NOW),
            unlimited,
        )
        for name in CLOUDS
    }
    slots = tuple(_slot(one) for one in machines if one.state != "boots")
    records = tuple(sorted((_record(one) for one in machines), key=lambda r: (r.cloud, r.id)))
    boots = {(crowd.IMAGE, one.flavor): (55.0, 60.0, 65.0) for one in sold(size)}
    return Snapshot(
        NOW,
        crowd.POOL,
        {crowd.SCHEDD: Known(queue(size), NOW)},
        Known(CollectorView(slots, NOW - 1e6, NOW - 5), NOW),
        clouds,
        LedgerView(tuple(_launches(machines)), records, boots),
        offers=offers(size),
        kinds=kinds(size),
    )
