"""A simulation that is fast enough for whole traces: the real decision in a lean world of virtual time.

`updraft.sim.virtual.engine` runs the daemon's own observer and actor and serves to test them; this runs
nothing but the decision itself, on snapshots of which everything that hasn't changed is used again.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from updraft.core.machines.cache import Roll
from updraft.core.machines.witnesses import doubted_after
from updraft.core.model import AtWork, Plan, Snapshot
from updraft.core.plan import plan as core_plan
from updraft.core.settings import DAY, Policy
from updraft.core.slots.places import read
from updraft.sim.conditions import Boots, Conditions, SimCloud
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.deeds import Deeds
from updraft.sim.world.fastcloud import FastCloud
from updraft.sim.world.fastpool import FastPool
from updraft.sim.world.leanledger import LeanLedger
from updraft.sim.world.outcome import Outcome
from updraft.sim.world.recording import Recorder
from updraft.sim.world.seeing import Seeing
from updraft.sim.world.steady import Steady

__all__ = ["Boots", "Conditions", "Decide", "SimCloud", "World", "simulate"]

Decide = Callable[[Snapshot, Policy], Plan]

LINGERS = 3600.0  # seconds without any change after which what is left is taken to stay for good
STALLED = DAY  # the same while jobs still wait: rests after failures are long over then
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
    when nothing has changed for an hour after the last job was done (machines that a policy keeps for good),
    or for a day while jobs still wait that nothing is bought for; or when for three days no job has run.
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
        self.agenda = Agenda(conditions.begins)
        self.pool = FastPool(conditions, self.agenda, doubted_after(policy))
        self.clouds = {
            name: FastCloud(name, sold, conditions, self.agenda, up=self.pool.joins, down=self.pool.down)
            for name, sold in clouds.items()
        }
        self.ledger = LeanLedger()
        apart = read(policy, {arrival.requirements for arrival in self._arrivals})
        self.deeds = Deeds(
            policy,
            self.clouds,
            self.ledger,
            self.agenda,
            apart=apart,
            close=self.pool.close,
            reopen=self.pool.reopen,
            unlist=self.pool.unlist,
            requeue=self.pool.requeue,
        )
        self._seeing = Seeing(policy, self.pool, self.clouds, self.ledger, self.agenda, apart=apart)
        self._recorder = Recorder(policy, conditions, self.pool, self.clouds, self.deeds)
        self._steady: Steady | None = None
        if decide is core_plan:
            self._remember_decisions()
        if self._arrivals:
            self.agenda.at(conditions.begins + self._arrivals[0].at, self._arrive)
        # Half a period after the looks: neither waits for the other in the real world.
        self._negotiation = conditions.begins + conditions.negotiation / 2
        self.agenda.at(self._negotiation, self._negotiate)

    def _remember_decisions(self) -> None:
        """Make less anew for each decision, and none where nothing can come of it: the planner allows it."""
        self.ledger.at_work = AtWork(frozenset(), self._conditions.begins)
        self.decide = partial(core_plan, roll=Roll())
        if not self._conditions.thorough:
            self._steady = Steady(self._policy, self.ledger, self.deeds, self.agenda)

    def run(self, progress: Callable[[float], None] | None = None) -> Outcome:
        """Cycle until it is over."""
        total = max(1, len(self._arrivals))
        while not self._over():
            self.cycle()
            if progress is not None and self._recorder.cycles % _PROGRESS_EVERY == 0:
                progress(self.pool.queue.done / total)
        if progress is not None:
            progress(1.0)
        return self._recorder.outcome(self._arrivals, self.agenda.now)

    def cycle(self) -> None:
        """One look, one decision and its deeds, unless nothing can come of it; then time passes."""
        agenda, conditions = self.agenda, self._conditions
        begun = agenda.now
        for cloud in self.clouds.values():
            cloud.asked(begun)
            cloud.consoles(self.ledger.machines, begun)
        decided = self._steady is None or self._steady.wakes()
        plan = self.decide(self._seeing.look(), self._policy) if decided else None
        agenda.run_until(begun + conditions.answer)
        if plan is not None:
            self._seeing.questions = plan.questions
            if plan.at_work is not None:
                self.ledger.at_work = AtWork(plan.at_work, begun)
            self.ledger.keep_untaken(plan.untaken, begun)
            self.deeds.carry_out(plan)
            if self._steady is not None:
                self._steady.decided(plan)
        self._recorder.note(begun, decided=decided)
        agenda.run_until(begun + conditions.cycle)

    def _over(self) -> bool:
        agenda, queue = self.agenda, self.pool.queue
        horizon = self._conditions.horizon
        if horizon is not None and agenda.now >= self._conditions.begins + horizon:
            return True
        if self._arrived < len(self._arrivals) or queue.running or queue.done != self._served[1]:
            self._served = (agenda.now, queue.done)
        if self._arrived < len(self._arrivals):
            return False
        quiet = agenda.now - agenda.changed_at
        if queue.done == len(self._arrivals):
            return quiet >= LINGERS or not any(cloud.paid_machines for cloud in self.clouds.values())
        return quiet >= STALLED or agenda.now - self._served[0] >= HOPELESS

    # -------------------------------------------------------------------------------------------- inside

    def _arrive(self) -> None:
        """All that arrive now, and the time of the next."""
        arrivals, begins, now = self._arrivals, self._conditions.begins, self.agenda.now
        while self._arrived < len(arrivals) and begins + arrivals[self._arrived].at <= now:
            self.pool.submit(arrivals[self._arrived])
            self._arrived += 1
        if self._arrived < len(arrivals):
            self.agenda.at(begins + arrivals[self._arrived].at, self._arrive)

    def _negotiate(self) -> None:
        self.pool.negotiate()
        self._negotiation += self._conditions.negotiation
        self.agenda.at(self._negotiation, self._negotiate)
