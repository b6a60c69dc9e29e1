"""What `updraft usage` writes for other programs: to stdout, or into a file that is there whole or not."""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TextIO

import click

from updraft.app.terminal import raw
from updraft.config.tables.usage import Usage
from updraft.errors import UsageError
from updraft.ledger.usage_reading import Records
from updraft.usage.formats import apel, auditor, focus
from updraft.usage.formats.text import write_csv
from updraft.usage.period import midnight


@contextmanager
def opened(output: Path | None) -> Iterator[TextIO]:
    """Where text is written to."""
    if output is None:
        yield sys.stdout
        return
    with _whole(output, "w") as file:
        yield file


@contextmanager
def opened_binary(output: Path | None) -> Iterator[BinaryIO]:
    """Where bytes are written to; a terminal is no such place."""
    if output is None:
        if sys.stdout.isatty():
            raise UsageError("this form isn't for people to read: name a file with --output FILE")
        yield raw(sys.stdout).buffer
        return
    with _whole(output, "wb") as file:
        yield file


@contextmanager
def _whole(output: Path, mode: str) -> Iterator[Any]:
    """A file that takes the place of `output` once all is written."""
    try:
        number, name = tempfile.mkstemp(prefix=f".{output.name}-", dir=output.parent)
        try:
            with open(number, mode) as file:  # noqa: PTH123 (a descriptor)
                yield file
            Path(name).chmod(0o666 & ~_umask())
            Path(name).replace(output)
        except BaseException:
            Path(name).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise UsageError(f"{output} can't be written: {error.strerror}") from error


def _umask() -> int:
    now = os.umask(0o077)
    os.umask(now)
    return now


def write_focus(records: Records, pool: str, settings: Usage, out: TextIO) -> None:
    """Machine-days in FOCUS; how many had to be left out is said on stderr."""
    left_out = 0

    def priced() -> Iterator[dict[str, Any]]:
        nonlocal left_out
        for row in focus.rows(records.machine_days(), settings.currency):
            if row is None:
                left_out += 1
            else:
                yield row

    write_csv(priced(), focus.COLUMNS, out)
    if left_out:
        text = f"{left_out} machine-days of unknown price are left out: FOCUS has no cost that isn't known"
        click.echo(f"updraft: {text}", err=True)


def write_apel(records: Records, pool: str, settings: Usage, out: TextIO) -> None:
    """Machines as APEL's cloud records."""
    until = midnight(records.last + 1) if records.at is None else min(records.at, midnight(records.last + 1))
    apel.write(apel.records(records.machines(), settings.site or pool, until), out)


def write_auditor(records: Records, pool: str, settings: Usage, out: TextIO) -> None:
    """Users' machine-days as AUDITOR's records."""
    auditor.write(auditor.records(records.user_days(), settings.site or pool), out)


OF_RECORDS: Mapping[str, Callable[[Records, str, Usage, TextIO], None]] = {
    "focus": write_focus,
    "apel": write_apel,
    "auditor": write_auditor,
}
