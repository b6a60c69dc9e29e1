"""A large pool in memory: 1,000 machines, 100,000 idle jobs in 200 groups, 100 offers of 100 kinds.

All of it follows from the constants, so that the children that stand for collector and schedd make the same
pool as the process that holds the ledger and the cloud.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from updraft.condor.base import PoolSlots
from updraft.core.model import Child, CloudOffer, CollectorView, JobGroup, Resources, ScheddView, Slot
from updraft.core.settings import Limits, Policy, WorkerClass
from updraft.core.slots.catalogue import imagine, usable
from updraft.core.slots.kinds import kind_key

POOL = "crowd"
SCHEDD = "head.crowd.test"
GENERATION = "g1"
IMAGE = "image-1"
ZONE = "a"
CLOUDS = ("c1", "c2")
CLASSES = ("general", "science")
FAMILIES = {"balanced": (4, 0), "memory": (8, 0), "compute": (2, 0), "storage": (4, 0), "gpu": (6, 1)}
SIZES = (2, 4, 8, 16, 32)
EACH = 10
JOBS, GROUPS, OWNERS = 100_000, 200, 20
MACHINES = len(CLOUDS) * len(CLASSES) * len(FAMILIES) * len(SIZES) * EACH
OFFERS = len(CLOUDS) * len(CLASSES) * len(FAMILIES) * len(SIZES)
ROOM_FOR_MORE = 100
STARTED = 1_700_000_000.0
UPDATES = 300.0  # seconds from one ad of a machine to the next, as HTCondor's own default is
PER_CHILD = Resources(2, 2048, 2 * 1024 * 1024)


@dataclass(frozen=True, slots=True)
class Batch:
    """Machines of one launch: all of one class, cloud and flavor, numbered from `first` in their cloud."""

    cloud: str
    worker_class: str
    flavor: str
    first: int

    @property
    def key(self) -> str:
        """The launch key."""
        return f"launch-{self.cloud}-{self.worker_class}-{self.flavor}"

    @property
    def ids(self) -> tuple[str, ...]:
        """The instances, as the fake cloud numbers them."""
        return tuple(f"{self.cloud}-{self.first + n:05d}" for n in range(EACH))


def flavors() -> dict[str, tuple[Resources, float]]:
    """Each flavor's resources and its price."""
    found = {}
    for family, (gib_per_core, gpus) in FAMILIES.items():
        for cpus in SIZES:
            disk = (cpus * (100 if family == "storage" else 20)) << 20
            size = Resources(cpus, cpus * gib_per_core * 1024, disk, gpus * max(1, cpus // 8))
            found[f"{family}-{cpus}"] = (size, round(cpus * (0.02 + 0.004 * gib_per_core + 0.1 * gpus), 4))
    return found


def batches(cloud: str) -> Iterator[Batch]:
    """The launches of one cloud, in order."""
    first = 1
    for worker_class in CLASSES:
        for flavor in flavors():
            yield Batch(cloud, worker_class, flavor, first)
            first += EACH


def policy(more: int | None = ROOM_FOR_MORE, clouds: tuple[str, ...] = CLOUDS) -> Policy:
    """Two classes on all clouds. `more` is how many machines may still be bought, None is no limit."""
    classes = {
        name: WorkerClass(name, GENERATION, clouds, images=dict.fromkeys(clouds, IMAGE)) for name in CLASSES
    }
    there = MACHINES * len(clouds) // len(CLOUDS)
    return Policy(POOL, classes, Limits(machines=None if more is None else there + more))


# ---------------------------------------------------------------------------------------------- the slots


def pool_slots(now: float, clouds: tuple[str, ...] = CLOUDS) -> PoolSlots:
    """The collector's answer: every machine's slot, every second one full of running jobs."""
    found = tuple(
        _slot(batch, number, now) for cloud in clouds for batch in batches(cloud) for number in range(EACH)
    )
    return PoolSlots(CollectorView(found, now - 1e6, now - 5), templates(clouds))


def _slot(batch: Batch, number: int, now: float) -> Slot:
    whole = usable(flavors()[batch.flavor][0])
    child = Child("Claimed", "Busy", PER_CHILD, f"user{number}@{POOL}.test")
    children = (child,) * (whole.cpus // PER_CHILD.cpus) if number % 2 else ()
    name = batch.ids[number]
    return Slot(
        name=f"slot1@{name}@ip-10-0-0-1.{POOL}.test",
        instance_id=name,
        cloud=batch.cloud,
        kind=kind_key(batch.worker_class, GENERATION, batch.cloud, batch.flavor),
        total=whole,
        free=whole - PER_CHILD.times(len(children)),
        state="Unclaimed",
        activity="Idle",
        heard=now - (now + number + 7 * batch.first) % UPDATES,
        started=STARTED,
        children=children,
        job_starts=7,
        launch_key=batch.key,
        address=f"<10.0.{batch.first >> 8}.{number}:9618?addrs=10.0.0.{number}-9618&alias={name}>",
    )


@lru_cache(maxsize=1)
def templates(clouds: tuple[str, ...] = CLOUDS) -> dict[str, str]:
    """One whole ad for each kind of slot."""
    found = {}
    classes, sold = policy(clouds=clouds).classes, flavors()
    for cloud in clouds:
        for batch in batches(cloud):
            size, price = sold[batch.flavor]
            offer = CloudOffer(cloud, ZONE, batch.flavor, "on-demand", size, price)
            key = kind_key(batch.worker_class, GENERATION, cloud, batch.flavor)
            found[key] = imagine(classes[batch.worker_class], offer, IMAGE, POOL, key).ad
    return found


# ---------------------------------------------------------------------------------------------- the queue

_USUAL = (
    '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Memory >= RequestMemory)'
    " && (TARGET.Cpus >= RequestCpus) && TARGET.HasFileTransfer"
    ' && (versionGE(split(TARGET.CondorVersion)[1],"25.12.0") || (TARGET.Disk >= RequestDisk))'
)
# What some users put before it: versions, places, abilities, lists, patterns.
WISHES = (
    "",
    "(TARGET.OpSysMajorVer >= 12) && ",
    '(TARGET.UpdraftCloud == "c1") && ',
    '(TARGET.UpdraftClass == "science") && ',
    'stringListMember("https",TARGET.HasFileTransferPluginMethods) && ',
    '(regexp("^balanced|^memory",TARGET.UpdraftFlavor)) && ',
    "(TARGET.TotalCpus <= 16) && ",
    '(TARGET.OpSysAndVer =!= "Debian11") && ',
)


def demand(now: float) -> ScheddView:
    """The schedd's answer: 200 groups of 500 jobs each, of 20 owners."""
    groups = tuple(_group(number, now) for number in range(GROUPS))
    return ScheddView(groups, None, JOBS, MACHINES * 3)


def _group(number: int, now: float) -> JobGroup:
    owner = f"user{number % OWNERS}"
    gpus = 1 if number % 25 == 7 else 0
    cpus = (1, 1, 2, 4, 8)[number % 5]
    request = Resources(cpus, 500 + 37 * number, (1 + number % 9) << 20, gpus)
    return JobGroup(
        key=f"{number:016x}",
        schedd=SCHEDD,
        owner=owner,
        submitter=f"{owner}@{POOL}.test",
        ad=job_ad(number, owner, request, WISHES[number % len(WISHES)]),
        request=request,
        idle=JOBS // GROUPS,
        running=15,
        oldest=now - 60 - number,
        first_id=f"{number + 1}.0",
    )


def job_ad(number: int, owner: str, request: Resources, wishes: str) -> str:
    """The ad of a group's jobs; `wishes` come before the usual requirements."""
    needs = wishes + _USUAL
    gpus = 'RequestGPUs = 1; RequireGPUs = "Capability >= 6"; ' if request.gpus else ""
    if request.gpus:
        needs += " && (TARGET.GPUs >= RequestGPUs)"
    return (
        f'[ Owner = "{owner}"; User = "{owner}@{POOL}.test"; JobUniverse = 5; NumCkpts = 0; '
        f"RequestCpus = {request.cpus}; RequestMemory = {request.memory}; RequestDisk = {request.disk}; "
        f"{gpus}ImageSize = 100; DiskUsage = 40; MemoryUsage = (ResidentSetSize + 1023) / 1024; "
        f'FileSystemDomain = "head.test"; BenchNumber = {number}; Requirements = {needs} ]'
    )
