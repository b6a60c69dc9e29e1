"""What was used: what a look says of each machine, and what two looks in succession add to the records.

A record is of one machine and one UTC day, or of one user on it. Durations are seconds, quantities of cores
and GPUs are multiplied by seconds, costs are in the site's currency.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.core.model.basics import MachineId, Reason
from updraft.core.model.billing import Billing

Day = int
"""A UTC day, counted from 1970-01-01."""


@dataclass(frozen=True, slots=True)
class MachineFacts:
    """The facts that don't change while a machine lives, and its price as it is now.

    `begin` is when it was asked for. `price` is per hour, None where it isn't known; `source` is where it
    comes from: "site" (updraft.toml), "cloud", or "" where it isn't known. `score` is the benchmark of one of
    its cores as the site says it, None where it doesn't. `period` and `least` say what is paid for of its
    time, as in `Billing`.
    """

    pool: str
    cloud: str
    id: str
    region: str
    zone: str
    flavor: str
    market: str
    image: str
    worker_class: str
    annex: str
    owner: str
    cores: int
    memory: int
    gpus: int
    begin: float
    price: float | None = None
    currency: str = ""
    source: str = ""
    benchmark: str = ""
    score: float | None = None
    period: float = 0.0
    least: float = 0.0

    @property
    def key(self) -> MachineId:
        """Its cloud and its id."""
        return MachineId(self.cloud, self.id)

    def paid_between(self, first: float, last: float) -> float:
        """How many of its seconds come to be paid for from `first` to `last`."""
        return Billing(self.period, self.least).paid_between(self.begin, first, last)


@dataclass(frozen=True, slots=True, order=True)
class UserClaim:
    """One user's part of a machine. `began` is when its job began, or at least the claim; 0 for unknown.

    `running` is False between two jobs: then no work is lost with it.
    """

    user: str
    group: str
    cores: int
    gpus: int = 0
    began: float = 0.0
    running: bool = True


@dataclass(frozen=True, slots=True)
class InPool:
    """The pool's answer about a machine: whether it is there, and whose claims it has.

    `begun` counts the jobs that its startd has begun since `started`; None where it doesn't say.
    """

    joined: bool
    claims: tuple[UserClaim, ...] = ()
    begun: int | None = None
    started: float = 0.0


ABSENT = InPool(False)
"""Of a machine that the pool, known well enough, doesn't have."""


@dataclass(frozen=True, slots=True)
class Sighting:
    """The observation of a machine at one look: whether it lives (None: its cloud is silent), what the pool
    says.

    `ended` is when it was over and why, for one that is.
    """

    facts: MachineFacts
    lives: bool | None
    pool: InPool | None
    ended: tuple[float, Reason] | None = None


@dataclass(frozen=True, slots=True)
class Meter:
    """The last known state of a machine that isn't over, and up to when that is in the records.

    `known` is what the pool said last, however long ago; None where it has said nothing yet.
    """

    sighting: Sighting
    since: float
    known: InPool | None = None


@dataclass(frozen=True, slots=True)
class Meters:
    """All machines that aren't over, and the time of the last look; None before the first."""

    at: float | None = None
    machines: Mapping[MachineId, Meter] = field(default_factory=dict)


@dataclass(slots=True)
class MachineDay:
    """The addition to one machine's record of one day.

    `alive` are seconds that it existed, of which `joined` in the pool and `claimed` with some claim; in the
    `unseen` ones it existed and nobody knows what it did. The `doubtful` ones are not among these: nobody
    knows whether it existed at all. `core_seconds` are all users' together. `cost` is at the list price;
    `unpriced` are seconds alive whose price isn't known. `begin` and `end` are the first and the last moment
    of what is added.
    """

    begin: float
    end: float
    alive: float = 0.0
    joined: float = 0.0
    claimed: float = 0.0
    unseen: float = 0.0
    doubtful: float = 0.0
    core_seconds: float = 0.0
    gpu_seconds: float = 0.0
    cost: float = 0.0
    unpriced: float = 0.0
    jobs: int = 0
    lost: float = 0.0
    ended: Reason | None = None


@dataclass(slots=True)
class UserDay:
    """The addition to the record of one user, with one accounting group, of one machine on one day.

    `lost` are core-seconds of jobs that were cut short with the machine, since each began: what a job has
    saved elsewhere isn't known here, so it is the most that was lost. An empty user is one that nobody knows.
    """

    core_seconds: float = 0.0
    gpu_seconds: float = 0.0
    jobs: int = 0
    lost: float = 0.0


@dataclass(slots=True)
class Booking:
    """The additions of a look to the records, and the meters that it has changed: None for one that is
    over.
    """

    at: float
    machines: dict[tuple[MachineId, Day], tuple[MachineFacts, MachineDay]] = field(default_factory=dict)
    users: dict[tuple[MachineId, Day, str, str], UserDay] = field(default_factory=dict)
    meters: dict[MachineId, Meter | None] = field(default_factory=dict)
