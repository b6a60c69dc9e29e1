"""A schedd's queue, asked so that a job whose ad can't be read costs itself. Runs in a child process.

HTCondor's library gives a whole answer up for one ad in it that it can't read: an expression that one release
of a schedd takes can be nested too deeply for another's library. Which jobs those are is found by halves,
first whose they are and then which clusters, and they are asked for no more. So the search is paid for once.
It has so much time in each look (see `searching`); what is suspect when that is over is left out until then.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from updraft.condor.advalues import integer, text
from updraft.condor.demand.conditions import (
    AT_WORK,
    FACTORIES,
    RUNNING,
    UNIVERSES,
    WAITING,
    WAITING_OR_RUNNING,
    clusters_of,
    of,
    plain,
)
from updraft.condor.demand.searching import AdSearch, SearchBudget, Suspects, suspects
from updraft.condor.written import quoted, says
from updraft.core.halving import failing

STATUS = ("JobStatus", "JobUniverse")
_UNFINISHED = f"{says('JobStatus', '1', '2', '3', '5', '6', '7')} && {UNIVERSES}"
_PATIENCE = "Q_QUERY_TIMEOUT"  # HTCondor's setting for what asks a queue
# One that has more unread clusters than are named in a question loses all of them.
_CLUSTERS = 100

ALL: tuple[int, ...] = ()
"""In place of clusters: every one of this owner."""

Unread = Mapping[str, tuple[int, ...]]
"""Clusters that can't be read, by their owner; `ALL` of them."""


@dataclass(frozen=True, slots=True)
class UnreadCluster:
    """A cluster that can't be read: how many of its jobs wait and run, as far as its schedd has made them.

    Of one that is `suspect` it isn't known yet whether it can be.
    """

    cluster: int
    owner: str
    idle: int
    running: int
    suspect: bool = False


@contextmanager
def answered_within(seconds: float) -> Iterator[None]:
    """A schedd that sends nothing for so long (whole seconds, one at least) has failed to answer.

    HTCondor's own bound, 20 s, is longer than a whole look may take.
    """
    import htcondor2

    if math.isinf(seconds):
        yield
        return
    last = str(htcondor2.param[_PATIENCE])
    htcondor2.param[_PATIENCE] = str(max(1, round(seconds)))
    try:
        yield
    finally:
        htcondor2.param[_PATIENCE] = last


class Readable:
    """What `source`, a schedd of the bindings, has beside what can't be read.

    `unread` is known from earlier looks, and grows. `searches` are those for which the time wasn't enough:
    `go_on` with them, as far as there is `budget`.
    """

    def __init__(
        self,
        source: Any,
        unread: Unread,
        searches: Iterable[AdSearch] = (),
        budget: SearchBudget | None = None,
    ) -> None:
        self.source = source
        self.unread = dict(unread)
        self.searches = tuple(searches)
        self.budget = budget or SearchBudget()

    def try_again(self, names: Sequence[str]) -> None:
        """Forget clusters of which these attributes can be read now: jobs can be mended while they wait."""
        for owner, clusters in list(self.unread.items()):

            def some(mine: Sequence[int], owner: str = owner) -> bool:
                # For which there is no time, they stay what they are.
                return self.budget.over or self._unreadable_among(clusters_of(owner, mine), names)

            with self.budget:
                left = tuple(failing(clusters, some))
            if clusters != ALL and not left:
                del self.unread[owner]
            elif clusters != ALL:
                self.unread[owner] = left

    def unread_clusters(self) -> list[UnreadCluster]:
        """Those that wait or run now. What is no longer in the queue is forgotten."""
        if not self._hidden:
            return []
        which = f"({self._unreadable()})"
        found: dict[int, UnreadCluster] = {}
        for row in self._counted(which):
            # Of a cluster whose jobs are still to be made nobody knows how many: it counts as one that waits.
            made, status = integer(row, "JobCount"), integer(row, "JobStatus")
            cluster = integer(row, "ClusterId")
            owner = text(row, "Owner")
            known = self.unread.get(owner)
            suspect = known is None or (known != ALL and cluster not in known)
            last = found.get(cluster) or UnreadCluster(cluster, owner, 0, 0)
            idle = max(last.idle, 1) if not made else last.idle + (made if status == WAITING else 0)
            running = last.running + (made if status in AT_WORK else 0)
            found[cluster] = UnreadCluster(cluster, last.owner, idle, running, suspect)
        still = {one.owner for one in found.values()}
        self.unread = {
            owner: clusters if clusters == ALL else tuple(one for one in clusters if one in found)
            for owner, clusters in self.unread.items()
            if owner in still
        }
        return list(found.values())

    def running_unread(self, names: Sequence[str]) -> list[Any]:
        """Running jobs that can't be read, with these attributes, which the schedd itself has written."""
        if not self._hidden:
            return []
        asked = f"({self._unreadable()}) && {RUNNING} && {plain(names)} is true"
        return list(self.source.query(asked, list(names)))

    # -------------------------------------------------------------------------------------- the search

    def go_on(self) -> None:
        """Go on with the searches that are known, as far as there is time."""
        left = [self._look_through(one) for one in self.searches]
        self.searches = tuple(one for one, _ in left if one.parts)

    def _asked(self, ask: Callable[[str], list[Any]], what: AdSearch) -> list[Any]:
        import htcondor2

        try:
            return ask(self._readable_of(what))
        except htcondor2.HTCondorException:
            if not self._search(what):
                raise
        return ask(self._readable_of(what))

    def _readable_of(self, what: AdSearch) -> str:
        """A grouped question sees no clusters: of whoever has hidden ones it has nothing."""
        if not what.grouped:
            return self._readable()
        return f"!{of({*self.unread, *(o for part in suspects(self.searches) for o in part.owners)})}"

    def _search(self, what: AdSearch) -> bool:
        """Whether anything was found, or is suspect, for which this question failed.

        Raises where nothing can be asked.
        """
        readable = self._readable_of(what) if what.grouped else self._readable()
        with self.budget:
            owners = tuple(sorted({text(row, "Owner") for row in self._counted(readable)}))
        if not owners:
            return False
        self.budget.rested = True  # one that begins has its time
        first = Suspects(owners)
        left, found = self._look_through(replace(what, parts=first.halves if owners[1:] else (first,)))
        if left.parts:
            self.searches = (*self.searches, left)
        return found or bool(left.parts)

    def _look_through(self, search: AdSearch) -> tuple[AdSearch, bool]:
        """What is left of the search when it is done or its time is over, and whether anything was found."""
        parts = list(search.parts)
        found = False
        with self.budget:
            while (part := self.budget.next_of(parts)) is not None:
                if not self._fails_for(part, search):
                    continue
                owner = part.owners[0]
                if part.owners[1:]:
                    parts += part.halves
                elif not part.clusters:
                    parts += self._in_clusters(owner)
                else:
                    parts += part.halves if part.clusters[1:] else ()
                    found = self._concluded(owner, part.clusters, parts) or found
                    if self.unread.get(owner) == ALL:
                        parts = [one for one in parts if one.owners != part.owners]
        return replace(search, parts=tuple(parts)), found

    def _fails_for(self, part: Suspects, search: AdSearch) -> bool:
        import htcondor2

        if part.clusters:
            return self._unreadable_among(part.condition, search.names)
        known = f"!{of(self.unread)}" if search.grouped else self._known_readable()
        options = htcondor2.QueryOpt
        how = options.IncludeClusterAd if search.whole else options.Default
        how = options.GroupBy if search.grouped else how
        asked = f"{part.condition} && {known} && {search.asked}"
        return self._fails(lambda: self.source.query(asked, list(search.names), opts=how))

    def _in_clusters(self, owner: str) -> list[Suspects]:
        """The clusters of this owner that aren't known as unreadable."""
        known = self.unread.get(owner)
        rows = self._counted(f"Owner == {quoted(owner)}")
        mine = sorted({integer(row, "ClusterId") for row in rows} - set(known or ()))
        return [Suspects((owner,), tuple(mine))] if mine and known != ALL else []

    def _concluded(self, owner: str, clusters: tuple[int, ...], parts: Sequence[Suspects]) -> bool:
        """Whether it is clear that this owner's clusters, among which some can't be read, are the culprits:
        it is one, or there are too many to be told apart."""
        known = self.unread.get(owner, ())
        many = len(known) + sum(part.owners == (owner,) for part in parts) > _CLUSTERS
        if clusters[1:] and not many:
            return False
        self.source.query("false", ["ClusterId"])  # raises where it is the schedd that fails
        both = tuple(sorted({*known, *clusters}))
        self.unread[owner] = ALL if many or len(both) > _CLUSTERS else both
        return True

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
            with answered_within(self.budget.limit):
                ask()
        except htcondor2.HTCondorException:
            return True
        return False

    def _counted(self, which: str) -> list[Any]:
        """Owner and cluster of what has not ended, grouped and counted, and of late-materialised ones.

        Groups don't say where they run: one that is removed or held may run yet.
        """
        import htcondor2

        names, options = ["Owner", "ClusterId", *STATUS], htcondor2.QueryOpt
        made = self.source.query(f"{which} && {_UNFINISHED}", names, opts=options.GroupBy)
        to_come = self.source.query(
            f"{which} && {FACTORIES}", ["Owner", "ClusterId"], opts=options.IncludeClusterAd
        )
        return [*made, *to_come]

    @property
    def _hidden(self) -> bool:
        return bool(self.unread or self.searches)

    def _unreadable(self) -> str:
        """The condition that it is left out: it can't be read, or is suspect."""
        known = [clusters_of(*one) for one in sorted(self.unread.items())]
        return " || ".join((*known, *(part.condition for part in suspects(self.searches)))) or "false"

    def _readable(self) -> str:
        return f"!({self._unreadable()})" if self._hidden else "true"

    def _known_readable(self) -> str:
        """The condition that it isn't known as unreadable; it may be suspect."""
        known = " || ".join(clusters_of(*one) for one in sorted(self.unread.items()))
        return f"!({known})" if known else "true"
