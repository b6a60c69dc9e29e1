"""How the verbs speak: tables for people, JSON for programs, durations in words.

Rich is loaded for tables only.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from updraft.app.terminal import plain_streams, printable, raw
from updraft.documents import plain
from updraft.errors import UsageError
from updraft.watching.words import ago as ago
from updraft.watching.words import clock as clock
from updraft.watching.words import count as count
from updraft.watching.words import megabytes as megabytes

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

JSON_VERSION = 1
NARROW = 110
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
log_option = click.option(
    "--log",
    "log_form",
    type=click.Choice(("text", "json")),
    default="text",
    show_default=True,
    help="The form of the log on stderr.",
)


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table: `right` for numbers, `wide` for the one that takes the room that is left."""

    title: str
    right: bool = False
    wide: bool = False


def say_json(document: Any) -> None:
    """Print a document with the version of its form first."""
    click.echo(json_document(document))


def json_document(document: Any, indent: int | None = 2) -> str:
    """The text of a document with the version of its form first."""
    text = json.dumps({"version": JSON_VERSION, **plain(document)}, indent=indent, ensure_ascii=False)
    return json_text(text)


def json_text(text: str) -> str:
    """JSON with what a terminal would obey in JSON's own escapes: it says the same to programs."""
    if text.replace("\n", "").isprintable():
        return text
    return "".join(letter if letter.isprintable() or letter == "\n" else _escaped(letter) for letter in text)


def _escaped(letter: str) -> str:
    return json.dumps(letter)[1:-1] if ord(letter) > 0x7F else f"\\u{ord(letter):04x}"


def console(*, err: bool = False) -> "Console":
    """Where all is drawn: as wide as the terminal, and plain where stdout (or stderr) is none."""
    from updraft.cli.drawing import PlainConsole

    return PlainConsole(file=raw(sys.stderr if err else sys.stdout), soft_wrap=False)


def is_narrow(out: "Console") -> bool:
    """True where a table of many columns would leave no room for its sentences."""
    return out.width < NARROW


def table(columns: Sequence[Column], rows: Iterable[Sequence[str]], title: str = "") -> "RenderableType":
    """A table without vertical lines. Cells are plain texts, never markup; long ones are folded, not cut.

    A name that is longer than most is folded within its column, and takes nobody's room; where room is short,
    the longest are folded first, and numbers last.
    """
    from updraft.cli.drawing import FoldingTable

    cells = [[printable(cell, "\n") for cell in row] for row in rows]
    return FoldingTable(columns, cells, title, PHASE_STYLES)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Show on stderr that something takes its time, where someone watches."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.text import Text

    # What is written meanwhile goes through rich, which would take its colours for ours.
    with console(err=True).status(Text(f"{what} …")), plain_streams():
        yield


def confirm(question: str) -> None:
    """Go on when a person says yes; UsageError where nobody is there to ask."""
    try:
        sure = click.confirm(question, err=True)
    except click.Abort as error:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)
        raise UsageError("nobody answers here, and nothing was done; --yes says that it is meant") from error
    if not sure:
        raise click.Abort
