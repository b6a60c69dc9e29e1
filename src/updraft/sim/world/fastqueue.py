"""The queues of a fast simulation: jobs are numbers in columns, and wait in the lines of their groups."""

import math
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from updraft.core.demand.runtimes import expected
from updraft.core.model import JobGroup, Resources, RunningJob, ScheddView, Verdict
from updraft.sim.workloads.workload import Arrival

if TYPE_CHECKING:
    from updraft.sim.world.fleet import Claim

LEASE = 2400.0  # HTCondor's JOB_DEFAULT_LEASE_DURATION
_HOUR = 3600.0
_ALIKE = math.log(1.1)  # estimates that differ by less than a tenth are one
_FADE_AT = 1000.0

Front = tuple[int, float, int]
"""By what jobs of one owner are sorted: minus the priority, the time of arrival, the number."""


@dataclass(slots=True, eq=False)
class Group:
    """Jobs alike in all that matching looks at, and in what is said of their time."""

    key: str
    serial: int
    schedd: str
    owner: str
    request: Resources
    ad: str
    requirements: str
    estimate: float | None
    longest: float | None
    lines: dict[int, deque[int]] = field(default_factory=dict)
    idle: int = 0
    starting: int = 0
    running: int = 0
    fits: dict[str, Verdict] = field(default_factory=dict)
    shown: JobGroup | None = None
    front: Front | None = None

    @property
    def user(self) -> str:
        """The name that the negotiator and the slots know the owner by."""
        return f"{self.owner}@sim"


@dataclass(slots=True)
class JobTable:
    """Columns of jobs while they are simulated; times are POSIX seconds, NaN is never.

    `runs` counts its starts, `kills` the runs that an order of the controller ended, `losses` those that
    ended with their machine's own death, `slot` is where it ran last.
    """

    group: list[Group] = field(default_factory=list)
    submitted: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    executable: list[str] = field(default_factory=list)
    priority: list[int] = field(default_factory=list)
    first_start: list[float] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    ended: list[float] = field(default_factory=list)
    ran: list[float] = field(default_factory=list)
    runs: list[int] = field(default_factory=list)
    kills: list[int] = field(default_factory=list)
    losses: list[int] = field(default_factory=list)
    slot: list[str] = field(default_factory=list)
    claim: list["Claim | None"] = field(default_factory=list)


class FastQueue:
    """All schedds together. A job waits in a line, is `starting` once matched, runs, and ends.

    `names` are schedds that are there before any job comes.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        self.jobs = JobTable()
        self.waiting: dict[str, dict[Group, None]] = {}
        self.idle = 0
        self.idle_cores = 0
        self.running = 0
        self.running_cores = 0
        self.done = 0
        self.silent_until: dict[str, float] = {}
        self._active: dict[int, Claim] = {}
        self._groups: dict[tuple[object, ...], Group] = {}
        self._shown: dict[str, dict[Group, None]] = {name: {} for name in names}
        self._totals: dict[str, int] = dict.fromkeys(self._shown, 0)
        self._views: dict[str, ScheddView] = {}
        self._finished: dict[tuple[str, str], tuple[float, float]] = {}
        self._learned: set[str] = set()

    # ------------------------------------------------------------------------------------- what happens

    def submit(self, arrival: Arrival, now: float) -> int:
        """A new idle job; returns its number."""
        jobs, group = self.jobs, self._group(arrival)
        number = len(jobs.group)
        jobs.group.append(group)
        jobs.submitted.append(now)
        jobs.seconds.append(arrival.seconds)
        jobs.executable.append(arrival.executable)
        jobs.priority.append(arrival.priority)
        for times in (jobs.first_start, jobs.started, jobs.ended):
            times.append(math.nan)
        jobs.ran.append(0.0)
        jobs.runs.append(0)
        jobs.kills.append(0)
        jobs.losses.append(0)
        jobs.slot.append("")
        jobs.claim.append(None)
        self._enqueue(number, group, first=False)
        return number

    def front(self, group: Group) -> Front:
        """The place of the group's first job among its owner's; the group must have one."""
        found = group.front
        if found is None:
            best = max(group.lines)
            job = group.lines[best][0]
            found = group.front = (-best, self.jobs.submitted[job], job)
        return found

    def match(self, group: Group, claim: "Claim") -> int:
        """The group's first job gets this claim; returns its number."""
        job = self.front(group)[2]
        priority = self.jobs.priority[job]
        group.lines[priority].popleft()
        if not group.lines[priority]:
            del group.lines[priority]
        group.front = None
        group.idle -= 1
        group.starting += 1
        if not group.idle:
            self._leaves(group)
        self.jobs.claim[job] = claim
        return job

    def start(self, job: int, now: float) -> None:
        """The job begins to run."""
        jobs = self.jobs
        group = jobs.group[job]
        jobs.runs[job] += 1
        jobs.started[job] = now
        claim = jobs.claim[job]
        if claim is not None:
            self._active[job] = claim
            jobs.slot[job] = claim.name
        if jobs.runs[job] == 1:
            jobs.first_start[job] = now
        group.starting -= 1
        group.running += 1
        self.idle -= 1
        self.idle_cores -= group.request.cpus
        self.running += 1
        self.running_cores += group.request.cpus
        self._changed(group, 1)

    def complete(self, job: int, now: float) -> None:
        """The job has ended well; how long it took is remembered of its owner and executable."""
        jobs = self.jobs
        self._stopped(job, now)
        jobs.ended[job] = now
        jobs.claim[job] = None
        self.done += 1
        owner = jobs.group[job].owner
        name = (owner, jobs.executable[job])
        count, seconds = self._finished.get(name, (0.0, 0.0))
        if count >= _FADE_AT:
            count, seconds = count / 2, seconds / 2
        self._finished[name] = (count + 1, seconds + now - jobs.started[job])
        self._learned.add(owner)

    def requeue(self, job: int, now: float) -> None:
        """A job that was starting or running is idle again, in front of its line."""
        jobs = self.jobs
        group = jobs.group[job]
        claim, jobs.claim[job] = jobs.claim[job], None
        if claim is not None and claim.running:
            died = claim.room.worker.died_at
            self._stopped(job, now if died is None else died)
        else:
            group.starting -= 1
            self.idle -= 1
            self.idle_cores -= group.request.cpus
        self._enqueue(job, group, first=True)

    # --------------------------------------------------------------------------------------- what it shows

    @property
    def schedds(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(self._shown)

    def answers(self, name: str, now: float) -> bool:
        """Whether this schedd isn't silent."""
        return not self.silent_until or now >= self.silent_until.get(name, now)

    def view(self, name: str, now: float, *, running: bool) -> ScheddView:
        """What a schedd answers; with `running` also which jobs it believes to run, and where."""
        self._relearn()
        view = self._views.get(name)
        if view is None:
            groups = tuple(group.shown or self.shown(group) for group in self._shown[name])
            idle = sum(group.idle for group in groups)
            view = self._views[name] = ScheddView(groups, None, idle, self._totals[name])
        return replace(view, running=tuple(self._running(name, now))) if running else view

    def shown(self, group: Group) -> JobGroup:
        """The group as a query shows it."""
        jobs = self.jobs
        job = self.front(group)[2] if group.idle else None
        run_time = group.estimate
        if run_time is None and job is not None:
            run_time = expected(*self._finished.get((group.owner, jobs.executable[job]), (0.0, 0.0)))
        if run_time is not None and group.longest is not None:
            run_time = min(run_time, group.longest)
        group.shown = JobGroup(
            key=group.key,
            schedd=group.schedd,
            owner=group.owner,
            submitter=group.user,
            ad=group.ad,
            request=group.request,
            idle=group.idle + group.starting,
            running=group.running,
            oldest=0.0 if job is None else jobs.submitted[job],
            priority=max(group.lines, default=0),
            first_id="" if job is None else f"{job}.0",
            run_time=run_time,
            longest=group.longest,
        )
        return group.shown

    def _running(self, name: str, now: float) -> Iterator[RunningJob]:
        groups = self.jobs.group
        for job, claim in self._active.items():
            if groups[job].schedd == name:
                died = claim.room.worker.died_at
                since = now if died is None else died
                yield RunningJob(name, f"{job}.0", claim.name, groups[job].owner, since + LEASE)

    def _relearn(self) -> None:
        """Groups of owners of whom a job has ended are expected to run as long as is known now."""
        for owner in self._learned:
            for group in self.waiting.get(owner, ()):
                if group.estimate is None:
                    self._changed(group, 0)
        self._learned.clear()

    # ---------------------------------------------------------------------------------------------- inside

    def _enqueue(self, job: int, group: Group, *, first: bool) -> None:
        priority = self.jobs.priority[job]
        line = group.lines.get(priority)
        if line is None:
            line = group.lines[priority] = deque()
        if first:
            line.appendleft(job)
        else:
            line.append(job)
        if not group.idle:
            self.waiting.setdefault(group.owner, {})[group] = None
        group.front = None
        group.idle += 1
        self.idle += 1
        self.idle_cores += group.request.cpus
        self._changed(group, 0)

    def _leaves(self, group: Group) -> None:
        mine = self.waiting[group.owner]
        del mine[group]
        if not mine:
            del self.waiting[group.owner]

    def _stopped(self, job: int, now: float) -> None:
        jobs = self.jobs
        group = jobs.group[job]
        del self._active[job]
        jobs.ran[job] += now - jobs.started[job]
        group.running -= 1
        self.running -= 1
        self.running_cores -= group.request.cpus
        self._changed(group, -1)

    def _changed(self, group: Group, running: int) -> None:
        group.shown = None
        name = group.schedd
        self._totals[name] += running
        self._views.pop(name, None)
        if group.idle or group.starting:
            self._shown[name][group] = None
        else:
            self._shown[name].pop(group, None)

    def _group(self, arrival: Arrival) -> Group:
        # Bounds on the run time are rounded up to the hour: or there would be as many groups as jobs.
        longest = arrival.longest and math.ceil(arrival.longest / _HOUR) * _HOUR
        about = None if arrival.estimate is None else round(math.log(max(1.0, arrival.estimate)) / _ALIKE)
        alike = (arrival.schedd, arrival.owner, arrival.request, arrival.requirements, longest, about)
        group = self._groups.get(alike)
        if group is None:
            serial = len(self._groups) + 1
            self._shown.setdefault(arrival.schedd, {})
            self._totals.setdefault(arrival.schedd, 0)
            group = self._groups[alike] = Group(
                key=f"{arrival.schedd}#{serial}",
                serial=serial,
                schedd=arrival.schedd,
                owner=arrival.owner,
                request=arrival.request,
                ad=job_ad(arrival),
                requirements=arrival.requirements,
                estimate=None if about is None else math.exp(about * _ALIKE),
                longest=longest,
            )
        return group


def job_ad(arrival: Arrival) -> str:
    """What matching reads of such a job, as a ClassAd."""
    request = arrival.request
    amounts = {"gpus": request.gpus, **dict(request.custom)}
    more = "".join(f"Request{name} = {amount}; " for name, amount in amounts.items() if amount)
    has = "".join(f"(TARGET.{name} >= Request{name}) && " for name, amount in request.custom if amount)
    requirements = (
        '(TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") && (TARGET.Disk >= RequestDisk) && '
        f"(TARGET.Memory >= RequestMemory) && (TARGET.Cpus >= RequestCpus) && {has}({arrival.requirements})"
    )
    return (
        f'[ MyType = "Job"; Owner = "{arrival.owner}"; JobUniverse = 5; JobStatus = 1; '
        f"RequestCpus = {request.cpus}; RequestMemory = {request.memory}; RequestDisk = {request.disk}; "
        f"{more}Requirements = {requirements}; Rank = 0.0 ]"
    )
