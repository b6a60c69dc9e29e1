"""What a site has decided, as the core reads it: worker classes, limits and timings.

`config.load` makes one `Policy` from `updraft.toml`; a test or the simulator makes its own. Durations are
seconds; money is in the unit of the prices, per hour. A limit that is None doesn't exist.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, tzinfo

from updraft.core.model import BY_THE_SECOND, Billing, BudgetPeriod, BudgetScope, Reason, Resources

DAY = 86400.0
EVERY_DAY = frozenset(range(7))


@dataclass(frozen=True, slots=True)
class Spare:
    """Room kept ready for `jobs` jobs that ask for `request` each, on certain days from `begin` to `end`.

    `days` are weekdays (0 is Monday), `begin` and `end` seconds after midnight in `zone`; an `end` at or
    before `begin` is on the following day.
    """

    jobs: int
    request: Resources
    days: frozenset[int] = EVERY_DAY
    begin: float = 0.0
    end: float = DAY
    zone: tzinfo = UTC


@dataclass(frozen=True, slots=True)
class UserLimits:
    """Ceilings of one user: machines that jobs of this user are on, and the cores that these jobs have."""

    machines: int | None = None
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class WorkerClass:
    """A kind of worker: where it may run and how it comes and goes.

    Most is as the class's settings say it in docs/reference. `generation` is the hash of every setting that a
    machine of this class is launched with; `attributes` are names with their ClassAd expressions.
    `static_slots` None means one partitionable slot, else this many equal static ones; of `offered_layers`
    there are the names. `resources` are custom resources of each machine, and how many of each it has.
    """

    name: str
    generation: str
    clouds: tuple[str, ...]
    flavors: tuple[str, ...] = ("*",)
    images: Mapping[str, str] = field(default_factory=dict)
    markets: tuple[str, ...] = ("on-demand",)
    min_machines: int = 0
    max_machines: int | None = None
    idle_limit: float = 600.0
    boot_deadline: float = 1800.0
    lifetime: float = 7 * DAY
    drain_deadline: float = 3600.0
    attributes: Mapping[str, str] = field(default_factory=dict)
    static_slots: int | None = None
    wait_target: float | None = None
    spare: tuple[Spare, ...] = ()
    max_cores: int | None = None
    per_user: UserLimits = UserLimits()
    high_priority_users: tuple[str, ...] = ()
    images_allowed: tuple[str, ...] = ()
    networks_allowed: tuple[str, ...] = ()
    vm_types: tuple[str, ...] = ()
    offered_layers: tuple[str, ...] = ()
    keep_alive_max: float = 600.0
    owner_only: bool = False
    resources: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AnnexAllowance:
    """The most that all annexes of one user may come to; None is no ceiling. `classes` are names or patterns.

    A lease may end `longest` seconds from when it is asked for or extended.
    """

    machines: int | None = None
    cores: int | None = None
    cost_per_hour: float | None = None
    longest: float = DAY
    classes: tuple[str, ...] = ("*",)


@dataclass(frozen=True, slots=True)
class Limits:
    """Ceilings that hold at every moment: machines, cores, memory (MiB), cost per hour; those of one user."""

    machines: int | None = None
    cores: int | None = None
    cost_per_hour: float | None = None
    cores_per_user: int | None = None
    machines_per_user: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class SpendingLimit:
    """At most so much money (`most`) in each UTC day or month.

    `name` is that of the cloud, the class or the accounting group (with the groups below it), the name or
    pattern of users, each of whom has a budget of their own, or of those whose annexes it is for; "" for the
    pool. Of a user's, the first in their order counts whose name is the user's own, then the first pattern.
    """

    scope: BudgetScope
    name: str
    period: BudgetPeriod
    most: float


@dataclass(frozen=True, slots=True)
class CloudRule:
    """The site's decisions about one cloud, beside its limits.

    Machines are bought where `priority` is lowest first, by price alone among equals. `closed` is why nothing
    is bought there, `leaving` why its machines go, each when its jobs have ended; None where that isn't so.
    `billing` is what is paid for of a machine's time there.
    """

    priority: int = 0
    closed: Reason | None = None
    leaving: Reason | None = None
    billing: Billing = BY_THE_SECOND


CLOUD_DISABLED = "cloud-disabled"
"""The code of every reason why nothing is bought on a cloud that is closed."""
CLOUD_DRAINED = "cloud-drained"
"""The code of every reason to leave a cloud: a drain for it is taken back when the rule is."""
OPEN = CloudRule()
"""The rule of a cloud of which nothing was decided."""


@dataclass(frozen=True, slots=True)
class Timings:
    """Waits and patience of the loop, in seconds; what each means is said of [timings] in docs/reference.

    `update_interval`, which no setting has, is how often the machines' ads are renewed.
    """

    cycle: float = 2.0
    settle: float = 60.0
    collector_age: float = 900.0
    schedd_patience: float = 1800.0
    cooldown_first: float = 30.0
    cooldown_longest: float = 3600.0
    failures_to_probe: int = 3
    boot_slack: float = 3.0
    boot_floor: float = 60.0
    stale_ad: float = 900.0
    negotiation_patience: float = 120.0
    end_patience: float = 60.0
    trial: int = 8
    missing_confirm: float = 10.0
    update_interval: float = 300.0


@dataclass(frozen=True, slots=True)
class Threshold:
    """The demand that is ignored: fewer than `jobs` without room, and what waits for less than `wait`
    seconds.
    """

    jobs: int = 1
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class Accounting:
    """The site's settings for the records of what was used: its money and its machines.

    `currency` is that of all prices, "" where the site doesn't say. `regions` are the clouds' own words for
    where they are. `priced` are the flavors (by cloud) whose prices the site has set. `benchmark` names what
    `scores` are: of one core of a flavor, by name or pattern; the first that fits counts.
    """

    currency: str = ""
    regions: Mapping[str, str] = field(default_factory=dict)
    priced: Mapping[str, frozenset[str]] = field(default_factory=dict)
    benchmark: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Policy:
    """All that a site has decided that the core has to know.

    `users` are ceilings of users by name or pattern: see `caps` for which holds. `high_priority_users` are
    the patterns of those whose high priority counts in every class, beside each class's own.
    `groups_trusted` is True where the schedds see to it that nobody submits under a group, or as a user, that
    isn't theirs: only then anything goes by jobs' accounting groups.
    `clouds` are the rules of clouds by name; one that isn't there is open, and has the priority 0.
    `annex_allowances` are of the users (names or patterns) who may have annexes; the first that fits counts.
    `closing` is True while everything is to go away (`updraft destroy`): nothing is launched, no minimum
    holds. `identity` is what tells this pool from others of its name: it is written on each machine, and one
    that carries another's isn't ours. "" where the pool has none, as in a simulation. `threshold` is what
    demand nothing is bought for. `accounting` decides nothing: it is for the records.
    `spending` are budgets of money: where one is spent nothing is bought under it, and with
    `drain_when_spent` its machines are drained. `idle_charged` says that users pay for what idles on the
    machines that they use.
    """

    pool: str
    classes: Mapping[str, WorkerClass]
    limits: Limits = Limits()
    cloud_limits: Mapping[str, Limits] = field(default_factory=dict)
    timings: Timings = Timings()
    closing: bool = False
    users: Mapping[str, UserLimits] = field(default_factory=dict)
    high_priority_users: tuple[str, ...] = ()
    clouds: Mapping[str, CloudRule] = field(default_factory=dict)
    annex_allowances: Mapping[str, AnnexAllowance] = field(default_factory=dict)
    identity: str = ""
    threshold: Threshold = Threshold()
    groups_trusted: bool = False
    accounting: Accounting = Accounting()
    spending: tuple[SpendingLimit, ...] = ()
    drain_when_spent: bool = False
    idle_charged: bool = True

    def rule(self, cloud: str) -> CloudRule:
        """The decisions about this cloud."""
        return self.clouds.get(cloud, OPEN)
