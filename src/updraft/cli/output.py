"""How the verbs speak: tables for people, JSON for programs, durations in words.

Rich is loaded for tables only.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from updraft.cli.terminal import printable, raw

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

JSON_VERSION = 1
NARROW = 110
LONGEST_NAME = 36
PHASE_STYLES: Mapping[str, str] = {
    "requested": "cyan",
    "booting": "cyan",
    "joined": "green",
    "draining": "yellow",
    "ending": "yellow",
    "lost": "red",
    "failed": "red",
}

json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: `right` for numbers, `wide` for the one that takes the room that is left."""

    title: str
    right: bool = False
    wide: bool = False


def say_json(document: Mapping[str, Any]) -> None:
    """Print a document with the version of its form first."""
    text = json.dumps({"version": JSON_VERSION, **document}, indent=2, ensure_ascii=False, default=list)
    click.echo(json_text(text))


def json_text(text: str) -> str:
    """JSON with what a terminal would obey in JSON's own escapes: it says the same to programs."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return json.dumps(letter)[1:-1] if ord(letter) > 0x7F else f"\\u{ord(letter):04x}"


def console(*, err: bool = False) -> "Console":
    """Where tables are printed: as wide as the terminal, and plain where stdout (or stderr) is none."""
    from rich.console import Console

    class Ours(Console):
        """Its own colours are the only orders that it gives to the terminal."""

        def print(self, *objects: Any, **how: Any) -> None:
            super().print(*(printable(one) if isinstance(one, str) else one for one in objects), **how)

    file = raw(sys.stderr if err else sys.stdout)
    return Ours(file=file, highlight=False, soft_wrap=False, emoji=False)


def is_narrow(out: "Console") -> bool:
    """True where a table of many columns would leave no room for its sentences."""
    return out.width < NARROW


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], title: str = "") -> "RenderableType":
    """A table without vertical lines. Cells are plain texts, never markup; long ones are folded, not cut.

    A name that is longer than most is folded within its column, and takes nobody's room.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(
        box=box.SIMPLE_HEAD,
        title=title or None,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        padding=(0, 1, 0, 0),
        show_edge=False,
    )
    cells = [[printable(cell, "\n") for cell in row] for row in rows]
    for at, column in enumerate(columns):
        longest = max((len(row[at]) for row in cells), default=0)
        folds = not (column.wide or column.right) and longest > LONGEST_NAME
        made.add_column(
            column.title,
            justify="right" if column.right else "left",
            overflow="fold",
            no_wrap=not (column.wide or folds),
            max_width=LONGEST_NAME if folds else None,
        )
    for row in cells:
        made.add_row(*(Text(cell, style=PHASE_STYLES.get(cell, "")) for cell in row))
    return made


def ago(seconds: float) -> str:
    """A duration as a person says it, in at most two units: 3s, 12m, 2h10m, 5d."""
    left = max(0, round(seconds))
    if left < 60:
        return f"{left}s"
    minutes, hours, days = left // 60, left // 3600, left // 86400
    if minutes < 60:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h{minutes % 60:02d}m" if minutes % 60 else f"{hours}h"
    return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"


def clock(at: float) -> str:
    """A moment as the local time of day, with the date where it isn't today's."""
    moment = datetime.fromtimestamp(at).astimezone()
    today = datetime.now().astimezone().date()
    return moment.strftime("%H:%M:%S" if moment.date() == today else "%Y-%m-%d %H:%M:%S")


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 job", "3 jobs"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def megabytes(memory: int) -> str:
    """Memory in MiB as a person says it: 2048 is "2 GiB"."""
    return f"{memory / 1024:g} GiB" if memory >= 1024 and memory % 512 == 0 else f"{memory} MiB"


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on stderr that something takes its time, where someone watches."""
    if not sys.stderr.isatty():
        yield
        return
    with console(err=True).status(f"{what} …"):
        yield
