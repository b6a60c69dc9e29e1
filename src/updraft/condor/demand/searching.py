"""The search for jobs whose ads can't be read, in steps: as many of them as there is time for.

What is suspect is left out of all other questions until it is told apart. So whoever is told apart is served
while the search goes on, at the next looks.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import inf

from updraft.condor.demand.conditions import owner_in
from updraft.condor.written import quoted


@dataclass(frozen=True, slots=True)
class Suspects:
    """All jobs of these owners, or of one owner those in these clusters: some of them may not be readable."""

    owners: tuple[str, ...]
    clusters: tuple[int, ...] = ()

    @property
    def condition(self) -> str:
        """The condition that it is one of these jobs."""
        if not self.clusters:
            return owner_in(self.owners)
        first, last = self.clusters[0], self.clusters[-1]
        return f"ClusterId >= {first} && ClusterId <= {last} && Owner == {quoted(self.owners[0])}"

    @property
    def halves(self) -> tuple["Suspects", ...]:
        """The same in two parts, or in one where it can't be parted."""
        half = len(self.clusters or self.owners) // 2
        if not half:
            return (self,)
        if self.clusters:
            return Suspects(self.owners, self.clusters[:half]), Suspects(self.owners, self.clusters[half:])
        return Suspects(self.owners[:half]), Suspects(self.owners[half:])

    @property
    def size(self) -> tuple[int, float]:
        """How many wait for it to be told apart: the owners first, since the innocent are among those."""
        return len(self.owners), len(self.clusters) or inf


@dataclass(frozen=True, slots=True)
class AdSearch:
    """A question that failed, and what is still suspect. `asked` is its condition, `grouped` its form;
    `whole` where it was asked for clusters' own ads as well."""

    asked: str
    names: tuple[str, ...]
    grouped: bool
    whole: bool
    parts: tuple[Suspects, ...]


@dataclass(slots=True)
class SearchBudget:
    """The seconds that one look may spend on searching; what is `spent` is over it by one question at most.

    Unless it has `rested`, a search goes on only where it isn't known whose jobs can't be read: which of his
    own they are keeps nobody else waiting.
    """

    limit: float = inf
    rested: bool = True
    clock: Callable[[], float] = time.monotonic
    spent: float = 0.0
    _begun: float | None = field(default=None)

    def __enter__(self) -> "SearchBudget":
        self._begun = self.clock()
        return self

    def __exit__(self, *_: object) -> None:
        self.spent, self._begun = self.used, None

    @property
    def used(self) -> float:
        """The seconds spent so far."""
        return self.spent + (0.0 if self._begun is None else self.clock() - self._begun)

    @property
    def over(self) -> bool:
        """Whether there is no time left."""
        return self.used >= self.limit

    def next_of(self, parts: list[Suspects]) -> Suspects | None:
        """Take out the part to look at now: the largest. None where there is none for which it is time."""
        parts.sort(key=lambda part: part.size)
        if self.over or not parts or (parts[-1].clusters and not self.rested):
            return None
        return parts.pop()


def suspects(searches: Iterable[AdSearch]) -> tuple[Suspects, ...]:
    """All that is suspect in these searches."""
    return tuple(part for one in searches for part in one.parts)
