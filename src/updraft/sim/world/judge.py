"""The judge of a simulated world: verdicts on job groups and kinds of slots, kept in columns that grow."""

import bisect
import re
from collections.abc import Sequence

import numpy as np

from updraft.core.matching.bulk import judge_all
from updraft.core.matching.memory import Memo
from updraft.core.matching.verdicts import Counts, VerdictTable
from updraft.core.model import JobGroup, Kind, Verdict, Verdicts

_TIMED = re.compile(r"time\s*\(|currenttime", re.IGNORECASE)  # what in an ad may depend on when it is read


class Judge:
    """Judges in the caller's thread, and each group once for all kinds: simulated jobs are not hostile.

    The verdicts are on every group that ever came by. Where an ad may read the time, all that wait are judged
    anew each time.
    """

    def __init__(self) -> None:
        self._memo = Memo()
        self._kinds: list[Kind] = []
        self._judged = _Judged(())
        self._timed = False

    def verdicts(
        self, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float, deadline: float
    ) -> Verdicts:
        """The verdict of each pair, at the time `now`."""
        if kinds != self._kinds:
            self._kinds, self._judged = list(kinds), _Judged([kind.key for kind in kinds])
            self._timed = self._timed or any(_TIMED.search(kind.ad) for kind in kinds)
        new = [group for group in groups if group.key not in self._judged.rows]
        self._timed = self._timed or any(_TIMED.search(group.ad) for group in new)
        if self._timed:
            return judge_all(groups, kinds, now, self._memo)
        if new:
            self._judged.add(judge_all(new, kinds, now, self._memo))
        return self._judged.table


class _Judged:
    """Verdicts that grow by the rows of groups that are new."""

    def __init__(self, kinds: Sequence[str]) -> None:
        self.rows: dict[str, int] = {}
        self._parts: list[tuple[int, VerdictTable]] = []
        self._columns = {key: at for at, key in enumerate(kinds)}
        self.table = self._made(np.empty((0, len(kinds)), dtype=np.int32))

    def add(self, part: VerdictTable) -> None:
        """These rows belong to it from now on."""
        first = len(self.rows)
        self._parts.append((first, part))
        self.rows = {**self.rows, **{name: first + at for at, name in enumerate(part.groups)}}
        self.table = self._made(np.vstack((self.table.copies, part.copies)))

    def _made(self, copies: Counts) -> VerdictTable:
        return VerdictTable(
            tuple(self.rows), tuple(self._columns), copies, self._explain, self.rows, self._columns
        )

    def _explain(self, group: int, kind: int) -> Verdict:
        at = bisect.bisect_right(self._parts, group, key=lambda part: part[0]) - 1
        first, part = self._parts[at]
        return part.explain(group - first, kind)
