"""A pool in memory for tests of the loop: slots of fake clouds' machines, queues, drains, controllers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from updraft.clouds.base import TAG_CLASS, TAG_GENERATION, TAG_VARIANT
from updraft.clouds.fake import FakeInstance, Site
from updraft.condor.base import ControllerAd, PoolSlots
from updraft.core.model import (
    NO_TERMS,
    PLAIN,
    Child,
    CloudOffer,
    CollectorLoad,
    CollectorView,
    DrainMode,
    JobGroup,
    Kind,
    Resources,
    ScheddView,
    Slot,
    Terms,
    Variant,
    Verdict,
    Verdicts,
)
from updraft.core.settings import WorkerClass
from updraft.core.slots.kinds import kind_key
from updraft.core.slots.offers import Kinds
from updraft.errors import DrainRefused, PoolTimeout

ASK = Resources(1, 1024, 1024)


class Clock:
    """Time that stands still until told."""

    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def forward(self, seconds: float) -> None:
        self.now += seconds


@dataclass
class Queue:
    """One schedd's idle jobs, all alike, and those on hold for us. `silent` makes it not answer."""

    idle: int = 0
    owner: str = "alice"
    ad: str = "[]"
    terms: Terms = NO_TERMS
    silent: bool = False
    asked_running: list[bool] = field(default_factory=list)
    held: list[str] = field(default_factory=list)


@dataclass
class _Worker:
    """What runs on one machine: how many jobs, since when it is closed, and the counter of claims."""

    jobs: int = 0
    closed: DrainMode | None = None
    reason: str = ""
    starts: int = 0
    kind: str = ""  # what its ad says of itself, whatever becomes of its tags
    users: set[str] = field(default_factory=set)


class VirtualPool:
    """Implements `updraft.condor.base.Pool` over the machines of fake clouds."""

    def __init__(self, clock: Clock, sites: Sequence[Site] = (), started: float | None = None) -> None:
        self.clock = clock
        self.sites = list(sites)
        self.started = clock() - 100_000 if started is None else started
        self.queues: dict[str, Queue] = {"schedd": Queue()}
        self.workers: dict[str, _Worker] = {}
        self.ads: dict[str, tuple[ControllerAd, float]] = {}
        self.down = False
        self.killed_jobs = 0
        self.drains: list[tuple[str, DrainMode]] = []
        self.requeued: list[str] = []
        self.forgotten: list[str] = []
        self.loads: Mapping[str, CollectorLoad] = {}

    # ------------------------------------------------------------------------------ what HTCondor does

    def negotiate(self) -> None:
        """Give idle jobs the free cores of open machines."""
        for site, instance in self._up():
            worker = self.workers.setdefault(instance.id, _Worker())
            for queue in self.queues.values():
                room = instance.resources.cpus - worker.jobs
                fits = worker.closed is None and room > 0 and queue.idle > 0
                if fits and self.matches(queue, site, instance):
                    taken = min(room, queue.idle)
                    queue.idle -= taken
                    worker.jobs += taken
                    worker.starts += taken
                    worker.users.add(queue.owner)

    def matches(self, queue: Queue, site: Site, instance: FakeInstance) -> bool:
        """Whether the machine takes these jobs, and they it."""
        return True

    def ad(self, site: Site, instance: FakeInstance) -> str:
        """What a whole, empty slot of it says of itself."""
        return "[]"

    def finish(self, machine: str | None = None) -> None:
        """All jobs (of one machine) complete."""
        for name, worker in self.workers.items():
            if machine in (None, name):
                worker.jobs = 0

    def _up(self) -> list[tuple[Site, FakeInstance]]:
        now = self.clock()
        found = []
        for site in self.sites:
            for instance in site.instances.values():
                worker = self.workers.get(instance.id)
                if worker is not None and worker.jobs and not instance.up(now):
                    self.killed_jobs += worker.jobs
                    worker.jobs = 0
                exited = worker is not None and worker.closed is DrainMode.EMPTY
                ours = TAG_CLASS in instance.tags or worker is not None  # whatever becomes of its tags
                if ours and instance.up(now) and instance.joins_at <= now and not exited:
                    found.append((site, instance))
        return found

    # ------------------------------------------------------------------------------ what updraft asks

    def _answer(self) -> None:
        if self.down:
            raise PoolTimeout("the collector does not answer")

    def schedds(self, deadline: float) -> tuple[str, ...]:
        self._answer()
        return tuple(self.queues)

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        queue = self.queues[schedd]
        queue.asked_running.append(running)
        if queue.silent:
            raise PoolTimeout(f"{schedd} does not answer")
        group = JobGroup(
            f"{schedd}-g", schedd, queue.owner, f"{queue.owner}@pool", queue.ad, ASK, queue.idle,
            oldest=self.clock() - 1, terms=queue.terms,
        )  # fmt: skip
        return ScheddView(
            (group,) if queue.idle else (), () if running else None, queue.idle, 0, tuple(queue.held)
        )

    def slots(self, deadline: float) -> PoolSlots:
        self._answer()
        found = {self._slot(site, instance): self.ad(site, instance) for site, instance in self._up()}
        view = CollectorView(tuple(found), self.started, self.clock(), loads=self.loads)
        return PoolSlots(view, {slot.kind: ad for slot, ad in found.items()})

    def _slot(self, site: Site, instance: FakeInstance) -> Slot:
        worker = self.workers.setdefault(instance.id, _Worker())
        tags, whole = instance.tags, instance.resources
        worker.kind = worker.kind or kind_key(
            tags[TAG_CLASS], tags[TAG_GENERATION], site.name, instance.flavor, tags.get(TAG_VARIANT, "")
        )
        children = (Child("Claimed", "Busy", ASK.times(worker.jobs), "alice"),) if worker.jobs else ()
        return Slot(
            name=f"slot1@{instance.id}",
            instance_id=instance.id,
            cloud=site.name,
            kind=worker.kind,
            total=whole,
            free=whole - ASK.times(worker.jobs),
            state="Unclaimed",
            activity="Idle",
            heard=self.clock(),
            started=instance.joins_at,
            children=children,
            job_starts=worker.starts,
            draining=worker.closed is not None,
            drain_reason=worker.reason,
            launch_key=instance.key,
        )

    def drain(self, slots: Sequence[Slot], mode: DrainMode, reason: str, deadline: float) -> None:
        self._answer()
        worker = self.workers[slots[0].instance_id]
        if mode is DrainMode.EMPTY and worker.jobs:
            raise DrainRefused("a slot is claimed")
        worker.closed, worker.reason = mode, reason
        self.drains.append((slots[0].instance_id, mode))

    def undrain(self, slots: Sequence[Slot], deadline: float) -> None:
        worker = self.workers[slots[0].instance_id]
        if worker.closed is DrainMode.BUSY:
            worker.closed = None

    def requeue(self, schedd: str, jobs: Sequence[str], machine: str, deadline: float) -> tuple[str, ...]:
        queue = self.queues[schedd]
        if queue.silent:
            raise PoolTimeout(f"{schedd} does not answer")
        given = (*(jobs if machine else ()), *queue.held)
        queue.idle += len(queue.held)
        queue.held.clear()
        self.requeued.extend(given)
        return given

    def forget(self, slots: Sequence[str], deadline: float) -> None:
        self.forgotten.extend(slots)

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        self._answer()
        return tuple(ad for ad, until in self.ads.values() if until >= self.clock())

    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None:
        self._answer()
        self.ads[ad.id] = (replace(ad, heard=self.clock()), self.clock() + lifetime)

    def retract(self, ad: ControllerAd, deadline: float) -> None:
        self.ads.pop(ad.id, None)

    def mint_token(self, launch_key: str, lifetime: float) -> str:
        return "eyJhbGciOiJI.eyJzdWIiOiJ3.c2lnbmF0dXJl"

    def mint_boot_token(self, launch_key: str, boot: float, lifetime: float) -> str:
        return self.mint_token(launch_key, lifetime)


def _imagine(
    worker: WorkerClass, offer: CloudOffer, image: str, pool: str, key: str, variant: Variant = PLAIN
) -> Kind:
    return Kind(key, "[]", offer.resources)


def _learned(key: str, text: str, offer: CloudOffer | None, slots: int) -> Kind:
    return Kind(key, text, offer.resources if offer else ASK, slots=slots, learned=True)


KINDS = Kinds(kind_key, _imagine, _learned)


class Everything:
    """A matcher for which every job runs on every kind, as far as quantities go."""

    def verdicts(
        self, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float, deadline: float
    ) -> Verdicts:
        found: Mapping[tuple[str, str], Verdict] = {
            (g.key, k.key): Verdict(k.resources.holds(g.request), g.request) for g in groups for k in kinds
        }
        return found
