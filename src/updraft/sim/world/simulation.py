"""A simulated world: jobs arrive, the daemon's own parts look, decide and act, and time passes.

It is fast enough for whole traces, since its pool keeps its state in columns, pool and clouds show again what
hasn't changed, and the decision is left out where nothing can come of it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.witnesses import doubted_after
from updraft.core.model import AtWork
from updraft.core.plan import plan as core_plan
from updraft.core.settings import DAY, Policy
from updraft.core.slots.places import read
from updraft.sim.conditions import Boots, Conditions, SimCloud
from updraft.sim.controller import Controller, Decide
from updraft.sim.sites import Joining, site_of
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.bought import Brings
from updraft.sim.world.fleet import UPDATE_INTERVAL
from updraft.sim.world.judge import Judge
from updraft.sim.world.leanledger import LeanLedger
from updraft.sim.world.outcome import Outcome
from updraft.sim.world.pool import SimPool
from updraft.sim.world.recording import Recorder
from updraft.sim.world.steady import Steady

__all__ = ["Boots", "Conditions", "Decide", "SimCloud", "World", "simulate"]

LINGERS = 3600.0  # seconds beyond every idle limit without any change: what is left then stays for good
STALLED = DAY  # seconds in which jobs wait, none runs and nothing changes: rests after failures are over then
HOPELESS = 3 * DAY  # without a job at work, whatever else goes on: machines that never join, again and again
_PROGRESS_EVERY = 64  # cycles


def simulate(
    workload: Sequence[Arrival],
    policy: Policy,
    clouds: Mapping[str, SimCloud],
    *,
    decide: Decide = core_plan,
    conditions: Conditions = Conditions(),  # noqa: B008 - frozen
    progress: Callable[[float], None] | None = None,
) -> Outcome:
    """Let the workload arrive, decide each cycle, carry out the plans, and tell what became of it.

    `decide` is called with what the daemon would see. `progress` is told now and then which share of the
    jobs is done, from 0 to 1. It ends when every job is done and every machine gone, or at the horizon; also
    when nothing has changed for the longest idle limit and an hour after the last job was done (machines that
    a policy keeps for good), or for a day while none runs and jobs wait that nothing is bought for; or when
    for three days no job has run. While a job runs it isn't over, however long that takes.
    """
    return World(workload, policy, clouds, decide, conditions).run(progress)


class World:
    """One simulation. The cloud's answers and the pool's take `conditions.answer` seconds together."""

    def __init__(
        self,
        workload: Sequence[Arrival],
        policy: Policy,
        clouds: Mapping[str, SimCloud],
        decide: Decide,
        conditions: Conditions,
    ) -> None:
        self._policy = policy
        self.decide = decide
        self._conditions = conditions
        self._arrivals = sorted(workload, key=lambda arrival: arrival.at)
        self._arrived = 0
        self._served = (conditions.begins, 0)  # when a job last ran, and how many were done then
        agenda = self.agenda = Agenda(conditions.begins)
        self.pool = SimPool(
            agenda,
            conditions.pace,
            schedds=sorted({arrival.schedd for arrival in self._arrivals}),
            started=conditions.begins - DAY,
            # Places are told apart only where somebody asks for one: fewer sorts of slots are looked through.
            apart=read(policy, {arrival.requirements for arrival in self._arrivals}),
            # Ads that don't change are shown anew just often enough that none is doubted.
            update=max(UPDATE_INTERVAL, doubted_after(policy) - 2 * conditions.cycle),
        )
        self._lingers = LINGERS + max((worker.idle_limit for worker in policy.classes.values()), default=0.0)
        self.clouds = {name: site_of(name, sold, conditions, agenda) for name, sold in clouds.items()}
        kinds = Brings(policy)
        machines = [
            Joining(site, policy.pool, self.pool, agenda, kinds).workers for site in self.clouds.values()
        ]
        self.ledger = LeanLedger()
        self.controller = Controller(
            policy,
            pool=self.pool,
            clouds={name: Cloud(name, FakeCloud(site, policy.pool)) for name, site in self.clouds.items()},
            ledger=self.ledger,
            clock=agenda,
            matcher=Judge(),
        )
        self._recorder = Recorder(policy, conditions, self.pool, self.clouds, machines)
        self._steady: Steady | None = None
        if decide is core_plan:
            self._remember_decisions()
        else:
            self.ledger.at_work = None
        if self._arrivals:
            agenda.at(conditions.begins + self._arrivals[0].at, self._arrive)

    def _remember_decisions(self) -> None:
        """Make less anew for each decision, and none where nothing can come of it: the planner allows it."""
        self.ledger.at_work = AtWork(frozenset(), self._conditions.begins)
        self.decide = partial(core_plan, cache=MachineCache())
        if not self._conditions.thorough:
            self._steady = Steady(self._policy, self.ledger, self.agenda, self.pool.machines, self._changes)

    def _changes(self) -> int:
        """Grows with everything that somebody who looks sees differently."""
        return self.agenda.changes + sum([site.changes for site in self.clouds.values()])

    def run(self, progress: Callable[[float], None] | None = None) -> Outcome:
        """Cycle until it is over."""
        total = max(1, len(self._arrivals))
        while not self._over():
            self.cycle()
            if progress is not None and self._recorder.cycles % _PROGRESS_EVERY == 0:
                progress(self.pool.life.queue.done / total)
        if progress is not None:
            progress(1.0)
        return self._recorder.outcome(self._arrivals, self.agenda.now)

    def cycle(self) -> None:
        """One look, one decision and its deeds, unless nothing can come of it; then time passes."""
        agenda, conditions = self.agenda, self._conditions
        begun = agenda.now
        decided, controller = self._steady is None or self._steady.wakes(), self.controller
        found = None
        if decided:
            found = controller.decide(controller.look(begun), self.decide)
        else:
            controller.look_at_clouds(begun)
        agenda.run_until(begun + conditions.answer)
        if found is not None:
            snapshot, plan = found
            if plan.actions:
                agenda.touched()
            controller.carry_out(plan, snapshot)
            if self._steady is not None:
                self._steady.decided(plan)
        self._recorder.note(begun, decided=decided)
        agenda.run_until(begun + conditions.cycle)

    def _over(self) -> bool:
        agenda, queue = self.agenda, self.pool.life.queue
        horizon = self._conditions.horizon
        if horizon is not None and agenda.now >= self._conditions.begins + horizon:
            return True
        if self._arrived < len(self._arrivals) or queue.running or queue.done != self._served[1]:
            self._served = (agenda.now, queue.done)
        if self._arrived < len(self._arrivals) or queue.running:
            return False
        quiet = agenda.now - max((agenda.changed_at, *(site.changed_at for site in self.clouds.values())))
        if queue.done == len(self._arrivals):
            return quiet >= self._lingers or not any(site.paid.machines for site in self.clouds.values())
        return quiet >= STALLED or agenda.now - self._served[0] >= HOPELESS

    # -------------------------------------------------------------------------------------------- inside

    def _arrive(self) -> None:
        """All that arrive now, and the time of the next."""
        arrivals, begins, now = self._arrivals, self._conditions.begins, self.agenda.now
        while self._arrived < len(arrivals) and begins + arrivals[self._arrived].at <= now:
            self.pool.life.submit(arrivals[self._arrived])
            self._arrived += 1
        if self._arrived < len(arrivals):
            self.agenda.at(begins + arrivals[self._arrived].at, self._arrive)
