"""The Standard Workload Format of the Parallel Workloads Archive, with the quirks of its traces.

A line is a job of 18 numbers, `;` begins a comment, -1 is a missing value. The format is described at
https://www.cs.huji.ac.il/labs/parallel/workload/swf.html (version 2.2).
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from updraft.core.model import Resources
from updraft.sim.workloads.sources import (
    LATEST,
    BadLines,
    Reading,
    Workload,
    checksum,
    lines_of,
    made,
    quoted,
)
from updraft.sim.workloads.workload import Arrival

FIELDS = 18
SUBMIT, RUN, ALLOCATED, USED_MEMORY, REQUESTED, LIMIT, MEMORY, STATUS, USER, PROGRAM = (
    1, 3, 4, 6, 7, 8, 9, 10, 11, 13,
)  # fmt: skip
CANCELLED = 5
PARTS = (2, 3, 4)  # a stretch of a job that another line tells as a whole
SHORTEST = 1.0  # seconds: times are whole seconds, and a job that is said to take none took less than one
_MIB = 1024 * 1024  # bytes
_HUGE = 1024 * 1024  # MiB for each core: no machine has as much
_HEADER = re.compile(r";\s*(\w+):\s*(.*)")


def read_swf(path: Path, reading: Reading = Reading()) -> Workload:  # noqa: B008 - frozen
    """The jobs of a trace, gzipped or not.

    Processors are those that were asked for, else those that were given; memory is what was asked for on
    each processor, else what was used, else what `reading` assumes; it also says what memory is told in.
    The requested time is the longest that a job may run. Jobs that were cancelled before they ran, and those
    whose run time is missing, are left out and counted; one of run time 0 takes a second. Columns beyond the
    format's 18 are ignored.

    Raises UsageError, with the line's number, for what isn't this format, a negative or endless time, or a
    file that ends in the middle of a line, unless `reading` skips such lines.
    """
    bad = BadLines(path.name, skip=reading.skip_bad_lines)
    reader = _Reader(bad, reading)
    arrivals = list(reader.arrivals(lines_of(path, bad)))
    return made(
        path.name,
        arrivals,
        left_out=bad.left_out(reader.left_out),
        notes=reader.notes(),
        begins=_start(reader.header),
        sha256=checksum(path),
    )


class _Reader:
    """Reads one trace, and keeps what it met on the way."""

    def __init__(self, bad: BadLines, reading: Reading) -> None:
        self.header: dict[str, str] = {}
        self.left_out: Counter[str] = Counter()
        self._assumed = self._huge = 0
        self._bad = bad
        self._reading = reading
        self._same: dict[Resources, Resources] = {}  # one object for equal requests: jobs are many

    def arrivals(self, lines: Iterable[tuple[int, str]]) -> Iterator[Arrival]:
        for number, line in lines:
            if line.startswith(";") or not line.strip():
                if found := _HEADER.match(line):
                    self.header.setdefault(found[1], found[2].strip())
                continue
            try:
                row = _row(line)
            except ValueError as error:
                self._bad.met(f"line {number}", str(error))
                continue
            if why := _why_not(row):
                self.left_out[why] += 1
            else:
                yield self._job(row)

    def notes(self) -> list[str]:
        notes = [self.header[what] for what in ("Installation", "Computer") if self.header.get(what)]
        if self._assumed:
            each = f"{self._reading.memory} MiB for each core are assumed"
            notes.append(f"{self._assumed} jobs say nothing of memory: {each}")
        if self._huge:
            notes.append(
                f"{self._huge} jobs have over 1 TiB of memory for each core: --memory-unit says what a trace "
                "tells it in"
            )
        return [*notes, *self._bad.notes()]

    def _job(self, row: list[float]) -> Arrival:
        run = max(row[RUN], SHORTEST)
        request = self._request(row)
        return Arrival(
            at=row[SUBMIT],
            owner=_named("user", row[USER]),
            request=self._same.setdefault(request, request),
            seconds=run,
            longest=max(row[LIMIT], run) if row[LIMIT] > 0 else None,
            executable=_named("program", row[PROGRAM]) if row[PROGRAM] >= 0 else "",
        )

    def _request(self, row: list[float]) -> Resources:
        cpus = int(next((row[index] for index in (REQUESTED, ALLOCATED) if row[index] > 0), 1))
        said = next((row[index] for index in (MEMORY, USED_MEMORY) if row[index] > 0), None)
        self._assumed += said is None
        if said is None:
            return Resources(cpus, self._reading.memory * cpus, self._reading.disk)
        amount = max(1.0, said * self._reading.unit / _MIB)
        memory = amount if self._reading.per_job else amount * cpus
        self._huge += memory > _HUGE * cpus
        return Resources(cpus, int(-(-memory // 1)), self._reading.disk)


def _row(line: str) -> list[float]:
    """The numbers of a line. Raises ValueError that says what is wrong with it."""
    words = line.split()
    try:
        row = [float(word) for word in words[:FIELDS]]
        if not math.isfinite(sum(row)):
            raise ValueError
    except ValueError as error:
        raise ValueError(f"{quoted(line)} is no line of a trace, which has {FIELDS} numbers") from error
    if len(row) < FIELDS:
        raise ValueError(f"it has {len(row)} of {FIELDS} numbers, as where a trace is cut off")
    for what, index in (("run time", RUN), ("submit time", SUBMIT)):
        if row[index] < 0 and (row[index] != -1 or index == SUBMIT):
            raise ValueError(f"the {what} is {row[index]:g} s, and only a run time may be missing (-1)")
        if row[index] > LATEST:
            raise ValueError(f"the {what} is {row[index]:g} s, which is centuries")
    return row


def _why_not(row: list[float]) -> str:
    if row[STATUS] in PARTS:
        return "are parts of other jobs"
    if row[STATUS] == CANCELLED and row[RUN] <= 0:
        return "were cancelled before they ran"
    return "have no run time" if row[RUN] < 0 else ""


def _named(what: str, number: float) -> str:
    return f"{what}{number:.0f}" if number >= 0 else f"{what}-unknown"


def _start(header: dict[str, str]) -> float | None:
    try:
        return float(header["UnixStartTime"].split()[0])
    except (KeyError, ValueError, IndexError):
        return None
