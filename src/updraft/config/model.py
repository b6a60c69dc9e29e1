"""The frozen settings tree: what `updraft.toml` may say, each key with its unit, its default and why.

The text below each field is its entry in docs/reference/settings.md. Durations are seconds once read; money
is in one currency of the site's choice, per hour.
"""

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, model_validator

from updraft.config import DEFAULT_STATE_DIR, LEDGER_FILE
from updraft.config.generation import generation
from updraft.config.tables.annexes import Annexes, AnnexKeys, allowances, annex_spending
from updraft.config.tables.cvmfs import advertised
from updraft.config.tables.monitoring import Monitoring
from updraft.config.tables.network import Network
from updraft.config.tables.part import Part
from updraft.config.tables.spending import GroupLimits, Spendable, all_of
from updraft.config.tables.usage import Usage
from updraft.config.tables.web import Web
from updraft.config.tables.worker import WorkerClass, container_attributes
from updraft.config.values.checks import (
    checked_host,
    checked_name,
    checked_pool_name,
    checked_price,
    tuple_of_one,
)
from updraft.config.values.units import Duration, Size, spell
from updraft.core import settings as core
from updraft.core.model import Billing, BudgetScope, Reason
from updraft.core.settings import CLOUD_DISABLED

PathOf = Annotated[Path, Field(strict=False)]
Name = Annotated[str, AfterValidator(checked_name)]
MIB = 2**20
_PERIODS = {"second": 0.0, "minute": 60.0, "hour": 3600.0}
Price = Annotated[float | None, BeforeValidator(checked_price)]


class Pool(Part):
    """The HTCondor pool that is given machines."""

    name: Annotated[str, AfterValidator(checked_pool_name)]
    """The pool's name. It is written on every machine as a tag, and updraft touches nothing without it: two
    pools that share a cloud account need two names. Letters, digits, `-`, `_` and `.`; none ends in `.heads`
    or `.images`, as the tags of a pool's heads and of what makes its images do."""
    collector: Annotated[str, AfterValidator(checked_host)] = ""
    """Host (and port, if not 9618) of the collector. Empty: what HTCondor's own configuration on this machine
    says, which is right on the head."""
    trust_domain: str = ""
    """TRUST_DOMAIN of the pool, as its tokens have it. Empty: what HTCondor's own configuration on this
    machine says."""
    uid_domain: str = ""
    """UID_DOMAIN of the pool, given to its workers. Empty: what HTCondor's own configuration says on the
    head, elsewhere the same as `trust_domain`."""
    token: PathOf | None = None
    """File with the token that the controller shows to the pool. None is needed on the head, where the
    daemon runs as root. A path, never the token itself; its directory holds no other tokens."""
    condor_config: PathOf | None = None
    """HTCondor's configuration file for the tools that updraft calls. None: the one of this machine."""
    state_dir: PathOf = Path(DEFAULT_STATE_DIR)
    """Directory of the ledger and of what the daemon keeps between two starts. A relative path starts at
    the configuration file. It may be lost: the next start adopts what the clouds' tags say."""
    act: bool = True
    """False: updraft only watches. It looks, plans and writes down what it sees, and touches neither the pool
    nor the clouds: nothing is launched, drained, ended, tagged, requeued or advertised, and no token is made.
    It may run beside what gives the pool its machines now; `updraft report` says what it would have done.
    Read at the start of the daemon; a reload doesn't change it."""
    record_every: Annotated[Duration, Field(gt=0)] = 300.0
    """How often the schedds are asked which jobs have ended, and which are in the queue, for `updraft
    report`. What they say is kept beside the ledger (record.sqlite) for two months."""
    job_lease: Duration = 2400.0
    """How long a job waits for its vanished machine before it may run again: JOB_DEFAULT_LEASE_DURATION of
    the pool's schedds, 40m unless they change it. `head_gone_after` may not be shorter."""

    high_priority_users: Annotated[tuple[str, ...], BeforeValidator(tuple_of_one)] = ()
    """Users (patterns: `alice`, or `physics.*` where groups are trusted) whose `+VMHighPriority` counts for
    all classes."""
    trust_groups: bool | None = None
    """True where every schedd refuses accounting groups that aren't their user's, as those that `updraft head
    init` has set up do. False: shares, caps and high priority go by the authenticated user alone, since a job
    writes what group it likes. None: true on a head that updraft has set up with the pool's schedd, else
    false."""
    announce: Annotated[Duration, Field(gt=0)] = 5.0
    """How often the controller says in the collector that it acts for this pool. A new one listens for three
    times as long before it acts; one that has been silent for eight times as long counts as gone."""

    @property
    def ledger(self) -> Path:
        """The ledger's file."""
        return self.state_dir / LEDGER_FILE


class Limits(Part):
    """Ceilings that hold at every moment. What is left out has no ceiling."""

    machines: Annotated[int, Field(ge=0)] | None = None
    """Machines at one time, those on their way included."""
    cores: Annotated[int, Field(ge=0)] | None = None
    """Cores of all these machines together."""
    memory: Annotated[Size, Field(ge=0)] | None = None
    """Memory of all these machines together, as their flavors have it: "256GiB"."""
    cost_per_hour: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    """What all these machines together may cost per hour, in the unit of the prices. An offer whose price is
    not known is not bought while such a ceiling holds: unknown is not zero."""


class CloudLimits(Limits, Spendable):
    """Ceilings of one cloud. What is left out has no ceiling."""


class PoolLimits(Limits, Spendable):
    """Ceilings of the whole pool that hold at every moment. What is left out has no ceiling."""

    when_spent: Literal["finish", "drain"] = "finish"
    """What becomes of machines once the budget of their pool, cloud or class is spent (`cost_per_day`,
    `cost_per_month`): "finish" lets them run on, take waiting jobs, and go when they are idle; "drain" closes
    them to new jobs, and each ends with its last job. Those of annexes stay until their leases end."""

    cores_per_user: Annotated[int, Field(ge=0)] | None = None
    """Cores that the jobs of one user, as the schedd has authenticated that one, may have: no machine is
    bought for more, though room that is there anyway may be used."""
    machines_per_user: Annotated[int, Field(ge=0)] | None = None
    """Machines that the jobs of one user may be on, those on their way included; one job is enough for a
    machine to count."""


class UserLimits(AnnexKeys, Spendable):
    """Ceilings of one user: [users.NAME], or [users."PATTERN"] for each whose name fits.

    A name is `alice`, or `alice@DOMAIN` of one UID domain only; where groups are trusted, `physics.alice`
    means alice's jobs of that group. For cores and for machines the first table counts that has the key: the
    user's own, then patterns in the order of the file, then `cores_per_user` and `machines_per_user` of
    [limits]. All that the user has counts, of whatever group. Budgets go by the first table in the same way.
    """

    machines: Annotated[int, Field(ge=0)] | None = None
    """Machines that the user's jobs may be on, those on their way included."""
    cores: Annotated[int, Field(ge=0)] | None = None
    """Cores that the user's jobs may have."""


class CloudTable(Part):
    """A cloud that machines may be bought from: [clouds.NAME].

    Every other key belongs to the driver and is described on its own page. Secrets are never written here.
    """

    model_config = ConfigDict(extra="allow")

    driver: str
    """The driver that speaks to it: "local" (the cloud on one machine), "fake" (in memory, for trying things)
    or any other that is installed."""
    enabled: bool = True
    """False buys nothing there; machines that are there stay, and go when they are idle. `updraft cloud
    enable` and `disable` say otherwise while the daemon runs, until `updraft cloud reset`."""
    priority: int = 0
    """Machines are bought where this number is lowest first, up to the limits and quotas there, and what is
    left at the next. Among clouds of the same number the price decides."""
    limits: CloudLimits = CloudLimits()
    """Ceilings for this cloud alone; those of [limits] hold as well. `updraft cloud limit` sets others while
    the daemon runs."""
    prices: Mapping[str, Price] = Field(default_factory=dict)
    """Price per hour by flavor, where the cloud doesn't say it or says it wrongly: a plain number, in one
    currency for the whole file. "unknown" says that it isn't known."""
    billing: Literal["second", "minute", "hour"] = "second"
    """What the cloud bills at a time, from a machine's launch on. By the hour, an idle machine stays for the
    rest of the hour that is paid for anyway, and what was used is estimated in whole hours. By the minute
    only the estimates differ."""
    billing_minimum: Duration = 0.0
    """How long a machine is billed for at least, however soon it goes: "1m" on EC2, "10m" in some clouds."""

    def rule(self, name: str) -> core.CloudRule:
        """The same as the core reads it; `name` is the cloud's."""
        closed = None if self.enabled else Reason(CLOUD_DISABLED, f"cloud {name} is disabled in updraft.toml")
        return core.CloudRule(self.priority, closed, billing=self.billed)

    @property
    def billed(self) -> Billing:
        """What is paid for of a machine's time there."""
        return Billing(_PERIODS[self.billing], self.billing_minimum)

    @property
    def settings(self) -> Mapping[str, object]:
        """What the driver is told: every key that isn't one of the above."""
        return dict(self.__pydantic_extra__ or {})


class Timings(Part):
    """Waits and patience of the loop. The defaults are good; a demonstration or a test makes them shorter."""

    cycle: Annotated[Duration, Field(gt=0)] = 2.0
    """Pause between two looks. A look never takes more than a tenth of a schedd's time: a slow one is asked
    less often."""
    settle: Duration = 60.0
    """How long a cloud may be slow to show what was launched. Until then it counts in full."""
    collector_age: Duration = 900.0
    """How old a collector must be before an ad that it doesn't have means that a machine is gone."""
    schedd_patience: Duration = 1800.0
    """How long a schedd that doesn't answer keeps its last known demand."""
    cooldown_first: Annotated[Duration, Field(gt=0)] = 30.0
    """The rest after a first failure of an offer, an image or a cloud; it doubles with each further one."""
    cooldown_longest: Annotated[Duration, Field(gt=0)] = 3600.0
    """The longest such rest."""
    failures_to_probe: Annotated[int, Field(ge=1)] = 3
    """After so many failures in a row a single machine goes out to try, until one joins. A count."""
    boot_slack: Annotated[float, Field(ge=1)] = 3.0
    """The deadline to join is the slowest boot seen of that image and flavor times this. A factor."""
    boot_floor: Duration = 60.0
    """That learned deadline is never shorter than this."""
    stale_ad: Annotated[Duration, Field(gt=0)] = 900.0
    """A slot whose ad is older than this is no room for jobs, and says nothing of its machine any more: one
    with no newer ad is lost, and ends when no job has a lease there. Three times HTCondor's own
    UPDATE_INTERVAL."""
    negotiation_patience: Duration = 120.0
    """Room that matches and isn't taken for so long freezes the group's demand: more would not help. It is
    tried again after twice this time, then ever more rarely, up to `cooldown_longest`."""
    end_patience: Duration = 60.0
    """How long a drained machine may take to leave the pool before it is looked at as vanished."""
    trial: Annotated[int, Field(ge=1)] = 8
    """How many machines of an image may be on their way before one of that image has joined. A count."""
    missing_confirm: Duration = 10.0
    """How long an instance that was listed must stay unlisted before it is taken for gone."""

    @model_validator(mode="after")
    def _rests_grow(self) -> "Timings":
        if self.cooldown_longest < self.cooldown_first:
            raise ValueError(
                f"cooldown_longest is {spell(self.cooldown_longest)}, shorter than cooldown_first "
                f"({spell(self.cooldown_first)}); make it longer"
            )
        return self


class Demand(Part):
    """Which waiting jobs are worth a machine. Room that is there, or on its way, is used for all of them, and
    `min` and `spare` of a class are kept whatever stands here."""

    min_jobs: Annotated[int, Field(ge=1)] = 1
    """Nothing is bought for fewer jobs than this, of the whole pool, that no room is there for: they wait for
    more, or for room that comes free. A count."""
    min_wait: Duration = 0.0
    """Nothing is bought for a group of jobs before the first of them has waited for so long since it was
    submitted. "0s": at once."""

    def as_core(self) -> core.Threshold:
        """The same as the core reads it."""
        return core.Threshold(self.min_jobs, self.min_wait)


class Settings(Part):
    """All that `updraft.toml` says, checked; passed down, never looked up again."""

    pool: Pool
    clouds: Annotated[Mapping[Name, CloudTable], Field(min_length=1)]
    classes: Annotated[Mapping[Name, WorkerClass], Field(min_length=1)]
    limits: PoolLimits = PoolLimits()
    users: Mapping[str, UserLimits] = Field(default_factory=dict)
    groups: Mapping[str, GroupLimits] = Field(default_factory=dict)
    demand: Demand = Demand()
    annexes: Annexes = Annexes()
    usage: Usage = Usage()
    monitoring: Monitoring = Monitoring()
    web: Web = Web()
    timings: Timings = Timings()
    network: Network = Network()

    def policy(self) -> core.Policy:
        """The same as the core reads it."""
        return core.Policy(
            pool=self.pool.name,
            classes={name: self._class(name, worker) for name, worker in self.classes.items()},
            limits=as_limits(self.limits),
            cloud_limits={name: as_limits(cloud.limits) for name, cloud in self.clouds.items()},
            clouds={name: cloud.rule(name) for name, cloud in self.clouds.items()},
            timings=core.Timings(**self.timings.model_dump()),
            users={name: core.UserLimits(one.machines, one.cores) for name, one in self.users.items()},
            high_priority_users=self.pool.high_priority_users,
            groups_trusted=bool(self.pool.trust_groups),
            annex_allowances=allowances(self.annexes, self.users),
            threshold=self.demand.as_core(),
            accounting=self.accounting(),
            spending=tuple(self.spending()),
            drain_when_spent=self.limits.when_spent == "drain",
            idle_charged=self.usage.idle_paid_by == "users",
        )

    def spending(self) -> Iterator[core.SpendingLimit]:
        """All budgets of a day or a month."""
        yield from all_of(BudgetScope.POOL, {"": self.limits})
        yield from all_of(BudgetScope.CLOUD, {name: cloud.limits for name, cloud in self.clouds.items()})
        yield from all_of(BudgetScope.CLASS, self.classes)
        yield from all_of(BudgetScope.USER, self.users)
        yield from all_of(BudgetScope.GROUP, self.groups)
        yield from annex_spending(self.annexes, self.users)

    def accounting(self) -> core.Accounting:
        """What is written into the records of what was used, beside what is seen."""
        regions = {name: cloud.settings.get("region", "") for name, cloud in self.clouds.items()}
        return core.Accounting(
            currency=self.usage.currency,
            regions={name: said for name, said in regions.items() if isinstance(said, str)},
            priced={
                name: frozenset(flavor for flavor, price in cloud.prices.items() if price is not None)
                for name, cloud in self.clouds.items()
            },
            benchmark=self.usage.benchmark,
            scores=self.usage.scores,
        )

    def clouds_of(self, worker: WorkerClass) -> tuple[str, ...]:
        """The clouds that a class may run on, in the order of preference that the file gives."""
        return worker.clouds if worker.clouds is not None else tuple(self.clouds)

    def generation(self, name: str) -> str:
        """The hash of everything that a machine of this class is launched with."""
        worker = self.classes[name]
        return generation(self.pool, worker, self.images_of(worker))

    def images_of(self, worker: WorkerClass) -> Mapping[str, str]:
        """The image of a class on each of its clouds."""
        if isinstance(worker.image, str):
            return dict.fromkeys(self.clouds_of(worker), worker.image)
        return {cloud: worker.image[cloud] for cloud in self.clouds_of(worker)}

    def _class(self, name: str, worker: WorkerClass) -> core.WorkerClass:
        same = {name: getattr(worker, name) for name in _SAME}
        return core.WorkerClass(
            **same,
            name=name,
            generation=self.generation(name),
            clouds=self.clouds_of(worker),
            images=self.images_of(worker),
            min_machines=worker.min,
            max_machines=worker.max,
            per_user=core.UserLimits(worker.max_per_user, worker.max_cores_per_user),
            spare=tuple(spare.as_core() for spare in worker.spare),
            attributes={
                **container_attributes(worker.universes),
                **advertised(one.name for one in worker.cvmfs),
                **worker.attributes,
            },
            static_slots=None if worker.slots == "partitionable" else worker.slots,
            offered_layers=tuple(worker.offered_layers),
            keep_alive_max=worker.idle_limit if worker.keep_alive_max is None else worker.keep_alive_max,
        )


_NOT_THE_SAME = {"clouds", "spare", "attributes", "offered_layers", "keep_alive_max"}
_SAME = {one.name for one in fields(core.WorkerClass)} & set(WorkerClass.model_fields) - _NOT_THE_SAME
_PER_USER = ("cores_per_user", "machines_per_user")


def as_limits(limits: Limits) -> core.Limits:
    """A table of limits as the core reads it."""
    told = {
        name: getattr(limits, name) for name in (*Limits.model_fields, *_PER_USER) if hasattr(limits, name)
    }
    memory = told.pop("memory")
    return core.Limits(**told, memory=None if memory is None else memory // MIB)
