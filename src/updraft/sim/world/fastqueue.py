"""The queues of a fast simulation: jobs are numbers in columns, and wait in the lines of their groups."""

import math
from collections import deque
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from updraft.core.demand.runtimes import expected
from updraft.core.model import JobGroup, Known, Resources, RunningJob, ScheddView, Source, Verdict
from updraft.sim.virtual.schedd import LEASE, job_ad
from updraft.sim.workloads.workload import Arrival

if TYPE_CHECKING:
    from updraft.sim.world.fleet import Claim

_HOUR = 3600.0
_ALIKE = math.log(1.1)  # estimates that differ by less than a tenth are one
_FADE_AT = 1000.0

Suspects = AbstractSet[tuple[str, str]]
"""Machines, by cloud and id, of which only the schedds can tell whether jobs still run there."""
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
    """Columns of jobs while they are simulated; times are POSIX seconds, None is never."""

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
    claim: list["Claim | None"] = field(default_factory=list)


class FastQueue:
    """All schedds together. A job waits in a line, is `starting` once matched, runs, and ends."""

    def __init__(self) -> None:
        self.jobs = JobTable()
        self.waiting: dict[str, dict[Group, None]] = {}
        self.idle = 0
        self.idle_cores = 0
        self.running = 0
        self.running_cores = 0
        self.done = 0
        self.known: list[Group] = []
        self._active: dict[int, Claim] = {}
        self._groups: dict[tuple[object, ...], Group] = {}
        self._shown: dict[str, dict[Group, None]] = {}
        self._totals: dict[str, int] = {}
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

    def views(self, now: float, suspects: Suspects | None) -> dict[str, Source[ScheddView]]:
        """What each schedd answers; with `suspects`, also which jobs it believes to run on them and on others
        that don't just work: nobody asks for more."""
        self._relearn()
        found: dict[str, Source[ScheddView]] = {}
        for name in sorted(self._shown):
            view = self._views.get(name)
            if view is None or suspects is not None or view.running is not None:
                view = self._view(name, now, suspects)
                self._views[name] = view
            found[name] = Known(view, now)
        return found

    def groups(self) -> list[JobGroup]:
        """The groups with waiting jobs, as they were last shown."""
        return [g for name in sorted(self._shown) if (v := self._views.get(name)) for g in v.groups]

    def _view(self, name: str, now: float, suspects: Suspects | None) -> ScheddView:
        groups = tuple(group.shown or self.shown(group) for group in self._shown[name])
        return ScheddView(
            groups=groups,
            running=None if suspects is None else tuple(self._running(name, now, suspects)),
            idle_total=sum(group.idle for group in groups),
            running_total=self._totals[name],
        )

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

    def _running(self, name: str, now: float, suspects: Suspects) -> Iterator[RunningJob]:
        groups = self.jobs.group
        for job, claim in self._active.items():
            worker = claim.room.worker
            if worker.open and (worker.cloud, worker.id) not in suspects:
                continue
            if groups[job].schedd == name:
                died = worker.died_at
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
            self.known.append(group)
        return group
