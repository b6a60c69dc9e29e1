"""A schedd's queue, asked so that a job whose ad can't be read costs itself. Runs in a child process.

HTCondor's library gives a whole answer up for one ad in it that it can't read: an expression that one release
of a schedd takes can be nested too deeply for another's library. Which jobs those are is found by halves,
first whose they are and then which clusters, and they are asked for no more. So the search is paid for once.

And what a stranger wrote is evaluated by nobody (see `written`): conditions go by what jobs say literally,
and jobs are grouped only by what refers to nothing, or to attributes of which that is known.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from updraft.condor.advalues import integer, text
from updraft.condor.finished import RUN_TIME_NAMES
from updraft.condor.terms import NAMES as TERMS
from updraft.condor.written import quoted, said, says, says_plainly
from updraft.core.sparing import failing
from updraft.core.terms import OWN_REQUIREMENTS

T = TypeVar("T")

ALWAYS = (
    *("JobStatus", "JobUniverse", "JobPrio", "Owner", "User", "AccountingGroup", "AcctGroup", "Requirements"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "RequireGPUs"),
    *RUN_TIME_NAMES,
)
"""What is asked of every job; terms of their own besides, and whatever else matching reads."""
_TOLD = frozenset(name.lower() for name in (*ALWAYS, *TERMS))
# What a job can be planned for without.
_BESIDES = frozenset({"jobprio", "accountinggroup", "acctgroup", *(name.lower() for name in RUN_TIME_NAMES)})
_REQUESTS = ("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "RequireGPUs")
_BROUGHT = frozenset(name.lower() for name in (*_REQUESTS, OWN_REQUIREMENTS))
# What every schedd looks through by itself, in each job; with them it sends what they refer to.
_WALKED = frozenset({"requirements", "rank", "concurrencylimits", "flockto"})
# What requests usually refer to, besides other attributes that are asked for: numbers, and one made of them.
_LEAVES = ("DiskUsage", "ImageSize", "NumJobStarts", "ResidentSetSize", "TransferInputSizeMB")
_MADE_OF_LEAVES = ("MemoryUsage", "RequestCpus", "RequestGPUs")

# Universes whose jobs need a startd: vanilla (containers and docker included), java, parallel, vm.
UNIVERSES = "(JobUniverse == 5 || JobUniverse == 10 || JobUniverse == 11 || JobUniverse == 13)"
# Running jobs may be suspended, or send their output.
WAITING, AT_WORK = 1, (2, 6, 7)
WAITING_OR_RUNNING = f"{says('JobStatus', *map(str, (WAITING, *AT_WORK)))} && {UNIVERSES}"
# A job has a RemoteHost from the start of its shadow to the shadow's end, also while it is removed or held.
# (The lists of a parallel job's hosts stay for longer.)
RUNNING = f"{says('JobStatus', '2', '3', '4', '5', '6', '7')} && {said('RemoteHost')} && {UNIVERSES}"
FACTORIES = f"ProcId is undefined && {said('JobMaterializeDigestFile')} && {UNIVERSES}"

_UNFINISHED = f"{says('JobStatus', '1', '2', '3', '5', '6', '7')} && {UNIVERSES}"
_STATUS = ("JobStatus", "JobUniverse")
# One that has more unread clusters than are named in a question loses all of them.
_CLUSTERS = 100
# Jobs of somebody who has one that can't be read are asked for singly, up to so many at a time. Whoever had
# that many has had his turn, and the others are asked for: so often at most.
_SINGLY = 2_000
_TURNS = 5
_OWNERS_AT_ONCE = 100
# What no job says otherwise than its schedd has written it.
_LITERAL = frozenset({"owner", "user", "jobuniverse", "clusterid", "procid"})
_IDS = ("ClusterId", "ProcId")
_MOST_PROCS = 10**9  # of a cluster
UNTOLD = "UpdraftUntold"
"""Set by us, in the ad of a job of which nothing else could be asked: why."""
_NOT_ITS_OWN = {*_IDS, UNTOLD, "MyType", "TargetType", "ServerTime"}
_WHY_UNTOLD = "what it wants of its machine can't be asked for: write plain numbers and texts there"

ALL: tuple[int, ...] = ()
"""In place of clusters: every one of this owner."""

Unread = Mapping[str, tuple[int, ...]]
"""Clusters that can't be read, by their owner; `ALL` of them."""


@dataclass(frozen=True, slots=True)
class UnreadCluster:
    """A cluster that can't be read: how many of its jobs wait and run, as far as its schedd has made them."""

    cluster: int
    owner: str
    idle: int
    running: int


class Queue:
    """What `source`, a schedd of the bindings, is asked. `unread` is known from earlier looks, and grows.

    `odd` are the owners of jobs that refer to what nobody knows; `brought` is what the requirements of such
    jobs have brought along.
    """

    def __init__(self, source: Any, unread: Unread, odd: Iterable[str] = ()) -> None:
        self.source = source
        self.unread = dict(unread)
        self.odd = frozenset(odd)
        self.brought: frozenset[str] = frozenset()

    def jobs(self, constraint: str, names: Sequence[str], strict: bool = False, **how: Any) -> list[Any]:
        """The jobs that can be read, and clusters where `how` includes them, with these attributes.

        Not those for which the schedd would have to look through one of these: it sends with an attribute all
        that this refers to. `strict` is as in `plain`.
        """
        asked = f"({constraint}) && {plain(names, strict)} is true"

        def ask(which: str) -> list[Any]:
            return list(self.source.query(f"{which} && {asked}", list(names), **how))

        return self._asked(ask, names, self._readable)

    def grouped(self, constraint: str, names: Sequence[str]) -> list[Any]:
        """Jobs that can be read in the schedd's own groups by `names`, Owner among them.

        A constraint on groups sees nothing but what is grouped by: of an owner of whom something can't be
        read, the other jobs come singly, as groups of one. So do the jobs that would cost the schedd too much
        to group, of owners that are known to have such.
        """
        import htcondor2

        asked_of = f"({constraint}) && {plain(names)} is true"

        def ask(which: str) -> list[Any]:
            asked, by = f"{which} && {asked_of}", htcondor2.QueryOpt.GroupBy
            return list(self.source.query(asked, list(names), opts=by))

        rows = self._asked(ask, names, lambda: f"!{_of(self.unread)}")
        singles = self.odd_jobs(constraint, names)
        self.brought = frozenset(name for row in singles for name in row) - _NOT_ITS_OWN
        if self.unread:
            singles += self._singly(f"{_of(self.unread)} && ({constraint})", [*names, *_IDS])
        return [*rows, *map(_group_of_one, singles)]

    def odd_jobs(
        self, constraint: str, names: Sequence[str], more: Sequence[str] = (), **how: Any
    ) -> list[Any]:
        """Jobs that refer to what nobody knows, each with as much of these as is safe.

        Its requirements bring along all that they refer to. Priority, accounting group and times count as not
        said where they can't be asked for; without the rest, and without all of `more`, nothing is known of
        it.
        """
        if not self.odd:
            return []
        apart = f"{_of(self.odd)} && ({constraint})"
        odd = f"{apart} && {plain([*names, *more])} isnt true"
        left = {_id(row): row for row in self._singly(odd, ["Owner", "JobUniverse", *_IDS], **how)}
        kept = [name for name in names if name.lower() in _WALKED | _LITERAL]
        told = [name for name in names if name.lower() in _TOLD - _WALKED]
        least = [name for name in told if name.lower() not in _BESIDES]
        terms = [name for name in least if name.lower() not in _BROUGHT]
        rows: list[Any] = []
        # Of those that are known to be odd nothing is tested twice.
        for strict, some in ((False, told), (False, least), (True, terms)):
            which = f"{apart} && {_numbered(left)}"
            found = self.jobs(which, [*kept, *some, *more, *_IDS], strict, **how) if left else []
            if strict:
                found = self._with_requests(apart, found, **how)
            rows += [row for row in found if left.pop(_id(row), None) is not None]
        return [*rows, *map(_untold, left.values())]

    def _with_requests(self, which: str, rows: list[Any], **how: Any) -> list[Any]:
        """These of the jobs, with requests that their requirements didn't bring; untold without them."""
        for name in _REQUESTS:
            lacking = {_id(row): row for row in rows if name not in row}
            if not lacking:
                continue
            saying = f"{which} && {_numbered(lacking)} && {said(name)}"
            asked = {_id(row): row for row in self.jobs(saying, [name, *_IDS], strict=True, **how)}
            for one in map(_id, self.jobs(saying, _IDS, **how)):
                if one in asked and one in lacking:
                    lacking[one][name] = asked[one].lookup(name)
                elif one in lacking:
                    _untold(lacking[one])
        return rows

    def look_for_odd(self, which: str, names: Sequence[str], after: int) -> None:
        """Learn who has jobs, in clusters after that number, that are not to be grouped by these names."""
        import htcondor2

        if not after:
            self.odd = frozenset()
        whole = htcondor2.QueryOpt.IncludeClusterAd
        while len(self.odd) < _OWNERS_AT_ONCE:
            # The cheap tests first.
            cheap = f"ClusterId > {after} && {which} && !{_of(self.odd)}"
            rows = self.source.query(
                f"{cheap} && {plain(names)} isnt true", ["Owner"], limit=_OWNERS_AT_ONCE, opts=whole
            )
            owners = {text(row, "Owner") for row in rows}
            if owners <= self.odd:  # none, or one whose name isn't read as it is written
                break
            self.odd |= owners

    def _singly(self, which: str, names: Sequence[str], **how: Any) -> list[Any]:
        rows: list[Any] = []
        for _ in range(_TURNS):
            served = {text(row, "Owner") for row in rows}
            more = self.jobs(f"{which} && !{_of(served)}", names, limit=_SINGLY, **how)
            rows += more
            if len(more) < _SINGLY:
                break
        return rows

    def try_again(self, names: Sequence[str]) -> None:
        """Forget clusters of which these attributes can be read now: jobs can be mended while they wait."""
        for owner, clusters in list(self.unread.items()):

            def some(mine: Sequence[int], owner: str = owner) -> bool:
                return self._unreadable_among(_clusters_of(owner, mine), names)

            left = tuple(failing(clusters, some))
            if clusters != ALL and not left:
                del self.unread[owner]
            elif clusters != ALL:
                self.unread[owner] = left

    def unread_clusters(self) -> list[UnreadCluster]:
        """Those that wait or run now. What is no longer in the queue is forgotten."""
        if not self.unread:
            return []
        which = f"({self._unreadable()})"
        found: dict[int, UnreadCluster] = {}
        for row in self._counted(which):
            # Of a cluster whose jobs are still to be made nobody knows how many: it counts as one that waits.
            made, status = integer(row, "JobCount"), integer(row, "JobStatus")
            cluster = integer(row, "ClusterId")
            last = found.get(cluster) or UnreadCluster(cluster, text(row, "Owner"), 0, 0)
            idle = max(last.idle, 1) if not made else last.idle + (made if status == WAITING else 0)
            running = last.running + (made if status in AT_WORK else 0)
            found[cluster] = UnreadCluster(cluster, last.owner, idle, running)
        still = {one.owner for one in found.values()}
        self.unread = {
            owner: clusters if clusters == ALL else tuple(one for one in clusters if one in found)
            for owner, clusters in self.unread.items()
            if owner in still
        }
        return list(found.values())

    def running_unread(self, names: Sequence[str]) -> list[Any]:
        """Running jobs that can't be read, with these attributes, which the schedd itself has written."""
        if not self.unread:
            return []
        asked = f"({self._unreadable()}) && {RUNNING} && {plain(names)} is true"
        return list(self.source.query(asked, list(names)))

    # -------------------------------------------------------------------------------------- the search

    def _asked(
        self, ask: Callable[[str], list[Any]], names: Sequence[str], readable: Callable[[], str]
    ) -> list[Any]:
        import htcondor2

        try:
            return ask(readable())
        except htcondor2.HTCondorException:
            if not self._search(ask, names, readable):
                raise
        return ask(readable())

    def _search(
        self, ask: Callable[[str], list[Any]], names: Sequence[str], readable: Callable[[], str]
    ) -> bool:
        """Whether a cluster was found of which `names` can't be read; raises where nothing can be asked."""
        clusters: dict[str, set[int]] = {}
        for row in self._counted(readable()):
            clusters.setdefault(text(row, "Owner"), set()).add(integer(row, "ClusterId"))

        def some_owners(owners: Sequence[str]) -> bool:
            return self._fails(lambda: ask(f"{_owner_in(owners)} && {readable()}"))

        def some_clusters(mine: Sequence[int]) -> bool:
            which = f"ClusterId >= {mine[0]} && ClusterId <= {mine[-1]} && Owner == {quoted(owner)}"
            return self._unreadable_among(which, names)

        found = False
        for owner in failing(sorted(clusters), some_owners, known=True):
            bad = failing(sorted(clusters[owner]), some_clusters)
            if bad:
                both = tuple(sorted({*self.unread.get(owner, ()), *bad}))
                self.unread[owner] = both if len(both) <= _CLUSTERS else ALL
                found = True
        return found

    def _unreadable_among(self, which: str, names: Sequence[str]) -> bool:
        import htcondor2

        # The cheap tests first: nothing else is read of all the other jobs.
        some = f"({WAITING_OR_RUNNING} || {RUNNING} || {FACTORIES})"
        constraint = f"{which} && {some} && {plain(names)} is true"
        whole = htcondor2.QueryOpt.IncludeClusterAd
        return self._fails(lambda: self.source.query(constraint, list(names), opts=whole))

    def _fails(self, ask: Callable[[], object]) -> bool:
        import htcondor2

        try:
            ask()
        except htcondor2.HTCondorException:
            self.source.query("false", ["ClusterId"])  # raises where it is the schedd that fails
            return True
        return False

    def _counted(self, which: str) -> list[Any]:
        """Owner and cluster of what has not ended, grouped and counted, and of late-materialised ones.

        Groups don't say where they run: one that is removed or held may run yet.
        """
        import htcondor2

        names, options = ["Owner", "ClusterId", *_STATUS], htcondor2.QueryOpt
        made = self.source.query(f"{which} && {_UNFINISHED}", names, opts=options.GroupBy)
        to_come = self.source.query(
            f"{which} && {FACTORIES}", ["Owner", "ClusterId"], opts=options.IncludeClusterAd
        )
        return [*made, *to_come]

    def _unreadable(self) -> str:
        return " || ".join(_clusters_of(*one) for one in sorted(self.unread.items()))

    def _readable(self) -> str:
        return f"!({self._unreadable()})" if self.unread else "true"


def plain(names: Sequence[str], strict: bool = False) -> str:
    """The condition (`is true`) that these attributes of a job refer to nothing that nobody knows.

    What matching doesn't know by name refers to nothing; requests and terms may refer to that, and to what is
    usual, which is tested, too. None of them may where it is `strict`.
    """
    asked = {name.lower(): name for name in names if name.lower() not in _WALKED | _LITERAL}
    made = {name.lower(): name for name in _MADE_OF_LEAVES}
    told = [low for low in asked if low in _TOLD or low in made or low.startswith("request")]
    if strict or not told:
        return says_plainly(asked.values())
    leaves = {name.lower(): name for name in _LEAVES} | asked
    return says_plainly(
        [leaves[low] for low in leaves if low not in told],
        made.values(),
        [asked[low] for low in told if low not in made],
    )


def _untold(row: Any) -> Any:
    """The row of a job of which not enough could be asked for to plan with it."""
    row[UNTOLD], row["JobStatus"] = _WHY_UNTOLD, WAITING
    return row


def _numbered(ids: Iterable[tuple[int, int]]) -> str:
    """The condition that it is one of these jobs, or clusters as job 0; the cheap tests first."""
    clusters = [cluster for cluster, _ in ids]
    numbers = ",".join(str(cluster * _MOST_PROCS + proc) for cluster, proc in sorted(ids))
    between = f"ClusterId >= {min(clusters, default=0)} && ClusterId <= {max(clusters, default=-1)}"
    return f"{between} && member(ClusterId * {_MOST_PROCS} + (ProcId ?: 0), {{{numbers}}})"


def _id(row: Any) -> tuple[int, int]:
    return integer(row, "ClusterId"), integer(row, "ProcId")


def _clusters_of(owner: str, clusters: Sequence[int]) -> str:
    mine = f"Owner == {quoted(owner)}"
    return f"{mine} && member(ClusterId, {{{','.join(map(str, clusters))}}})" if clusters else mine


def _group_of_one(row: Any) -> Any:
    row["JobCount"], row["JobIds"] = 1, f"{integer(row, 'ClusterId')}.{integer(row, 'ProcId')}"
    for name in ("ClusterId", "ProcId"):
        del row[name]
    return row


def _of(owners: Iterable[str]) -> str:
    return _owner_in(sorted(owners)) if owners else "false"


def _owner_in(owners: Sequence[str]) -> str:
    return f"member(Owner, {{{','.join(map(quoted, owners))}}})"
