"""Ads as tables: the texts of their attributes by name, and columns of values over many ads.

An ad is read once, by splitting the canonical text that the ClassAd library writes of it; equal texts are
kept once, whichever ads they are in.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
from classad2 import ClassAd, ClassAdException, ExprTree

from updraft.core.matching.clauses import names_in, undecidable
from updraft.core.matching.expressions import evaluated, is_literal, rewrite

Codes = npt.NDArray[np.int8]
Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.intp]

UNDEFINED, ERROR, BOOL, INT, REAL, STRING, OTHER, LARGE, PENDING, ABSENT, EXPRESSION = range(11)
"""What a cell holds: the types of the language (OTHER is a list, an ad or a time, LARGE a whole number that
isn't exact here), a value that is being asked for, an attribute that the ad doesn't have, and one that is an
expression."""

EXACT = 1 << 53
"""Whole numbers are counted with exactly up to this; larger ones are left to the ClassAd library."""

# The library reads ads by recursion: what is longer than this could end the process, so it isn't read.
_LONGEST_AD = 40_000
_LONGEST_ATTRIBUTE = 16_384
_HEAD = re.compile(r"\s*(?:([A-Za-z_]\w*)|'((?:[^'\\]|\\.)*)')\s*=\s*")
_SIMPLE = re.compile(r'\s*("(?:[^"\\]|\\.)*"|[-+.\w]+)\s*([;\]])')
_END = re.compile(r"\s*\]?\s*\Z")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\]|\\.)*\'|[^"\'\[\](){};]+|.', re.DOTALL)


class UnreadableError(Exception):
    """The text is no ad, or one that is too long to be read here; the message is one sentence."""


@dataclass(frozen=True, slots=True)
class Uses:
    """The references of an ad's expressions, for telling whether the time or chance decide about it."""

    by_name: dict[str, frozenset[str]]
    timed: frozenset[str]
    undecidable: dict[str, str]


@dataclass(frozen=True, slots=True)
class Facts:
    """An ad: `sources` are its attributes' texts by lower-case name, `spelled` the names as written.

    `skeleton` is a number for all of its expressions: ads that differ in plain values only share it.
    """

    sources: dict[str, str]
    skeleton: int


@dataclass(slots=True)
class Lexicon:
    """The known texts, for as long as anybody remembers ads: numbers for strings and expressions."""

    texts: dict[str, str] = field(default_factory=dict)
    strings: dict[str, int] = field(default_factory=dict)
    expressions: dict[str, int] = field(default_factory=dict)
    sources: list[str] = field(default_factory=list)
    cells: dict[str, tuple[int, float]] = field(default_factory=dict)
    skeletons: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    uses: list[Uses] = field(default_factory=list)
    _strings: list[str] = field(default_factory=list)
    _ranks: Numbers = field(default_factory=lambda: np.zeros(0))

    def read(self, text: str) -> Facts:
        """The facts of an ad in new syntax. UnreadableError where there are none."""
        sources = self._checked(text)
        keep = self.texts
        known = {keep.setdefault(n, n): keep.setdefault(s, s) for n, s in sources.items()}
        cells = self.cells
        bones = []
        for name, source in known.items():
            cell = cells.get(source)
            if cell is None:
                cell = cells[source] = self._cell(source)
            if cell[0] == EXPRESSION:
                bones.append((name, source))
        return Facts(known, self._skeleton(tuple(sorted(bones))))

    def _checked(self, text: str) -> dict[str, str]:
        if len(text) > _LONGEST_AD:
            raw = split(text)
            if raw is None or any(len(source) > _LONGEST_ATTRIBUTE for source in raw.values()):
                raise UnreadableError("is too long to be read")
        try:
            parsed = ClassAd(text)
            sources = split(repr(parsed))
        except (ClassAdException, RecursionError, UnicodeError) as error:
            raise UnreadableError("is no ClassAd") from error
        if sources is None or len(sources) != len(parsed):
            sources = {name.lower(): str(parsed.lookup(name)) for name in parsed}
        return sources

    def _skeleton(self, bones: tuple[tuple[str, str], ...]) -> int:
        number = self.skeletons.get(bones)
        if number is None:
            number = self.skeletons[bones] = len(self.uses)
            self.uses.append(_uses(bones))
        return number

    def cell(self, source: str) -> tuple[int, float]:
        """The type and the number of an attribute's text: a value, a string's or an expression's number."""
        known = self.cells.get(source)
        if known is None:
            known = self.cells[source] = self._cell(source)
        return known

    def string(self, text: str) -> int:
        """The number of a string."""
        return self.strings.setdefault(text, len(self.strings))

    def text(self, number: int) -> str:
        """The string with this number."""
        if len(self._strings) != len(self.strings):
            self._strings = list(self.strings)
        return self._strings[number]

    def ranks(self) -> Numbers:
        """By a string's number: where it stands among all, upper and lower case being the same."""
        if len(self._ranks) != len(self.strings):
            folded = [text.encode("utf-8", "surrogatepass").lower() for text in self.strings]
            place = {text: at for at, text in enumerate(sorted(set(folded)))}
            self._ranks = np.array([place[text] for text in folded], dtype=np.float64)
        return self._ranks

    def _cell(self, source: str) -> tuple[int, float]:
        low = source.lower()
        if low in ("true", "false"):
            return BOOL, float(low == "true")
        if low == "undefined":
            return UNDEFINED, 0.0
        if source[:1] == '"' and is_literal(source):
            text = source[1:-1] if "\\" not in source else evaluated(ExprTree(source))
            if isinstance(text, str):
                return STRING, float(self.string(text))
        elif is_literal(source) and source[:1] != "{":
            whole = source.lstrip("-").isdigit()
            if abs(float(source)) < EXACT:
                return (INT if whole else REAL), float(source)
        return EXPRESSION, float(self._expression(source))

    def _expression(self, source: str) -> int:
        number = self.expressions.get(source)
        if number is None:
            number = self.expressions[source] = len(self.sources)
            self.sources.append(source)
        return number


def split(text: str) -> dict[str, str] | None:
    """The attributes of an ad in new syntax, each one's text by its lower-case name; None where it is odd."""
    found: dict[str, str] = {}
    at = text.find("[") + 1
    if not at:
        return None
    while not _END.match(text, at):
        head = _HEAD.match(text, at)
        if head is None:
            return None
        simple = _SIMPLE.match(text, head.end())
        if simple:
            source, at = simple.group(1), simple.end() - (simple.group(2) == "]")
        else:
            source, at = _rest(text, head.end())
        if not source:
            return None
        found[(head.group(1) or head.group(2)).lower()] = source
    return found


def _rest(text: str, begin: int) -> tuple[str, int]:
    """One expression from `begin` up to its semicolon or the end of the ad, and where the next begins."""
    depth = 0
    for token in _TOKEN.finditer(text, begin):
        sign = token.group()
        if sign in ("(", "[", "{"):
            depth += 1
        elif sign in (")", "]", "}"):
            depth -= 1
            if depth < 0:
                return text[begin : token.start()].strip(), token.start()
        elif sign == ";" and not depth:
            return text[begin : token.start()].strip(), token.end()
    return "", len(text)


def _uses(bones: tuple[tuple[str, str], ...]) -> Uses:
    by_name: dict[str, frozenset[str]] = {}
    timed, found = set(), {}
    for name, source in bones:
        names = names_in(source)
        by_name[name] = names.names
        if names.timed:
            timed.add(name)
        if undecidable(source):
            why = rewrite(source, frozenset()).undecidable
            if why:
                found[name] = why
    return Uses(by_name, frozenset(timed), found)


class Side:
    """Ads of one side, in order, and columns of their attributes."""

    def __init__(self, lexicon: Lexicon, facts: Sequence[Facts]) -> None:
        self.lexicon = lexicon
        self.facts = facts
        self._columns: dict[str, tuple[Codes, Numbers]] = {}
        self._expressions: dict[str, tuple[int, ...]] = {}
        self._keys: dict[frozenset[str], tuple[list[tuple[str | None, ...]], Places]] = {}
        self._parent: tuple[Side, Places] | None = None
        self.places: Places = np.arange(len(facts))
        """Where each ad stands among those that the first side was made of."""

    def __len__(self) -> int:
        return len(self.facts)

    def part(self, places: Places) -> "Side":
        """Some of the ads, in that order; their columns are taken from these."""
        if len(places) == len(self) and bool((places == np.arange(len(places))).all()):
            return self
        small = Side(self.lexicon, [self.facts[at] for at in places.tolist()])
        small._parent, small.places = (self, places), self.places[places]
        return small

    def column(self, name: str) -> tuple[Codes, Numbers]:
        """The types and numbers of an attribute, ad by ad."""
        known = self._columns.get(name)
        if known is None:
            known = self._columns[name] = self._column(name)
        return known

    def _column(self, name: str) -> tuple[Codes, Numbers]:
        if self._parent is not None:
            parent, places = self._parent
            codes, numbers = parent.column(name)
            return codes[places], numbers[places]
        cell = self.lexicon.cell
        cells = [
            (ABSENT, 0.0) if (source := facts.sources.get(name)) is None else cell(source)
            for facts in self.facts
        ]
        codes = np.array([code for code, _ in cells], dtype=np.int8)
        return codes, np.array([number for _, number in cells], dtype=np.float64)

    def expressions(self, name: str) -> tuple[int, ...]:
        """The numbers of the different expressions that this attribute is."""
        known = self._expressions.get(name)
        if known is None:
            codes, numbers = self.column(name)
            different = {int(number) for number in numbers[codes == EXPRESSION]}
            known = self._expressions[name] = tuple(sorted(different))
        return known

    def keys(self, names: frozenset[str]) -> tuple[list[tuple[str | None, ...]], Places]:
        """The different combinations of these attributes' texts (in the order of the names), and which of
        them each ad has."""
        known = self._keys.get(names)
        if known is None:
            order = sorted(names)
            seen: dict[tuple[str | None, ...], int] = {}
            places = np.empty(len(self), dtype=np.intp)
            for at, facts in enumerate(self.facts):
                texts = tuple([facts.sources.get(name) for name in order])
                places[at] = seen.setdefault(texts, len(seen))
            known = self._keys[names] = (list(seen), places)
        return known


def reached(job: Uses, slot: Uses) -> set[str]:
    """Every name that evaluating either side's requirements may look up, whichever ad it is in."""
    seen, todo = {"requirements"}, ["requirements"]
    while todo:
        name = todo.pop()
        for uses in (job, slot):
            fresh = uses.by_name.get(name, frozenset()) - seen
            seen |= fresh
            todo.extend(fresh)
    return seen
