"""What only the ClassAd library can tell: questions, each asked once, and the answers that are remembered.

A question is an expression with the attributes that it can read, of both sides and nothing else of their ads,
so that jobs and machines that differ elsewhere share it, and it is small enough to be handed to another
process.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from classad2 import ClassAdException, ExprTree, Value

from updraft.core.matching.clauses import Names, names_in
from updraft.core.matching.expressions import ReadAd, evaluated, read, rewrite
from updraft.core.matching.tables import (
    BOOL,
    ERROR,
    EXACT,
    EXPRESSION,
    INT,
    LARGE,
    OTHER,
    PENDING,
    REAL,
    STRING,
    UNDEFINED,
    Lexicon,
)

Answer = tuple[int, float | str]
"""The type of a value and its number, or the text of a string. A type of PENDING: it can't be evaluated."""

Key = tuple[int, int, int, float]
Texts = tuple[str | None, ...]
"""Of some attributes: their texts, None for those that an ad doesn't have."""
Bones = tuple[tuple[str, str], ...]
NO_ANSWER: Answer = (PENDING, 0.0)
_ADS = 4096


@dataclass(frozen=True, slots=True)
class Question:
    """`text` is an expression of the job's ad, or of the slot's where `slots`; `job` and each of `others`
    (the slots' side) are ads of what it can read. One answer for each of `keys`, in that order."""

    text: str
    slots: bool
    job: str
    others: tuple[str, ...]
    keys: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class NeededQuestion:
    """A question with the rows (places of job groups) that can't be decided without it."""

    question: Question
    rows: tuple[int, ...]


@dataclass(slots=True)
class Oracle:
    """Questions that wait, and answers by content. `limit` bounds how many are remembered."""

    lexicon: Lexicon
    limit: int = 500_000
    answers: dict[Key, tuple[int, float]] = field(default_factory=dict)
    wanted: list[NeededQuestion] = field(default_factory=list)
    followed: int = 0
    """How many attributes were followed for the expression that is being evaluated."""
    _numbers: dict[object, int] = field(default_factory=dict)
    _minis: dict[tuple[frozenset[str], Texts], tuple[int, str]] = field(default_factory=dict)
    _reached: dict[tuple[str, Bones, Bones], Names] = field(default_factory=dict)

    def number(self, content: object) -> int:
        """A small number for any content."""
        return self._numbers.setdefault(content, len(self._numbers))

    def pair(
        self, text: str, names: frozenset[str], job: Texts, slot: Texts
    ) -> tuple[tuple[int, str], tuple[int, str], bool]:
        """The ads of what `text` can read of a job and a slot, each with its number, and whether it reads the
        time.

        The texts are those of `names`, in their order. What is read on the way of other pairs only is left
        out, so that the numbers say nothing about whom this was asked together with.
        """
        order = sorted(names)
        bones = self._bones(order, job), self._bones(order, slot)
        known = self._reached.get((text, *bones))
        if known is None:
            known = self._reached[text, *bones] = _followed(text, *bones)
        if not known.whole and known.names != names:
            kept = [at for at, name in enumerate(order) if name in known.names]
            job, slot = (tuple([texts[at] for at in kept]) for texts in (job, slot))
            names = known.names
        return self._mini(names, job), self._mini(names, slot), known.timed

    def _bones(self, order: list[str], texts: Texts) -> Bones:
        cell = self.lexicon.cell
        return tuple(
            [
                (name, text)
                for name, text in zip(order, texts, strict=True)
                if text is not None and cell(text)[0] == EXPRESSION
            ]
        )

    def _mini(self, names: frozenset[str], texts: Texts) -> tuple[int, str]:
        known = self._minis.get((names, texts))
        if known is None:
            pairs = zip(sorted(names), texts, strict=True)
            ad = "[ " + "; ".join(f"{_quoted(n)} = {t}" for n, t in pairs if t is not None) + " ]"
            known = self._minis[names, texts] = (self.number(ad), ad)
        return known

    def learn(self, question: Question, answers: Iterable[Answer]) -> None:
        """Remember the answers to a question, as many as there are, in order."""
        for key, (code, value) in zip(question.keys, answers, strict=False):
            number = float(self.lexicon.string(value)) if isinstance(value, str) else float(value)
            self.answers[key] = (code, number)

    def unanswered(self, question: Question) -> Question | None:
        """What of a question is still open; None where nothing is."""
        open_ones = [at for at, key in enumerate(question.keys) if key not in self.answers]
        if len(open_ones) == len(question.keys):
            return question
        if not open_ones:
            return None
        return Question(
            question.text,
            question.slots,
            question.job,
            tuple(question.others[at] for at in open_ones),
            tuple(question.keys[at] for at in open_ones),
        )

    @property
    def full(self) -> bool:
        """Whether more is remembered than should be."""
        return len(self.answers) > self.limit or len(self._minis) > self.limit


def _followed(text: str, *bones: Bones) -> Names:
    """What evaluating `text` may look up in ads with these expressions."""
    first = names_in(text)
    seen, todo = set(first.names), list(first.names)
    whole, timed = first.whole, first.timed
    sources = [dict(some) for some in bones]
    while todo:
        name = todo.pop()
        for some in sources:
            if name in some:
                more = names_in(some[name])
                whole, timed = whole or more.whole, timed or more.timed
                todo.extend(more.names - seen)
                seen |= more.names
    return Names(frozenset(seen), whole, timed)


def _quoted(name: str) -> str:
    return name if name.isidentifier() and name.isascii() else f"'{name}'"


def merged(wanted: Iterable[NeededQuestion]) -> list[NeededQuestion]:
    """Each question once, whoever it stands in the way of."""
    slots: dict[tuple[str, bool, str], dict[Key, str]] = {}
    rows: dict[tuple[str, bool, str], dict[int, None]] = {}
    for one in wanted:
        question = one.question
        mark = (question.text, question.slots, question.job)
        slots.setdefault(mark, {}).update(zip(question.keys, question.others, strict=True))
        rows.setdefault(mark, {}).update(dict.fromkeys(one.rows))
    return [
        NeededQuestion(Question(*mark, tuple(others.values()), tuple(others)), tuple(rows[mark]))
        for mark, others in slots.items()
    ]


@dataclass(slots=True)
class Library:
    """Answers questions with the ClassAd library, in the caller's own process and without any bound."""

    _jobs: dict[str, ReadAd] = field(default_factory=dict)
    _slots: dict[str, ReadAd] = field(default_factory=dict)

    def answers(self, question: Question, now: float) -> Iterator[Answer]:
        """One answer after the other, each when it is asked for."""
        job = _read(question.job, self._jobs)
        trees: dict[frozenset[str], ExprTree] = {}
        for text in question.others:
            # Also where both are written alike they are two: the library takes no ad as its own match.
            slot = _read(text, self._slots)
            if job is None or slot is None:
                yield NO_ANSWER
                continue
            job.bind(now)
            slot.bind(now)
            mine, other = (slot, job) if question.slots else (job, slot)
            try:
                if mine.own not in trees:
                    trees[mine.own] = ExprTree(rewrite(question.text, mine.own).text)
                yield answer_of(evaluated(trees[mine.own], mine.ad, other.ad))
            except (ClassAdException, RecursionError):
                yield NO_ANSWER


def _read(text: str, ads: dict[str, ReadAd]) -> ReadAd | None:
    known = ads.get(text)
    if known is None:
        if len(ads) >= _ADS:
            ads.clear()
        try:
            known = ads[text] = read(text)
        except (ClassAdException, RecursionError):
            return None
    return known


def answer_of(value: object) -> Answer:
    """A value of the library as an answer."""
    if isinstance(value, Value):
        return (UNDEFINED if value == Value.Undefined else ERROR), 0.0
    if isinstance(value, bool):
        return BOOL, float(value)
    if isinstance(value, int):
        return (INT if abs(value) < EXACT else LARGE), float(value)
    if isinstance(value, float):
        return REAL, value
    if isinstance(value, str):
        return STRING, value
    return OTHER, 0.0
