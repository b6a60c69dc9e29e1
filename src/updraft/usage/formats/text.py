"""A report as JSON lines, or as a table for a spreadsheet (CSV)."""

import csv
import json
from collections.abc import Iterable
from typing import Any, TextIO

_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def write_jsonl(rows: Iterable[dict[str, Any]], out: TextIO) -> None:
    """One JSON document a line, each with the version of its form."""
    for row in rows:
        out.write(json.dumps({"version": 1, **row}) + "\n")


def write_csv(rows: Iterable[dict[str, Any]], columns: Iterable[str], out: TextIO) -> None:
    """A line of names, then a line each; what isn't known is empty.

    A text that a spreadsheet would take for a formula has an apostrophe before it: names come from outside.
    """
    names = list(columns)
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(names)
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in names])


def _cell(value: object) -> object:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return "" if value is None else value
