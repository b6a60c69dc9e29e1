"""Verdicts on many pairs at once: one small number for each, and the whole verdict when somebody asks.

A table of 1,000 groups and 2,000 kinds is 2,000,000 pairs. It costs four bytes a pair here; `Verdict` objects
are made one at a time, for those who look at one pair.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from updraft.core.model import JobGroup, Kind, Verdict, Verdicts

Counts = npt.NDArray[np.int32]

MISSING = -2
"""The pair was not evaluated at all."""
UNDECIDED = -1
"""The pair's requirements could not be decided."""

Explain = Callable[[int, int], Verdict]


# Equal as mappings are: by the verdicts, whatever they came from.
@dataclass(frozen=True, slots=True, eq=False)
class VerdictTable(Mapping[tuple[str, str], Verdict]):
    """Verdicts by (group key, kind key), and as a matrix.

    `copies[g, k]` is how many jobs of group g an empty slot of kind k holds; 0 where it refuses them, and
    UNDECIDED or MISSING. `explain(g, k)` makes the whole verdict of a pair that isn't missing. What a job
    takes needs no table: see `matching.match.asked`.
    """

    groups: Sequence[str]
    kinds: Sequence[str]
    copies: Counts
    explain: Explain
    group_at: Mapping[str, int] = field(default_factory=dict)
    kind_at: Mapping[str, int] = field(default_factory=dict)

    def __getitem__(self, pair: tuple[str, str]) -> Verdict:
        group, kind = self.group_at[pair[0]], self.kind_at[pair[1]]
        if self.copies[group, kind] == MISSING:
            raise KeyError(pair)
        return self.explain(group, kind)

    def __iter__(self) -> Iterator[tuple[str, str]]:
        for group, kind in np.argwhere(self.copies != MISSING):
            yield self.groups[group], self.kinds[kind]

    def __len__(self) -> int:
        return int((self.copies != MISSING).sum())


def table_of(verdicts: Verdicts, groups: Sequence[JobGroup], kinds: Sequence[Kind]) -> VerdictTable:
    """The table of any verdicts for these groups and kinds; one that has just these is not copied."""
    names = [group.key for group in groups]
    others = [kind.key for kind in kinds]
    group_at = {name: at for at, name in enumerate(names)}
    kind_at = {name: at for at, name in enumerate(others)}
    if isinstance(verdicts, VerdictTable):
        if list(verdicts.groups) == names and list(verdicts.kinds) == others:
            return verdicts
        rows = np.array([verdicts.group_at.get(name, -1) for name in names], dtype=np.intp)
        columns = np.array([verdicts.kind_at.get(name, -1) for name in others], dtype=np.intp)
        copies = np.full((len(names), len(others)), MISSING, dtype=np.int32)
        if verdicts.copies.size and copies.size:
            picked = verdicts.copies[np.ix_(rows, columns)]
            there = (rows >= 0)[:, None] & (columns >= 0)[None, :]
            copies = np.where(there, picked, MISSING).astype(np.int32)
        explain = verdicts.explain
        return VerdictTable(
            names, others, copies, lambda g, k: explain(int(rows[g]), int(columns[k])), group_at, kind_at
        )
    copies = np.full((len(names), len(others)), MISSING, dtype=np.int32)
    for (group, kind), verdict in verdicts.items():
        at, which = group_at.get(group), kind_at.get(kind)
        if at is not None and which is not None:
            copies[at, which] = verdict.copies if verdict.decided else UNDECIDED
    return VerdictTable(names, others, copies, lambda g, k: verdicts[names[g], others[k]], group_at, kind_at)
