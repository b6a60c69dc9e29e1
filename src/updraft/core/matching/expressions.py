"""ClassAd text, read so that it means here what it means in a pool.

Two things differ between a bare ClassAd library and HTCondor's negotiator and startd, and are made equal when
an ad is read: a name without `MY.` or `TARGET.` that the ad itself doesn't define is looked up on the other
side, and the time is the snapshot's, never this machine's. What can't be made equal (`random()`) is named.

Functions beyond the ClassAd language's own (`split`, `stringListMember`, `countMatches` and their like) are
there only in a process that has loaded HTCondor's library: `complete` tells.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from classad2 import ClassAd, ExprTree, Value

NOW = "UpdraftNow"
"""The attribute that stands for `time()` in a read ad."""

_TOKEN = re.compile(
    r'"(?:[^"\\]|\\.)*"'
    r"|'(?:[^'\\]|\\.)*'"
    r"|\d+(?:\.\d*)?(?:[eE][+-]?\d+)?[A-Za-z]?"
    r"|[A-Za-z_]\w*|&&|\|\||=\?=|=!=|[<>=!]=|\?:|\s+|.",
    re.DOTALL,
)
WORD = re.compile(r"[A-Za-z_]\w*\Z")
RECORD = re.compile(r"\[\s*(?:[A-Za-z_]\w*|'[^']*')\s*=(?![=?!])")
_LONG = 20_000
_TIGHT = frozenset({".", ")", "]", ","})
KEYWORDS = frozenset({"true", "false", "undefined", "error", "is", "isnt", "parent"})
SCOPES = frozenset({"my", "target", "self", "other"})
_CLOCK = {"time": NOW, "currenttime": f"absTime({NOW})", "abstime": f"absTime({NOW})"}
_CLOCK["formattime"] = f"formatTime({NOW})"
# These evaluate an argument inside ads of a list, where a bare name is one of those ads' own.
_ELSEWHERE = frozenset({"evalineachcontext", "countmatches"})
UNDECIDABLE = {
    "random": "random() has another value each time",
    "daytime": "dayTime() is this host's time of day",
    "userhome": "userHome() asks about this host's users",
    "usermap": "userMap() asks about this host's files",
}


@dataclass(frozen=True, slots=True)
class Text:
    """One expression after reading: its new `text`, the lower-case `names` and functions it uses."""

    text: str
    names: frozenset[str]
    timed: bool
    undecidable: str


def complete() -> bool:
    """Whether this process knows the functions that HTCondor adds to the ClassAd language."""
    return bool(ExprTree('split("a b")[1] == "b"').eval() is True)


def tokens(text: str) -> list[str]:
    """The tokens of an expression without its white space; string literals are one token each."""
    return [token for token in _TOKEN.findall(text) if not token.isspace()]


def rewrite(text: str, own: frozenset[str]) -> Text:
    """Scope the bare names of `text` (an expression of an ad that defines `own`) and fix its time."""
    return _Rewriting(tokens(text), own, bool(RECORD.search(text))).run()


class _Rewriting:
    def __init__(self, parts: list[str], own: frozenset[str], records: bool) -> None:
        self._parts = parts
        self._own = own
        self._records = records
        self._names: set[str] = set()
        self._out: list[str] = []
        self._timed, self._undecidable = False, ""
        self._elsewhere: list[int] = []
        self._depth = self._at = 0

    def run(self) -> Text:
        while self._at < len(self._parts):
            part = self._parts[self._at]
            if part in "()":
                self._nest(1 if part == "(" else -1)
            elif WORD.match(part) or part[0] == "'":
                part = self._word(part)
            self._out.append(part)
            self._at += 1
        return Text(join(self._out), frozenset(self._names), self._timed, self._undecidable)

    def _nest(self, step: int) -> None:
        self._depth += step
        if self._elsewhere and self._depth == self._elsewhere[-1]:
            self._elsewhere.pop()

    def _word(self, word: str) -> str:
        low = word.lower()
        follows = self._parts[self._at + 1] if self._at + 1 < len(self._parts) else ""
        if follows == "(":
            return self._call(word, low)
        if low in KEYWORDS or (low in SCOPES and follows == "."):
            return word
        name = low.strip("'")
        self._names.add(name)
        if (self._out and self._out[-1] == ".") or name in self._own:
            return word
        if name == "currenttime":
            self._timed = True
            return NOW
        return word if self._records or self._elsewhere else "TARGET." + word

    def _call(self, word: str, low: str) -> str:
        self._undecidable = self._undecidable or UNDECIDABLE.get(low, "") or _hidden(low, self._parts)
        if low in _ELSEWHERE:
            self._elsewhere.append(self._depth)
        if low in _CLOCK and self._parts[self._at + 2 : self._at + 3] == [")"]:
            self._at += 2
            self._timed = True
            return _CLOCK[low]
        return word


def _hidden(call: str, parts: list[str]) -> str:
    """Why an `eval` of text can't be trusted to be without clock and dice; empty where it can."""
    if call == "eval" and any(part[0] == '"' and re.search("random|time", part, re.I) for part in parts):
        return "eval() of text that names the time or random()"
    return ""


def join(parts: Sequence[str]) -> str:
    """The text that these tokens are, spaced as one would write it."""
    text: list[str] = []
    for at, part in enumerate(parts):
        if at and not _touches(parts, at):
            text.append(" ")
        text.append(part)
    return "".join(text)


def _touches(parts: Sequence[str], at: int) -> bool:
    """Whether a token stands right behind the one before it."""
    part, before = parts[at], parts[at - 1]
    if part in _TIGHT or before in (".", "(", "["):
        return True
    if part in ("(", "["):
        word = WORD.match(before) is not None and before.lower() not in KEYWORDS
        return part == "[" or word
    # `x ?: -1` is an expression to the library, and `x ?: - 1` is none.
    return before == "-" and part[0].isdigit() and (at < 2 or _expects_operand(parts[at - 2]))


def _expects_operand(part: str) -> bool:
    """Whether what follows this token is an operand, so that a `-` there is a sign."""
    if WORD.match(part):
        return part.lower() in ("is", "isnt")
    return not (part in (")", "]", "}") or part[0] in "\"'" or part[0].isdigit())


def conjuncts(text: str) -> list[str]:
    """The parts that must all be true for `text` to be, seen through parentheses."""
    parts = tokens(text)
    while parts and parts[0] == "(" and _closes(parts) == len(parts) - 1:
        parts = parts[1:-1]
    pieces: list[list[str]] = [[]]
    depth = 0
    for part in parts:
        if part in ("(", "[", "{"):
            depth += 1
        elif part in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and part in ("||", "?", "?:"):
            return [join(parts)]
        if depth == 0 and part == "&&":
            pieces.append([])
        else:
            pieces[-1].append(part)
    if len(pieces) == 1:
        return [join(pieces[0])]
    return [leaf for piece in pieces for leaf in conjuncts(join(piece))]


def _closes(parts: list[str]) -> int:
    """Where the parenthesis closes that `parts` begin with."""
    depth = 0
    for at, part in enumerate(parts):
        depth += (part == "(") - (part == ")")
        if depth == 0:
            return at
    return -1


def evaluated(tree: ExprTree, mine: ClassAd | None = None, other: ClassAd | None = None) -> object:
    """The value of an expression in one ad, with the other as its target.

    ERROR for a text that isn't UTF-8, and for a list with one: HTCondor's library has them, and its bindings
    can't hand them over.
    """
    try:
        return tree.eval(mine, other)
    except (UnicodeDecodeError, SystemError):  # the second is what they raise where it stands in a list
        return Value.Error


def true(value: object) -> bool:
    """Whether a requirement that evaluates to `value` matches: UNDEFINED and ERROR don't."""
    if isinstance(value, Value):
        return False
    return bool(value) if isinstance(value, bool | int | float) else False


@dataclass(frozen=True, slots=True)
class Clause:
    """One conjunct of an ad's requirements: its `text` as written, and what is evaluated.

    `mentions` are the attributes it names, each with whether it is the other side's.
    """

    text: str
    tree: ExprTree
    mentions: tuple[tuple[bool, str], ...]


@dataclass(slots=True)
class ReadAd:
    """An ad ready to be matched. Make it with `read`; `bind` the time before evaluating."""

    ad: ClassAd
    requirements: ExprTree | None
    source: str
    own: frozenset[str]
    uses: dict[str, frozenset[str]]
    timed: frozenset[str]
    undecidable: dict[str, str]
    originals: dict[str, str]
    clauses: list[Clause] = field(default_factory=list)

    def bind(self, now: float) -> None:
        """Let the expressions of this ad see `now` as the time."""
        self.ad[NOW] = int(now)

    def accepts(self, other: "ReadAd") -> bool:
        """Whether this ad's requirements hold with `other` on the other side."""
        return self.requirements is not None and true(evaluated(self.requirements, self.ad, other.ad))

    def failing(self, other: "ReadAd") -> Iterator[tuple[Clause, object]]:
        """Each clause of the requirements that doesn't hold, with what it evaluates to."""
        if not self.clauses:
            leaves = self._leaves(self.source, 3) if len(self.source) < _LONG else iter((self.source,))
            self.clauses = [
                Clause(text, ExprTree(rewrite(text, self.own).text), mentioned(text, self.own))
                for text in leaves
            ]
        for clause in self.clauses:
            value = evaluated(clause.tree, self.ad, other.ad)
            if not true(value):
                yield clause, value

    def _leaves(self, text: str, depth: int) -> Iterator[str]:
        for leaf in conjuncts(text):
            name = leaf.lower().removeprefix("my.")
            if depth and name in self.originals and not leaf.lower().startswith("target."):
                yield from self._leaves(self.originals[name], depth - 1)
            else:
                yield leaf


def read(text: str) -> ReadAd:
    """Read an ad in new syntax. Raises `classad2.ClassAdException` where it is none."""
    ad = ClassAd(text)
    names = list(ad)
    own = frozenset(name.lower() for name in names)
    uses: dict[str, frozenset[str]] = {}
    timed: set[str] = set()
    undecidable: dict[str, str] = {}
    originals: dict[str, str] = {}
    for name in names:
        low = name.lower()
        source = str(ad.lookup(name))
        if is_literal(source):
            continue
        originals[low] = source
        # RequireGPUs and its like are read in the context of each device, never of the job.
        scope = own if not low.startswith("require") or low == "requirements" else _Everything()
        new = rewrite(source, scope)
        uses[low] = new.names
        if new.timed:
            timed.add(low)
        if new.undecidable:
            undecidable[low] = new.undecidable
        if new.timed or "TARGET." in new.text:
            ad[name] = ExprTree(new.text)
    has = "requirements" in own
    return ReadAd(
        ad=ad,
        requirements=ad.lookup("Requirements") if has else None,
        source=originals.get("requirements", str(ad.lookup("Requirements")) if has else ""),
        own=own,
        uses=uses,
        timed=frozenset(timed),
        undecidable=undecidable,
        originals=originals,
    )


def mentioned(text: str, own: frozenset[str]) -> tuple[tuple[bool, str], ...]:
    """The attributes that `text` names, in order, each with whether it is the other side's."""
    parts = tokens(text)
    found: dict[tuple[bool, str], None] = {}
    for at, part in enumerate(parts):
        if not WORD.match(part) or parts[at + 1 : at + 2] in (["("], ["."]) or part.lower() in KEYWORDS:
            continue
        scope = parts[at - 2].lower() if at > 1 and parts[at - 1] == "." else ""
        if scope in ("", "my", "target"):
            found[scope == "target" or (not scope and part.lower() not in own), part] = None
    return tuple(found)


class _Everything(frozenset[str]):
    """A set of names that has every name."""

    def __contains__(self, name: object) -> bool:
        return True


_LITERAL = re.compile(r'(?:-?[\d.]+(?:[eE][+-]?\d+)?|"(?:[^"\\]|\\.)*"|true|false|undefined|\{\s*\})\Z', re.I)


def is_literal(text: str) -> bool:
    """Whether `text` is a plain value."""
    return _LITERAL.match(text) is not None


def reached(job: ReadAd, slot: ReadAd) -> frozenset[str]:
    """Every name that evaluating either side's requirements may look up, whichever ad it is in."""
    seen: set[str] = set()
    todo = ["requirements"]
    while todo:
        name = todo.pop()
        for ad in (job, slot):
            fresh = ad.uses.get(name, frozenset()) - seen
            seen |= fresh
            todo.extend(fresh)
    seen.add("requirements")
    return frozenset(seen)
