"""Expressions evaluated for many pairs of a job group and a slot at once."""

from dataclasses import dataclass

import numpy as np

from updraft.core.matching.cells import (
    NO,
    WAITING,
    WRONG,
    YES,
    Cells,
    Mask,
    arithmetic,
    both,
    choose,
    compare,
    constant,
    either,
    minus,
    negated,
    or_else,
    truth,
    value_of,
)
from updraft.core.matching.clauses import COMPARISONS, LOGIC, OPAQUE, Node, clauses, parse
from updraft.core.matching.pairs import Pairs, full
from updraft.core.matching.tables import (
    ABSENT,
    BOOL,
    ERROR,
    EXPRESSION,
    INT,
    PENDING,
    REAL,
    STRING,
    UNDEFINED,
    Codes,
    Numbers,
    Places,
)

_DEEPEST = 12
# What refers to itself many times over would be followed for ever: the library has a budget, this has none.
_LONGEST = 200


class TooDeepError(Exception):
    """Attributes that refer to each other further than is followed here."""


@dataclass(frozen=True, slots=True)
class Grid(Pairs):
    """Pairs, and what expressions evaluate to for them."""

    # ------------------------------------------------------------------------------------- requirements

    def hold(self, side: int, alive: Mask, reading: frozenset[str] | None = None) -> tuple[Mask, Mask]:
        """Where the requirements of one side (0: the jobs) hold, of the pairs in `alive`: those where they do
        or may, and those of them where that isn't known yet.

        `reading` restricts it to the clauses that can read one of these names; the others are taken to hold.
        """
        found, waiting = alive.copy(), np.zeros(self.shape, dtype=bool)
        ads = (self.jobs, self.slots)[side]
        codes, numbers = ads.column("requirements")
        expressions = codes == EXPRESSION
        plain = np.isin(codes, (BOOL, INT, REAL)) & (numbers != 0)
        found[self._line(side, np.flatnonzero(~expressions & ~plain))] = False
        for number in np.unique(numbers[expressions]):
            places = np.flatnonzero(expressions & (numbers == number))
            node = parse(self.jobs.lexicon.sources[int(number)])
            grid = self if len(places) == len(ads) else self._only(side, places)
            block = self._line(side, places)
            found[block], waiting[block] = grid._all_of(node, side, found[block], reading)
        return found, waiting

    def _line(self, side: int, places: Places) -> tuple[Places | slice, Places | slice]:
        return (places, slice(None)) if side == 0 else (slice(None), places)

    def _only(self, side: int, places: Places, deeper: int = 0) -> "Grid":
        return self.part(places, None, deeper) if side == 0 else self.part(None, places, deeper)

    def _all_of(
        self, node: Node, side: int, alive: Mask, reading: frozenset[str] | None
    ) -> tuple[Mask, Mask]:
        found, waiting = alive.copy(), np.zeros(self.shape, dtype=bool)
        parts = sorted(clauses(node), key=lambda clause: clause.hard)
        for clause in parts:
            if reading is not None and not self.closure(clause.text) & reading:
                continue
            codes = self.clause(clause, side, found)
            unknown = codes == WAITING
            if unknown.any():
                waiting |= unknown
                found &= (codes == YES) | unknown
            else:
                found &= codes == YES
            if not found.any():
                break
        return found, waiting & found

    def clause(self, node: Node, side: int, need: Mask | None) -> Codes:
        """The truth of one expression."""
        self.oracle.followed = 0
        try:
            return self.truth(node, side, need)
        except (TooDeepError, RecursionError):
            return truth(self.asked(node, side, need))

    def evaluated(self, node: Node, side: int) -> Cells:
        """The value of one expression."""
        self.oracle.followed = 0
        try:
            return self.value(node, side, None)
        except (TooDeepError, RecursionError):
            return self.asked(node, side, None)

    # ---------------------------------------------------------------------------------------- evaluation

    def truth(self, node: Node, side: int, need: Mask | None) -> Codes:
        """The truth of an expression as a condition. `need`: where that matters, None for everywhere."""
        if node.op in ("&&", "||"):
            return self._chain(node, side, need)
        if node.op == "!":
            return negated(self.truth(node.args[0], side, need))
        if node.op in COMPARISONS:
            codes, odd = compare(
                node.op,
                self.value(node.args[0], side, need),
                self.value(node.args[1], side, need),
                self.jobs.lexicon,
            )
            if odd is None:
                return codes
            answer = truth(self.asked(node, side, _meet(need, odd, self.shape)))
            return np.where(odd, answer, codes)
        if node.op in ("undefined?", "error?"):
            return self._test(node, side, need)
        return truth(self.value(node, side, need))

    def _chain(self, node: Node, side: int, need: Mask | None) -> Codes:
        step, settled = (both, NO) if node.op == "&&" else (either, YES)
        codes = self.truth(node.args[0], side, need)
        for arg in node.args[1:]:
            if arg.hard:
                open_ones = (codes != settled) & (codes != WRONG) & (codes != WAITING)
                if not open_ones.any():
                    continue
                need_now = _meet(need, open_ones, self.shape)
                codes = step(codes, self.truth(arg, side, need_now))
            else:
                codes = step(codes, self.truth(arg, side, need))
        return codes

    def _test(self, node: Node, side: int, need: Mask | None) -> Codes:
        value = self.value(node.args[0], side, need)
        wanted = UNDEFINED if node.op == "undefined?" else ERROR
        return np.where(value.codes == PENDING, np.int8(WAITING), (value.codes == wanted).view(np.int8))

    def value(self, node: Node, side: int, need: Mask | None) -> Cells:
        """The value of an expression."""
        op = node.op
        if op == "const":
            return self._constant(node)
        if op == "attr":
            return self._attribute(node, side, need)
        if op == "time":
            return self._time(node, side, need)
        if op in LOGIC or op in COMPARISONS or op.endswith("d?") or op == "error?":
            return value_of(self.truth(node, side, need))
        if op == "?":
            return self._choice(node, side, need)
        if op == "?:":
            return self._default(node, side, need)
        if op == OPAQUE or op == "%":
            return self.asked(node, side, need)
        values = [self.value(arg, side, need) for arg in node.args]
        found = minus(values[0]) if op == "neg" else arithmetic(op, values[0], values[1])
        return self._mended(found, node, side, need)

    def _mended(self, found: Cells, node: Node, side: int, need: Mask | None) -> Cells:
        if found.odd is None:
            return found
        answer = self.asked(node, side, _meet(need, found.odd, self.shape))
        return Cells(
            np.where(found.odd, answer.codes, found.codes), np.where(found.odd, answer.numbers, found.numbers)
        )

    def _constant(self, node: Node) -> Cells:
        value = node.value
        if value is None:
            return constant(ERROR if node.scope == "error" else UNDEFINED)
        if isinstance(value, str):
            return constant(STRING, self.jobs.lexicon.string(value))
        code = BOOL if isinstance(value, bool) else INT if isinstance(value, int) else REAL
        return constant(code, float(value))

    def _time(self, node: Node, side: int, need: Mask | None) -> Cells:
        if node.value:
            # A name like any other where the ad itself has it.
            own = (self.jobs, self.slots)[side].column("currenttime")[0] != ABSENT
            if own.any():
                return self.asked(node, side, need)
        return constant(INT, float(int(self.now)))

    def _choice(self, node: Node, side: int, need: Mask | None) -> Cells:
        condition = self.truth(node.args[0], side, need)
        arms = []
        for arm, wanted in ((node.args[1], condition == YES), (node.args[2], condition == NO)):
            if wanted.any():
                arms.append(self.value(arm, side, _meet(need, wanted, self.shape) if arm.hard else need))
            else:
                arms.append(constant(UNDEFINED))
        return choose(condition, arms[0], arms[1])

    def _default(self, node: Node, side: int, need: Mask | None) -> Cells:
        first = self.value(node.args[0], side, need)
        missing = first.codes == UNDEFINED
        if not missing.any():
            return first
        second = self.value(
            node.args[1], side, _meet(need, missing, self.shape) if node.args[1].hard else need
        )
        found = or_else(first, second)
        return Cells(np.where(first.codes == PENDING, np.int8(PENDING), found.codes), found.numbers)

    # ---------------------------------------------------------------------------------------- attributes

    def _attribute(self, node: Node, side: int, need: Mask | None) -> Cells:
        name = str(node.value)
        if node.scope:
            return self._read(name, side if node.scope == "my" else 1 - side, node, side, need)
        mine = (self.jobs, self.slots)[side].column(name)[0]
        absent = mine == ABSENT
        if not absent.any():
            return self._read(name, side, node, side, need)
        theirs = self._read(name, 1 - side, node, side, need)
        if absent.all():
            return theirs
        own = self._read(name, side, node, side, need)
        lacks = absent[:, None] if side == 0 else absent[None, :]
        return Cells(np.where(lacks, theirs.codes, own.codes), np.where(lacks, theirs.numbers, own.numbers))

    def _read(self, name: str, whose: int, node: Node, side: int, need: Mask | None) -> Cells:
        """An attribute of one side; `node` of the other is where it is read."""
        ads = (self.jobs, self.slots)[whose]
        codes, numbers = ads.column(name)
        codes = np.where(codes == ABSENT, np.int8(UNDEFINED), codes) if (codes == ABSENT).any() else codes
        expanded = codes == EXPRESSION
        line = codes[:, None] if whose == 0 else codes[None, :]
        values = numbers[:, None] if whose == 0 else numbers[None, :]
        if whose == 1 and name in self.left:
            has = (ads.column(name)[0] != ABSENT)[None, :]
            return Cells(np.where(has, np.int8(INT), line), np.where(has, self.left[name], values))
        if not expanded.any():
            return Cells(line, values)
        if name.startswith("require") and name != "requirements":
            return self.asked(node, side, need)
        return self._expanded(Cells(line, values), whose, expanded, numbers, need)

    def _expanded(
        self, plain: Cells, whose: int, expanded: Codes | Mask, numbers: Numbers, need: Mask | None
    ) -> Cells:
        self.oracle.followed += 1
        if self.depth >= _DEEPEST or self.oracle.followed > _LONGEST:
            raise TooDeepError
        different = np.unique(numbers[expanded])
        sources = self.jobs.lexicon.sources
        if len(different) == 1 and expanded.all():
            deeper = self.part(None, None, 1)
            return deeper.value(parse(sources[int(different[0])]), whose, need)
        codes = np.broadcast_to(plain.codes, self.shape).copy()
        values = np.broadcast_to(plain.numbers, self.shape).copy()
        for number in different:
            places = np.flatnonzero(expanded & (numbers == number))
            grid = self._only(whose, places, 1)
            block = self._line(whose, places)
            some = grid.value(
                parse(sources[int(number)]), whose, None if need is None else full(need, self.shape)[block]
            )
            codes[block], values[block] = some.codes, some.numbers
        return Cells(codes, values)


def _meet(need: Mask | None, also: Mask, shape: tuple[int, int]) -> Mask:
    return full(also if need is None else need & also, shape)
