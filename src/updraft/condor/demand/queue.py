"""A schedd's queue, of which nothing is evaluated that a stranger wrote. Runs in a child process.

Conditions go by what jobs say literally (see `written`), and jobs are grouped only by what refers to nothing,
or to attributes of which that is known. Jobs that can't be read are left out: see `unread`.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from updraft.condor.advalues import integer, text
from updraft.condor.demand.conditions import (
    BESIDES,
    BROUGHT,
    LITERAL,
    REQUESTS,
    TOLD,
    WAITING,
    WAITING_OR_RUNNING,
    WALKED,
    numbered,
    of,
    plain,
)
from updraft.condor.demand.searching import AdSearch, SearchBudget, suspects
from updraft.condor.demand.unread import STATUS, Readable, Unread
from updraft.condor.written import said

# Jobs of somebody who has one that can't be read are asked for singly, up to so many at a time. Whoever is
# among those that were so many has had his turn, and the others are asked for.
_SINGLY = (10_000, 2_000, 2_000, 2_000, 2_000)
_OWNERS_AT_ONCE = 100
_IDS = ("ClusterId", "ProcId")
UNTOLD = "UpdraftUntold"
"""Set by us, in the ad of a job of which nothing else could be asked: why."""
_NOT_ITS_OWN = {*_IDS, UNTOLD, "MyType", "TargetType", "ServerTime"}
_WHY_UNTOLD = "what it wants of its machine can't be asked for: write plain numbers and texts there"


class JobQueue(Readable):
    """What is asked of jobs that can be read.

    `odd` are the owners of jobs that refer to what nobody knows: their jobs are asked for apart. `brought` is
    what the requirements of such jobs have brought along. `cut` are owners of more jobs than come singly.
    """

    def __init__(
        self,
        source: Any,
        unread: Unread,
        odd: Iterable[str] = (),
        searches: Iterable[AdSearch] = (),
        budget: SearchBudget | None = None,
    ) -> None:
        super().__init__(source, unread, searches, budget)
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
        return self._asked(ask, AdSearch(asked, tuple(names), False, whole, ()))

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
        names = ["Owner", *STATUS, *(["ClusterId"] if self._hidden else [])]
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
        rows = self._asked(ask, AdSearch(asked_by, tuple(names), True, False, ()))
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
