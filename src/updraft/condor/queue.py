"""A schedd's queue, asked so that a job whose ad can't be read costs itself. Runs in a child process.

HTCondor's library gives a whole answer up for one ad in it that it can't read: an expression that one release
of a schedd takes can be nested too deeply for another's library. Which jobs those are is found by halves,
first whose they are and then which clusters, and they are asked for no more. So the search is paid for once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from updraft.condor.advalues import integer, text

T = TypeVar("T")

# Universes whose jobs need a startd: vanilla (containers and docker included), java, parallel, vm.
UNIVERSES = "(JobUniverse == 5 || JobUniverse == 10 || JobUniverse == 11 || JobUniverse == 13)"
# Running jobs may be suspended, or send their output.
WAITING, AT_WORK = 1, (2, 6, 7)
_STATES = " || ".join(f"JobStatus == {state}" for state in (WAITING, *AT_WORK))
WAITING_OR_RUNNING = f"({_STATES}) && {UNIVERSES}"
# A job has a RemoteHost from the start of its shadow to the shadow's end, also while it is removed or held.
# (The lists of a parallel job's hosts stay for longer.)
RUNNING = f"JobStatus != 1 && RemoteHost isnt undefined && {UNIVERSES}"
FACTORIES = f"ProcId is undefined && JobMaterializeDigestFile isnt undefined && {UNIVERSES}"

_UNFINISHED = f"JobStatus != 4 && {UNIVERSES}"
_STATUS = ("JobStatus", "JobUniverse")
# Questions in one search; what is not told apart by then is taken together. One that has more unread clusters
# than are named in a question loses all of them.
_QUESTIONS = 100
_CLUSTERS = 100
# Jobs of somebody who has one that can't be read are asked for singly, up to so many.
_SINGLY = 2_000

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
    """What `source`, a schedd of the bindings, is asked. `unread` is known from earlier looks, and grows."""

    def __init__(self, source: Any, unread: Unread) -> None:
        self.source = source
        self.unread = dict(unread)

    def jobs(self, constraint: str, names: Sequence[str], **how: Any) -> list[Any]:
        """The jobs that can be read, and clusters where `how` includes them, with these attributes."""

        def ask(which: str) -> list[Any]:
            return list(self.source.query(f"{which} && ({constraint})", list(names), **how))

        return self._asked(ask, names, self._readable)

    def grouped(self, constraint: str, names: Sequence[str]) -> list[Any]:
        """Jobs that can be read in the schedd's own groups by `names`, Owner among them.

        A constraint on groups sees nothing but what is grouped by: of an owner of whom something can't be
        read, the other jobs come singly, as groups of one.
        """
        import htcondor2

        def ask(which: str) -> list[Any]:
            by = htcondor2.QueryOpt.GroupBy
            return list(self.source.query(f"{which} && ({constraint})", list(names), opts=by))

        rows = self._asked(ask, names, lambda: f"!{_of(self.unread)}")
        if self.unread:
            single = f"{_of(self.unread)} && ({constraint})"
            rows += map(_group_of_one, self.jobs(single, [*names, "ClusterId", "ProcId"], limit=_SINGLY))
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
        return list(self.source.query(f"({self._unreadable()}) && {RUNNING}", list(names)))

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
            which = f"ClusterId >= {mine[0]} && ClusterId <= {mine[-1]} && Owner == {_quoted(owner)}"
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
        constraint = f"{which} && ({WAITING_OR_RUNNING} || {RUNNING} || {FACTORIES})"
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


def _clusters_of(owner: str, clusters: Sequence[int]) -> str:
    mine = f"Owner == {_quoted(owner)}"
    return f"{mine} && member(ClusterId, {{{','.join(map(str, clusters))}}})" if clusters else mine


def failing(items: Sequence[T], fails: Callable[[Sequence[T]], bool], *, known: bool = False) -> list[T]:
    """Those of `items` that fail, found by halves; `known` where it is known that some do.

    What isn't told apart within so many questions is taken together. The largest part is always the next to
    be halved, so that it is as little as may be.
    """
    parts = [items] if items and (known or fails(items)) else []
    asked = 1
    while parts and len(parts[-1]) > 1 and asked < _QUESTIONS:
        part = parts.pop()
        middle = len(part) // 2
        parts += [half for half in (part[:middle], part[middle:]) if fails(half)]
        parts.sort(key=len)
        asked += 2
    return [one for part in parts for one in part]


def _group_of_one(row: Any) -> Any:
    row["JobCount"], row["JobIds"] = 1, f"{integer(row, 'ClusterId')}.{integer(row, 'ProcId')}"
    for name in ("ClusterId", "ProcId"):
        del row[name]
    return row


def _of(owners: Iterable[str]) -> str:
    return _owner_in(sorted(owners)) if owners else "false"


def _owner_in(owners: Sequence[str]) -> str:
    return f"member(Owner, {{{','.join(map(_quoted, owners))}}})"


def _quoted(text: str) -> str:
    import classad2

    return str(classad2.quote(text))
