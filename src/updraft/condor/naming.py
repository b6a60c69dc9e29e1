"""The attributes by which a schedd groups its jobs: what matching reads, and terms that some of them have.

Each costs the schedd time for every job in its queue, so that terms are among them only where some job has
them: new jobs are looked through for them, and now and then all.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from updraft.condor.advalues import text
from updraft.condor.finished import RUN_TIME_NAMES
from updraft.condor.queue import Queue
from updraft.condor.references import references
from updraft.condor.terms import NAMES

MAX_NAMES = 250
_TERMS_AT_ONCE = 100
_ALWAYS = (
    *("JobStatus", "JobUniverse", "JobPrio", "Owner", "User", "AccountingGroup", "AcctGroup", "Requirements"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "RequireGPUs"),
    *RUN_TIME_NAMES,
)
_NAME = re.compile(r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")
_ID = re.compile(r"(\d+)\.\d+")


def significant_names(autoclusters: Iterable[Any]) -> tuple[str, ...]:
    """The attributes by which the schedd tells jobs apart for matching, and those that we need anyway."""
    found = {name for ad in autoclusters for name in ad}
    found -= {"AutoClusterId", "JobCount", "JobIds", "MyType", "TargetType"}
    return bounded(_ALWAYS, found)


def stated_names(rows: Iterable[Any]) -> tuple[str, ...]:
    """The same from what the schedd writes into each job: the names of what it was told apart by."""
    return bounded(_ALWAYS, {name for row in rows for name in text(row, "AutoClusterAttrs").split(",")})


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


def terms_said(queue: Queue, which: str, after: int, known: Sequence[str]) -> tuple[str, ...]:
    """The terms, besides those `known`, of jobs in clusters after that number; `which` says of what jobs."""
    asked = {name.lower() for name in known}
    unknown = {name.lower(): name for name in NAMES if name.lower() not in asked}
    found: list[str] = []
    while unknown:
        some = " || ".join(f"{name} isnt undefined" for name in unknown.values())
        # The cheap test first: of a job that was looked at before, nothing but its number is read. (In a
        # grouped query the condition could see nothing but what is grouped by.)
        constraint = f"ClusterId > {after} && ({some}) && {which}"
        rows = queue.jobs(constraint, list(unknown.values()), limit=_TERMS_AT_ONCE)
        here = {name.lower() for row in rows for name in row} & unknown.keys()
        if not here:
            break
        found += [unknown.pop(name) for name in sorted(here)]
    return tuple(found)


def newest(rows: Iterable[Any]) -> int:
    """The largest cluster that these groups name among their first and last jobs; 0 without any."""
    texts = (row.get("JobIds") for row in rows)
    return max((int(one) for ids in texts if isinstance(ids, str) for one in _ID.findall(ids)), default=0)
