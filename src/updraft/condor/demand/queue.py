"""A schedd's queue, asked so that a job whose ad can't be read costs itself. Runs in a child process.

HTCondor's library gives a whole answer up for one ad in it that it can't read: an expression that one release
of a schedd takes can be nested too deeply for another's library. Which jobs those are is found by halves,
first whose they are and then which clusters, and they are asked for no more. So the search is paid for once.
It has so much time in each look (see `searching`); what is suspect when that is over is left out until then.

And what a stranger wrote is evaluated by nobody (see `written`): conditions go by what jobs say literally,
and jobs are grouped only by what refers to nothing, or to attributes of which that is known.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from updraft.condor.advalues import integer, text
from updraft.condor.demand.conditions import (
    AT_WORK,
    BESIDES,
    BROUGHT,
    FACTORIES,
    LITERAL,
    REQUESTS,
    RUNNING,
    TOLD,
    UNIVERSES,
    WAITING,
    WAITING_OR_RUNNING,
    WALKED,
    clusters_of,
    numbered,
    of,
    plain,
)
from updraft.condor.demand.searching import Budget, Search, Suspects, suspects
from updraft.condor.written import quoted, said, says
from updraft.core.halving import failing

T = TypeVar("T")

_UNFINISHED = f"{says('JobStatus', '1', '2', '3', '5', '6', '7')} && {UNIVERSES}"
_STATUS = ("JobStatus", "JobUniverse")
# One that has more unread clusters than are named in a question loses all of them.
_CLUSTERS = 100
# Jobs of somebody who has one that can't be read are asked for singly, up to so many at a time. Whoever is
# among those that were so many has had his turn, and the others are asked for.
_SINGLY = (10_000, 2_000, 2_000, 2_000, 2_000)
_OWNERS_AT_ONCE = 100
_IDS = ("ClusterId", "ProcId")
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
    """A cluster that can't be read: how many of its jobs wait and run, as far as its schedd has made them.

    Of one that is `suspect` it isn't known yet whether it can be.
    """

    cluster: int
    owner: str
    idle: int
    running: int
    suspect: bool = False


class Queue:
    """What `source`, a schedd of the bindings, is asked. `unread` is known from earlier looks, and grows.

    `searches` are those for which the time wasn't enough: `go_on` with them, as far as there is `budget`.

    `odd` are the owners of jobs that refer to what nobody knows: their jobs are asked for apart. `brought` is
    what the requirements of such jobs have brought along. `cut` are owners of more jobs than come singly.
    """

    def __init__(
        self,
        source: Any,
        unread: Unread,
        odd: Iterable[str] = (),
        searches: Iterable[Search] = (),
        budget: Budget | None = None,
    ) -> None:
        self.source = source
        self.unread = dict(unread)
        self.searches = tuple(searches)
        self.budget = budget or Budget()
        self.odd = frozenset(odd)
        self.brought: frozenset[str] = frozenset()
        self.cut: frozenset[str] = frozenset()

    def jobs(self, constraint: str, names: Sequence[str], strict: bool = False, **how: Any) -> list[Any]:
        """The jobs that can be read, and clusters where `how` includes them, with these attributes.

        Not those for which the schedd would have to look through one of these: it sends with an attribute all
        that this refers to. `strict` is as in `plain`.
        """
        import htcondor2

        asked = f"({constraint}) && {plain(names, strict)} is true"

        def ask(which: str) -> list[Any]:
            return list(self.source.query(f"{which} && {asked}", list(names), **how))

        whole = how.get("opts") == htcondor2.QueryOpt.IncludeClusterAd
        return self._asked(ask, Search(asked, tuple(names), False, whole, ()))

    def grouped(self, constraint: str, names: Sequence[str]) -> list[Any]:
        """Jobs that can be read, but those of odd owners, in the schedd's own groups by `names`, Owner among
        them.

        A constraint on groups sees nothing but what is grouped by: of an owner of whom something can't be
        read, the other jobs come singly, as groups of one.
        """
        return self._grouped(self.usual, constraint, names)

    def apart(self, constraint: str, names: Sequence[str]) -> list[Any]:
        """The same of odd owners: those jobs singly that would cost the schedd too much to group."""
        if not self.odd:
            return []
        rows = self._grouped(of(self.odd), constraint, names)
        singles = self.odd_jobs(constraint, names)
        self.brought = frozenset(name for row in singles for name in row) - _NOT_ITS_OWN
        return [*rows, *map(_group_of_one, singles)]

    @property
    def usual(self) -> str:
        """The condition that a job's owner isn't odd."""
        return f"!{of(self.odd)}"

    def waiting_apart(self) -> list[tuple[str, int, int]]:
        """The odd owners who have jobs that can be read: how many wait, and how many run."""
        return self._counts(of(self.odd), WAITING_OR_RUNNING) if self.odd else []

    def _counts(self, whose: str, constraint: str) -> list[tuple[str, int, int]]:
        import htcondor2

        found: dict[str, list[int]] = {}
        which = f"{whose} && {self._readable()} && {constraint}"
        names = ["Owner", *_STATUS, *(["ClusterId"] if self._hidden else [])]
        for row in self.source.query(which, names, opts=htcondor2.QueryOpt.GroupBy):
            counts = found.setdefault(text(row, "Owner"), [0, 0])
            counts[integer(row, "JobStatus") != WAITING] += integer(row, "JobCount")
        return [(owner, idle, running) for owner, (idle, running) in sorted(found.items())]

    def _grouped(self, whose: str, constraint: str, names: Sequence[str]) -> list[Any]:
        import htcondor2

        asked_of = f"({constraint}) && {plain(names)} is true"

        def ask(which: str) -> list[Any]:
            asked, by = f"{whose} && {which} && {asked_of}", htcondor2.QueryOpt.GroupBy
            return list(self.source.query(asked, list(names), opts=by))

        asked_by = f"{whose} && {asked_of}"
        rows = self._asked(ask, Search(asked_by, tuple(names), True, False, ()))
        if not self._hidden:
            return rows
        some = {*self.unread, *(part.owners[0] for part in suspects(self.searches) if part.clusters)}
        singles = self._singly(f"{whose} && {of(some)} && ({constraint})", [*names, *_IDS])
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
        apart = f"{of(self.odd)} && ({constraint})"
        odd = f"{apart} && {plain([*names, *more])} isnt true"
        left = {_id(row): row for row in self._singly(odd, ["Owner", "JobUniverse", *_IDS], **how)}
        kept = [name for name in names if name.lower() in WALKED | LITERAL]
        told = [name for name in names if name.lower() in TOLD - WALKED]
        least = [name for name in told if name.lower() not in BESIDES]
        terms = [name for name in least if name.lower() not in BROUGHT]
        rows: list[Any] = []
        # Of those that are known to be odd nothing is tested twice.
        for strict, some in ((False, told), (False, least), (True, terms)):
            which = f"{apart} && {numbered(left)}"
            found = self.jobs(which, [*kept, *some, *more, *_IDS], strict, **how) if left else []
            if strict:
                found = self._with_requests(apart, found, **how)
            rows += [row for row in found if left.pop(_id(row), None) is not None]
        return [*rows, *map(_untold, left.values())]

    def _with_requests(self, which: str, rows: list[Any], **how: Any) -> list[Any]:
        """These of the jobs, with requests that their requirements didn't bring; untold without them."""
        for name in REQUESTS:
            lacking = {_id(row): row for row in rows if name not in row}
            if not lacking:
                continue
            saying = f"{which} && {numbered(lacking)} && {said(name)}"
            asked = {_id(row): row for row in self.jobs(saying, [name, *_IDS], strict=True, **how)}
            for one in map(_id, self.jobs(saying, _IDS, **how)):
                if one in asked and one in lacking:
                    lacking[one][name] = asked[one].lookup(name)
                elif one in lacking:
                    _untold(lacking[one])
        return rows

    def look_for_odd(self, which: str, names: Sequence[str], after: int = 0) -> None:
        """Learn who has jobs, in clusters after that number, that are not to be grouped by these names."""
        self._learn(f"ClusterId > {after} && {which}", names)

    def look_again(self, which: str, names: Sequence[str]) -> None:
        """Forget of the odd owners who are so no more."""
        known, self.odd = self.odd, frozenset()
        if known:
            self._learn(f"{of(known)} && {which}", names)

    def without_odd(self, rows: list[Any], constraint: str, names: Sequence[str]) -> list[Any]:
        """These groups by `names`, without those of owners of whom some jobs are in no group: they are odd.

        It takes an eighth of the time that it would take to look through all jobs once more.
        """
        missing = Counter(
            {owner: idle + running for owner, idle, running in self._counts(self.usual, constraint)}
        )
        missing.subtract(_jobs_by_owner(rows))
        # Some may have come since.
        suspects = [owner for owner, count in missing.items() if count > 0]
        if suspects:
            self._learn(f"{of(suspects)} && {constraint}", names)
        return [row for row in rows if text(row, "Owner") not in self.odd]

    def _learn(self, which: str, names: Sequence[str]) -> None:
        """Learn whose jobs among these are odd; `which` is cheap to test."""
        import htcondor2

        whole = htcondor2.QueryOpt.IncludeClusterAd
        while len(self.odd) < _OWNERS_AT_ONCE:
            rows = self.source.query(
                f"{which} && {self.usual} && {plain(names)} isnt true",
                ["Owner"],
                limit=_OWNERS_AT_ONCE,
                opts=whole,
            )
            owners = {text(row, "Owner") for row in rows}
            if owners <= self.odd:  # none, or one whose name isn't read as it is written
                break
            self.odd |= owners

    def _singly(self, which: str, names: Sequence[str], **how: Any) -> list[Any]:
        rows: list[Any] = []
        for most in _SINGLY:
            served = {text(row, "Owner") for row in rows}
            more = self.jobs(f"{which} && !{of(served)}", names, limit=most, **how)
            rows += more
            if len(more) < most:
                break
            self.cut |= {text(row, "Owner") for row in more}
        return rows

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

    def _asked(self, ask: Callable[[str], list[Any]], what: Search) -> list[Any]:
        import htcondor2

        try:
            return ask(self._readable_of(what))
        except htcondor2.HTCondorException:
            if not self._search(what):
                raise
        return ask(self._readable_of(what))

    def _readable_of(self, what: Search) -> str:
        """A grouped question sees no clusters: of whoever has hidden ones it has nothing."""
        if not what.grouped:
            return self._readable()
        return f"!{of({*self.unread, *(o for part in suspects(self.searches) for o in part.owners)})}"

    def _search(self, what: Search) -> bool:
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

    def _look_through(self, search: Search) -> tuple[Search, bool]:
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

    def _fails_for(self, part: Suspects, search: Search) -> bool:
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
            ask()
        except htcondor2.HTCondorException:
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


def _untold(row: Any) -> Any:
    """The row of a job of which not enough could be asked for to plan with it."""
    row[UNTOLD], row["JobStatus"] = _WHY_UNTOLD, WAITING
    return row


def _jobs_by_owner(rows: Iterable[Any]) -> Counter[str]:
    """How many jobs each owner has in these groups."""
    found: Counter[str] = Counter()
    for row in rows:
        found[text(row, "Owner")] += integer(row, "JobCount")
    return found


def _id(row: Any) -> tuple[int, int]:
    return integer(row, "ClusterId"), integer(row, "ProcId")


def _group_of_one(row: Any) -> Any:
    row["JobCount"], row["JobIds"] = 1, f"{integer(row, 'ClusterId')}.{integer(row, 'ProcId')}"
    for name in ("ClusterId", "ProcId"):
        del row[name]
    return row
