"""The pool of a fast simulation: jobs arrive, are matched, run, follow one another in claims, and end.

A machine that is ordered to end shuts down as clouds do it, with a signal to what runs inside: its jobs are
idle again at once, and each of them that ran counts as killed. One that is taken away without a word leaves
its schedds to believe in its jobs until their leases end, unless the controller gives them back before.
"""

from collections.abc import Iterable

from updraft.core.matching.match import Matcher
from updraft.core.model import DrainMode, Verdict
from updraft.core.slots.kinds import apart_key
from updraft.sim.conditions import Pace
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.fastqueue import LEASE, FastQueue, Group
from updraft.sim.world.fleet import UPDATE_INTERVAL, Claim, Floor, Worker, may_follow
from updraft.sim.world.matchmaker import Matchmaker

CLASSAD_LIFETIME = 900.0


class FastPool:
    """One pool: its queues and its machines. `killed` and `lost` count runs that came to nothing.

    Ads that don't change are shown anew every `update` seconds. `factors` are users' priority factors.
    `machines` are all that ever joined, by their ids. Unless they are told `apart`, machines of one kind are
    as good as one another wherever they are and however they were bought: no job may ask for that then.
    """

    def __init__(
        self,
        pace: Pace,
        agenda: Agenda,
        *,
        schedds: Iterable[str] = (),
        update: float = UPDATE_INTERVAL,
        apart: bool = True,
    ) -> None:
        self.queue = FastQueue(schedds)
        self.floor = Floor(update)
        self.killed = 0
        self.lost = 0
        self.cycle_ended: float | None = None
        self.templates: dict[str, str] = {}
        self.machines: dict[str, Worker] = {}
        self.factors: dict[str, float] = {}
        self.matchmaker = Matchmaker(self.queue, self.floor, self._judge, self.factors)
        self._pace = pace
        self._apart = apart
        self._agenda = agenda
        self._matcher = Matcher()

    # -------------------------------------------------------------------------------------------- the queue

    def submit(self, arrival: Arrival) -> None:
        """A job arrives."""
        self.queue.submit(arrival, self._agenda.now)
        self._agenda.touched()

    def negotiate(self) -> None:
        """One cycle of the negotiator."""
        now, delay = self._agenda.now, self._pace.start
        for claim in self.matchmaker.cycle(now):
            self._begin(claim, claim.group, delay)
        self.cycle_ended = now

    def requeue(self, jobs: Iterable[str], machine: str) -> list[str]:
        """The controller gives these jobs of a machine back to the queue; returns those that ran there."""
        table, given = self.queue.jobs, []
        for name in jobs:
            number = int(name.partition(".")[0])
            claim = table.claim[number] if number < len(table.claim) else None
            if claim is not None and claim.running and claim.room.worker.id == machine:
                self._leave(number, claim)
                given.append(name)
        return given

    # ------------------------------------------------------------------------------------------ the machines

    def joins(self, worker: Worker) -> None:
        """A machine's startd is there."""
        self._agenda.touched()
        self.machines[worker.id] = worker
        if self._apart:
            worker.matched = apart_key(worker.kind.key, worker.bought.zone, worker.bought.market)
        self.floor.add(worker, self._agenda.now)
        self.templates.setdefault(worker.kind.key, worker.kind.ad)

    def down(self, worker: Worker) -> None:
        """What runs inside this machine is ended: by an order, or with the machine's own death."""
        now = self._agenda.now
        if worker.joined_at is None or worker.died_at is not None:
            worker.died_at = worker.died_at or now
            return
        by_order = worker.stop_asked_at is not None
        worker.died_at = now
        if not worker.exited:
            self.floor.stops(worker)
        for room in worker.rooms:
            for claim in list(room.claims):
                self._abandon(claim, by_order=by_order)
        if worker.listed:
            self._agenda.at(now + CLASSAD_LIFETIME + 1, self.unlist, worker)

    def close(self, worker: Worker, mode: DrainMode, reason: str) -> None:
        """It takes no new jobs; of an atomic drain it leaves the pool."""
        worker.drain, worker.drain_reason = mode, reason
        self.floor.changed(worker, self._agenda.now)
        if mode is DrainMode.EMPTY:
            self._agenda.at(self._agenda.now + self._pace.exit, self._exit, worker)

    def reopen(self, worker: Worker) -> None:
        """A busy drain is taken back."""
        worker.drain, worker.drain_reason = None, ""
        self.floor.changed(worker, self._agenda.now)

    def unlist(self, worker: Worker) -> None:
        """Its ads are gone."""
        self._agenda.touched()
        self.floor.unlist(worker)

    def advertises(self, worker: Worker) -> None:
        """Its startd advertises itself, where the collector has no ad of it any more."""
        self._agenda.touched()
        self.floor.advertises(worker, self._agenda.now)

    def _exit(self, worker: Worker) -> None:
        if worker.died_at is None:
            worker.exited = True
            self.floor.stops(worker)
            self.unlist(worker)

    # --------------------------------------------------------------------------------------- a job's life

    def _begin(self, claim: Claim, group: Group, delay: float) -> None:
        self._agenda.touched()
        claim.group = group
        claim.job = self.queue.match(group, claim)
        claim.run += 1
        self._agenda.at(self._agenda.now + delay, self._start, claim, claim.run)

    def _start(self, claim: Claim, run: int) -> None:
        if claim.run != run or claim.job < 0:
            return
        self._agenda.touched()
        now, job = self._agenda.now, claim.job
        self.queue.start(job, now)
        claim.runs(True, now)
        claim.room.starts += 1
        self.floor.changed(claim.room.worker, now)
        self._agenda.at(now + self.queue.jobs.seconds[job], self._done, claim, run)

    def _done(self, claim: Claim, run: int) -> None:
        worker = claim.room.worker
        if claim.run != run or not claim.running or worker.died_at is not None:
            return
        self._agenda.touched()
        now = self._agenda.now
        self.queue.complete(claim.job, now)
        claim.runs(False, now)
        following = self._following(claim) if now - claim.born <= self._pace.worklife else None
        if following is None:
            self._release(claim)
        else:
            self.floor.changed(worker, now)
            self._begin(claim, following, self._pace.reuse)

    def _following(self, claim: Claim) -> Group | None:
        """Whose next job may follow in this claim: of the same owner's groups, the one whose turn it is."""
        mine, worker = self.queue.waiting.get(claim.group.owner), claim.room.worker
        if not mine or not worker.open or not self.queue.answers(claim.group.schedd, self._agenda.now):
            return None
        front, best = self.queue.front, None
        for group in mine:
            if group.schedd == claim.group.schedd and may_follow(claim, group, self._judge(group, worker)):
                place = front(group)
                if best is None or place < best[0]:
                    best = (place, group)
        return None if best is None else best[1]

    def _release(self, claim: Claim) -> None:
        self.floor.release(claim, self._agenda.now)
        self.matchmaker.took(claim.group.owner, -max(1, claim.share.cpus))

    def _abandon(self, claim: Claim, *, by_order: bool) -> None:
        job, now = claim.job, self._agenda.now
        if job < 0:
            self._release(claim)
        elif not claim.running:
            self.queue.requeue(job, now)
            claim.job = -1
            self._release(claim)
        elif by_order:
            self.killed += 1
            self.queue.jobs.kills[job] += 1
            self._leave(job, claim)
        else:
            self.lost += 1
            self.queue.jobs.losses[job] += 1
            self._agenda.at(now + LEASE, self._leave, job, claim)

    def _leave(self, job: int, believed: Claim) -> None:
        """A schedd gives up a job's run in that claim, if it still believes in it: it is idle again."""
        claim, now = self.queue.jobs.claim[job], self._agenda.now
        if claim is not believed or claim.job != job or not claim.running:
            return
        if claim.room.worker.died_at is None:
            self.killed += 1
            self.queue.jobs.kills[job] += 1
        self._agenda.touched()
        self.queue.requeue(job, now)
        claim.runs(False, now)
        self._release(claim)

    def _judge(self, group: Group, worker: Worker) -> Verdict:
        found = group.fits.get(worker.matched)
        if found is None:
            view = group.shown or self.queue.shown(group)
            found = group.fits[worker.matched] = self._matcher.judge(view, worker.kind, self._agenda.now)
        return found
