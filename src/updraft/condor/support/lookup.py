"""One job, as `explain` needs it: its state, and the group that it is planned for in."""

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from updraft.condor.access import PoolAccess, environment
from updraft.condor.advalues import has, integer, text
from updraft.condor.demand.conditions import WAITING_OR_RUNNING
from updraft.condor.demand.groups import group, is_suspect, unread_groups
from updraft.condor.demand.naming import names_to_group_by, referred_names, with_terms
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.schedd import locate
from updraft.condor.demand.searching import SearchBudget
from updraft.condor.demand.terms import NAMES
from updraft.condor.demand.unread import Unread
from updraft.condor.process.children import Children
from updraft.condor.written import says
from updraft.core.demand.jobnames import JobName
from updraft.core.model import JobGroup
from updraft.errors import PoolError, UsageError

STATES = {1: "idle", 2: "running", 3: "removed", 4: "completed", 5: "held", 6: "running", 7: "suspended"}
JOBS_READ = 1000
_AT_ONCE = 32
_DIGEST = "JobMaterializeDigestFile"
_FACTORY = ("JobMaterializeNextProcId", "TotalSubmitProcs", "JobMaterializeLimit", "JobMaterializePaused")
_BARE = ("ClusterId", "ProcId", "Owner", "JobStatus")
_PLAIN = (*_BARE, "HoldReason", "RemoteHost", "QDate")


@dataclass(frozen=True, slots=True)
class JobSeen:
    """A job in a schedd's queue."""

    id: Annotated[str, "CLUSTER.PROC."]
    schedd: Annotated[str, "The schedd that has it."]
    owner: Annotated[str, "Its owner."]
    state: Annotated[str, "idle, running, held, suspended, removed or completed."]
    since: Annotated[float, "When it was submitted."]
    hold_reason: str = ""
    host: str = ""


@dataclass(frozen=True, slots=True)
class JobsFound:
    """The jobs that one schedd has under a name, and the groups of those that wait.

    `unmade` is a sentence about late materialisation, where the job will come only then. `silent` are the
    schedds that gave no answer, each with the reason: they may have jobs of this name, too.
    """

    jobs: tuple[JobSeen, ...]
    groups: tuple[JobGroup, ...]
    unmade: str = ""
    silent: tuple[tuple[str, str], ...] = ()


def find_jobs(
    access: PoolAccess,
    schedds: Sequence[str],
    name: JobName,
    deadline: float,
    known: Mapping[str, Unread] | None = None,
) -> JobsFound:
    """The jobs of this name at these schedds, all asked at once, with this deadline in seconds.

    `known` says of each schedd what a look has found that can't be read there (`unread_of`). Raises
    UsageError where the named schedd isn't there, PoolError where nothing was found and one didn't answer.
    """
    asked = [schedd for schedd in schedds if name.may_be_at(schedd)]
    if not asked:
        raise UsageError(f"the pool has no schedd {name.schedd or ''}; it has {', '.join(schedds) or 'none'}")
    folder = Path(tempfile.mkdtemp(prefix="updraft-lookup-"))
    children = Children(environment(access, folder))

    def ask(schedd: str) -> JobsFound:
        unread = (known or {}).get(schedd, {})
        where, limit = access.collector, deadline / 2
        return children.call(f"schedd {schedd}", deadline, read_jobs, where, schedd, name, unread, limit)

    try:
        return gathered(asked, ask)
    finally:
        children.close()
        shutil.rmtree(folder, ignore_errors=True)


def gathered(schedds: Sequence[str], ask: Callable[[str], JobsFound]) -> JobsFound:
    """The jobs of these schedds, asked at once; those for which `ask` raises PoolError are silent.

    Raises PoolError where nothing was found and one of them is silent.
    """
    found: list[JobsFound] = []
    silent: list[tuple[str, str]] = []
    with ThreadPoolExecutor(min(len(schedds), _AT_ONCE), "updraft-lookup") as askers:
        answers = {schedd: askers.submit(ask, schedd) for schedd in schedds}
    for schedd, answer in answers.items():
        try:
            found.append(answer.result())
        except PoolError as error:
            silent.append((schedd, str(error)))
    jobs = tuple(job for one in found for job in one.jobs)
    unmade = next((one.unmade for one in found if one.unmade), "")
    if silent and not jobs and not unmade:
        raise PoolError("; ".join(f"{why} (schedd {schedd})" for schedd, why in silent))
    return JobsFound(jobs, tuple(group for one in found for group in one.groups), unmade, tuple(silent))


def read_jobs(collector: str | None, schedd: str, name: JobName, unread: Unread, limit: float) -> JobsFound:
    """Jobs of one schedd, and their groups as a look would make them. Runs in a child process.

    It searches for jobs that can't be read for `limit` seconds at most.
    """
    import classad2
    import htcondor2

    try:
        source = htcondor2.Schedd(classad2.ClassAd(locate(collector, schedd)))
        return jobs_in(JobQueue(source, unread, budget=SearchBudget(limit)), schedd, name)
    except htcondor2.HTCondorException as error:
        raise PoolError(f"schedd {schedd} did not say what became of the job: {str(error)[:200]}") from error


def jobs_in(queue: JobQueue, schedd: str, name: JobName) -> JobsFound:
    """The same of a queue. Raises what the bindings raise where the schedd doesn't answer."""
    import htcondor2

    jobs = queue.jobs(name.constraint, _BARE, limit=JOBS_READ)
    told = {_id(ad): ad for ad in queue.jobs(name.constraint, _PLAIN, limit=JOBS_READ)}
    jobs = [told.get(_id(ad), ad) for ad in jobs]
    names = names_to_group_by(queue)
    # Grouped by exactly what a look groups by, or the group's key would be another. The constraint of a
    # grouped query sees only what is grouped by, so the job's numbers are added, and taken out again.
    everything = queue.grouped(WAITING_OR_RUNNING, names)
    numbers = ("ClusterId",) if name.proc is None else ("ClusterId", "ProcId")
    wanted = [*with_terms(referred_names(everything, names), NAMES), *numbers]
    waiting = f"{name.numbers} && {says('JobStatus', '1')}"
    queue.look_for_odd(waiting, (*wanted, *NAMES))
    rows = [*queue.grouped(waiting, wanted), *queue.apart(waiting, wanted)]
    whole = htcondor2.QueryOpt.IncludeClusterAd
    factories = [] if jobs else queue.jobs(f"ClusterId == {name.cluster}", (*_FACTORY, _DIGEST), opts=whole)
    owners = {text(ad, "Owner") for ad in jobs}
    unread = [
        one
        for one in unread_groups(schedd, queue)
        if one.first_id == f"{name.cluster}.0" or (is_suspect(one) and one.owner in owners)
    ]
    for row in rows:
        for number in numbers:
            if number in row:
                del row[number]
    unmade = next((sentence for ad in factories if (sentence := _unmade(name, ad))), "")
    groups = (*group(schedd, rows), *unread)
    return JobsFound(tuple(_seen(schedd, ad) for ad in jobs), groups, unmade)


def _unmade(name: JobName, cluster: Any) -> str:
    """When a job that its schedd has yet to make will be there; "" where none of this name is to come."""
    first, total, limit, paused = (integer(cluster, attribute) for attribute in _FACTORY)
    if not has(cluster, _DIGEST) or not first <= (name.proc or first) < total:
        return ""
    why = "its cluster is on hold" if paused else f"{limit} of its cluster are in the queue at one time"
    return f"the schedd has yet to make it: {why if paused or limit else 'its cluster is new'}"


def _id(ad: Any) -> str:
    return f"{integer(ad, 'ClusterId')}.{integer(ad, 'ProcId')}"


def _seen(schedd: str, ad: Any) -> JobSeen:
    return JobSeen(
        id=_id(ad),
        schedd=schedd,
        owner=text(ad, "Owner"),
        state=STATES.get(integer(ad, "JobStatus"), "in an unknown state"),
        since=float(integer(ad, "QDate")),
        hold_reason=text(ad, "HoldReason")[:500],
        host=text(ad, "RemoteHost")[:200],
    )
