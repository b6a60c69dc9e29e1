"""The demand at one schedd. Runs in a child process.

The schedd groups its jobs itself, by everything that matching reads. What that is comes from its autoclusters
and from what the jobs' own expressions refer to; it is remembered between looks, with the arrival times.
"""

import math
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from updraft.condor.advalues import integer, text
from updraft.condor.demand.conditions import AT_WORK, FACTORIES, WAITING_OR_RUNNING
from updraft.condor.demand.finished import Finished, likely, refreshed
from updraft.condor.demand.groups import FACTORY, group, pending, unread_groups
from updraft.condor.demand.holds import held_by, job_id
from updraft.condor.demand.naming import (
    bounded,
    names_to_group_by,
    newest,
    referred_names,
    terms_said,
    with_terms,
)
from updraft.condor.demand.places import PLACES, running_jobs
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.searching import AdSearch, SearchBudget
from updraft.condor.demand.terms import NAMES
from updraft.condor.demand.unread import Unread, answered_within
from updraft.core.model import JobGroup, ScheddView

_DEEPEST = 4  # grouped questions more in one look; the rest is named at the next
_NAMES_FOR_LOOKS = 30
_LOOKS_FOR_HISTORY = 30
_IDS_AT_ONCE = 1_000
_WAITING = f"({WAITING_OR_RUNNING} || {FACTORIES})"
_SEARCHING = 0.1  # of the schedd's time


@dataclass(frozen=True, slots=True)
class First:
    """The first job of a group: when it arrived (0 where that isn't known), and its executable."""

    arrived: float = 0.0
    executable: str = ""


@dataclass(frozen=True, slots=True)
class ScheddMemory:
    """The memory of a schedd between looks: where it is, names to group by, groups' first jobs.

    `firsts` has when the first job of each group arrived and what it runs, `finished` the jobs that ended.
    Jobs of clusters up to `newest` have been looked through for terms; those that some have are in `names`.
    `unread` are the clusters that can't be read, `odd` the owners whose jobs are asked for apart (see
    `JobQueue`). `searches` for the unreadable go on at the next look; among one owner's jobs they rest until
    the monotonic clock says `rest_until`, so that they take a tenth of the schedd's time. The next look is
    `careful` where the last one had no answer in time.
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
    searches: tuple[AdSearch, ...] = ()
    rest_until: float = 0.0
    careful: bool = False


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
    out, and said. A careful look waits no longer than that for any answer: a question that takes longer
    failed for somebody's jobs, too.
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
    budget = SearchBudget(limit, clock() >= memory.rest_until, clock)
    queue = JobQueue(source, memory.unread, memory.odd, memory.searches, budget)
    with answered_within(limit if memory.careful else math.inf):
        queue.go_on()
        view, memory = _told(queue, pool, schedd, running, memory)
    rest = clock() + budget.spent / _SEARCHING - budget.spent if budget.spent else memory.rest_until
    return view, replace(memory, searches=queue.searches, rest_until=rest)


def _told(
    queue: JobQueue, pool: str, schedd: str, running: bool, memory: ScheddMemory
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


def _named_and_grouped(queue: JobQueue, memory: ScheddMemory) -> tuple[tuple[str, ...], list[Any], int]:
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
        if memory.careful:  # what costs most may be the jobs that are to be asked for apart
            queue.look_for_odd(WAITING_OR_RUNNING, (*names, *NAMES))
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


def _grouped(queue: JobQueue, names: Sequence[str]) -> list[Any]:
    """The groups, with names of which nobody has yet been found odd."""
    queue.look_for_odd(FACTORIES, (*names, *NAMES))
    return queue.without_odd(queue.grouped(WAITING_OR_RUNNING, names), WAITING_OR_RUNNING, names)


def first_jobs(queue: JobQueue, groups: Sequence[JobGroup], known: dict[str, First]) -> dict[str, First]:
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
