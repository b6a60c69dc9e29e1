"""The attributes by which a schedd groups its jobs: what matching reads, and terms that some of them have.

Each costs the schedd time for every job in its queue, so that terms are among them only where some job has
them: new jobs are looked through for them, and now and then all.
"""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from updraft.condor.finished import RUN_TIME_NAMES
from updraft.condor.terms import NAMES
from updraft.core.terms import OWN_REQUIREMENTS

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


def referred_names(rows: Iterable[Any], names: Sequence[str]) -> tuple[str, ...]:
    """`names`, and what the rows' own expressions refer to in the job besides."""
    texts: dict[tuple[str, str], Any] = {}
    for row in rows:
        for name in row:
            if name in ("Requirements", OWN_REQUIREMENTS) or name.startswith("Request"):
                expression = row.lookup(name)
                texts.setdefault((name, str(expression)), (row, expression))
    found: set[str] = set()
    for row, expression in texts.values():
        found.update(row.externalRefs(expression))
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


def terms_said(source: Any, which: str, after: int, known: Sequence[str]) -> tuple[str, ...]:
    """The terms, besides those `known`, of jobs in clusters after that number; `which` says of what jobs."""
    asked = {name.lower() for name in known}
    unknown = {name.lower(): name for name in NAMES if name.lower() not in asked}
    found: list[str] = []
    while unknown:
        some = " || ".join(f"{name} isnt undefined" for name in unknown.values())
        # The cheap test first: of a job that was looked at before, nothing but its number is read. (In a
        # grouped query the condition could see nothing but what is grouped by.)
        constraint = f"ClusterId > {after} && ({some}) && {which}"
        rows = source.query(constraint, list(unknown.values()), limit=_TERMS_AT_ONCE)
        here = {name.lower() for row in rows for name in row} & unknown.keys()
        if not here:
            break
        found += [unknown.pop(name) for name in sorted(here)]
    return tuple(found)


def newest(rows: Iterable[Any]) -> int:
    """The largest cluster that these groups name among their first and last jobs; 0 without any."""
    texts = (row.get("JobIds") for row in rows)
    return max((int(one) for text in texts if isinstance(text, str) for one in _ID.findall(text)), default=0)
