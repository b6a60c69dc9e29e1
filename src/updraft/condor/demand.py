"""The demand at one schedd. Runs in a child process.

The schedd groups its jobs itself, by everything that matching reads. What that is comes from its autoclusters
and from what the jobs' own expressions refer to; it is remembered between looks, with the arrival times.
"""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from updraft.condor.finished import Finished, likely, refreshed, said
from updraft.condor.holds import held_by, job_id
from updraft.condor.naming import newest, referred_names, significant_names, terms_said, with_terms
from updraft.condor.request import UndecidableError, request_of, too_large
from updraft.condor.terms import NAMES, terms_of
from updraft.core.kinds import PROBLEM_ATTR
from updraft.core.model import NO_TERMS, JobGroup, Resources, RunningJob, ScheddView

# Universes whose jobs need a startd: vanilla (containers and docker included), java, parallel, vm.
_UNIVERSES = "(JobUniverse == 5 || JobUniverse == 10 || JobUniverse == 11 || JobUniverse == 13)"
_WAITING_OR_RUNNING = f"(JobStatus == 1 || JobStatus == 2) && {_UNIVERSES}"
_FACTORY = (
    *("ClusterId", "QDate", "JobFactoryTotalProcs", "TotalSubmitProcs", "JobMaterializeNextProcId"),
    *("JobMaterializeLimit", "JobFactoryPaused", "JobsPresent"),
)
_BOOKKEEPING = {
    "id",
    "jobids",
    "jobcount",
    "jobstatus",
    "jobprio",
    "servertime",
    *(name.lower() for name in _FACTORY),
}
_RUNNING = (
    *("ClusterId", "ProcId", "Owner", "RemoteHost"),
    *("JobLeaseDuration", "LastJobLeaseRenewal", "JobCurrentStartDate"),
)
MAX_GROUPS = 2_000
_NAMES_FOR_LOOKS = 30
_LOOKS_FOR_HISTORY = 30
_IDS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class First:
    """The first job of a group: when it arrived (0 where that isn't known), and its executable."""

    arrived: float = 0.0
    executable: str = ""


@dataclass(frozen=True, slots=True)
class ScheddMemory:
    """What is remembered of a schedd between looks: where it is, names to group by, groups' first jobs.

    `firsts` has when the first job of each group arrived and what it runs, `finished` the jobs that ended.
    Jobs of clusters up to `newest` have been looked through for terms; those that some have are in `names`.
    """

    location: str = ""
    names: tuple[str, ...] = ()
    looks: int = 0
    firsts: dict[str, First] = field(default_factory=dict)
    finished: Finished = field(default_factory=Finished)
    newest: int = 0


def read_demand(
    collector: str | None, pool: str, schedd: str, running: bool, memory: ScheddMemory
) -> tuple[ScheddView, ScheddMemory]:
    """Idle groups of `schedd`, its running jobs where asked for, and what to remember for the next look.

    `pool` is the pool's name: jobs that are on hold for its controller are told as well.
    """
    import htcondor2

    if not memory.location:
        memory = replace(memory, location=locate(collector, schedd))
    try:
        return _read(pool, schedd, running, memory)
    except htcondor2.HTCondorException:
        # A schedd that was restarted has another address: look once more, then give up.
        location = locate(collector, schedd)
        if location == memory.location:
            raise
        return _read(pool, schedd, running, replace(memory, location=location))


def locate(collector: str | None, schedd: str) -> str:
    """Where this schedd is: its location ad as text."""
    import htcondor2

    return repr(htcondor2.Collector(collector).locate(htcondor2.DaemonType.Schedd, schedd))


def _read(pool: str, schedd: str, running: bool, memory: ScheddMemory) -> tuple[ScheddView, ScheddMemory]:
    import classad2
    import htcondor2

    source = htcondor2.Schedd(classad2.ClassAd(memory.location))
    names, rows, read_up_to = _named_and_grouped(source, memory)
    hidden = source.query(
        f"ProcId is undefined && JobMaterializeDigestFile isnt undefined && {_UNIVERSES}",
        [*with_terms(names, NAMES), *_FACTORY],
        opts=htcondor2.QueryOpt.IncludeClusterAd,
    )
    groups = group(schedd, rows, hidden)
    firsts = _firsts(source, groups, memory.firsts)
    finished = memory.finished if memory.looks % _LOOKS_FOR_HISTORY else refreshed(source, memory.finished)
    view = ScheddView(
        tuple(_timed(g, firsts.get(g.first_id, First()), finished) for g in groups),
        _running_jobs(source, schedd) if running else None,
        sum(g.idle for g in groups),
        sum(_int(row, "JobCount") for row in rows if _int(row, "JobStatus") == 2),
        tuple(map(job_id, source.query(held_by(pool), ["ClusterId", "ProcId"], limit=_IDS_AT_ONCE))),
    )
    return view, ScheddMemory(memory.location, names, memory.looks + 1, firsts, finished, read_up_to)


def _named_and_grouped(source: Any, memory: ScheddMemory) -> tuple[tuple[str, ...], list[Any], int]:
    """The names to group by, the groups, and the newest cluster of which they tell."""
    import htcondor2

    names, looked_through = memory.names, memory.newest
    if not names or memory.looks % _NAMES_FOR_LOOKS == 0:
        known = [name for name in NAMES if name in names]
        names = with_terms(significant_names(source.query(opts=htcondor2.QueryOpt.AutoCluster)), known)
        looked_through = 0  # what a job says can be changed while it waits
    rows = _grouped(source, names)
    wider = with_terms(
        referred_names(rows, names), terms_said(source, _WAITING_OR_RUNNING, looked_through, names)
    )
    if wider != names:
        names, rows = wider, _grouped(source, wider)
    return names, rows, newest(rows)


def _grouped(source: Any, names: Sequence[str]) -> list[Any]:
    import htcondor2

    return list(source.query(_WAITING_OR_RUNNING, list(names), opts=htcondor2.QueryOpt.GroupBy))


def group(schedd: str, rows: Iterable[Any], hidden: Iterable[Any] = ()) -> tuple[JobGroup, ...]:
    """Job groups from the schedd's own grouping (`rows`) and its late-materialised clusters (`hidden`)."""
    groups: dict[str, JobGroup] = {}
    for row in rows:
        waiting = _int(row, "JobStatus") == 1
        count = _int(row, "JobCount")
        _add(groups, schedd, row, idle=count if waiting else 0, running=0 if waiting else count)
    for row in hidden:
        more = unmade(row)
        if more:
            _add(groups, schedd, row, idle=more)
    return _folded(schedd, [g for g in groups.values() if g.idle])


def unmade(cluster: Any) -> int:
    """How many jobs a late-materialised cluster could have besides those that it has made."""
    if _int(cluster, "JobFactoryPaused"):
        return 0
    total = _int(cluster, "JobFactoryTotalProcs") or _int(cluster, "TotalSubmitProcs")
    left = total - _int(cluster, "JobMaterializeNextProcId")
    limit = _int(cluster, "JobMaterializeLimit")
    if limit:  # no more than these are in the queue at a time, idle or running
        left = min(left, limit - _int(cluster, "JobsPresent"))
    return max(0, left)


def _add(groups: dict[str, JobGroup], schedd: str, row: Any, *, idle: int, running: int = 0) -> None:
    fresh = _job_group(schedd, row, idle, running)
    known = groups.get(fresh.key)
    if known is None:
        groups[fresh.key] = fresh
        return
    first = known if known.idle and known.first_id else fresh
    groups[fresh.key] = replace(
        known,
        idle=known.idle + idle,
        running=known.running + running,
        priority=max(known.priority, fresh.priority),
        first_id=first.first_id,
        oldest=first.oldest,
    )


def _job_group(schedd: str, row: Any, idle: int, running: int) -> JobGroup:
    owner, problem = _text(row, "Owner"), too_large(row)
    ad = _job_ad(row)
    request = Resources(1, 1, 1)
    if not problem:
        try:
            request = request_of(ad)
        except UndecidableError as error:
            problem = str(error)
    identity = "\n".join(sorted(f"{name.lower()}={ad.lookup(name)}" for name in ad))
    if problem:
        ad = _problem_ad(problem)
    run_time, longest = said(row)
    first = _text(row, "JobIds").split(" ", 1)[0].split(",", 1)[0]
    return JobGroup(
        key=hashlib.sha256(f"{schedd}\n{owner}\n{identity}".encode()).hexdigest()[:16],
        schedd=schedd,
        owner=owner,
        submitter=_text(row, "AccountingGroup") or _text(row, "User") or owner,
        ad=repr(ad),
        request=request,
        idle=idle,
        running=running,
        oldest=float(_int(row, "QDate")),
        priority=_int(row, "JobPrio"),
        first_id=first or f"{_int(row, 'ClusterId')}.0",
        evaluable=not problem,
        run_time=run_time,
        longest=longest,
        terms=NO_TERMS if problem else terms_of(row),
    )


def _job_ad(row: Any) -> Any:
    import classad2

    ad = classad2.ClassAd()
    for name in row:
        if name.lower() not in _BOOKKEEPING:
            ad[name] = row.lookup(name)
    ad["MyType"] = "Job"
    ad["JobStatus"] = 1
    return ad


def _problem_ad(problem: str) -> Any:
    import classad2

    return classad2.ClassAd({"MyType": "Job", PROBLEM_ATTR: problem})


def _folded(schedd: str, groups: list[JobGroup]) -> tuple[JobGroup, ...]:
    """At most MAX_GROUPS of them; what is beyond that is one group an owner, counted and not evaluated.

    Owners have turns, each with the largest groups first: whoever has thousands takes nobody's place.
    """
    groups.sort(key=lambda g: (-g.idle, g.key))
    if len(groups) > MAX_GROUPS:
        before: Counter[str] = Counter()
        turns = {}
        for one in groups:
            turns[one.key] = before[one.owner]
            before[one.owner] += 1
        groups.sort(key=lambda g: turns[g.key])
    kept = {g.key: g for g in groups[:MAX_GROUPS]}
    text = (
        f"more than {MAX_GROUPS} different groups of jobs wait at this schedd; this one stands for the rest"
    )
    for extra in groups[MAX_GROUPS:]:
        key = hashlib.sha256(f"{schedd}\n{extra.owner}\nrest".encode()).hexdigest()[:16]
        rest = kept.get(key)
        if rest is None:
            kept[key] = replace(extra, key=key, ad=repr(_problem_ad(text)), evaluable=False)
        else:
            kept[key] = replace(rest, idle=rest.idle + extra.idle, running=rest.running + extra.running)
    return tuple(kept.values())


def _firsts(source: Any, groups: Sequence[JobGroup], known: dict[str, First]) -> dict[str, First]:
    """The first job of each group; asked only for ids that aren't known yet."""
    wanted = {g.first_id for g in groups if not g.oldest}
    found = {job: first for job, first in known.items() if job in wanted}
    missing = sorted(job for job in wanted - set(found) if re.fullmatch(r"\d+\.\d+", job))[:_IDS_AT_ONCE]
    if missing:
        clusters, procs = ({job.split(".")[i] for job in missing} for i in (0, 1))
        # The cheap test first: a job id is looked at in a list only where its number within the cluster fits.
        constraint = f"{_one_of('ProcId', procs)} && {_one_of('ClusterId', clusters)}"
        for ad in source.query(constraint, ["ClusterId", "ProcId", "QDate", "Cmd"]):
            job = f"{_int(ad, 'ClusterId')}.{_int(ad, 'ProcId')}"
            if job in wanted:
                found[job] = First(float(_int(ad, "QDate")), _text(ad, "Cmd"))
    return found


def _timed(found: JobGroup, first: First, finished: Finished) -> JobGroup:
    """The group with what is known of time: since when it waits, and how long its jobs run."""
    run_time = likely(found.run_time, found.longest, found.owner, first.executable, finished)
    return replace(found, oldest=first.arrived or found.oldest, run_time=run_time)


def _one_of(name: str, values: Iterable[str]) -> str:
    return f"member({name}, {{{','.join(sorted(values))}}})"


def _running_jobs(source: Any, schedd: str) -> tuple[RunningJob, ...]:
    ads = source.query(f"JobStatus == 2 && {_UNIVERSES}", list(_RUNNING))
    return tuple(running_job(schedd, ad) for ad in ads if "RemoteHost" in ad)


def running_job(schedd: str, ad: Any) -> RunningJob:
    """A running job from its ad. A job without a lease is taken to have one until the end of time."""
    renewed = _int(ad, "LastJobLeaseRenewal") or _int(ad, "JobCurrentStartDate")
    lease = _int(ad, "JobLeaseDuration")
    return RunningJob(
        schedd,
        f"{_int(ad, 'ClusterId')}.{_int(ad, 'ProcId')}",
        _text(ad, "RemoteHost"),
        _text(ad, "Owner"),
        float(renewed + lease) if lease else float("inf"),
        float(_int(ad, "JobCurrentStartDate")),
    )


def _plain(ad: Any, name: str) -> Any:
    """A literal's value; None where the attribute is missing or an expression, which is not evaluated."""
    value = ad.get(name)
    if isinstance(value, str):
        return value
    if isinstance(value, bool | Enum) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return value


def _int(ad: Any, name: str) -> int:
    value = _plain(ad, name)
    return int(value) if isinstance(value, int | float) else 0


def _text(ad: Any, name: str) -> str:
    value = _plain(ad, name)
    return value[:512] if isinstance(value, str) else ""
