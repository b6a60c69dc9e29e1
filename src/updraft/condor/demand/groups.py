"""Job groups from a schedd's rows, and those that stand for jobs of which nothing is planned.

Whatever there is in a row, it costs that row: a group that can't be evaluated says why.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from enum import Enum
from typing import Any

from updraft.condor.advalues import has, integer, text, value
from updraft.condor.demand.conditions import WAITING
from updraft.condor.demand.finished import said
from updraft.condor.demand.queue import UNTOLD, JobQueue
from updraft.condor.demand.request import UndecidableError, request_of, too_large
from updraft.condor.demand.terms import terms_of
from updraft.condor.demand.unread import ALL, Unread
from updraft.core.model import NO_TERMS, JobGroup, Resources
from updraft.core.slots.kinds import problem, problem_ad

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
_MOST_JOBS = 1 << 31  # HTCondor's own numbers of jobs end there
MAX_GROUPS = 2_000
_UNREADABLE = (
    "its ad can't be read: HTCondor's library finds it nested too deeply, or its schedd takes too long"
)
_TOO_MANY = "too many of its owner's jobs can't be read"
_SUSPECT = "a job that can't be read is looked for among some, and it isn't told apart from these yet"
_APART = "its owner has jobs that take long to be asked for: they have their turns, and its own is to come"


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


def _first_id(row: Any) -> str:
    """The first job of a row of groups, or of a cluster's own ad."""
    first = text(row, "JobIds").split(" ", 1)[0].split(",", 1)[0]
    return first or f"{integer(row, 'ClusterId')}.0"


def _job_group(schedd: str, row: Any, idle: int, running: int) -> JobGroup:
    owner, problem = text(row, "Owner"), text(row, UNTOLD) or too_large(row)
    user = text(row, "User") or owner  # the schedd writes both, and refuses what a job says of them
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
        submitter=text(row, "AccountingGroup") or user,
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
        user=user,
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


# ---------------------------------------------------------------------------- those that can't be planned for


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


def pending(schedd: str, owner: str, idle: int, running: int) -> JobGroup:
    """The jobs of an owner whose jobs are asked for apart, as long as no more than their number is known."""
    return left_out(schedd, owner, "", idle, running, _APART, "apart")


def unread_groups(schedd: str, queue: JobQueue) -> tuple[JobGroup, ...]:
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
        _add(groups, one)
    return tuple(one for one in groups.values() if one.idle)


def is_suspect(one: JobGroup) -> bool:
    """Whether the group stands for an owner's jobs of which it isn't known yet whether they can be read.

    It is known, as in `unread_of`, by what it says of itself.
    """
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
