"""A simulated schedd: its jobs in groups, and what it believes to run where."""

import itertools
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from updraft.core.model import JobGroup, RunningJob, ScheddView
from updraft.sim.workloads.workload import Arrival

LEASE = 2400.0  # HTCondor's JOB_DEFAULT_LEASE_DURATION


class JobState(StrEnum):
    """Where a job is; `starting` is matched, and still idle to whoever asks the schedd."""

    IDLE = "idle"
    STARTING = "starting"
    RUNNING = "running"
    COMPLETED = "completed"


@dataclass(slots=True)
class SimJob:
    """One job. `run` numbers its attempts; `killed` counts those that an order of ours ended."""

    id: str
    group: "SimGroup"
    seconds: float
    submitted_at: float
    state: JobState = JobState.IDLE
    run: int = 0
    first_started_at: float | None = None
    started_at: float = 0.0
    ended_at: float | None = None
    slot: str = ""
    killed: int = 0
    lost: int = 0
    lease_from: float | None = None


@dataclass(slots=True)
class SimGroup:
    """Jobs alike in all that matching looks at."""

    key: str
    schedd: str
    arrival: Arrival
    ad: str
    idle: deque[SimJob] = field(default_factory=deque)
    starting: int = 0
    running: int = 0

    @property
    def owner(self) -> str:
        """Whose jobs they are."""
        return self.arrival.owner

    def waiting(self) -> int:
        """Jobs that the schedd calls idle."""
        return len(self.idle) + self.starting

    def view(self) -> JobGroup:
        """The group as a query shows it."""
        first = self.idle[0] if self.idle else None
        return JobGroup(
            key=self.key,
            schedd=self.schedd,
            owner=self.owner,
            submitter=f"{self.owner}@sim",
            ad=self.ad,
            request=self.arrival.request,
            idle=self.waiting(),
            running=self.running,
            oldest=first.submitted_at if first else 0.0,
            first_id=first.id if first else "",
        )


class SimSchedd:
    """The queue of one submit host."""

    def __init__(self, name: str, clock: Callable[[], float]) -> None:
        self.name = name
        self.jobs: dict[str, SimJob] = {}
        self.groups: dict[tuple[object, ...], SimGroup] = {}
        self.running: dict[str, SimJob] = {}
        self.silent_until = 0.0
        self._clock = clock
        self._cluster = itertools.count(1)

    @property
    def answers(self) -> bool:
        """False while it is down."""
        return self._clock() >= self.silent_until

    def submit(self, arrival: Arrival) -> SimJob:
        """A new idle job."""
        group = self._group(arrival)
        job = SimJob(f"{next(self._cluster)}.0", group, arrival.seconds, self._clock())
        self.jobs[job.id] = job
        group.idle.append(job)
        return job

    def view(self, running: bool) -> ScheddView:
        """What a query answers."""
        groups = [group for group in self.groups.values() if group.waiting()]
        return ScheddView(
            groups=tuple(group.view() for group in groups),
            running=tuple(self._running(job) for job in self.running.values()) if running else None,
            idle_total=sum(group.waiting() for group in groups),
            running_total=len(self.running),
        )

    def match(self, group: SimGroup) -> SimJob:
        """Take the next idle job for a claim."""
        job = group.idle.popleft()
        job.state, job.run = JobState.STARTING, job.run + 1
        group.starting += 1
        return job

    def start(self, job: SimJob, slot: str) -> None:
        """The job begins to run there."""
        job.state, job.slot, job.started_at, job.lease_from = JobState.RUNNING, slot, self._clock(), None
        if job.first_started_at is None:
            job.first_started_at = job.started_at
        job.group.starting -= 1
        job.group.running += 1
        self.running[job.id] = job

    def complete(self, job: SimJob) -> None:
        """The job has ended well."""
        job.state, job.ended_at = JobState.COMPLETED, self._clock()
        self._stopped(job)

    def requeue(self, job: SimJob) -> None:
        """Back to the queue, in front."""
        if job.state is JobState.STARTING:
            job.group.starting -= 1
        elif job.state is JobState.RUNNING:
            self._stopped(job)
        else:
            return
        job.state, job.slot = JobState.IDLE, ""
        job.group.idle.appendleft(job)

    def _stopped(self, job: SimJob) -> None:
        job.group.running -= 1
        del self.running[job.id]

    def _running(self, job: SimJob) -> RunningJob:
        since = self._clock() if job.lease_from is None else job.lease_from
        return RunningJob(self.name, job.id, job.slot, job.group.owner, since + LEASE)

    def _group(self, arrival: Arrival) -> SimGroup:
        alike = (arrival.owner, arrival.request, arrival.requirements)
        if alike not in self.groups:
            key = f"{self.name}#{len(self.groups) + 1}"
            self.groups[alike] = SimGroup(key, self.name, arrival, job_ad(arrival))
        return self.groups[alike]


def job_ad(arrival: Arrival) -> str:
    """What matching reads of such a job, as a ClassAd."""
    request = arrival.request
    gpus = f"RequestGPUs = {request.gpus}; " if request.gpus else ""
    requirements = (
        '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && '
        f"(TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && ({arrival.requirements})"
    )
    return (
        f'[ MyType = "Job"; Owner = "{arrival.owner}"; JobUniverse = 5; JobStatus = 1; '
        f"RequestCpus = {request.cpus}; RequestMemory = {request.memory}; RequestDisk = {request.disk}; "
        f"{gpus}Requirements = {requirements}; Rank = 0.0 ]"
    )
