"""Why a pair doesn't match, in sentences, from what is known already: nothing is asked for and nobody's
expression is given to the ClassAd library."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from updraft.core.matching.cells import WAITING, YES
from updraft.core.matching.clauses import Node, parse
from updraft.core.matching.expressions import conjuncts, mentioned
from updraft.core.matching.grid import Grid
from updraft.core.matching.match import CLAUSE, REASONS, SENTENCE, short
from updraft.core.matching.oracle import Oracle
from updraft.core.matching.tables import (
    BOOL,
    ERROR,
    EXPRESSION,
    INT,
    REAL,
    STRING,
    UNDEFINED,
    Facts,
    Lexicon,
    Side,
)
from updraft.core.model import Reason

_LONG = 20_000
_INLINED = 3
_FACTS = 4


@dataclass(frozen=True, slots=True)
class Refusal:
    """One pair, to be explained."""

    lexicon: Lexicon
    grid: Grid
    job: Facts
    slot: Facts

    def reasons(self, side: int) -> list[Reason]:
        """Each clause of one side's requirements (0: the job's) that is known not to hold."""
        names = ("job", "slot") if side == 0 else ("slot", "job")
        code = "requirements" if side == 0 else "machine-requirements"
        ad = (self.job, self.slot)[side]
        source = ad.sources.get("requirements")
        if source is None:
            return [Reason(code, f"the {names[0]}'s ad has no Requirements")]
        leaves = self._leaves(ad, source, _INLINED) if len(source) < _LONG else iter((source,))
        found: list[Reason] = []
        for leaf in leaves:
            node = parse(leaf)
            if self._fails(node, side):
                found.append(Reason(code, self._sentence(leaf, node, side, names)))
            if len(found) == REASONS:
                break
        return found

    def holds(self, side: int) -> bool:
        """Whether one side's requirements hold or may hold."""
        alive = np.ones((1, 1), dtype=bool)
        return bool(self.grid.hold(side, alive)[0][0, 0])

    def _leaves(self, ad: Facts, text: str, depth: int) -> Iterator[str]:
        for leaf in conjuncts(text):
            name = leaf.lower().removeprefix("my.")
            source = ad.sources.get(name)
            inlined = source is not None and self.lexicon.cell(source)[0] == EXPRESSION
            if depth and inlined and source is not None and not leaf.lower().startswith("target."):
                yield from self._leaves(ad, source, depth - 1)
            else:
                yield leaf

    def _fails(self, node: Node, side: int) -> bool:
        return int(self.grid.clause(node, side, None)[0, 0]) not in (YES, WAITING)

    def _sentence(self, leaf: str, node: Node, side: int, names: tuple[str, str]) -> str:
        ad = (self.job, self.slot)[side]
        facts = []
        for theirs, name in mentioned(leaf, frozenset(ad.sources))[:_FACTS]:
            whose = 1 - side if theirs else side
            owner = names[1] if theirs else names[0]
            verb = "asks" if whose == 0 and name.lower().startswith("request") else "has"
            facts.append(f"the {owner} {verb} {name} {self._value(name, whose)}")
        code, _ = self._cell(node, side)
        if code in (UNDEFINED, ERROR):
            facts.append(f"which is {'undefined' if code == UNDEFINED else 'error'}")
        return short(f"{short(leaf, CLAUSE)}: {', '.join(facts) or 'is not true'}", SENTENCE)

    def _cell(self, node: Node, side: int) -> tuple[int, float]:
        cells = self.grid.evaluated(node, side)
        return int(cells.codes[0, 0]), float(cells.numbers[0, 0])

    def _value(self, name: str, whose: int) -> str:
        source = (self.job, self.slot)[whose].sources.get(name.lower())
        if source is None:
            return "undefined"
        code, number = self._cell(Node("attr", (), f"MY.{name}", name.lower(), "my"), whose)
        if code in (UNDEFINED, ERROR):
            return "undefined" if code == UNDEFINED else "error"
        if code == BOOL:
            return str(bool(number)).lower()
        if code == INT:
            return str(int(number))
        if code == REAL:
            return short(str(number), 60)
        if code == STRING:
            return short(f'"{self._text(int(number))}"', 60)
        return short(source, 60)

    def _text(self, number: int) -> str:
        return self.lexicon.text(number)


def refused(oracle: Oracle, now: float, job: Facts, slot: Facts) -> tuple[list[Reason], list[Reason]]:
    """Why the job's requirements and the slot's don't hold; each empty where they do.

    Questions that would have to be asked first are left out.
    """
    lexicon, asked = oracle.lexicon, len(oracle.wanted)
    grid = Grid(Side(lexicon, [job]), Side(lexicon, [slot]), oracle, now)
    pair = Refusal(lexicon, grid, job, slot)
    found: list[list[Reason]] = []
    for side, code in ((0, "requirements"), (1, "machine-requirements")):
        reasons: list[Reason] = []
        if not pair.holds(side):
            source = (job, slot)[side].sources.get("requirements", "")
            with suppress(RecursionError):
                reasons = pair.reasons(side)
            reasons = reasons or [Reason(code, f"{short(source, CLAUSE)}: is not true")]
        found.append(reasons)
    del oracle.wanted[asked:]
    return found[0], found[1]
