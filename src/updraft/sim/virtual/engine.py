"""The daemon's own observing, planning and acting, in virtual time, over fake clouds and a simulated pool."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import cast

from updraft.act import Actor, Lanes
from updraft.clouds.base import TAG_CLASS, TAG_GENERATION, TAG_VARIANT
from updraft.clouds.fake import FakeCloud, FakeInstance, Settings, Site
from updraft.core.matching.bulk import judge_all
from updraft.core.matching.match import Matcher
from updraft.core.matching.memory import Memo
from updraft.core.model import PLAIN, CloudOffer, JobGroup, Kind, Launch, Plan, Snapshot, Verdicts
from updraft.core.plan import plan as core_plan
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.kinds import kind_key
from updraft.core.slots.variants import read
from updraft.daemon.preparing import PACE, Preparer
from updraft.ledger import Ledger
from updraft.observe import VIRTUAL, Observer
from updraft.sim.virtual.clock import START, Timeline
from updraft.sim.virtual.memory import MemoryLedger
from updraft.sim.virtual.pool import Pace, SimPool
from updraft.sim.virtual.schedd import JobState, SimJob
from updraft.sim.workloads.workload import Arrival

Decide = Callable[[Snapshot, Policy], Plan]


class Crash(BaseException):
    """The controller dies here, as by kill -9: nothing may catch it."""


@dataclass(frozen=True, slots=True)
class Result:
    """What became of a simulation. Times in seconds, money in the unit of the prices.

    `used` are machine-seconds in which at least one job ran; `killed` counts runs of jobs that an order of
    ours ended, `lost` those that ended with their machine's own death; `left` are machines that still are.
    """

    submitted: int
    completed: int
    waits: tuple[float, ...]
    runs: tuple[float, ...]
    killed: int
    lost: int
    launched: int
    joined: int
    left: int
    paid: float
    used: float
    cost: float
    calls: Mapping[str, int]
    refused_drains: int
    seconds: float

    @property
    def median_wait(self) -> float | None:
        """From submission to the first start; None where no job has started."""
        return median(self.waits) if self.waits else None


class _Verdicts:
    """Judges in the caller's thread: simulated jobs are not hostile."""

    def __init__(self) -> None:
        self._memo = Memo()

    def verdicts(
        self, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float, deadline: float
    ) -> Verdicts:
        return judge_all(groups, kinds, now, self._memo)


class Engine:
    """One simulation. `latency` is the time from the look to the deeds: the world goes on meanwhile.

    `decide` may be another policy's plan. `on_cycle` is called with each snapshot and its plan before the
    plan is carried out. `step` is called between any two side effects of the actor; a Crash raised there
    ends the controller, and `restart` brings the next one up. `ledger` is in memory unless another is given.
    """

    def __init__(
        self,
        policy: Policy,
        clouds: Mapping[str, Settings],
        workload: Iterable[Arrival] = (),
        *,
        pace: Pace | None = None,
        latency: float = 0.5,
        start: float = START,
        decide: Decide = core_plan,
        step: Callable[[str], None] = lambda _name: None,
        ledger: MemoryLedger | Ledger | None = None,
    ) -> None:
        self.policy = policy
        self.timeline = Timeline(start)
        self.sites = {name: Site(name, settings, self.timeline) for name, settings in clouds.items()}
        judge = Matcher().judge
        self.pool = SimPool(policy.pool, self.timeline, self.sites.values(), self._kind, judge, pace)
        self.drivers = {name: FakeCloud(site, policy.pool) for name, site in self.sites.items()}
        self.ledger = ledger or MemoryLedger()
        self.on_cycle: list[Callable[[Snapshot, Plan], None]] = []
        self.cycles = 0
        self._begun = start
        self._latency = latency
        self._decide = decide
        self._step = step
        self.pool.submit(workload)
        self.restart()

    # ------------------------------------------------------------------------------------------ running

    def restart(self, *, keep_ledger: bool = True) -> None:
        """A new controller, which knows nothing but the ledger, and not even that if it is lost."""
        if not keep_ledger:
            self.ledger = MemoryLedger()
        self._observer = Observer(
            policy=self.policy,
            pool=self.pool,
            drivers=self.drivers,
            ledger=self.ledger,
            asking=VIRTUAL,
        )
        self._preparer = Preparer(ledger=self.ledger, matcher=_Verdicts(), stopwatch=VIRTUAL.stopwatch)
        self._actor = Actor(
            policy=self.policy,
            pool=self.pool,
            drivers=self.drivers,
            user_data=_no_user_data,
            ledger=cast(Ledger, self.ledger),
            clock=self.timeline,
            lanes=Lanes(width=0),
            step=self._step,
        )

    def reconfigure(self, policy: Policy) -> None:
        """Go on with another policy, as after a changed configuration."""
        self.policy = policy
        self._observer.reconfigure(policy, self.pool, self.drivers)
        self._actor.reconfigure(policy, self.pool, self.drivers, _no_user_data)

    def cycle(self) -> Plan:
        """One look, one plan, its deeds; then time passes until the next look is due."""
        begun = self.timeline()
        snapshot = self._preparer.at_once(self._observer.look(begun), self.policy).snapshot
        for kind, text in self._preparer.fresh.items():
            self.ledger.learn(kind, text, begun)
        self._preparer.fresh.clear()
        self.ledger.note("schedds", {"seen": self._observer.schedds_seen}, begun)
        self.ledger.note(PACE, self._preparer.pace_note, begun)
        made = self._decide(snapshot, self.policy)
        self._observer.questions = made.questions
        for hear in self.on_cycle:
            hear(snapshot, made)
        self.timeline.run_until(begun + self._latency)
        self._actor.carry_out(made, snapshot)
        self.cycles += 1
        self.timeline.run_until(begun + self.policy.timings.cycle)
        return made

    def run(self, seconds: float, until: Callable[[], bool] = lambda: False) -> bool:
        """Cycle for so long, or until the condition holds; whether it came to hold."""
        end = self.timeline() + seconds
        while self.timeline() < end:
            if until():
                return True
            self.cycle()
        return until()

    def run_to_zero(self, seconds: float) -> bool:
        """Cycle until every job that arrived is done and no machine is left, at most for so long."""
        return self.run(seconds, lambda: bool(self.pool.jobs) and self.pool.finished() and not self.alive())

    def idle(self, seconds: float) -> None:
        """Time passes without a controller."""
        self.timeline.run_until(self.timeline() + seconds)

    def alive(self) -> int:
        """How many machines of the pool there are on all clouds, shown or not."""
        return sum(len(site.alive(self.policy.pool)) for site in self.sites.values())

    # ---------------------------------------------------------------------------------------- afterwards

    def result(self) -> Result:
        """What became of it so far."""
        now, jobs = self.timeline(), self.pool.jobs
        for machine in self.pool.machines.values():
            machine.settle_use(now)
            if machine.works:
                machine.changed(now)
        bills = [site.bill(self.policy.pool) for site in self.sites.values()]
        calls: dict[str, int] = {}
        for site in self.sites.values():
            for name, count in site.calls_by_name().items():
                calls[name] = calls.get(name, 0) + count
        return Result(
            submitted=len(jobs),
            completed=sum(job.state is JobState.COMPLETED for job in jobs),
            waits=tuple(_waits(jobs)),
            runs=tuple(job.ended_at - job.started_at for job in jobs if job.ended_at is not None),
            killed=sum(job.killed for job in jobs),
            lost=sum(job.lost for job in jobs),
            launched=sum(bill.machines for bill in bills),
            joined=len(self.pool.machines),
            left=self.alive(),
            paid=sum(bill.seconds for bill in bills),
            used=sum(machine.used for machine in self.pool.machines.values()),
            cost=sum(bill.cost for bill in bills),
            calls=calls,
            refused_drains=self.pool.refused_drains,
            seconds=now - self._begun,
        )

    def _kind(self, cloud: str, instance: FakeInstance) -> Kind:
        """What the machine really brings: as the catalogue imagines it, of the generation in its tags."""
        return real_kind(self.policy, cloud, instance)


def _waits(jobs: Iterable[SimJob]) -> Iterable[float]:
    return (job.first_started_at - job.submitted_at for job in jobs if job.first_started_at is not None)


def _no_user_data(_launch: Launch, _token: str) -> bytes:
    return b""


def real_kind(policy: Policy, cloud: str, instance: FakeInstance) -> Kind:
    """The kind of slot that an instance brings; of a class that is configured no more, a plain one."""
    name, generation = instance.tags.get(TAG_CLASS, ""), instance.tags.get(TAG_GENERATION, "")
    worker = policy.classes.get(name) or WorkerClass(name, generation, (cloud,))
    offer = CloudOffer(
        cloud, instance.zone, instance.flavor_name, instance.market, instance.flavor.resources,
        arch=instance.flavor.arch,
    )  # fmt: skip
    text = instance.tags.get(TAG_VARIANT, "")
    key = kind_key(name, generation, cloud, instance.flavor_name, text)
    made = read(text) or PLAIN
    return imagine(replace(worker, generation=generation), offer, instance.image, policy.pool, key, made)
