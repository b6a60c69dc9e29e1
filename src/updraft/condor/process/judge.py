"""Verdicts, with what strangers wrote evaluated in a child process that can be killed.

Job ads are hostile until shown otherwise: one regular expression can take a tenth of a second each time, or
for ever, and nothing in the same process could stop it. So plain comparisons are evaluated here, which costs
what the tables' size says, and every other expression is a question to the child. Each owner's questions have
a budget of their own; an owner whose evaluation runs away loses the child, and nobody else loses a verdict.
"""

import os
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import BrokenExecutor, wait
from concurrent.futures import TimeoutError as FutureTimeout
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any

import pebble

from updraft.condor.process.children import forked, prepare
from updraft.core.matching.bulk import Work
from updraft.core.matching.memory import Memo
from updraft.core.matching.oracle import Answer, Library, NeededQuestion, Question
from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import JobGroup, Kind, Reason

# The child stops by itself at the budget, between two evaluations; only one that hangs is killed, after this.
_GRACE = 1.5
_START = 30.0
_LOOK_AGAIN = 0.5
_REST_FIRST = 60.0
_REST_LONGEST = 3600.0
# Characters that are handed over at once: what is beyond that goes with the next batch.
_BATCH = 1_000_000

_NO_TIME = "there was no time left for it in this cycle"
Mark = tuple[str, bool, str]
"""What a question is known by: its text, its side and what it reads of the job."""


@dataclass(slots=True)
class _OwnerRest:
    """A question that is left out until `until` (the daemon's clock); `seconds` doubles each time."""

    until: float
    seconds: float


@dataclass(slots=True)
class _Owner:
    """The cost of one owner's evaluation: after a kill its questions go one by one, to find the culprit."""

    name: str
    left: float = 0.0
    alone: bool = False
    killed: bool = False
    unserved: bool = False
    todo: list[NeededQuestion] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _BatchAnswer:
    """What the child made of a batch: answers to each question, as many as there was time for; the one that
    took the most of it, if that ran out."""

    answers: list[list[Answer]]
    slow: int | None
    spent: float


class Judge:
    """Judges job groups against kinds. `budget_per_owner` is seconds of evaluation per owner and cycle.

    Keeps verdicts and answers by content, so that a cycle without news costs next to nothing. For one
    thread. Use it as a context manager, or `close` it.
    """

    def __init__(self, budget_per_owner: float = 1.0) -> None:
        self._budget = budget_per_owner
        self._memo = Memo()
        self._pool: Any = None
        self._loading: Any = None
        self._resting: dict[Mark, _OwnerRest] = {}
        self._owners: dict[str, _Owner] = {}

    def __enter__(self) -> "Judge":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self) -> None:
        """Start the child, and don't wait for it: the first questions find it ready, or nearly so."""
        if self._pool is None:
            self._pool = pebble.ProcessPool(
                max_workers=1,
                initializer=prepare,
                initargs=(dict(os.environ),),
                context=forked(),
            )
            # Loading HTCondor's library is on nobody's budget.
            self._loading = self._pool.schedule(_warm_up, timeout=_START)

    def close(self) -> None:
        """End the child."""
        if self._pool is not None:
            self._pool.stop()
            self._pool.join()
            self._pool = self._loading = None

    def verdicts(
        self, groups: Iterable[JobGroup], kinds: Iterable[Kind], now: float, deadline: float
    ) -> VerdictTable:
        """A verdict for every pair, within about `deadline` seconds.

        Pairs that could not be evaluated (over their owner's budget, resting after that, or out of time) have
        a verdict that isn't decided, with the reason `not-evaluated`.
        """
        work = Work(self._memo, list(groups), list(kinds), now)
        cycle = _JudgingTurn(self, work, now, time.monotonic() + deadline)
        while (wanted := work.step()) and cycle.answer(wanted):
            pass
        self._resting = {
            mark: rest for mark, rest in self._resting.items() if now < rest.until + _REST_LONGEST
        }
        return work.table({line: Reason("not-evaluated", text) for line, text in cycle.why.items()})

    # ---------------------------------------------------------------------------------------- for a cycle

    def owners(self, names: Iterable[str]) -> dict[str, _Owner]:
        """These owners at the begin of a cycle, with what is remembered of the last one."""
        found = {}
        for name in names:
            last = self._owners.get(name, _Owner(name))
            found[name] = _Owner(name, self._budget, last.alone, unserved=last.unserved)
        return found

    def keep(self, owners: Iterable[_Owner]) -> None:
        """Remember of these owners what counts in the next cycle."""
        self._owners = {owner.name: owner for owner in owners if owner.alone or owner.unserved}

    def resting(self, question: Question, now: float) -> float:
        """For how many more seconds a question is left out."""
        rest = self._resting.get(_mark(question))
        return rest.until - now if rest is not None and now < rest.until else 0.0

    def put_to_rest(self, question: Question, now: float, limit: float) -> None:
        """Leave a question out for a while, if it had a fair chance."""
        if limit < self._budget / 4:
            return
        last = self._resting.get(_mark(question))
        seconds = min(2 * last.seconds, _REST_LONGEST) if last else _REST_FIRST
        self._resting[_mark(question)] = _OwnerRest(now + seconds, seconds)

    def ask(self, questions: Sequence[Question], now: float, limit: float) -> _BatchAnswer | None:
        """The child's answers; None where it had to be killed, or died."""
        try:
            outcome = self._asked(questions, now, limit)
        except BrokenExecutor:
            # A child that died while nobody asked it anything is nobody's fault.
            self.close()
            outcome = self._asked(questions, now, limit)
        if outcome is None:
            return None
        for question, answers in zip(questions, outcome.answers, strict=False):
            self._memo.oracle.learn(question, answers)
        return outcome

    def _asked(self, questions: Sequence[Question], now: float, limit: float) -> _BatchAnswer | None:
        child = self._child()
        try:
            future = child.schedule(_answers, args=(questions, now, limit), timeout=limit * _GRACE)
        except RuntimeError as error:  # pebble's word for a pool whose child's pipes broke when it died
            raise BrokenExecutor("the child has died") from error
        try:
            outcome: _BatchAnswer = self._told(future)
        except (FutureTimeout, pebble.ProcessExpired, MemoryError):
            return None
        return outcome

    @property
    def budget(self) -> float:
        """Seconds of evaluation per owner and cycle."""
        return self._budget

    def unanswered(self, question: Question) -> Question | None:
        """What of a question is still open."""
        return self._memo.oracle.unanswered(question)

    def _child(self) -> Any:
        self.begin()
        loading, self._loading = self._loading, None
        if loading is not None:
            self._told(loading)
        return self._pool

    def _told(self, future: Any) -> Any:
        """What a task returns, or raises. BrokenExecutor for one that was handed over while its child's death
        was being noticed: pebble forgets those, and their futures never end."""
        while not wait((future,), _LOOK_AGAIN).done:
            if not self._pool.active and not wait((future,), _LOOK_AGAIN).done:
                raise BrokenExecutor("the child died")
        return future.result()


class _JudgingTurn:
    """The questions of one cycle, served owner by owner."""

    def __init__(self, judge: Judge, work: Work, now: float, end: float) -> None:
        self._judge, self._work, self._now, self._end = judge, work, now, end
        self._owners: dict[str, _Owner] = {}
        self._given_up: set[Mark] = set()
        self._learned = False
        self.why: dict[int, str] = {}
        """For lines that wait for an answer: why there is none."""

    def answer(self, wanted: Sequence[NeededQuestion]) -> bool:
        """Have these questions answered as far as possible; False where nothing was learned."""
        self._learned = False
        self._sort(wanted)
        owners = [owner for owner in self._owners.values() if owner.todo]
        for owner in sorted(owners, key=lambda o: (o.alone, not o.unserved, len(o.todo), o.name)):
            self._serve(owner)
            owner.todo = []
        self._judge.keep(self._owners.values())
        return self._learned

    def _sort(self, wanted: Sequence[NeededQuestion]) -> None:
        """To each owner the questions that stand in the way of groups of theirs."""
        lines = {line: self._work.owners(line) for one in wanted for line in one.rows}
        fresh = {name for names in lines.values() for name in names} - self._owners.keys()
        self._owners |= self._judge.owners(sorted(fresh))
        for one in wanted:
            rest = self._judge.resting(one.question, self._now)
            if rest:
                text = f"its requirements take too long to evaluate; tried again in {rest:.0f} s"
                self._leave([one], text)
            elif _mark(one.question) not in self._given_up:
                mine: dict[str, list[int]] = {}
                for line in one.rows:
                    for name in lines[line]:
                        mine.setdefault(name, []).append(line)
                for name, some in mine.items():
                    self._owners[name].todo.append(NeededQuestion(one.question, tuple(some)))

    def _serve(self, owner: _Owner) -> None:
        open_ones = []
        size = 0
        for one in owner.todo:
            question = self._judge.unanswered(one.question)
            if question is None:
                self._learned = True
            elif size < _BATCH:
                size += sum(map(len, question.others)) + len(question.job)
                open_ones.append(NeededQuestion(question, one.rows))
        batches = [[one] for one in open_ones] if owner.alone else [open_ones] if open_ones else []
        for at, batch in enumerate(batches):
            # One by one, each has its share, so that the culprit doesn't take the others' time as well.
            share = max(owner.left / (len(batches) - at), self._judge.budget / 4)
            limit = min(owner.left, share, self._end - time.monotonic())
            if limit <= 0:
                owner.unserved = True
                late = self._end <= time.monotonic()
                self._leave(batch, _NO_TIME if late else self._over_budget())
                continue
            outcome = self._judge.ask([one.question for one in batch], self._now, limit)
            if outcome is None:
                owner.killed = True
                owner.left -= limit * _GRACE
                self._lost(batch, limit)
            else:
                owner.left -= outcome.spent
                owner.unserved = False
                self._book(batch, outcome, limit)
        # Once nobody hangs (those that do are resting), the owner's questions go together again.
        owner.alone = owner.killed or (owner.alone and owner.unserved)

    def _book(self, batch: Sequence[NeededQuestion], outcome: _BatchAnswer, limit: float) -> None:
        self._learned = self._learned or any(outcome.answers)
        if outcome.slow is None:
            return
        costly = set(batch[outcome.slow].rows)
        for one in batch:
            if self._judge.unanswered(one.question) is not None:
                if costly & set(one.rows):
                    self._judge.put_to_rest(one.question, self._now, limit)
                self._leave([one], self._over_budget())

    def _lost(self, batch: Sequence[NeededQuestion], limit: float) -> None:
        """The child was killed over this batch: with one question in it, that is the culprit."""
        if len(batch) == 1:
            self._judge.put_to_rest(batch[0].question, self._now, limit)
        self._given_up.update(_mark(one.question) for one in batch)
        text = f"the evaluation of its owner's requirements did not end within {limit:.1f} s and was stopped"
        self._leave(batch, text)

    def _over_budget(self) -> str:
        budget = self._judge.budget
        return f"its owner's groups need more than the {budget:.1f} s of evaluation that they may take"

    def _leave(self, batch: Iterable[NeededQuestion], text: str) -> None:
        for one in batch:
            for line in one.rows:
                self.why.setdefault(line, text)


def _mark(question: Question) -> Mark:
    return question.text, question.slots, question.job


# ------------------------------------------------------------------------------------------ in the child


@lru_cache(maxsize=1)
def _library() -> Library:
    """The child's one library: ads that it has read stay read from cycle to cycle."""
    return Library()


def _warm_up() -> None:
    # Adds split(), stringListMember(), countMatches() and their like to the ClassAd language.
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import htcondor2  # noqa: F401
    _library()


def _answers(questions: Sequence[Question], now: float, limit: float) -> _BatchAnswer:
    """Answer in order until the time is up. What took the most of it then is named as slow."""
    _warm_up()
    library = _library()
    began = time.monotonic()
    found: list[list[Answer]] = []
    costs: list[float] = []
    for question in questions:
        start = time.monotonic()
        answers: list[Answer] = []
        found.append(answers)
        for answer in library.answers(question, now):
            answers.append(answer)
            if time.monotonic() - began > limit:
                costs.append(time.monotonic() - start)
                return _BatchAnswer(found, costs.index(max(costs)), time.monotonic() - began)
        costs.append(time.monotonic() - start)
    return _BatchAnswer(found, None, time.monotonic() - began)
