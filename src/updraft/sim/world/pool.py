"""A simulated HTCondor pool: it keeps the contract of `updraft.condor.base.Pool` in virtual time.

What happens to its jobs and machines is in `fastpool`; here is how it answers, and what its owner can break.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from updraft.condor.base import ControllerAd, PoolSlots
from updraft.core.model import CollectorLoad, CollectorView, DrainMode, ScheddView, Slot
from updraft.errors import DrainRefused, PoolTimeout
from updraft.sim.conditions import Pace
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.collector import SimCollector
from updraft.sim.world.fastpool import CLASSAD_LIFETIME, FastPool
from updraft.sim.world.fastqueue import FastQueue, Group
from updraft.sim.world.fleet import UPDATE_INTERVAL, Worker


class SimPool:
    """One pool. `life` is what happens in it; `jobs` and `machines` are all that ever were.

    `schedds` are there from the beginning. The collector started at `started`, now unless it is given.
    `update` and `apart` are as in `FastPool`.
    """

    def __init__(
        self,
        agenda: Agenda,
        pace: Pace,
        *,
        schedds: Iterable[str] = ("head",),
        started: float | None = None,
        update: float = UPDATE_INTERVAL,
        apart: bool = True,
    ) -> None:
        self.life = FastPool(pace, agenda, schedds=schedds, update=update, apart=apart)
        self.machines = self.life.machines
        self.factors = self.life.factors
        self.collector_started = agenda.now if started is None else started
        self.collector_silent_until = 0.0
        self.negotiator_down_until = 0.0
        self.refused_drains = 0
        self._agenda = agenda
        self._controllers: dict[str, tuple[ControllerAd, float]] = {}
        self._gate = None
        if pace.joins is not None:
            self._gate = SimCollector(agenda, pace.joins, lambda: len(self.listed))
        agenda.every(pace.negotiation, self._negotiate, pace.first)

    # ------------------------------------------------------------------------------------- the contract

    def schedds(self, deadline: float) -> tuple[str, ...]:
        """Names of all schedds."""
        self._collector()
        return self.life.queue.schedds

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        """The schedd's groups. Raises PoolTimeout while it is down."""
        return self._queue(schedd).view(schedd, self._agenda.now, running=running)

    def slots(self, deadline: float) -> PoolSlots:
        """What the collector shows. Raises PoolTimeout while it is down."""
        self._collector()
        life, shown = self.life, self.life.floor.slots(self._agenda.now)
        ended = life.cycle_ended  # it takes no time
        shares = life.matchmaker.shares()
        view = CollectorView(shown, self.collector_started, ended, shares, self.loads(), ended)
        return PoolSlots(view, life.templates)

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
            self.life.close(machine, mode, reason)

    def undrain(self, slots: Sequence[Slot], deadline: float) -> None:
        """Take back a busy drain. An atomic one can't be taken back: it exits all the same."""
        machine = self._reachable(slots)
        if machine.drain is DrainMode.BUSY:
            self.life.reopen(machine)

    def requeue(self, schedd: str, jobs: Sequence[str], machine: str, deadline: float) -> tuple[str, ...]:
        """Give jobs back to the queue; one that doesn't run there any more is left alone."""
        self._queue(schedd)
        return tuple(self.life.requeue(jobs, machine))

    def forget(self, slots: Sequence[str], deadline: float) -> None:
        """Drop the ads of the machine that these slots belong to."""
        self._collector()
        for machine in {name.split("@")[1] for name in slots} & self.listed.keys():
            self.life.unlist(self.listed[machine])

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        """The controllers whose ads are still alive."""
        self._collector()
        return tuple(ad for ad, until in self._controllers.values() if until > self._agenda.now)

    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None:
        """Advertise a controller."""
        self._collector()
        self._controllers[ad.id] = (ad, self._agenda.now + lifetime)

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
            self._agenda.after(arrival.at, self.life.submit, arrival)

    def knocks(self, worker: Worker, up: Callable[[], bool]) -> None:
        """A machine's startd wants to join: the collector takes it when it can, if it is `up` then."""
        if self._gate is None:
            self._joins(worker, up)
        elif up():
            self._agenda.at(self._gate.join(), self._joins, worker, up)

    def restart_collector(self) -> None:
        """The collector forgets every ad; each startd advertises itself again at its next update."""
        now = self._agenda.now
        self.collector_started = now
        self._controllers.clear()
        for machine in self.machines.values():
            if machine.listed:
                self.life.unlist(machine)
            if machine.works and machine.joined_at is not None:
                rounds = (now - machine.joined_at) // UPDATE_INTERVAL + 1
                next_update = machine.joined_at + rounds * UPDATE_INTERVAL
                self._agenda.at(next_update, self.life.advertises, machine)

    def silence(self, machine: str, seconds: float) -> None:
        """A machine works on, but its ads don't arrive for so long."""
        worker = self.machines[machine]
        worker.silent = True
        self._agenda.after(CLASSAD_LIFETIME, self._expires, worker)
        self._agenda.after(seconds, self._heard_again, worker)

    def silence_schedd(self, schedd: str, until: float) -> None:
        """A schedd answers nobody until then; what runs runs on."""
        self.life.queue.silent_until[schedd] = until

    # ------------------------------------------------------------------------------------- how it stands

    @property
    def listed(self) -> dict[str, Worker]:
        """The machines of which the collector has ads, by their ids."""
        return self.life.floor.workers

    @property
    def jobs(self) -> "Sequence[Job]":
        """Every job that has arrived, in that order."""
        queue = self.life.queue
        return [Job(queue, number) for number in range(len(queue.jobs.group))]

    def finished(self) -> bool:
        """True when every job that has arrived is completed."""
        queue = self.life.queue
        return queue.done == len(queue.jobs.group)

    # ---------------------------------------------------------------------------------------------- inside

    def _negotiate(self) -> None:
        if self._agenda.now >= max(self.negotiator_down_until, self.collector_silent_until):
            self.life.negotiate()

    def _joins(self, worker: Worker, up: Callable[[], bool]) -> None:
        if up() and worker.joined_at is None:
            self.life.joins(worker)

    def _expires(self, worker: Worker) -> None:
        if worker.listed and self._agenda.now - worker.heard >= CLASSAD_LIFETIME:
            self.life.unlist(worker)

    def _heard_again(self, worker: Worker) -> None:
        worker.silent = False
        self.life.advertises(worker)

    def _collector(self) -> None:
        if self._agenda.now < self.collector_silent_until:
            raise PoolTimeout("the collector did not answer")

    def _queue(self, schedd: str) -> FastQueue:
        queue = self.life.queue
        if schedd not in queue.schedds or not queue.answers(schedd, self._agenda.now):
            raise PoolTimeout(f"schedd {schedd} did not answer")
        return queue

    def _reachable(self, slots: Sequence[Slot]) -> Worker:
        self._collector()
        machine = self.machines.get(slots[0].instance_id) if slots else None
        if machine is None or not machine.works:
            raise PoolTimeout("the machine did not answer")
        return machine


class JobState(StrEnum):
    """Where a job is; `starting` is matched, and still idle to whoever asks the schedd."""

    IDLE = "idle"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"


@dataclass(frozen=True, slots=True)
class Job:
    """One job, as it stands: a row of the queue's columns. Times are POSIX seconds, None is never."""

    queue: FastQueue
    number: int

    @property
    def id(self) -> str:
        """What its schedd calls it."""
        return f"{self.number}.0"

    @property
    def group(self) -> Group:
        """Those that it is alike to."""
        return self.queue.jobs.group[self.number]

    @property
    def state(self) -> JobState:
        """Where it is."""
        if self.ended_at is not None:
            return JobState.COMPLETED
        claim = self.queue.jobs.claim[self.number]
        if claim is None:
            return JobState.IDLE
        return JobState.RUNNING if claim.running else JobState.STARTING

    @property
    def slot(self) -> str:
        """Where it ran last, "" where it never ran."""
        return self.queue.jobs.slot[self.number]

    @property
    def runs(self) -> int:
        """How often it has begun to run."""
        return self.queue.jobs.runs[self.number]

    @property
    def killed(self) -> int:
        """How many of its runs an order of ours ended."""
        return self.queue.jobs.kills[self.number]

    @property
    def lost(self) -> int:
        """How many of its runs ended with their machine's own death."""
        return self.queue.jobs.losses[self.number]

    @property
    def submitted_at(self) -> float:
        """When it arrived."""
        return self.queue.jobs.submitted[self.number]

    @property
    def first_started_at(self) -> float | None:
        """When it first began to run."""
        return _known(self.queue.jobs.first_start[self.number])

    @property
    def started_at(self) -> float | None:
        """When its last run began."""
        return _known(self.queue.jobs.started[self.number])

    @property
    def ended_at(self) -> float | None:
        """When it ended well."""
        return _known(self.queue.jobs.ended[self.number])


def _known(moment: float) -> float | None:
    return None if math.isnan(moment) else moment
