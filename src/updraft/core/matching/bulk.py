"""Would these job groups run on slots of these kinds? All pairs of a decision at once.

The answers are those of `core.match`, pair by pair, and a property test holds them equal; what differs is the
way. Requirements that many groups share are evaluated once for all of them, over all kinds; what isn't plain
comparison becomes questions for the ClassAd library, each of which is asked once for all pairs that it is
the same for, and only where everything else lets the pair match. Whoever holds the library answers them:
this process (`judge_all`), or a child that can be killed (`condor.judge`).
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from updraft.core.matching.block import Block
from updraft.core.matching.cells import Mask
from updraft.core.matching.match import REASONS, asked, too_big, undecided
from updraft.core.matching.memory import Memo
from updraft.core.matching.oracle import Library, NeededQuestion, merged
from updraft.core.matching.refusals import refused
from updraft.core.matching.tables import Facts, Places, reached
from updraft.core.matching.verdicts import MISSING, UNDECIDED, Counts, VerdictTable
from updraft.core.model import JobGroup, Kind, Reason, Resources, Verdict

_NOT_EVALUABLE = "the schedd did not name every attribute that matching reads"
_UNREADABLE = "the requirements are too deep or too long to evaluate"


def judge_all(groups: Iterable[JobGroup], kinds: Iterable[Kind], now: float, memo: Memo) -> VerdictTable:
    """The verdicts on every pair, at the time `now`.

    `memo` is read and added to: a pair whose content was judged before costs next to nothing, unless its
    requirements read the time. Expressions are evaluated here and without a bound on what they cost.
    """
    work, library = Work(memo, list(groups), list(kinds), now), Library()
    while wanted := work.step():
        for one in wanted:
            open_part = memo.oracle.unanswered(one.question)
            if open_part is not None:
                memo.oracle.learn(open_part, library.answers(open_part, now))
    return work.table()


class Work:
    """The judging of one decision's pairs. Call `step` and answer what it asks, until it asks nothing."""

    def __init__(self, memo: Memo, groups: Sequence[JobGroup], kinds: Sequence[Kind], now: float) -> None:
        self.memo, self.groups, self.kinds, self.now = memo, groups, kinds, now
        rows, columns = memo.places(groups, kinds)
        if memo.forget_unused(rows, columns):
            rows, columns = memo.places(groups, kinds)
        self._columns = np.array(columns, dtype=np.intp)
        self._rows, first, self._line = np.unique(
            np.array(rows, dtype=np.intp), return_index=True, return_inverse=True
        )
        self._first: list[int] = first.tolist()
        self._owners: dict[int, dict[str, None]] = {}
        self._found = memo.copies[np.ix_(self._rows, self._columns)]

    def owners(self, line: int) -> tuple[str, ...]:
        """Whose groups a row of `NeededQuestion.rows` stands for; groups that are alike share a row."""
        if not self._owners:
            for group, at in zip(self.groups, self._line.tolist(), strict=True):
                self._owners.setdefault(at, {})[group.owner] = None
        return tuple(self._owners[line])

    def step(self) -> list[NeededQuestion]:
        """Decide what can be decided, and return the questions that stand in the way of the rest."""
        open_pairs = self._found == MISSING
        rows, columns = np.flatnonzero(open_pairs.any(axis=1)), np.flatnonzero(open_pairs.any(axis=0))
        if not len(rows):
            return []
        ads = [self.memo.facts(self.groups[self._first[row]].ad) for row in rows.tolist()]
        slots = [self.memo.facts(self.kinds[column].ad) for column in columns.tolist()]
        readable = np.array([self.groups[self._first[row]].evaluable for row in rows.tolist()])
        good = readable & np.array([not isinstance(ad, str) for ad in ads])
        fine = np.array([not isinstance(ad, str) for ad in slots])
        self._keep(rows[~good], columns, np.full((int((~good).sum()), len(columns)), UNDECIDED), None)
        self._keep(rows, columns[~fine], np.full((len(rows), int((~fine).sum())), UNDECIDED), None)
        rows, columns = rows[good], columns[fine]
        if not len(rows) or not len(columns):
            return []
        block = Block(
            self.memo,
            [self.groups[self._first[row]] for row in rows.tolist()],
            [self.kinds[column] for column in columns.tolist()],
            _readable(ads, good),
            _readable(slots, fine),
            self.now,
        )
        found, timed = block.run(open_pairs[np.ix_(rows, columns)])
        self._keep(rows, columns, found, timed)
        wanted = self.memo.oracle.wanted
        self.memo.oracle.wanted = []
        return merged(NeededQuestion(one.question, tuple(rows[list(one.rows)].tolist())) for one in wanted)

    def _keep(self, rows: Places, columns: Places, found: Counts, timed: Mask | None) -> None:
        place = np.ix_(rows, columns)
        # What was known before is not computed again, and not overwritten.
        known = self._found[place]
        self._found[place] = np.where(known == MISSING, found, known)
        lasting = found if timed is None else np.where(timed, MISSING, found)
        there = np.ix_(self._rows[rows], self._columns[columns])
        known = self.memo.copies[there]
        self.memo.copies[there] = np.where(known == MISSING, lasting, known)

    def table(self, why: Mapping[int, Reason] | None = None) -> VerdictTable:
        """All verdicts. What is still open is undecided, `why` by row."""
        found = np.where(self._found == MISSING, np.int32(UNDECIDED), self._found)
        copies = np.ascontiguousarray(found[self._line])
        told = _Told(self, why or {}, copies)
        return VerdictTable(
            [group.key for group in self.groups],
            [kind.key for kind in self.kinds],
            copies,
            told.explain,
            {group.key: at for at, group in enumerate(self.groups)},
            {kind.key: at for at, kind in enumerate(self.kinds)},
        )


def _readable(ads: Sequence[Facts | str], good: Mask) -> list[Facts]:
    return [ad for ad, fine in zip(ads, good, strict=True) if fine and not isinstance(ad, str)]


class _Told:
    """Whole verdicts, made when somebody asks for one."""

    def __init__(self, work: Work, why: Mapping[int, Reason], copies: Counts) -> None:
        self._memo, self._groups, self._kinds, self._now = work.memo, work.groups, work.kinds, work.now
        self._why, self._copies = dict(why), copies
        self._line, self._rows, self._columns = work._line, work._rows, work._columns
        # Of these two the memo begins new ones where rows and columns get other numbers.
        self._lasting, self._known = work.memo.copies, work.memo.told
        self._passing: dict[tuple[int, int], Verdict] = {}

    def explain(self, group: int, kind: int) -> Verdict:
        """The verdict on one pair, by their places."""
        line = int(self._line[group])
        pair = int(self._rows[line]), int(self._columns[kind])
        kept = self._passing if self._lasting[pair] == MISSING else self._known
        known = kept.get(pair)
        if known is None:
            known = kept[pair] = self._verdict(group, kind, line)
        return known

    def _verdict(self, at: int, which: int, line: int) -> Verdict:
        group, kind, copies = self._groups[at], self._kinds[which], int(self._copies[at, which])
        asks = asked(group.request, kind)
        if copies > 0:
            return Verdict(copies, asks)
        if not group.evaluable:
            return undecided(asks, "not-evaluable", _NOT_EVALUABLE)
        job, slot = self._memo.facts(group.ad), self._memo.facts(kind.ad)
        if isinstance(job, str) or isinstance(slot, str):
            side, problem = ("job", job) if isinstance(job, str) else ("slot", slot)
            return undecided(asks, "unreadable-ad", f"the ad of the {side} {problem}")
        if copies == UNDECIDED:
            return self._undecided(asks, job, slot, line)
        mine, theirs = refused(self._memo.oracle, self._now, job, slot)
        reasons = [*mine, *theirs]
        if not kind.resources.holds(group.request):
            reasons.append(too_big(group.request, kind.resources))
        return Verdict(0, asks, tuple(reasons[:REASONS]))

    def _undecided(self, asks: Resources, job: Facts, slot: Facts, line: int) -> Verdict:
        uses = [self._memo.lexicon.uses[ad.skeleton] for ad in (job, slot)]
        names = reached(*uses)
        for one in uses:
            for name in sorted(names & one.undecidable.keys()):
                return undecided(asks, "undecidable", f"{name}: {one.undecidable[name]}")
        reason = self._why.get(line, Reason("unreadable-ad", _UNREADABLE))
        return undecided(asks, reason.code, reason.text)
