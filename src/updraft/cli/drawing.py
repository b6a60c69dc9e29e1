"""How rich draws for us: texts are plain and printable, and no column of a table takes the others' room.

It is loaded only where something is drawn: `updraft.cli.output` has the functions that the verbs use.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from updraft.app.terminal import printable
from updraft.cli.output import Column

LONGEST_NAME = 36
LONGEST_NUMBER = 20  # what is longer in a column of numbers is none, and may be folded
LEAST_SENTENCE = 16
LEAST_NAME = 8
LEAST = 4
_PIECES = re.compile(r"[^-/@,:._=]*[-/@,:._=]+|[^-/@,:._=]+")  # a name is folded behind these signs first


class PlainConsole(Console):
    """A console whose own colours and movements are the only orders that it gives to the terminal.

    No text is taken for markup, and whatever is drawn, in whatever it is wrapped, is printable.
    """

    def __init__(self, **how: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **how)

    def render_str(self, text: str, **how: Any) -> Text:
        """The text as it is shown."""
        return super().render_str(printable(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """What is drawn, by pieces. A text is made printable before its lines are broken."""
        if isinstance(renderable, Text):
            renderable = _printable_text(renderable)
        for piece in super().render(renderable, options):
            yield piece if piece.control else piece._replace(text=printable(piece.text))


def _printable_text(text: Text) -> Text:
    """The same text made printable, with its styles where they were."""
    if text.plain.isprintable():
        return text
    letters = [printable(letter) for letter in text.plain]
    starts = list(accumulate(map(len, letters), initial=0))
    made = text.blank_copy("".join(letters))
    for span in text.spans:
        made.stylize(span.style, starts[span.start], starts[min(span.end, len(letters))])
    return made


@dataclass(frozen=True, slots=True)
class FoldingTable:
    """A table whose columns are as wide as the room lets them be. `styles` are of cells with that text."""

    columns: Sequence[Column]
    rows: Sequence[Sequence[str]]
    title: str
    styles: Mapping[str, str]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The table in the room that there is."""
        made = Table(
            box=box.SIMPLE_HEAD,
            title=self.title or None,
            title_justify="left",
            title_style="bold",
            pad_edge=False,
            padding=(0, 1, 0, 0),
            show_edge=False,
        )
        cells = list(zip(*self.rows, strict=True)) or [()] * len(self.columns)
        widths = column_widths(self.columns, cells, options.max_width - 2 * (len(self.columns) - 1))
        for column, width in zip(self.columns, widths, strict=True):
            made.add_column(
                column.title,
                justify="right" if column.right else "left",
                overflow="fold",
                width=width,
            )
        for row in self.rows:
            made.add_row(
                *(
                    Text(folded(cell, width), style=self.styles.get(cell, ""))
                    for cell, width in zip(row, widths, strict=True)
                )
            )
        yield made


def folded(text: str, width: int) -> str:
    """The text with words that are longer than a line broken behind signs such as `-` and `/`, if any."""
    return re.sub(r"\S+", lambda word: _in_pieces(word[0], width), text)


def _in_pieces(word: str, width: int) -> str:
    if cell_len(word) <= width:
        return word
    lines = [""]
    for piece in _PIECES.findall(word):
        if lines[-1] and cell_len(lines[-1] + piece) > width:
            lines.append("")
        lines[-1] += piece
    return "\n".join(lines)


def column_widths(columns: Sequence[Column], cells: Sequence[Sequence[str]], room: int) -> list[int]:
    """The width of each column, in sum at most `room` where that can be; `cells` are the texts of each.

    Sentences give way first, then names, each to the least that can be read; numbers stay whole while any
    text is left to be folded.
    """
    widths, least, numbers = [], [], []
    for column, texts in zip(columns, cells, strict=True):
        longest, word = _longest(texts), min(_longest(column.title.split()), LONGEST_NUMBER)
        number = column.right and longest <= LONGEST_NUMBER
        wanted = max(longest, cell_len(column.title), 1)
        pieces = (piece for word in " ".join(texts).split() for piece in _PIECES.findall(word))
        piece = min(_longest(pieces), LONGEST_NUMBER)
        widths.append(min(wanted, max(room, 1) if column.wide else LONGEST_NAME))
        least.append(
            max(longest if number else LEAST_SENTENCE if column.wide else max(piece, LEAST_NAME), word, 1)
        )
        numbers.append(number)
    ends: Sequence[tuple[Callable[[int], bool], Callable[[int], int]]] = (
        (lambda at: columns[at].wide, lambda at: least[at]),
        (lambda _: True, lambda at: least[at]),
        (lambda at: not numbers[at], lambda _: LEAST),
        (lambda _: True, lambda _: 1),
    )
    for gives_way, end in ends:
        while sum(widths) > room:
            left = [at for at in range(len(widths)) if gives_way(at) and widths[at] > end(at)]
            if not left:
                break
            widths[max(left, key=lambda at: widths[at])] -= 1
    return widths


def _longest(texts: Iterable[str]) -> int:
    return max((cell_len(line) for text in texts for line in text.splitlines()), default=0)
