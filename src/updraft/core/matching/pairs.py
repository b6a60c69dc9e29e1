"""Pairs of a job group and a slot, and what the ClassAd library says about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from updraft.core.matching.cells import Cells, Mask
from updraft.core.matching.clauses import Node, names_in
from updraft.core.matching.oracle import Key, NeededQuestion, Oracle, Question
from updraft.core.matching.tables import PENDING, Codes, Numbers, Places, Side

LEFT = frozenset({"cpus", "memory", "disk", "gpus", "numdynamicslots", "availablegpus"})
"""What a slot has less of, the more jobs run on it; custom resources besides."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Job groups × slots. `left` are a slot's attributes that something else is put in the place of (a number
    for each pair), `devices` the text of `AvailableGPUs` for one pair. Needed values that nobody knows yet
    are left with the oracle as questions. `depth` counts the attributes that were followed to get here."""

    jobs: Side
    slots: Side
    oracle: Oracle
    now: float
    left: Mapping[str, Numbers] = field(default_factory=dict)
    devices: Callable[[int, int], str | None] | None = None
    depth: int = 0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.jobs), len(self.slots)

    def part(self, rows: Places | None, columns: Places | None, deeper: int = 0) -> Self:
        """Some rows and columns of it."""
        left, devices = self.left, self.devices
        if rows is not None:
            left = {name: numbers[rows] for name, numbers in left.items()}
        if columns is not None:
            left = {name: numbers[:, columns] for name, numbers in left.items()}
        if devices is not None and (rows is not None or columns is not None):
            devices = _devices_of(devices, rows, columns)
        return replace(
            self,
            jobs=self.jobs if rows is None else self.jobs.part(rows),
            slots=self.slots if columns is None else self.slots.part(columns),
            left=left,
            devices=devices,
            depth=self.depth + deeper,
        )

    def closure(self, text: str) -> frozenset[str]:
        """Names that evaluating `text` may look up in any of these ads; all, where it reads whole ads.

        The names of an expression are followed on both sides, whichever it would be looked up on.
        """
        first = names_in(text)
        seen, todo = set(first.names), list(first.names)
        whole = first.whole
        sources = self.jobs.lexicon.sources
        while todo:
            name = todo.pop()
            for ads in (self.jobs, self.slots):
                for number in ads.expressions(name):
                    more = names_in(sources[number])
                    whole = whole or more.whole
                    todo.extend(more.names - seen)
                    seen |= more.names
        if whole:
            for ads in (self.jobs, self.slots):
                seen.update(name for facts in ads.facts for name in facts.sources)
        return frozenset(seen)

    def asked(self, node: Node, side: int, need: Mask | None) -> Cells:
        """The library's answers, as far as they are known; the others are asked for."""
        names = self.closure(node.text)
        query = Query(node.text, side == 1, names)
        mines, rows = self.jobs.keys(names)
        theirs, columns = self.slots.keys(names)
        if (self.left or self.devices) and (names & LEFT or names & self.left.keys()):
            return self._asked_each(query, mines, theirs, need)
        width = len(theirs)
        if need is None or need.all():
            combined = np.arange(len(mines) * width)
        else:
            pairs = rows[:, None] * width + columns[None, :]
            combined = np.unique(pairs[full(need, self.shape)])
        codes = np.full(len(mines) * width, PENDING, dtype=np.int8)
        numbers = np.zeros(len(mines) * width)
        for mine, these in _by_row(combined, width):
            texts = [theirs[at] for at in (these - mine * width).tolist()]
            codes[these], numbers[these] = self.ask(query, mines[mine], texts, rows == mine)
        both_codes, both_numbers = codes.reshape(-1, width), numbers.reshape(-1, width)
        if len(mines) == 1:
            return Cells(both_codes[:, columns], both_numbers[:, columns])
        if width == 1:
            return Cells(both_codes[rows], both_numbers[rows])
        place = np.ix_(rows, columns)
        return Cells(both_codes[place], both_numbers[place])

    def _asked_each(
        self,
        query: "Query",
        mines: list[tuple[str | None, ...]],
        theirs: list[tuple[str | None, ...]],
        need: Mask | None,
    ) -> Cells:
        """The same where slots have another text for each job group."""
        codes, numbers = np.full(self.shape, PENDING, dtype=np.int8), np.zeros(self.shape)
        rows, columns = self.jobs.keys(query.names)[1], self.slots.keys(query.names)[1]
        order = sorted(query.names)
        wanted = np.ones(self.shape, dtype=bool) if need is None else full(need, self.shape)
        for row in np.flatnonzero(wanted.any(axis=1)):
            these = np.flatnonzero(wanted[row])
            texts, known = [], []
            for column in these:
                text = self._with_left(order, theirs[columns[column]], int(row), int(column))
                if text is not None:
                    texts.append(text)
                    known.append(column)
            mask = np.zeros(len(self.jobs), dtype=bool)
            mask[row] = True
            places = np.array(known, dtype=np.intp)
            codes[row, places], numbers[row, places] = self.ask(query, mines[rows[row]], texts, mask)
        return Cells(codes, numbers)

    def _with_left(
        self, order: list[str], texts: tuple[str | None, ...], row: int, column: int
    ) -> tuple[str | None, ...] | None:
        """A slot's texts with what is left in place of what it has; None where that isn't known yet."""
        found = list(texts)
        for at, name in enumerate(order):
            if texts[at] is not None and (name in LEFT or name in self.left):
                if name in self.left:
                    found[at] = str(int(self.left[name][row, column]))
                elif name == "availablegpus" and self.devices is not None:
                    text = self.devices(row, column)
                    if text is None:
                        return None
                    found[at] = text or texts[at]
        return tuple(found)

    def ask(
        self,
        query: "Query",
        mine: tuple[str | None, ...],
        theirs: list[tuple[str | None, ...]],
        rows: Mask,
    ) -> tuple[Codes, Numbers]:
        oracle = self.oracle
        atom = oracle.number((query.text, query.slots))
        answers: list[tuple[int, float]] = []
        missing: dict[str, dict[Key, str]] = {}
        for texts in theirs:
            (job, job_text), (slot, slot_text), timed = oracle.pair(query.text, query.names, mine, texts)
            key = (atom, job, slot, self.now if timed else 0.0)
            known = oracle.answers.get(key)
            if known is None:
                missing.setdefault(job_text, {})[key] = slot_text
                known = (PENDING, 0.0)
            answers.append(known)
        places = tuple(self.jobs.places[rows].tolist()) if missing else ()
        for job_text, some in missing.items():
            question = Question(query.text, query.slots, job_text, tuple(some.values()), tuple(some))
            oracle.wanted.append(NeededQuestion(question, places))
        codes = np.array([code for code, _ in answers], dtype=np.int8)
        return codes, np.array([number for _, number in answers])


@dataclass(frozen=True, slots=True)
class Query:
    """An expression of the job's side or the slots', and what it can read."""

    text: str
    slots: bool
    names: frozenset[str]


def _devices_of(
    devices: Callable[[int, int], str | None], rows: Places | None, columns: Places | None
) -> Callable[[int, int], str | None]:
    def text(row: int, column: int) -> str | None:
        return devices(
            row if rows is None else int(rows[row]), column if columns is None else int(columns[column])
        )

    return text


def full(mask: Mask, shape: tuple[int, int]) -> Mask:
    """A mask of all pairs."""
    return np.broadcast_to(mask, shape)


def _by_row(combined: Places, width: int) -> list[tuple[int, Places]]:
    """Places in a table of this width, row by row."""
    rows = combined // width
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    pieces = np.split(combined, starts[1:]) if len(combined) else []
    return [(int(piece[0]) // width, piece) for piece in pieces]
