"""The attributes by which a schedd groups its jobs: what matching reads, and terms that some of them have.

Each costs the schedd time for every job in its queue, so that terms are among them only where some job has
them: new jobs are looked through for them, and now and then all.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from updraft.condor.advalues import integer, text
from updraft.condor.demand.conditions import ALWAYS, WAITING_OR_RUNNING
from updraft.condor.demand.queue import JobQueue
from updraft.condor.demand.references import references
from updraft.condor.demand.terms import NAMES
from updraft.condor.written import said

MAX_NAMES = 250
_IDS = ("ClusterId", "ProcId")
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")
_ID = re.compile(r"(\d+)\.\d+")


def significant_names(autoclusters: Iterable[Any]) -> frozenset[str]:
    """The attributes by which the schedd tells jobs apart for matching."""
    found = {name for ad in autoclusters for name in ad if _NAME.match(name)}
    return frozenset(found - {"AutoClusterId", "JobCount", "JobIds", "MyType", "TargetType"})


def stated_names(rows: Iterable[Any]) -> frozenset[str]:
    """The same from what the schedd writes into each job, and its owner can change: what that was told apart
    by."""
    return frozenset(name for row in rows for name in text(row, "AutoClusterAttrs").split(","))


def names_to_group_by(queue: JobQueue) -> tuple[str, ...]:
    """The attributes by which the schedd tells jobs apart, and those needed anyway."""
    import htcondor2

    try:
        own = significant_names(queue.source.query(opts=htcondor2.QueryOpt.AutoCluster))
    except htcondor2.HTCondorException:
        # One of its groups can't be read, and they can't be told apart by owner; each job says it as well.
        rows = queue.grouped(WAITING_OR_RUNNING, ("JobStatus", "JobUniverse", "Owner", "AutoClusterAttrs"))
        return bounded(ALWAYS, stated_names(rows))
    return bounded(ALWAYS, own)


def referred_names(rows: Iterable[Any], names: Sequence[str]) -> tuple[str, ...]:
    """`names`, and what the rows' own expressions refer to in the job besides."""
    found: set[str] = set()
    for row in rows:
        found |= references(row).outside
    return bounded(names, found)


def bounded(first: Sequence[str], more: Iterable[str]) -> tuple[str, ...]:
    """`first` and those of `more` that are plain attribute names and not yet in it; MAX_NAMES at most."""
    known = {name.lower() for name in first}
    fresh = sorted(n for n in more if _NAME.match(n) and n.lower() not in known)
    unique = {n.lower(): n for n in reversed(fresh)}
    return (*first, *(unique[k] for k in sorted(unique)))[:MAX_NAMES]


def with_terms(names: Sequence[str], terms: Iterable[str]) -> tuple[str, ...]:
    """`names` with these terms, which no number of others keeps out; MAX_NAMES at most."""
    known = {name.lower() for name in names}
    missing = [name for name in terms if name.lower() not in known]
    return (*missing, *names)[:MAX_NAMES] if missing else tuple(names)


def terms_said(queue: JobQueue, which: str, after: int, known: Sequence[str]) -> tuple[str, ...]:
    """The terms, besides those `known`, of jobs in clusters after that number; `which` says of what jobs."""
    asked = {name.lower() for name in known}
    unknown = {name.lower(): name for name in NAMES if name.lower() not in asked}
    found: list[str] = []
    while unknown:
        some = " || ".join(map(said, unknown.values()))
        # The cheap test first: of a job that was looked at before, nothing but its number is read. (In a
        # grouped query the condition could see nothing but what is grouped by.)
        rows = queue.jobs(f"ClusterId > {after} && ({some}) && {which}", _IDS, limit=1)
        if not rows:
            break
        # Which it says is asked for one by one: their values could be anything, and come with more.
        one = " && ".join(f"{name} == {integer(rows[0], name)}" for name in _IDS)
        here = [name for name, own in unknown.items() if queue.jobs(f"{one} && {said(own)}", _IDS, limit=1)]
        if not here:
            break  # it is there no more
        found += [unknown.pop(name) for name in sorted(here)]
    return tuple(found)


def newest(rows: Iterable[Any]) -> int:
    """The largest cluster that these groups name among their first and last jobs; 0 without any."""
    texts = (row.get("JobIds") for row in rows)
    return max((int(one) for ids in texts if isinstance(ids, str) for one in _ID.findall(ids)), default=0)
