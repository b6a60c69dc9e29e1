"""What comes from outside is shown at a terminal, never obeyed by it.

Names, reasons and errors are written by users, machines and clouds. A terminal takes some letters for orders:
to move, to wipe what is above, to answer as if its owner had typed. So nothing but the tables' own colours is
written as it is; the rest is made `printable` on its way to stdout, stderr and the log.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from updraft.watching.words import printable as printable


class _Plain:
    """A text stream that writes everything made printable to the one behind it, `raw`."""

    def __init__(self, raw: TextIO) -> None:
        self.raw = raw

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"a text stream takes no {type(text).__name__}")
        return self.raw.write(printable(text))

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.raw, name)


def raw(stream: TextIO) -> TextIO:
    """The stream behind one of these, for who makes its own texts printable and has orders of its own."""
    return stream.raw if isinstance(stream, _Plain) else stream


@contextmanager
def plain_streams() -> Iterator[None]:
    """stdout and stderr write nothing as it is meanwhile."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast(TextIO, _Plain(raw(stream))) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before
