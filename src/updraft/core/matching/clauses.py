"""Expressions taken apart: what is plain comparison and logic becomes a tree, everything else stays text.

Read is the canonical text that the ClassAd library writes. A part that isn't plain (a call, a list, a record,
a subscript) becomes one node of its own, so that a requirement is split as finely as it can be: in
`regexp("^a", TARGET.X) && TARGET.Memory > 1000` only the call is left to the library.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from updraft.core.matching.expressions import KEYWORDS, RECORD, SCOPES, UNDECIDABLE, WORD, join, tokens

_DEEPEST = 30
_LONGEST = 20_000
# Nobody puts a bound on what is evaluated as a tree: longer expressions go to the library, which has one.
_MOST = 1_000
_EXACT = 1 << 53
_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSING = frozenset(_OPEN.values())
_LEVELS: tuple[dict[str, str], ...] = (
    {"||": "||"},
    {"&&": "&&"},
    {"==": "==", "!=": "!=", "=?=": "is", "=!=": "isnt", "is": "is", "isnt": "isnt"},
    {"<": "<", "<=": "<=", ">": ">", ">=": ">="},
    {"+": "+", "-": "-"},
    {"*": "*", "/": "/", "%": "%"},
)
_CALLS = {"isundefined": ("undefined?", 1), "iserror": ("error?", 1), "ifthenelse": ("?", 3)}
_CLOCK = frozenset({"time", "currenttime", "abstime", "formattime"})

COMPARISONS = frozenset({"==", "!=", "is", "isnt", "<", "<=", ">", ">="})
LOGIC = frozenset({"&&", "||", "!"})
OPAQUE = "opaque"
# Names of whole ads, also behind a `TARGET.`; and `eval` reads text as an expression: it can name anything.
_ADS = SCOPES | {"parent", "root", "toplevel"}
_READS_ALL = frozenset({"eval"})


@dataclass(frozen=True, slots=True)
class Names:
    """The attributes that evaluating a text may look up: lower-case `names`, or `whole` ads; whether it
    reads the time.
    """

    names: frozenset[str]
    whole: bool = False
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. `op` is an operator's sign, `const`, `attr`, `time`, or `opaque`.

    `text` is the whole of it as written; `value` is a constant's, or an attribute's name in lower case, with
    `scope` `my`, `target` or nothing. `hard` says that some part of it is opaque.
    """

    op: str
    args: "tuple[Node, ...]"
    text: str
    value: bool | int | float | str | None = None
    scope: str = ""
    hard: bool = field(default=False, compare=False)


class _NotPlainError(Exception):
    """Text that this parser leaves to the library."""


@lru_cache(maxsize=20_000)
def parse(text: str) -> Node:
    """The tree of an expression; one opaque node where it is none that can be taken apart. Never raises."""
    if len(text) > _LONGEST or RECORD.search(text):
        return _opaque(text)
    parts = tokens(text)
    if len(parts) > _MOST:
        return _opaque(text)
    try:
        return _Parser(parts).run()
    except (_NotPlainError, IndexError, RecursionError):
        return _opaque(text)


@lru_cache(maxsize=20_000)
def names_in(text: str) -> Names:
    """The attributes that a text may look up, whatever it is."""
    parts = tokens(text)
    found: set[str] = set()
    whole = timed = False
    for at, part in enumerate(parts):
        quoted = part[0] == "'" and len(part) > 1
        if not (quoted or WORD.match(part)):
            continue
        low, follows = part.strip("'").lower(), parts[at + 1 : at + 2]
        if follows == ["("] and not quoted:
            whole = whole or low in _READS_ALL
            timed = timed or low in _CLOCK
        elif low in _ADS:
            whole = whole or follows != ["."] or low not in SCOPES or parts[at - 1 : at] == ["."]
        elif low not in KEYWORDS or quoted:
            found.add(low)
            timed = timed or low == "currenttime"
    return Names(frozenset(found), whole, timed)


def clauses(node: Node) -> list[Node]:
    """The parts that must all be true for the whole to be."""
    if node.op != "&&":
        return [node]
    return [leaf for arg in node.args for leaf in clauses(arg)]


def _opaque(text: str) -> Node:
    return Node(OPAQUE, (), text, hard=True)


class _Parser:
    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = [*parts, ""]
        self._at = 0
        self._depth = 0

    def run(self) -> Node:
        node = self._ternary()
        if self._parts[self._at]:
            raise _NotPlainError
        return node

    def _node(self, begin: int, op: str, *args: Node, hard: bool = False, **more: str) -> Node:
        text = join(self._parts[begin : self._at])
        return Node(op, args, text, hard=hard or any(arg.hard for arg in args), **more)

    def _ternary(self) -> Node:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotPlainError
        begin = self._at
        node = self._binary(0)
        if self._parts[self._at] == "?":
            self._at += 1
            yes = self._ternary()
            self._take(":")
            no = self._ternary()
            node = self._node(begin, "?", node, yes, no)
        self._depth -= 1
        return node

    def _binary(self, level: int) -> Node:
        if level == len(_LEVELS):
            return self._unary()
        begin, signs = self._at, _LEVELS[level]
        node, length = self._binary(level + 1), 0
        if level < 2:
            return self._chain(begin, node, level)
        while (sign := self._parts[self._at].lower()) in signs:
            length += 1
            if length > _DEEPEST:
                raise _NotPlainError
            self._at += 1
            node = self._node(begin, signs[sign], node, self._binary(level + 1))
        return node

    def _chain(self, begin: int, first: Node, level: int) -> Node:
        """`a && b && c` is one node, however long it is."""
        (sign,) = _LEVELS[level]
        args = [first]
        while self._parts[self._at] == sign:
            self._at += 1
            args.append(self._binary(level + 1))
        return self._node(begin, sign, *args) if len(args) > 1 else first

    def _unary(self) -> Node:
        begin, sign = self._at, self._parts[self._at]
        if sign not in ("!", "-"):
            return self._elvis()
        self._at += 1
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _NotPlainError
        inner = self._unary()
        self._depth -= 1
        if sign == "-" and inner.op == "const" and type(inner.value) in (int, float):
            return Node("const", (), join(self._parts[begin : self._at]), -inner.value)  # type: ignore[operator]
        return self._node(begin, "!" if sign == "!" else "neg", inner)

    def _elvis(self) -> Node:
        """Binds tighter than a sign: `-undefined ?: 3` is -3."""
        begin = self._at
        node = self._primary()
        while self._parts[self._at] == "?:":
            self._at += 1
            if self._parts[self._at] == "-":
                raise _NotPlainError
            node = self._node(begin, "?:", node, self._primary())
        return node

    def _primary(self) -> Node:
        begin, part = self._at, self._parts[self._at]
        self._at += 1
        if part == "(":
            node = self._ternary()
            self._take(")")
        elif part in _OPEN:
            self._at = begin
            self._balanced()
            node = self._node(begin, OPAQUE, hard=True)
        elif WORD.match(part):
            node = self._word(begin, part)
        else:
            node = _constant(part)
        if self._parts[self._at] in (".", "["):
            while self._parts[self._at] in (".", "[", "("):
                self._suffix()
            return self._node(begin, OPAQUE, hard=True)
        return node

    def _suffix(self) -> None:
        if self._parts[self._at] == ".":
            self._at += 2
        else:
            self._balanced()

    def _word(self, begin: int, word: str) -> Node:
        low, follows = word.lower(), self._parts[self._at]
        if follows == "(":
            return self._call(begin, low)
        if low in ("true", "false"):
            return Node("const", (), word, value=low == "true")
        if low in ("undefined", "error"):
            return Node("const", (), word, None, scope="error" if low == "error" else "")
        if low in SCOPES:
            if follows != "." or low not in ("my", "target") or not WORD.match(self._parts[self._at + 1]):
                raise _NotPlainError
            name = self._parts[self._at + 1].lower()
            self._at += 2
            if name in KEYWORDS or name in _ADS or self._parts[self._at] == "(":
                raise _NotPlainError
            return self._node(begin, "attr", value=name, scope=low)
        if low in KEYWORDS or low in _ADS:
            raise _NotPlainError
        return self._node(begin, "time" if low == "currenttime" else "attr", value=low)

    def _call(self, begin: int, low: str) -> Node:
        op, count = _CALLS.get(low, ("", 0))
        if low == "time" and self._parts[self._at + 1] == ")":
            self._at += 2
            return self._node(begin, "time", value="")
        if not op:
            self._balanced()
            return self._node(begin, OPAQUE, hard=True)
        self._take("(")
        args = [self._ternary()]
        while self._parts[self._at] == ",":
            self._at += 1
            args.append(self._ternary())
        self._take(")")
        if len(args) != count:
            return self._node(begin, OPAQUE, hard=True)
        return self._node(begin, op, *args)

    def _balanced(self) -> None:
        """Step over the bracket that opens here, and what is in it."""
        waiting: list[str] = []
        while True:
            part = self._parts[self._at]
            self._at += 1
            if part in _OPEN:
                waiting.append(_OPEN[part])
            elif (part in _CLOSING and part != waiting.pop()) or not part:
                raise _NotPlainError
            if not waiting:
                return

    def _take(self, part: str) -> None:
        if self._parts[self._at] != part:
            raise _NotPlainError
        self._at += 1


def _constant(part: str) -> Node:
    if part[:1] == '"':
        if "\\" in part:
            return _opaque(part)
        return Node("const", (), part, part[1:-1])
    try:
        value: int | float = int(part) if part.isdigit() else float(part)
    except ValueError as error:
        raise _NotPlainError from error
    if abs(value) >= _EXACT:
        return _opaque(part)
    return Node("const", (), part, value)


def undecidable(text: str) -> bool:
    """Whether a text could name something that has no value outside of one evaluation; not exact."""
    low = text.lower()
    return any(word in low for word in (*UNDECIDABLE, "eval"))
