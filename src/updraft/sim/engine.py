"""A simulated world on fake clouds with all their faults: here goes wrong what can, in virtual time.

The pool, the clouds and the controller are those of `sim.world.simulation`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import median

from updraft.clouds.fake import FakeCloud, Settings, Site
from updraft.core.model import Plan, Snapshot
from updraft.core.plan import plan as core_plan
from updraft.core.settings import Policy
from updraft.ledger import Ledger
from updraft.sim.conditions import Pace
from updraft.sim.controller import Controller, Decide
from updraft.sim.sites import Joining
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.agenda import START, Agenda
from updraft.sim.world.bought import brings
from updraft.sim.world.judge import Judge
from updraft.sim.world.memory import MemoryLedger
from updraft.sim.world.pool import Job, JobState, SimPool

__all__ = ["Crash", "Decide", "Engine", "Result"]


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
        self.timeline = Agenda(start)
        self.sites = {name: Site(name, settings, self.timeline) for name, settings in clouds.items()}
        self.pool = SimPool(self.timeline, pace or Pace())
        for site in self.sites.values():
            Joining(site, policy.pool, self.pool, self.timeline, lambda bought: brings(self.policy, bought))
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
        self._controller = Controller(
            self.policy,
            pool=self.pool,
            clouds={name: one.cloud for name, one in self.drivers.items()},
            ledger=self.ledger,
            clock=self.timeline,
            matcher=Judge(),
            step=self._step,
        )

    def reconfigure(self, policy: Policy) -> None:
        """Go on with another policy, as after a changed configuration."""
        self.policy = policy
        self._controller.reconfigure(policy)

    def cycle(self) -> Plan:
        """One look, one plan, its deeds; then time passes until the next look is due."""
        begun = self.timeline()
        snapshot, made = self._controller.decide(self._controller.look(begun), self._decide)
        for hear in self.on_cycle:
            hear(snapshot, made)
        self.timeline.run_until(begun + self._latency)
        self._controller.carry_out(made, snapshot)
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
        bills = [site.bill(self.policy.pool) for site in self.sites.values()]
        calls: dict[str, int] = {}
        for site in self.sites.values():
            for name, count in site.calls_by_name().items():
                calls[name] = calls.get(name, 0) + count
        return Result(
            submitted=len(jobs),
            completed=sum(job.state is JobState.COMPLETED for job in jobs),
            waits=tuple(_waits(jobs)),
            runs=tuple(_runs(jobs)),
            killed=sum(job.killed for job in jobs),
            lost=sum(job.lost for job in jobs),
            launched=sum(bill.machines for bill in bills),
            joined=len(self.pool.machines),
            left=self.alive(),
            paid=sum(bill.seconds for bill in bills),
            used=sum(machine.used_by(now) for machine in self.pool.machines.values()),
            cost=sum(bill.cost for bill in bills),
            calls=calls,
            refused_drains=self.pool.refused_drains,
            seconds=now - self._begun,
        )


def _waits(jobs: Iterable[Job]) -> Iterable[float]:
    return (job.first_started_at - job.submitted_at for job in jobs if job.first_started_at is not None)


def _runs(jobs: Iterable[Job]) -> Iterable[float]:
    return (job.ended_at - (job.started_at or 0.0) for job in jobs if job.ended_at is not None)
