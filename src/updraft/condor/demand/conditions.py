"""Conditions on a schedd's jobs: which are meant, and what may be asked of which.

Everything goes by what jobs say literally (see `written`).
"""

from collections.abc import Iterable, Sequence

from updraft.condor.demand.finished import RUN_TIME_NAMES
from updraft.condor.demand.terms import NAMES as TERMS
from updraft.condor.written import quoted, said, says, says_plainly
from updraft.core.slots.terms import OWN_REQUIREMENTS

ALWAYS = (
    *("JobStatus", "JobUniverse", "JobPrio", "Owner", "User", "AccountingGroup", "AcctGroup", "Requirements"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "RequireGPUs"),
    *RUN_TIME_NAMES,
)
"""What is asked of every job; terms of their own besides, and whatever else matching reads."""
TOLD = frozenset(name.lower() for name in (*ALWAYS, *TERMS))
"""Of these matching knows what they are for."""
BESIDES = frozenset({"jobprio", "accountinggroup", "acctgroup", *(name.lower() for name in RUN_TIME_NAMES)})
"""What a job can be planned for without."""
REQUESTS = ("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "RequireGPUs")
BROUGHT = frozenset(name.lower() for name in (*REQUESTS, OWN_REQUIREMENTS))
"""What is found by what the requirements refer to."""
WALKED = frozenset({"requirements", "rank", "concurrencylimits", "flockto"})
"""What every schedd looks through by itself, in each job; with them it sends what they refer to."""
# What requests usually refer to, besides other attributes that are asked for: numbers, and one made of them.
_LEAVES = ("DiskUsage", "ImageSize", "NumJobStarts", "ResidentSetSize", "TransferInputSizeMB")
_MADE_OF_LEAVES = ("MemoryUsage", "RequestCpus", "RequestGPUs")

# Universes whose jobs need a startd: vanilla (containers and docker included), java, parallel, vm.
UNIVERSES = "(JobUniverse == 5 || JobUniverse == 10 || JobUniverse == 11 || JobUniverse == 13)"
# Running jobs may be suspended (7), or send their output (6; 23.9 and 25.14 leave it at 2 then).
WAITING, AT_WORK = 1, (2, 6, 7)
WAITING_OR_RUNNING = f"{says('JobStatus', *map(str, (WAITING, *AT_WORK)))} && {UNIVERSES}"
# A job has a RemoteHost from the start of its shadow to the shadow's end, also while it is removed or held.
# (The lists of a parallel job's hosts stay for longer.)
RUNNING = f"{says('JobStatus', '2', '3', '4', '5', '6', '7')} && {said('RemoteHost')} && {UNIVERSES}"
FACTORIES = f"ProcId is undefined && {said('JobMaterializeDigestFile')} && {UNIVERSES}"

LITERAL = frozenset({"owner", "user", "jobuniverse", "clusterid", "procid"})
"""What no job says otherwise than its schedd has written it."""
_MOST_PROCS = 10**9  # of a cluster


def plain(names: Sequence[str], strict: bool = False) -> str:
    """The condition (`is true`) that these attributes of a job refer to nothing that nobody knows.

    What matching doesn't know by name refers to nothing; requests and terms may refer to that, and to what is
    usual, which is tested, too. None of them may where it is `strict`.
    """
    asked = {name.lower(): name for name in names if name.lower() not in WALKED | LITERAL}
    made = {name.lower(): name for name in _MADE_OF_LEAVES}
    told = [low for low in asked if low in TOLD or low in made or low.startswith("request")]
    if strict or not told:
        return says_plainly(asked.values())
    leaves = {name.lower(): name for name in _LEAVES} | asked
    return says_plainly(
        [leaves[low] for low in leaves if low not in told],
        made.values(),
        [asked[low] for low in told if low not in made],
    )


def numbered(ids: Iterable[tuple[int, int]]) -> str:
    """The condition that it is one of these jobs, or clusters as job 0; the cheap tests first."""
    clusters = [cluster for cluster, _ in ids]
    numbers = ",".join(str(cluster * _MOST_PROCS + proc) for cluster, proc in sorted(ids))
    between = f"ClusterId >= {min(clusters, default=0)} && ClusterId <= {max(clusters, default=-1)}"
    return f"{between} && member(ClusterId * {_MOST_PROCS} + (ProcId ?: 0), {{{numbers}}})"


def clusters_of(owner: str, clusters: Sequence[int]) -> str:
    """The condition that it is one of these clusters of this owner, or any of his where none is named."""
    mine = f"Owner == {quoted(owner)}"
    return f"{mine} && member(ClusterId, {{{','.join(map(str, clusters))}}})" if clusters else mine


def of(owners: Iterable[str]) -> str:
    """The condition that it is one of these owners'; of none without any."""
    return owner_in(sorted(owners)) if owners else "false"


def owner_in(owners: Sequence[str]) -> str:
    """The condition that it is one of these owners'."""
    return f"member(Owner, {{{','.join(map(quoted, owners))}}})"
