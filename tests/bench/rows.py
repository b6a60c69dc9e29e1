"""What a row is, how a table is made of rows, and on what machine they were measured."""

import datetime
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True, slots=True)
class Measured:
    """One number in the row's unit, and what else was seen on the way."""

    value: float
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Row:
    """What is measured, the most that it may be (or, with `at_least`, the least that it must be), and how.

    Without a `most` the number is reported, and any is good enough. `by_name` rows take long, and are
    measured only where they are asked for.
    """

    name: str
    what: str
    most: float | None
    unit: str
    measure: Callable[[], Measured]
    at_least: bool = False
    by_name: bool = False

    def met(self, value: float) -> bool:
        """Whether that is good enough."""
        if self.most is None:
            return True
        return value >= self.most if self.at_least else value <= self.most


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a row: a number, or the error that kept it from one."""

    name: str
    what: str
    most: float | None
    unit: str
    measured: float | None
    met: bool
    seconds: float
    error: str = ""
    detail: Mapping[str, Any] = field(default_factory=dict)
    at_least: bool = False
    skipped: str = ""


class SkippedError(Exception):
    """A row can't be measured here, and that is nobody's fault: the text says what it takes."""


def run(row: Row) -> Result:
    """Measure one row. Whatever goes wrong is the row's own result, and the others go on."""
    begun = time.monotonic()
    try:
        seen = row.measure()
    except SkippedError as skip:
        return Result(
            row.name,
            row.what,
            row.most,
            row.unit,
            None,
            met=True,
            seconds=0.0,
            at_least=row.at_least,
            skipped=str(skip),
        )
    except Exception as error:
        took = time.monotonic() - begun
        why = f"{type(error).__name__}: {error}"
        return Result(
            row.name,
            row.what,
            row.most,
            row.unit,
            None,
            met=False,
            seconds=took,
            error=why,
            at_least=row.at_least,
        )
    return Result(
        row.name,
        row.what,
        row.most,
        row.unit,
        seen.value,
        met=row.met(seen.value),
        seconds=round(time.monotonic() - begun, 1),
        detail=seen.detail,
        at_least=row.at_least,
    )


def chosen(names: Sequence[str], table: Sequence[Row]) -> list[Row]:
    """The rows of these names; without any, all but those that only come by name; every row for `all`.

    In the table's order. Raises ValueError that names what there isn't.
    """
    if list(names) == ["all"]:
        return list(table)
    unknown = set(names) - {row.name for row in table}
    if unknown:
        there = ", ".join(row.name for row in table)
        raise ValueError(f"no such row: {', '.join(sorted(unknown))}; there are {there}")
    return [row for row in table if (row.name in names if names else not row.by_name)]


def p95(values: Sequence[float]) -> float:
    """The 95th percentile by nearest rank (of 20 values the second largest). ValueError without values."""
    if not values:
        raise ValueError("nothing was measured")
    return sorted(values)[math.ceil(0.95 * len(values)) - 1]


def spread(values: Sequence[float]) -> dict[str, float]:
    """How many values, and the least, the middle, the 95th percentile and the largest of them."""
    found = {"min": min(values), "median": statistics.median(values), "p95": p95(values), "max": max(values)}
    return {"count": len(values), **{name: round(value, 4) for name, value in found.items()}}


def machine() -> dict[str, Any]:
    """The machine on which the figures were taken."""
    kib = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 1024
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_mib": kib // 1024,
        "kernel": platform.release(),
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": " ".join(["python", "-m", "tests.bench", *sys.argv[1:]]),
        "load_before": os.getloadavg()[0],
    }


def _cpu() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10_000 else f"{value:.3g}"


def _must(result: Result) -> str:
    if result.most is None:
        return "reported"
    return f"{'≥' if result.at_least else '≤'} {_number(result.most)} {result.unit}"


def show(results: Sequence[Result]) -> None:
    """The table."""
    table = Table("what", "must be", "measured", "met?")
    for result in results:
        missing = "skipped" if result.skipped else "failed"
        measured = missing if result.measured is None else f"{_number(result.measured)} {result.unit}"
        met = "–" if result.skipped else "yes" if result.met else "NO"
        table.add_row(result.what, _must(result), measured, met)
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(table)
    for result in results:
        if result.error or result.skipped:
            why = result.error or f"skipped, {result.skipped}"
            console.print(f"{result.name}: {why}", markup=False)


def save(path: Path, about: Mapping[str, Any], results: Sequence[Result]) -> None:
    """The same, with everything else that was seen, as JSON."""
    document = {"machine": dict(about), "rows": [asdict(result) for result in results]}
    path.write_text(json.dumps(document, indent=1, sort_keys=True, default=str) + "\n")
