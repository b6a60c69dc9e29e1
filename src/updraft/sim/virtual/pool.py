"""A simulated HTCondor pool: it keeps the contract of `updraft.condor.base.Pool` in virtual time.

Machines of fake clouds join it when their boot is over; jobs are matched, run their time, and are lost with
their machine as in HTCondor: a schedd believes in a vanished job until its lease ends.
"""

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from updraft.clouds.base import TAG_LAUNCH, TAG_POOL
from updraft.clouds.fake import FakeInstance, Site
from updraft.condor.base import ControllerAd, PoolSlots
from updraft.core.model import (
    CollectorLoad,
    CollectorView,
    DrainMode,
    JobGroup,
    Kind,
    ScheddView,
    Slot,
    Verdict,
)
from updraft.errors import DrainRefused, PoolTimeout
from updraft.sim.virtual.clock import Timeline
from updraft.sim.virtual.collector import SimCollector
from updraft.sim.virtual.machine import CLAIM_WORKLIFE, Claim, SimMachine, SimSlot
from updraft.sim.virtual.negotiator import Negotiator
from updraft.sim.virtual.schedd import LEASE, JobState, SimGroup, SimJob, SimSchedd
from updraft.sim.workloads.workload import Arrival

CLASSAD_LIFETIME = 900.0


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the pool's parts are, in seconds.

    `joins` is how many machines its collector takes in a second, None for any number: then it says nothing
    of what it has to do.
    """

    negotiation: float = 5.0
    start: float = 1.0  # from the match to the job's start
    reuse: float = 0.2  # from the end of a job to the next one's start in the same claim
    exit: float = 4.0  # from an accepted drain to the startd's end
    joins: float | None = None


Imagine = Callable[[str, FakeInstance], Kind]
JudgeKind = Callable[[JobGroup, Kind, float], Verdict]


class SimPool:
    """One pool on fake clouds. `imagine` gives the kind of slot that an instance brings."""

    def __init__(
        self,
        name: str,
        timeline: Timeline,
        sites: Iterable[Site],
        imagine: Imagine,
        judge: JudgeKind,
        pace: Pace | None = None,
    ) -> None:
        self.name = name
        self.timeline = timeline
        self.pace = pace or Pace()
        self.queues: dict[str, SimSchedd] = {"head": SimSchedd("head", timeline)}
        self.machines: dict[str, SimMachine] = {}
        self.listed: dict[str, SimMachine] = {}
        self.kinds: dict[str, Kind] = {}
        self.jobs: list[SimJob] = []
        self.collector_started = timeline()
        self.collector_silent_until = 0.0
        self.negotiator_down_until = 0.0
        self.refused_drains = 0
        self._cycle_ended: float | None = None
        self._controllers: dict[str, tuple[ControllerAd, float]] = {}
        self._imagine = imagine
        self._judge_kind = judge
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self.factors: dict[str, float] = {}  # users' priority factors, where they differ
        self._negotiator = Negotiator(self._judge, self.factors)
        joins = self.pace.joins
        self._gate = None if joins is None else SimCollector(timeline, joins, lambda: len(self.listed))
        for site in sites:
            site.watchers.append(functools.partial(self._on_instance, site))
        timeline.every(self.pace.negotiation, self._negotiate)

    # ------------------------------------------------------------------------------------- the contract

    def schedds(self, deadline: float) -> tuple[str, ...]:
        """Names of all schedds."""
        self._collector()
        return tuple(self.queues)

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        """The schedd's groups. Raises PoolTimeout while it is down."""
        return self._queue(schedd).view(running)

    def slots(self, deadline: float) -> PoolSlots:
        """What the collector shows. Raises PoolTimeout while it is down."""
        self._collector()
        now = self.timeline()
        shown = tuple(slot for machine in self.listed.values() for slot in machine.view(now))
        shares = self._negotiator.shares()
        ended = self._cycle_ended  # it takes no time
        view = CollectorView(shown, self.collector_started, ended, shares, self.loads(), ended)
        return PoolSlots(view, {key: kind.ad for key, kind in self.kinds.items()})

    def loads(self) -> dict[str, CollectorLoad]:
        """What its collector says that it has to do, where its capacity is simulated."""
        return {} if self._gate is None else {"collector": self._gate.load()}

    def drain(self, slots: Sequence[Slot], mode: DrainMode, reason: str, deadline: float) -> None:
        """Close one machine; see the contract. Raises PoolTimeout where it doesn't answer."""
        machine = self._reachable(slots)
        if mode is DrainMode.EMPTY and machine.busy:
            self.refused_drains += 1
            raise DrainRefused(f"{machine.id} is busy")
        # A second drain changes nothing about the first: after a busy one, the startd doesn't exit.
        if machine.drain is None:
            self._close(machine, mode, reason)

    def undrain(self, slots: Sequence[Slot], deadline: float) -> None:
        """Take back a busy drain. An atomic one can't be taken back: it exits all the same."""
        machine = self._reachable(slots)
        if machine.drain is DrainMode.BUSY:
            machine.drain, machine.drain_reason = None, ""
            machine.changed(self.timeline())

    def requeue(self, schedd: str, jobs: Sequence[str], machine: str, deadline: float) -> tuple[str, ...]:
        """Give jobs back to the queue; one that doesn't run there any more is left alone."""
        queue = self._queue(schedd)
        run = [queue.running[name] for name in jobs if name in queue.running]
        there = [job for job in run if machine in job.slot.split("@")]
        for job in there:
            self._leave(job)
        return tuple(job.id for job in there)

    def forget(self, slots: Sequence[str], deadline: float) -> None:
        """Drop the ads of the machine that these slots belong to."""
        self._collector()
        for name in slots:
            machine = name.split("@")[1]
            self.listed.pop(machine, None)

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        """The controllers whose ads are still alive."""
        self._collector()
        return tuple(ad for ad, until in self._controllers.values() if until > self.timeline())

    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None:
        """Advertise a controller."""
        self._collector()
        self._controllers[ad.id] = (ad, self.timeline() + lifetime)

    def retract(self, ad: ControllerAd, deadline: float) -> None:
        """Withdraw its ad."""
        self._controllers.pop(ad.id, None)

    def mint_token(self, launch_key: str, lifetime: float) -> str:
        """Something in the place of a token."""
        return f"no-token-{launch_key}"

    def mint_boot_token(self, launch_key: str, boot: float, lifetime: float) -> str:
        """The same."""
        return self.mint_token(launch_key, lifetime)

    # ------------------------------------------------------------------- what only the pool's owner can do

    def submit(self, arrivals: Iterable[Arrival]) -> None:
        """Let these jobs arrive, each at its time from now."""
        for arrival in arrivals:
            self.timeline.after(arrival.at, functools.partial(self._arrive, arrival))

    def restart_collector(self) -> None:
        """The collector forgets every ad; each startd advertises itself again at its next update."""
        now = self.timeline()
        self.collector_started = now
        self.listed.clear()
        self._controllers.clear()
        for machine in self.machines.values():
            if machine.works and machine.silent_since is None:
                self.timeline.at(machine.next_update(now), functools.partial(self._advertise, machine))

    def silence(self, machine_id: str, seconds: float) -> None:
        """A machine works on, but its ads don't arrive for so long."""
        machine = self.machines[machine_id]
        machine.silent_since = self.timeline()
        self.timeline.after(CLASSAD_LIFETIME, functools.partial(self._expire, machine))
        self.timeline.after(seconds, functools.partial(self._heard_again, machine))

    def finished(self) -> bool:
        """True when every job that has arrived is completed."""
        return all(job.state is JobState.COMPLETED for job in self.jobs)

    # -------------------------------------------------------------------------------------------- machines

    def _on_instance(self, site: Site, instance: FakeInstance) -> None:
        now = self.timeline()
        if instance.tags.get(TAG_POOL) != self.name:
            return
        if not instance.up(now) and instance.id in self.machines:
            self._down(instance.id)
        elif instance.launched_at == now and instance.id not in self.machines:
            self.timeline.at(min(instance.joins_at, 1e15), functools.partial(self._knock, site, instance))
            self.timeline.at(min(instance.dies_at, 1e15), functools.partial(self._down, instance.id))

    def _knock(self, site: Site, instance: FakeInstance) -> None:
        if self._gate is None:
            self._join(site, instance)
        elif instance.up(self.timeline()):
            self.timeline.at(self._gate.join(), functools.partial(self._join, site, instance))

    def _join(self, site: Site, instance: FakeInstance) -> None:
        now = self.timeline()
        if not instance.up(now) or instance.id in self.machines:
            return
        kind = self._imagine(site.name, instance)
        self.kinds[kind.key] = kind
        launch = instance.tags.get(TAG_LAUNCH, "")
        machine = SimMachine(site.name, instance, kind, launch, now)
        self.machines[instance.id] = machine
        self._advertise(machine)

    def _advertise(self, machine: SimMachine) -> None:
        if machine.works and machine.silent_since is None:
            self.listed[machine.id] = machine

    def _heard_again(self, machine: SimMachine) -> None:
        machine.silent_since = None
        machine.changed(self.timeline())
        self._advertise(machine)

    def _expire(self, machine: SimMachine) -> None:
        if self.timeline() - machine.heard(self.timeline()) >= CLASSAD_LIFETIME:
            self.listed.pop(machine.id, None)

    def _down(self, machine_id: str) -> None:
        """The machine is no more: nobody in the pool is told."""
        machine = self.machines.get(machine_id)
        now = self.timeline()
        if machine is None or machine.died_at is not None or machine.instance.up(now):
            return
        machine.died_at = now
        machine.settle_use(now)
        by_order = machine.instance.stop_asked_at <= now
        for _, claim in machine.claims():
            self._abandon(claim, by_order)
        self.timeline.after(CLASSAD_LIFETIME + 1, functools.partial(self._expire, machine))

    def _abandon(self, claim: Claim, by_order: bool) -> None:
        job = claim.job
        if job is None:
            return
        if job.state is JobState.STARTING:
            self.queues[claim.schedd].requeue(job)
            return
        job.lease_from = self.timeline()
        job.killed += by_order
        job.lost += not by_order
        run = job.run
        self.timeline.after(LEASE, lambda: self._leave(job) if job.run == run else None)

    def _leave(self, job: SimJob) -> None:
        """A schedd gives up a job's run: it is idle again, and its claim, if it still stands, is released."""
        machine = self.machines.get(job.slot.split("@")[1]) if job.state is JobState.RUNNING else None
        if job.state is not JobState.RUNNING:
            return
        job.killed += job.lease_from is None
        self.queues[job.group.schedd].requeue(job)
        if machine is not None and machine.died_at is None:
            for slot, claim in machine.claims():
                if claim.job is job:
                    self._release(machine, slot, claim)

    def _close(self, machine: SimMachine, mode: DrainMode, reason: str) -> None:
        machine.drain, machine.drain_reason = mode, reason
        machine.changed(self.timeline())
        if mode is DrainMode.EMPTY:
            self.timeline.after(self.pace.exit, functools.partial(self._exit, machine))

    def _exit(self, machine: SimMachine) -> None:
        machine.exited = True
        if machine.died_at is None:
            self.listed.pop(machine.id, None)

    # ------------------------------------------------------------------------------------------------ jobs

    def _arrive(self, arrival: Arrival) -> None:
        queue = self.queues.setdefault(arrival.schedd, SimSchedd(arrival.schedd, self.timeline))
        self.jobs.append(queue.submit(arrival))

    def _negotiate(self) -> None:
        now = self.timeline()
        if now < max(self.negotiator_down_until, self.collector_silent_until):
            return
        queues = [queue for queue in self.queues.values() if queue.answers]
        if any(group.idle for queue in queues for group in queue.groups.values()):
            for match in self._negotiator.cycle(queues, self.listed.values(), now):
                owner, schedd = match.group.owner, match.group.schedd
                claim = match.slot.claim(owner, schedd, match.share, now)
                match.machine.changed(now)
                self._begin(match.machine, match.slot, claim, match.group, self.pace.start)
        self._cycle_ended = now

    def _begin(self, machine: SimMachine, slot: SimSlot, claim: Claim, group: SimGroup, delay: float) -> None:
        queue = self.queues[claim.schedd]
        job = queue.match(group)
        claim.job = job
        self.timeline.after(delay, functools.partial(self._start, machine, slot, claim, job, job.run))

    def _start(self, machine: SimMachine, slot: SimSlot, claim: Claim, job: SimJob, run: int) -> None:
        if machine.died_at is not None or job.run != run or job.state is not JobState.STARTING:
            return
        self.queues[claim.schedd].start(job, claim.name)
        slot.job_starts += 1
        machine.changed(self.timeline())
        self.timeline.after(job.seconds, functools.partial(self._done, machine, slot, claim, job, run))

    def _done(self, machine: SimMachine, slot: SimSlot, claim: Claim, job: SimJob, run: int) -> None:
        if machine.died_at is not None or job.run != run or job.state is not JobState.RUNNING:
            return
        queue, now = self.queues[claim.schedd], self.timeline()
        queue.complete(job)
        claim.job = None
        following = self._next_for(machine, slot, claim, queue) if now - claim.born < CLAIM_WORKLIFE else None
        if following is None:
            self._release(machine, slot, claim)
        else:
            machine.changed(now)
            self._begin(machine, slot, claim, following, self.pace.reuse)

    def _next_for(
        self, machine: SimMachine, slot: SimSlot, claim: Claim, queue: SimSchedd
    ) -> SimGroup | None:
        """The group whose next job may follow in this claim: of the same user, and it must fit."""
        if not machine.open or not queue.answers:
            return None
        for group in queue.groups.values():
            if not group.idle or group.owner != claim.owner:
                continue
            if self._judge(group, slot).copies and claim.resources.holds(group.arrival.request):
                return group
        return None

    def _release(self, machine: SimMachine, slot: SimSlot, claim: Claim) -> None:
        slot.release(claim)
        machine.changed(self.timeline())

    # ---------------------------------------------------------------------------------------------- inside

    def _judge(self, group: SimGroup, slot: SimSlot) -> Verdict:
        key = (group.key, slot.kind.ad)  # machines of one kind differ in zone and market
        if key not in self._verdicts:
            self._verdicts[key] = self._judge_kind(group.view(), slot.kind, self.timeline())
        return self._verdicts[key]

    def _collector(self) -> None:
        if self.timeline() < self.collector_silent_until:
            raise PoolTimeout("the collector did not answer")

    def _queue(self, schedd: str) -> SimSchedd:
        queue = self.queues.get(schedd)
        if queue is None or not queue.answers:
            raise PoolTimeout(f"schedd {schedd} did not answer")
        return queue

    def _reachable(self, slots: Sequence[Slot]) -> SimMachine:
        self._collector()
        machine = self.machines.get(slots[0].instance_id) if slots else None
        if machine is None or not machine.works:
            raise PoolTimeout("the machine did not answer")
        return machine
