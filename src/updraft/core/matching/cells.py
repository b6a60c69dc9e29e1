"""Values of many pairs at once, and the operations of the ClassAd language on them.

A matrix has a row for each job group and a column for each kind of slot; one that doesn't depend on either
has one row, or one column. Truth is kept as one small number for each pair (NO, YES, and the three that are
neither), other values as a type and a number. What an operation can't tell (a list compared with a list, a
sum beyond 2^53) is named in `odd`, for the ClassAd library.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from updraft.core.matching.tables import (
    BOOL,
    ERROR,
    EXACT,
    INT,
    LARGE,
    OTHER,
    PENDING,
    REAL,
    STRING,
    UNDEFINED,
    Codes,
    Lexicon,
    Numbers,
)

Mask = npt.NDArray[np.bool_]

NO, YES, UNKNOWN, WRONG, WAITING = range(5)
"""Truth: the last three are undefined, error and a value that is being asked for."""

_NUMERIC = np.array([False, False, True, True, True, False, False, False, False])
_TRUTH = np.array([UNKNOWN, WRONG, NO, NO, NO, WRONG, WRONG, YES, WAITING], dtype=np.int8)
_TYPE = np.array([BOOL, BOOL, UNDEFINED, ERROR, PENDING], dtype=np.int8)
# Rows: what stands on the left; columns: on the right.
_AND = np.array(
    [[NO] * 5, [0, 1, 2, 3, 4], [NO, UNKNOWN, UNKNOWN, WRONG, WAITING], [WRONG] * 5, [WAITING] * 5],
    dtype=np.int8,
).ravel()
_OR = np.array(
    [[0, 1, 2, 3, 4], [YES] * 5, [UNKNOWN, YES, UNKNOWN, WRONG, WAITING], [WRONG] * 5, [WAITING] * 5],
    dtype=np.int8,
).ravel()
_NOT = np.array([YES, NO, UNKNOWN, WRONG, WAITING], dtype=np.int8)
_COMPARE = {
    "==": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}


@dataclass(frozen=True, slots=True)
class Cells:
    """Types and numbers. A string's number is that in the lexicon; `odd` are pairs to ask the library for."""

    codes: Codes
    numbers: Numbers
    odd: Mask | None = None

    @property
    def uniform(self) -> int:
        """The one type of all cells, or -1."""
        if not self.codes.size:
            return -1
        first = int(self.codes.flat[0])
        return first if self.codes.size == 1 or bool((self.codes == first).all()) else -1


def constant(code: int, number: float = 0.0) -> Cells:
    """One value for all pairs."""
    return Cells(np.full((1, 1), code, dtype=np.int8), np.full((1, 1), number))


def truth(value: Cells) -> Codes:
    """The truth of a value as a condition."""
    codes = _TRUTH[value.codes]
    numeric = _NUMERIC[value.codes]
    return np.where(numeric & (value.numbers != 0), np.int8(YES), codes)


def value_of(codes: Codes) -> Cells:
    """Truth as a value."""
    return Cells(_TYPE[codes], (codes == YES).astype(np.float64))


def both(left: Codes, right: Codes) -> Codes:
    """left && right."""
    return _AND.take(left * np.int8(5) + right)


def either(left: Codes, right: Codes) -> Codes:
    """left || right."""
    return _OR.take(left * np.int8(5) + right)


def negated(codes: Codes) -> Codes:
    """!codes."""
    return _NOT[codes]


def compare(op: str, left: Cells, right: Cells, lexicon: Lexicon) -> tuple[Codes, Mask | None]:
    """A comparison, and the pairs of which this can't tell."""
    if op in ("is", "isnt"):
        same, odd = _identical(left, right)
        return (same if op == "is" else negated(same)), odd
    kinds = left.uniform, right.uniform
    if -1 not in kinds and _NUMERIC[kinds[0]] and _NUMERIC[kinds[1]]:
        return _COMPARE[op](left.numbers, right.numbers).view(np.int8), None
    if kinds == (STRING, STRING):
        return _COMPARE[op](*_ranked(left, right, lexicon)).view(np.int8), None
    return _mixed(op, left, right, lexicon)


def _ranked(left: Cells, right: Cells, lexicon: Lexicon) -> tuple[Numbers, Numbers]:
    ranks = lexicon.ranks()

    def rank(cells: Cells) -> Numbers:
        numbers = np.where(cells.codes == STRING, cells.numbers, 0.0)
        found: Numbers = ranks[numbers.astype(np.intp)]
        return found

    return rank(left), rank(right)


def _mixed(op: str, left: Cells, right: Cells, lexicon: Lexicon) -> tuple[Codes, Mask | None]:
    here, there = left.codes, right.codes
    numeric = _NUMERIC[here] & _NUMERIC[there]
    told = _COMPARE[op](left.numbers, right.numbers).view(np.int8)
    found = np.where(numeric, told, np.int8(WRONG))
    strings = (here == STRING) & (there == STRING)
    if strings.any():
        found = np.where(strings, _COMPARE[op](*_ranked(left, right, lexicon)).view(np.int8), found)
    unknown = (here == UNDEFINED) | (there == UNDEFINED)
    found = np.where(unknown & (here != ERROR) & (there != ERROR), np.int8(UNKNOWN), found)
    odd = ((here == OTHER) & (there == OTHER)) | (here == LARGE) | (there == LARGE)
    waiting = (here == PENDING) | (there == PENDING)
    found = np.where(waiting, np.int8(WAITING), found)
    return found, (odd if odd.any() else None)


def _identical(left: Cells, right: Cells) -> tuple[Codes, Mask | None]:
    here, there = left.codes, right.codes
    alike = here == there
    valueless = (here == UNDEFINED) | (here == ERROR)
    found = (alike & (valueless | (left.numbers == right.numbers))).view(np.int8)
    odd = alike & ((here == OTHER) | (here == LARGE))
    waiting = (here == PENDING) | (there == PENDING)
    if waiting.any():
        found = np.where(waiting, np.int8(WAITING), found)
    return found, (odd if odd.any() else None)


def arithmetic(op: str, left: Cells, right: Cells) -> Cells:
    """left op right, for + - * and /."""
    here, there = left.codes, right.codes
    numeric = _NUMERIC[here] & _NUMERIC[there]
    codes = np.where((here == REAL) | (there == REAL), np.int8(REAL), np.int8(INT))
    with np.errstate(all="ignore"):
        numbers = _reckon(op, left.numbers, right.numbers, codes)
    if op == "/":
        codes = np.where(right.numbers == 0, np.int8(ERROR), codes)
    codes = np.where(numeric, codes, np.int8(ERROR))
    unknown = (here == UNDEFINED) | (there == UNDEFINED)
    codes = np.where(unknown & (here != ERROR) & (there != ERROR), np.int8(UNDEFINED), codes)
    odd = (here == OTHER) | (there == OTHER) | (here == LARGE) | (there == LARGE)
    codes = np.where((here == PENDING) | (there == PENDING), np.int8(PENDING), codes)
    # Beyond what is exact here, 64 bits wrap round and reals end.
    odd = odd | (_NUMERIC[codes] & ~(np.abs(numbers) < EXACT))
    odd = odd | np.isnan(left.numbers) | np.isnan(right.numbers)
    return Cells(codes, numbers, odd if odd.any() else None)


def _reckon(op: str, left: Numbers, right: Numbers, codes: Codes) -> Numbers:
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        return left * right
    exact = left / right
    # Whole numbers are divided as in C: what is left over is dropped. It is reckoned with whole numbers,
    # since a rounded quotient may be the next one up.
    divisor = np.where(right == 0, 1.0, right)
    whole = (np.abs(left) // np.abs(divisor)) * np.sign(left) * np.sign(divisor)
    return np.where(codes == INT, whole, exact)


def minus(value: Cells) -> Cells:
    """-value."""
    codes = np.where((value.codes == BOOL) | (value.codes == STRING), np.int8(ERROR), value.codes)
    odd = (codes == OTHER) | (codes == LARGE)
    return Cells(codes, -value.numbers, odd if odd.any() else None)


def choose(condition: Codes, yes: Cells, no: Cells) -> Cells:
    """condition ? yes : no."""
    codes = np.where(condition == YES, yes.codes, no.codes)
    codes = np.where(condition > YES, _TYPE[condition], codes).astype(np.int8)
    numbers = np.where(condition == YES, yes.numbers, no.numbers)
    return Cells(codes, numbers)


def or_else(first: Cells, second: Cells) -> Cells:
    """first ?: second."""
    missing = first.codes == UNDEFINED
    return Cells(
        np.where(missing, second.codes, first.codes).astype(np.int8),
        np.where(missing, second.numbers, first.numbers),
    )
