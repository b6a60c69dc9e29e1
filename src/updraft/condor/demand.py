"""The demand at one schedd. Runs in a child process.

The schedd groups its jobs itself, by everything that matching reads. What that is comes from its autoclusters
and from what the jobs' own expressions refer to; it is remembered between looks, with the arrival times.
"""

import hashlib
import math
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

from updraft.condor.advalues import has, integer, text, value
from updraft.condor.conditions import AT_WORK, FACTORIES, WAITING, WAITING_OR_RUNNING
from updraft.condor.finished import Finished, likely, refreshed, said
from updraft.condor.holds import held_by, job_id
from updraft.condor.naming import bounded, names_to_group_by, newest, referred_names, terms_said, with_terms
from updraft.condor.places import PLACES, running_jobs
from updraft.condor.queue import ALL, UNTOLD, Queue, Unread
from updraft.condor.request import UndecidableError, request_of, too_large
from updraft.condor.searching import Budget, Search
from updraft.condor.terms import NAMES, terms_of
from updraft.core.kinds import problem, problem_ad
from updraft.core.model import NO_TERMS, JobGroup, Resources, ScheddView

FACTORY = (
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
    *(name.lower() for name in FACTORY),
}
_NUMBERS = (
    *("JobFactoryTotalProcs", "TotalSubmitProcs", "JobMaterializeNextProcId", "JobMaterializeLimit"),
    "JobsPresent",
)
_DEEPEST = 4  # grouped questions more in one look; the rest is named at the next
_MOST_JOBS = 1 << 31  # HTCondor's own numbers of jobs end there
MAX_GROUPS = 2_000
_NAMES_FOR_LOOKS = 30
_LOOKS_FOR_HISTORY = 30
_IDS_AT_ONCE = 1_000
_WAITING = f"({WAITING_OR_RUNNING} || {FACTORIES})"
_UNREADABLE = "its ad can't be read by HTCondor's library, which finds it nested too deeply"
_TOO_MANY = "too many of its owner's jobs can't be read"
_SUSPECT = "a job that can't be read is looked for among some, and it isn't told apart from these yet"
_SEARCHING = 0.1  # of the schedd's time
_APART = "its owner has jobs that take long to be asked for: they have their turns, and its own is to come"


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
    `unread` are the clusters that can't be read, `odd` the owners whose jobs are asked for apart (see
    `Queue`). `searches` for the unreadable go on at the next look; among one owner's jobs they rest until the
    monotonic clock says `rest_until`, so that they take a tenth of the schedd's time.
    """

    location: str = ""
    names: tuple[str, ...] = ()
    looks: int = 0
    firsts: dict[str, First] = field(default_factory=dict)
    finished: Finished = field(default_factory=Finished)
    newest: int = 0
    unread: Unread = field(default_factory=dict)
    odd: frozenset[str] = frozenset()
    brought: frozenset[str] = frozenset()
    searches: tuple[Search, ...] = ()
    rest_until: float = 0.0


def read_demand(
    collector: str | None,
    pool: str,
    schedd: str,
    running: bool,
    memory: ScheddMemory,
    limit: float = math.inf,
) -> tuple[ScheddView, ScheddMemory]:
    """Idle groups of `schedd`, its running jobs where asked for, and what to remember for the next look.

    `pool` is the pool's name: jobs that are on hold for its controller are told as well. Those of odd owners
    are counted, as a group that can't be planned for (`pending`); `apart.read_apart` tells what they are. It
    takes `limit` seconds at most to search for jobs that can't be read; what isn't told apart by then is left
    out, and said.
    """
    import htcondor2

    if not memory.location:
        memory = replace(memory, location=locate(collector, schedd))
    try:
        return _read(pool, schedd, running, memory, limit)
    except htcondor2.HTCondorException:
        # A schedd that was restarted has another address: look once more, then give up.
        location = locate(collector, schedd)
        if location == memory.location:
            raise
        return _read(pool, schedd, running, replace(memory, location=location), limit)


def locate(collector: str | None, schedd: str) -> str:
    """Where this schedd is: its location ad as text. Where it has no ad of its own, its users' ads say it."""
    import classad2
    import htcondor2

    source = htcondor2.Collector(collector)
    try:
        return repr(source.locate(htcondor2.DaemonType.Schedd, schedd))
    except htcondor2.HTCondorException:
        wanted = f"ScheddName == {classad2.quote(schedd)}"
        found = source.query(htcondor2.AdType.Submitter, wanted, ["MyAddress", "CondorVersion", "Machine"])
        if not found:
            raise
        ad = found[0]
        ad.update({"MyType": "Scheduler", "Name": schedd})
        return repr(ad)


def _read(
    pool: str, schedd: str, running: bool, memory: ScheddMemory, limit: float
) -> tuple[ScheddView, ScheddMemory]:
    import classad2
    import htcondor2

    source = htcondor2.Schedd(classad2.ClassAd(memory.location))
    return looked(source, pool, schedd, running, memory, limit)


def looked(
    source: Any,
    pool: str,
    schedd: str,
    running: bool,
    memory: ScheddMemory,
    limit: float,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[ScheddView, ScheddMemory]:
    """The same of `source`, a schedd of the bindings."""
    budget = Budget(limit, clock() >= memory.rest_until, clock)
    queue = Queue(source, memory.unread, memory.odd, memory.searches, budget)
    queue.go_on()
    view, memory = _told(queue, pool, schedd, running, memory)
    rest = clock() + budget.spent / _SEARCHING - budget.spent if budget.spent else memory.rest_until
    return view, replace(memory, searches=queue.searches, rest_until=rest)


def _told(
    queue: Queue, pool: str, schedd: str, running: bool, memory: ScheddMemory
) -> tuple[ScheddView, ScheddMemory]:
    import htcondor2

    if memory.looks % _NAMES_FOR_LOOKS == 0:
        queue.try_again((*memory.names, *NAMES, *PLACES))
    names, rows, read_up_to = _named_and_grouped(queue, memory)
    whole = htcondor2.QueryOpt.IncludeClusterAd
    to_come = [*with_terms(names, NAMES), *FACTORY]
    groups = group(schedd, rows, queue.jobs(f"{queue.usual} && {FACTORIES}", to_come, opts=whole))
    firsts = first_jobs(queue, groups, memory.firsts)
    finished = memory.finished
    if memory.looks % _LOOKS_FOR_HISTORY == 0:
        finished = refreshed(queue.source, finished)
    at_work = running_jobs(queue, schedd) if running else None
    apart = queue.waiting_apart()
    groups = (*groups, *unread_groups(schedd, queue), *(pending(schedd, *one) for one in apart))
    view = ScheddView(
        tuple(timed(g, firsts, finished) for g in groups if g.idle),
        at_work,
        sum(g.idle for g in groups),
        sum(integer(row, "JobCount") for row in rows if integer(row, "JobStatus") in AT_WORK)
        + sum(running for _, _, running in apart),
        tuple(map(job_id, queue.source.query(held_by(pool), ["ClusterId", "ProcId"], limit=_IDS_AT_ONCE))),
    )
    looks = memory.looks + 1
    known = ScheddMemory(memory.location, names, looks, firsts, finished, read_up_to, queue.unread)
    said = {name.lower() for row in rows for name in row} if memory.brought else set()
    brought = frozenset(name for name in memory.brought if queue.odd or name.lower() in said)
    return view, replace(known, odd=queue.odd, brought=brought)


def _named_and_grouped(queue: Queue, memory: ScheddMemory) -> tuple[tuple[str, ...], list[Any], int]:
    """The names to group by, the groups, and the newest cluster of which they tell."""
    names, looked_through = memory.names, memory.newest
    renewed = not names or memory.looks % _NAMES_FOR_LOOKS == 0
    if renewed:
        names = with_terms(names_to_group_by(queue), [name for name in NAMES if name in names])
        looked_through = 0  # what a job says can be changed while it waits
    names = bounded(names, memory.brought)
    if not looked_through:
        queue.look_again(_WAITING, (*names, *NAMES))
    if renewed:
        rows = _grouped(queue, names)
    else:
        queue.look_for_odd(_WAITING, (*names, *NAMES), looked_through)
        rows = queue.grouped(WAITING_OR_RUNNING, names)
    wider = with_terms(names, terms_said(queue, WAITING_OR_RUNNING, looked_through, names))
    # What is asked for besides may name more: an expression without all that it names has another value.
    for _ in range(_DEEPEST):
        wider = referred_names(rows, wider)
        if wider == names:
            break
        names, rows = wider, _grouped(queue, wider)
    return names, rows, newest(rows)


def _grouped(queue: Queue, names: Sequence[str]) -> list[Any]:
    """The groups, with names of which nobody has yet been found odd."""
    queue.look_for_odd(FACTORIES, (*names, *NAMES))
    return queue.without_odd(queue.grouped(WAITING_OR_RUNNING, names), WAITING_OR_RUNNING, names)


def pending(schedd: str, owner: str, idle: int, running: int) -> JobGroup:
    """The jobs of an owner whose jobs are asked for apart, as long as no more than their number is known."""
    return left_out(schedd, owner, "", idle, running, _APART, "apart")


def unread_groups(schedd: str, queue: Queue) -> tuple[JobGroup, ...]:
    """The jobs that can't be read, as groups that nothing is planned for: one a cluster, or one an owner."""
    groups: dict[str, JobGroup] = {}
    for found in queue.unread_clusters():
        everything = queue.unread.get(found.owner) == ALL
        why, mark = _UNREADABLE, ""
        if everything:
            why, mark = f"{_TOO_MANY}; of this, {_UNREADABLE}", found.owner
        elif found.suspect:
            why, mark = _SUSPECT, found.owner
        first, idle, at_work = f"{found.cluster}.0", found.idle, found.running
        one = left_out(schedd, found.owner, first, idle, at_work, why, mark)
        last = groups.get(one.key)
        groups[one.key] = one if last is None else _more(last, one)
    return tuple(one for one in groups.values() if one.idle)


def is_suspect(one: JobGroup) -> bool:
    """Whether the group stands for an owner's jobs of which it isn't known yet whether they can be read."""
    return not one.evaluable and problem(one.ad) == _SUSPECT


def unread_of(groups: Iterable[JobGroup]) -> Unread:
    """Which clusters a look has found that can't be read, from the groups that it has made of them."""
    found: dict[str, tuple[int, ...]] = {}
    for one in groups:
        why = "" if one.evaluable else problem(one.ad)
        if why.endswith(_UNREADABLE):
            more = ALL if why.startswith(_TOO_MANY) else (int(one.first_id.partition(".")[0]),)
            known = found.get(one.owner)
            found[one.owner] = ALL if ALL in (known, more) else tuple(sorted({*(known or ()), *more}))
    return found


def group(schedd: str, rows: Iterable[Any], hidden: Iterable[Any] = ()) -> tuple[JobGroup, ...]:
    """Job groups from the schedd's own grouping (`rows`) and its late-materialised clusters (`hidden`)."""
    groups: dict[str, JobGroup] = {}
    for row in rows:
        waiting = integer(row, "JobStatus") == WAITING
        count = integer(row, "JobCount")
        _add(groups, job_group(schedd, row, count if waiting else 0, 0 if waiting else count))
    for row in hidden:
        try:
            more = 1 if has(row, UNTOLD) else unmade(row)
        except UndecidableError as error:
            _add(groups, left_out(schedd, text(row, "Owner"), _first_id(row), 1, 0, str(error)))
        else:
            if more:
                _add(groups, job_group(schedd, row, more, 0))
    return _folded(schedd, [g for g in groups.values() if g.idle])


def unmade(cluster: Any) -> int:
    """How many jobs a late-materialised cluster could have besides those that it has made.

    UndecidableError where its numbers make no sense: their owner may change them.
    """
    if integer(cluster, "JobFactoryPaused"):
        return 0
    total, submitted, following, limit, present = (_jobs_in(cluster, name) for name in _NUMBERS)
    left = (total or submitted) - following
    if limit:  # no more than these are in the queue at a time, idle or running
        left = min(left, limit - present)
    return max(0, left)


def _jobs_in(cluster: Any, name: str) -> int:
    """A number of jobs; 0 where the cluster says none, or says it by an expression."""
    said = value(cluster, name)
    if isinstance(said, bool | Enum) or not isinstance(said, int | float):
        return 0
    if not 0 <= said < _MOST_JOBS:
        raise UndecidableError(f"its {name} is {said:g}, which is no number of jobs")
    return int(said)


def _add(groups: dict[str, JobGroup], fresh: JobGroup) -> None:
    known = groups.get(fresh.key)
    groups[fresh.key] = fresh if known is None else _more(known, fresh)


def _more(known: JobGroup, fresh: JobGroup) -> JobGroup:
    first = known if known.idle and known.first_id else fresh
    return replace(
        known,
        idle=known.idle + fresh.idle,
        running=known.running + fresh.running,
        priority=max(known.priority, fresh.priority),
        first_id=first.first_id,
        oldest=first.oldest,
    )


def job_group(schedd: str, row: Any, idle: int, running: int) -> JobGroup:
    """The group of such a row; one that can't be evaluated, with the reason, where nothing else can be made
    of it. Raises nothing for any row."""
    try:
        return _job_group(schedd, row, idle, running)
    except UndecidableError as error:
        problem = str(error)
    except Exception as error:  # whatever there is in an ad, it costs that ad
        problem = f"its ad can't be read ({type(error).__name__})"
    return left_out(schedd, text(row, "Owner"), _first_id(row), idle, running, problem)


def left_out(
    schedd: str, owner: str, first_id: str, idle: int, running: int, problem: str, mark: str = ""
) -> JobGroup:
    """A group of which nothing is known but whose it is, and why. Those with the same `mark` are one."""
    key = hashlib.sha256(f"{schedd}\n{owner}\n{mark or first_id}\n{problem}".encode()).hexdigest()[:16]
    return JobGroup(
        key=key,
        schedd=schedd,
        owner=owner,
        submitter=owner,
        ad=problem_ad(problem),
        request=Resources(1, 1, 1),
        idle=idle,
        running=running,
        first_id=first_id,
        evaluable=False,
    )


def _first_id(row: Any) -> str:
    """The first job of a row of groups, or of a cluster's own ad."""
    first = text(row, "JobIds").split(" ", 1)[0].split(",", 1)[0]
    return first or f"{integer(row, 'ClusterId')}.0"


def _job_group(schedd: str, row: Any, idle: int, running: int) -> JobGroup:
    owner, problem = text(row, "Owner"), text(row, UNTOLD) or too_large(row)
    ad = _job_ad(row)
    request = Resources(1, 1, 1)
    if not problem:
        try:
            request = request_of(ad)
        except UndecidableError as error:
            problem = str(error)
    identity = "\n".join(sorted(f"{name.lower()}={ad.lookup(name)}" for name in ad))
    run_time, longest = said(row)
    return JobGroup(
        key=hashlib.sha256(f"{schedd}\n{owner}\n{identity}".encode()).hexdigest()[:16],
        schedd=schedd,
        owner=owner,
        submitter=text(row, "AccountingGroup") or text(row, "User") or owner,
        ad=problem_ad(problem) if problem else repr(ad),
        request=request,
        idle=idle,
        running=running,
        oldest=float(integer(row, "QDate")),
        priority=integer(row, "JobPrio"),
        first_id=_first_id(row),
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
    why = f"more than {MAX_GROUPS} different groups of jobs wait at this schedd; this one stands for the rest"
    for extra in groups[MAX_GROUPS:]:
        key = hashlib.sha256(f"{schedd}\n{extra.owner}\nrest".encode()).hexdigest()[:16]
        rest = kept.get(key)
        if rest is None:
            kept[key] = replace(extra, key=key, ad=problem_ad(why), evaluable=False)
        else:
            kept[key] = replace(rest, idle=rest.idle + extra.idle, running=rest.running + extra.running)
    return tuple(kept.values())


def first_jobs(queue: Queue, groups: Sequence[JobGroup], known: dict[str, First]) -> dict[str, First]:
    """The first job of each group; asked only for ids that aren't known yet."""
    wanted = {g.first_id for g in groups if not g.oldest}
    found = {job: first for job, first in known.items() if job in wanted}
    missing = sorted(job for job in wanted - set(found) if re.fullmatch(r"\d+\.\d+", job))[:_IDS_AT_ONCE]
    if missing:
        clusters, procs = ({job.split(".")[i] for job in missing} for i in (0, 1))
        # The cheap test first: a job id is looked at in a list only where its number within the cluster fits.
        constraint = f"{_one_of('ProcId', procs)} && {_one_of('ClusterId', clusters)}"
        for ad in queue.jobs(constraint, ["ClusterId", "ProcId", "QDate", "Cmd"]):
            job = f"{integer(ad, 'ClusterId')}.{integer(ad, 'ProcId')}"
            if job in wanted:
                found[job] = First(float(integer(ad, "QDate")), text(ad, "Cmd"))
    return found


def timed(found: JobGroup, firsts: Mapping[str, First], finished: Finished) -> JobGroup:
    """The group with what is known of time: since when it waits, and how long its jobs run."""
    first = firsts.get(found.first_id, First())
    run_time = likely(found.run_time, found.longest, found.owner, first.executable, finished)
    return replace(found, oldest=first.arrived or found.oldest, run_time=run_time)


def _one_of(name: str, values: Iterable[str]) -> str:
    return f"member({name}, {{{','.join(sorted(values))}}})"
