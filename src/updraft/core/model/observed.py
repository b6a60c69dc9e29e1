"""What was observed: the words of clouds, collector and schedds as frozen values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated

from updraft.core.model.basics import Known, MachineId, Resources, Source
from updraft.core.model.joins import CollectorLoad
from updraft.core.model.terms import NO_TERMS, Terms
from updraft.core.model.variants import PLAIN, Variant

# The effective priority of a user that the negotiator has not seen: the least real priority (0.5) times the
# usual factor (DEFAULT_PRIO_FACTOR, 1000).
NEW_PRIORITY = 500.0


@dataclass(frozen=True, slots=True)
class JobGroup:
    """Idle jobs alike in everything that matching looks at. What is planned for: never single jobs.

    `ad` is a ClassAd (new syntax, `[ a = 1; … ]`) with all that matching reads; `request` is what one
    job asks for, evaluated but not yet rounded as a startd rounds it. `idle` counts jobs that wait, with
    those of a late-materialised cluster that the schedd has not made yet. `run_time` is how many seconds one
    is expected to run, `longest` how many it may at most; each None where nobody knows. `terms` are what it
    says of the machine that it wants, beyond its requirements.

    `user` is whom the schedd has authenticated, with the domain: no job chooses it. "" where only `submitter`
    is known. `submitter` is what the negotiator calls that user for these jobs: with an accounting group, and
    both may be the job's own word. `ready` is True for room that is kept ready: nobody submitted these.
    """

    key: str
    schedd: str
    owner: str
    submitter: str
    ad: str
    request: Resources
    idle: int
    running: int = 0
    oldest: float = 0.0
    priority: int = 0
    first_id: str = ""
    evaluable: bool = True
    run_time: float | None = None
    longest: float | None = None
    terms: Terms = NO_TERMS
    user: str = ""
    ready: bool = False


@dataclass(frozen=True, slots=True)
class RunningJob:
    """A place where a schedd believes a job to run: the slot's name, and when the lease ends.

    A job on many nodes has many of them. Jobs that are suspended or send their output run, and so do those
    that are being removed or held (`leaving`), until their shadow has ended. `started` is when the shadow was
    started, 0 where that isn't known.
    """

    schedd: str
    job_id: str
    slot: str
    owner: str
    lease_until: float
    started: float = 0.0
    leaving: bool = False


@dataclass(frozen=True, slots=True)
class ScheddView:
    """One schedd's answer. `running` is None where it was not asked for: only a plan that has to know does.

    `held` are jobs that are on hold for us: giving them back to the queue was cut short.
    """

    groups: tuple[JobGroup, ...] = ()
    running: tuple[RunningJob, ...] | None = None
    idle_total: int = 0
    running_total: int = 0
    held: tuple[str, ...] = ()


_CLAIMS = frozenset({"Claimed", "Preempting", "Matched"})


@dataclass(frozen=True, slots=True)
class Child:
    """A dynamic slot carved out of a partitionable one: `state` and `activity` as the startd says them.

    `retirement` is how many seconds its job may still run in a graceful drain, None where that isn't known.
    `user` is whose claim it is, as the schedd has authenticated that user; `submitter` what the negotiator
    calls that one, where the job has an accounting group. `since` is when it came into this state, 0 where
    that isn't known.
    """

    state: str
    activity: str
    resources: Resources
    user: str = ""
    retirement: float | None = None
    submitter: str = ""
    since: float = 0.0


@dataclass(frozen=True, slots=True)
class Slot:
    """One partitionable (or static) slot with its children, as the collector shows it.

    `kind` is the key of the `Kind` that it is matched as; `free` is what a partitionable slot has left;
    `job_starts` is the startd's own counter of claims and jobs, None where it has none; `heard` is when the
    collector last heard of it; `started` when its startd started; `user` and `submitter` whose claim a static
    one has, as in `Child`, and `since` as there; `fault` what in its ad makes no sense and counts as nothing,
    in words; `schedds` whose jobs are in it; `begun` how many jobs were begun in it and its children since
    the startd started, None where it doesn't say.
    """

    name: str
    instance_id: str
    cloud: str
    kind: str
    total: Resources
    free: Resources
    state: str
    activity: str
    heard: float
    started: float
    partitionable: bool = True
    children: tuple[Child, ...] = ()
    job_starts: int | None = None
    draining: bool = False
    drain_reason: str = ""
    launch_key: str = ""
    address: str = ""
    accepting: bool = True
    retirement: float | None = None
    user: str = ""
    fault: str = ""
    schedds: tuple[str, ...] = ()
    submitter: str = ""
    since: float = 0.0
    begun: int | None = None

    @property
    def machine_id(self) -> MachineId:
        """Which machine it says that it is of; one without an id where it is the site's own."""
        return MachineId(self.cloud, self.instance_id)

    @property
    def patience(self) -> float:
        """How many seconds a graceful drain leaves to the least patient of its jobs; endless without any."""
        claims = [child.retirement for child in self.children if child.state == "Claimed"]
        if self.state == "Claimed" and not self.partitionable:
            claims.append(self.retirement)
        return min((left for left in claims if left is not None), default=float("inf"))

    @property
    def busy(self) -> bool:
        """True while any claim is on it, also one that is between two jobs."""
        if self.state in _CLAIMS:
            return True
        for child in self.children:  # noqa: SIM110 (any() costs several times as much, for each slot)
            if child.state in _CLAIMS:
                return True
        return False


@dataclass(frozen=True, slots=True)
class AccountingGroup:
    """An accounting group: its configured `quota` (cores; below 1 it is a share of the pool), 0 for none.

    `surplus` is True where its users may have more than that while others don't want it.
    """

    name: str
    quota: float = 0.0
    surplus: bool = True


@dataclass(frozen=True, slots=True)
class Shares:
    """The figures that the negotiator goes by when not everyone can have everything.

    `priorities` are the submitters' effective priorities (twice the number is half the share), by their name
    without the domain; somebody new has `NEW_PRIORITY`. `groups` are the accounting groups by their names.
    """

    priorities: Mapping[str, float] = field(default_factory=dict)
    groups: Mapping[str, AccountingGroup] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CollectorView:
    """The collector's answer; `started` is when it started: a young one has forgotten its machines.

    `cycle_ended` is when the negotiator last finished a cycle, `cycle_began` when it began that one,
    `cycle_heard` when it said so, and `shares` what it shares by; each None where it is not known. `loads` is
    what each collector of the tree says of itself, by its name; one that says nothing isn't in it.
    """

    slots: tuple[Slot, ...]
    started: float
    cycle_ended: float | None = None
    shares: Shares | None = None
    loads: Mapping[str, CollectorLoad] = field(default_factory=dict)
    cycle_began: float | None = None
    cycle_heard: float | None = None


class CloudState(StrEnum):
    """The state of an instance, in one vocabulary for all clouds."""

    PENDING = "pending"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    TERMINATED = "terminated"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance as its cloud shows it. Its tags say whose it is; `fault` is the cloud's own error text.

    `unknown_state` is the cloud's word for a state that nobody here knows: such a one counts as running.
    `launched_at` is 0 where the cloud doesn't say it.
    `tagged` is False where it doesn't carry the pool's tag, which only an answer about its id can show;
    `identity` is that of the pool that launched it, "" where no tag says it.
    `variant` is what its tag says, which anybody may have written; see `core.model.variants`.
    """

    id: str
    cloud: str
    state: CloudState
    launched_at: float
    worker_class: str = ""
    launch_key: str = ""
    generation: str = ""
    retiring: bool = False
    zone: str = ""
    flavor: str = ""
    market: str = "on-demand"
    image: str = ""
    address: str = ""
    fault: str = ""
    variant: Variant = PLAIN
    unknown_state: str = ""
    tagged: bool = True
    identity: str = ""

    @property
    def key(self) -> MachineId:
        """Its cloud and its id."""
        return MachineId(self.cloud, self.id)

    @property
    def alive(self) -> bool:
        """True while it may cost money or come to life."""
        return self.state in (CloudState.PENDING, CloudState.RUNNING, CloudState.STOPPING, CloudState.STOPPED)


@dataclass(frozen=True, slots=True)
class CloudOffer:
    """An offer of a cloud: a flavor in a zone on a market."""

    cloud: Annotated[str, "Its cloud."]
    zone: Annotated[str, "Where."]
    flavor: Annotated[str, "The size of machine."]
    market: Annotated[str, "on-demand or spot."]
    resources: Resources
    price: Annotated[float | None, "Per hour, or null."] = None
    left: Annotated[int | None, "How many more there are, or null."] = None
    arch: Annotated[str, "Architecture."] = "X86_64"


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of slot that jobs can be matched against: the ad of a whole, empty one.

    Machines of one class, generation, image and flavor share a kind. `learned` is True where `ad` comes from
    a real machine, False where it was built from the catalogue. `slots` is how many such slots one machine
    brings (more than one for static slots), `resources` what one of them holds.
    """

    key: str
    ad: str
    resources: Resources
    partitionable: bool = True
    slots: int = 1
    learned: bool = False


@dataclass(frozen=True, slots=True)
class Offer:
    """Something that can be bought now for a worker class: where, which flavor, its price and its kind.

    `variant` is the one that its machines are.
    """

    worker_class: str
    cloud: str
    zone: str
    flavor: str
    market: str
    image: str
    generation: str
    resources: Resources
    kind: str
    price: float | None = None
    left: int | None = None
    variant: Variant = PLAIN

    @property
    def key(self) -> str:
        """A stable name for logs and cool-downs: `class@cloud/zone/flavor/market`, with `?variant` if any."""
        plain = f"{self.worker_class}@{self.cloud}/{self.zone}/{self.flavor}/{self.market}"
        return f"{plain}?{self.variant.text}" if self.variant else plain

    @property
    def dearness(self) -> tuple[bool, float]:
        """Sorts the cheapest first, and after all of them what has no known price, the smallest first."""
        return (True, self.resources.bulk()) if self.price is None else (False, self.price)


@dataclass(frozen=True, slots=True)
class Quota:
    """The rest of a cloud's quotas, foreign machines counted; None is *not known*, never zero.

    `unlimited` names those that the cloud says have no end. `used_machines` and `used_cores` are what
    everybody has there, ours included: for people to read, nothing is decided by them.
    """

    machines: int | None = None
    cores: int | None = None
    memory: int | None = None
    unlimited: frozenset[str] = frozenset()
    used_machines: int | None = field(default=None, compare=False)
    used_cores: int | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class CloudView:
    """One cloud's answers, each with its own success or failure.

    `found` is what it said of machines that were asked for by their ids, each with the time of that question;
    None of one that it doesn't have. `odd` are the ids of what it listed and of which nothing could be made.
    `credentials_end` is when the credentials end there, None where they don't, or nobody knows it.
    """

    machines: Source[tuple[Instance, ...]]
    offers: Source[tuple[CloudOffer, ...]]
    quota: Source[Quota]
    found: Mapping[str, Known[Instance | None]] = field(default_factory=dict)
    odd: frozenset[str] = frozenset()
    credentials_end: float | None = None
