"""What is known of pairs from decision to decision: a row for each content of a job group, a column for each
content of a kind, and in them how many jobs fit."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from updraft.core.matching.oracle import Oracle
from updraft.core.matching.tables import Facts, Lexicon, UnreadableError
from updraft.core.matching.verdicts import MISSING, Counts
from updraft.core.model import JobGroup, Kind, Verdict

Ad = TypeVar("Ad", JobGroup, Kind)
Content = tuple[object, ...]


@dataclass(slots=True)
class Memo:
    """Verdicts by content, kept from cycle to cycle: an equal group under another name costs a look-up.

    `limit` bounds how many rows and columns are kept beyond those of the last decision.
    """

    limit: int = 5_000
    copies: Counts = field(default_factory=lambda: np.full((0, 0), MISSING, dtype=np.int32))
    rows: dict[Content, int] = field(default_factory=dict)
    columns: dict[Content, int] = field(default_factory=dict)
    oracle: Oracle = field(default_factory=lambda: Oracle(Lexicon()))
    told: dict[tuple[int, int], Verdict] = field(default_factory=dict)
    _facts: dict[str, Facts | str] = field(default_factory=dict)

    @property
    def lexicon(self) -> Lexicon:
        """The texts of all ads that are known."""
        return self.oracle.lexicon

    def facts(self, text: str) -> Facts | str:
        """What an ad says; a sentence where it can't be read."""
        known = self._facts.get(text)
        if known is None:
            try:
                known = self.lexicon.read(text)
            except UnreadableError as error:
                known = str(error)
            self._facts[text] = known
        return known

    def places(self, groups: Sequence[JobGroup], kinds: Sequence[Kind]) -> tuple[list[int], list[int]]:
        """The row of each group and the column of each kind, which are there after this."""
        rows, columns = self.rows, self.columns
        found = [rows.setdefault((g.ad, g.request, g.evaluable), len(rows)) for g in groups]
        others = [columns.setdefault((k.ad, k.resources, k.partitionable), len(columns)) for k in kinds]
        high, wide = self.copies.shape
        if len(rows) > high or len(columns) > wide:
            larger = np.full((_room(len(rows), high), _room(len(columns), wide)), MISSING, dtype=np.int32)
            larger[:high, :wide] = self.copies
            self.copies = larger
        return found, others

    def forget_unused(self, rows: Iterable[int], columns: Iterable[int]) -> bool:
        """Drop what is not among these, once there is more of it than the limit allows. True where rows and
        columns have other numbers then."""
        if len(self.told) > 40 * self.limit:
            self.told = {}
        kept, others = sorted(set(rows)), sorted(set(columns))
        crowded = len(self.rows) + len(self.columns) > len(kept) + len(others) + self.limit
        if crowded:
            self.copies = self.copies[np.ix_(kept, others)]
            self.rows, self.columns = _renumbered(self.rows, kept), _renumbered(self.columns, others)
        if crowded or self.oracle.full:
            # Texts are read again where they are needed: the numbers in the matrix depend on none of them.
            self.oracle, self._facts, self.told = Oracle(Lexicon()), {}, {}
        return crowded


def _room(wanted: int, present: int) -> int:
    return present if wanted <= present else max(wanted, present + present // 4)


def _renumbered(numbers: dict[Content, int], kept: list[int]) -> dict[Content, int]:
    place = {number: at for at, number in enumerate(kept)}
    return dict(sorted(((c, place[n]) for c, n in numbers.items() if n in place), key=lambda item: item[1]))
