"""What became of each key: one row for each, and nothing left out."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """What becomes of a key."""

    TAKEN = "taken"
    REPLACED = "replaced"
    NOT_NEEDED = "not needed"
    SECRET = "secret"  # noqa: S105 (a word of the report)
    UNKNOWN = "unknown"
    LOOK = "look"


MEANINGS = {
    Fate.TAKEN: "it stands in updraft.toml, with the same meaning",
    Fate.REPLACED: "something else does its work, and the row says what",
    Fate.NOT_NEEDED: "updraft has no use for it, and the row says why",
    Fate.SECRET: "left out and not shown; the row says where it goes",
    Fate.UNKNOWN: "neither the old program nor updraft knows such a key; it is left out",
    Fate.LOOK: "something for you to see to before the pool starts",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One key: the file and section that it stands in, its fate and one or two sentences. Holds no secret.

    `line` is None for what the file doesn't say and its program took for granted.
    """

    file: str
    section: str
    key: str
    fate: Fate
    text: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """All rows, in the order of the files and their lines."""

    rows: tuple[Row, ...]

    def count(self, fate: Fate) -> int:
        """How many keys met this fate."""
        return sum(row.fate is fate for row in self.rows)

    def of(self, *fates: Fate) -> tuple[Row, ...]:
        """The rows of these fates."""
        return tuple(row for row in self.rows if row.fate in fates)


def ordered(files: Iterable[str], rows: Iterable[Row]) -> Report:
    """The rows by file and line; what stands in no file comes last."""
    place = {name: number for number, name in enumerate(files)}
    last = len(place)
    return Report(
        tuple(sorted(rows, key=lambda row: (place.get(row.file, last), row.line is None, row.line or 0)))
    )


def on_lines(numbers: Iterable[int]) -> str:
    """Line numbers as people write them: "lines 3-5, 9"."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    single = len(runs) == 1 and runs[0][0] == runs[0][1]
    return f"{'line' if single else 'lines'} {', '.join(texts)}"
