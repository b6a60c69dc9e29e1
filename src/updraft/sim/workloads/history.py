"""A pool's own history as a workload: `condor_history -json`, `-jsonl` or `-long`, or a history file.

What a job asked for is read from its ad as updraft reads it in the queue; its run time is that of its last
run, since this is what a job takes that isn't interrupted.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import classad2

from updraft.condor.demand.finished import said
from updraft.condor.demand.request import UndecidableError, request_of
from updraft.condor.support.history import NEEDED
from updraft.core.model import Resources
from updraft.errors import UsageError
from updraft.sim.workloads.records import Expression, Record, json_records, long_records
from updraft.sim.workloads.sources import LATEST, BadLines, Reading, Workload, checksum, lines_of, made
from updraft.sim.workloads.workload import Arrival

REMOVED, COMPLETED = 3, 4
PARALLEL = 11
ON_A_MACHINE = (5, 10, PARALLEL, 13)  # universes that need a startd
_QUANTITIES = (("RequestCpus", 1), ("RequestMemory", 0), ("RequestDisk", 0), ("RequestGPUs", 0))
_FREE = re.compile(r"[^\w.@/+-]")


def read_history(path: Path, reading: Reading = Reading()) -> Workload:  # noqa: B008 - frozen
    """The jobs of a history, gzipped or not, in any of its forms. Or UsageError that says what is wrong."""
    bad = BadLines(path.name, skip=reading.skip_bad_lines)
    lines = lines_of(path, bad)
    first = next((line for line in lines if line[1].strip()), (0, ""))
    rest = _again(first, lines)
    records = json_records if first[1].lstrip()[:1] in ("[", "{") else long_records
    return history(path.name, records(path.name, rest, bad), reading, checksum(path), bad)


def history(
    name: str, records: Iterable[Record], reading: Reading, sha256: str = "", bad: BadLines | None = None
) -> Workload:
    """The workload of these job ads, in whatever order. Jobs that never ran are left out and counted."""
    reader = HistoryReader(bad or BadLines(name, skip=reading.skip_bad_lines), reading)
    arrivals = [job for record in records if (job := reader.job(record)) is not None]
    if not arrivals and reader.left_out["say nothing of their times"]:
        raise UsageError(
            f"{name}: no job says when it arrived and ran; make the file with `condor_history -jsonl "
            f"-attributes {','.join(NEEDED)}`"
        )
    left_out = reader.bad.left_out(reader.left_out)
    return made(name, arrivals, left_out=left_out, notes=reader.notes(), begins=0.0, sha256=sha256)


def _again(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest


class HistoryReader:
    """Turns job ads into arrivals, and keeps what it met on the way."""

    def __init__(self, bad: BadLines, reading: Reading) -> None:
        self.left_out: Counter[str] = Counter()
        self.bad = bad
        self._assumed = 0
        self._reading = reading
        self._same: dict[Resources, Resources] = {}  # one object for equal requests: jobs are many

    def job(self, record: Record) -> Arrival | None:
        """The job of this ad; None where it is none that a machine ran."""
        why = _why_not(record)
        try:
            run, arrived = run_time(record), number(record, "QDate")
        except ValueError as error:
            self.bad.met(f"job {record.get('ClusterId', '?')}.{record.get('ProcId', '?')}", str(error))
            return None
        if not why and (run is None or arrived is None):
            why = "say nothing of their times"
        if why or run is None or arrived is None:
            self.left_out[why] += 1
            return None
        return self.arrival(record, arrived, run)

    def arrival(self, record: Record, arrived: float, run: float) -> Arrival | None:
        """The job of this ad, which arrived then and runs so long; None where its request can't be told."""
        try:
            request = self._request(record)
        except UndecidableError:
            self.left_out["ask for what can't be evaluated"] += 1
            return None
        estimate, longest = said(record)
        return Arrival(
            at=arrived,
            owner=_plain(record.get("Owner")) or "unknown",
            request=self._same.setdefault(request, request),
            seconds=max(1.0, run),
            schedd=_schedd(record),
            estimate=estimate,
            longest=None if longest is None else max(longest, run),
            priority=int(number(record, "JobPrio") or 0),
            executable=_plain(record.get("Cmd")),
        )

    def notes(self) -> list[str]:
        """What was assumed."""
        each = f"{self._reading.memory} MiB for each core are assumed"
        assumed = [f"{self._assumed} jobs say nothing of memory: {each}"] if self._assumed else []
        return [*assumed, *self.bad.notes()]

    def _request(self, record: Record) -> Resources:
        amounts = _plain_amounts(record) or request_of(_ad(record))
        cpus = amounts.cpus
        if number(record, "JobUniverse") == PARALLEL:
            cpus *= max(1, int(number(record, "MaxHosts") or 1))
        self._assumed += not amounts.memory
        nodes = cpus // max(1, amounts.cpus)
        return Resources(
            cpus,
            amounts.memory * nodes or self._reading.memory * cpus,
            amounts.disk * nodes or self._reading.disk,
            amounts.gpus * nodes,
            amounts.times(nodes).custom,
        )


def _why_not(record: Record) -> str:
    status = number(record, "JobStatus")
    if number(record, "JobUniverse") not in (None, *ON_A_MACHINE):
        return "need no machine (their universe)"
    if status not in (None, REMOVED, COMPLETED):
        return "haven't ended"
    started = number(record, "NumJobStarts") or number(record, "RemoteWallClockTime")
    if status == REMOVED and not started:
        return "were removed before they ran"
    return ""


def run_time(record: Record) -> float | None:
    """Seconds of the last run: from its start to the end, else all that it ran, shared among its starts.

    Raises ValueError for less than none.
    """
    began = number(record, "JobCurrentStartDate")
    ended = number(record, "CompletionDate") or number(record, "EnteredCurrentStatus")
    if began and ended and ended >= began:
        return ended - began
    wall, starts = number(record, "RemoteWallClockTime"), number(record, "NumJobStarts")
    if began and ended and not wall:
        wall, starts = ended - began, None
    if wall is not None and wall < 0:
        raise ValueError(f"it has a run time of {wall:g} s")
    return wall / max(1.0, starts or 1.0) if wall else None


def _plain_amounts(record: Record) -> Resources | None:
    """What the job asks for where it says so in plain numbers; None where it has to be evaluated."""
    amounts: list[int] = []
    for name, missing in _QUANTITIES:
        value = record.get(name, missing)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            return None
        amounts.append(value)
    cpus, memory, disk, gpus = amounts
    known = {name.lower() for name, _ in _QUANTITIES}
    others = {name for name in record if name.lower().startswith("request") and name.lower() not in known}
    custom: dict[str, int] = {}
    for name in others:
        value = record[name]
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            return None
        custom[name[len("request") :].lower()] = value
    named = tuple(sorted((name, amount) for name, amount in custom.items() if amount))
    return Resources(max(1, cpus), memory, disk, gpus, named)


def _ad(record: Record) -> Any:
    ad = classad2.ClassAd()
    for name, value in record.items():
        try:
            ad[name] = classad2.ExprTree(value.text) if isinstance(value, Expression) else value
        except (classad2.ClassAdException, ValueError, TypeError):
            continue  # a malformed attribute that nothing may need
    return ad


def number(record: Mapping[str, object], name: str) -> float | None:
    """A plain number that may be a time or a count; None for any other, NaN and the endless ones too."""
    value = record.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= LATEST:
        return None
    return float(value)


def _schedd(record: Record) -> str:
    whole = record.get("GlobalJobId")
    return _plain(whole.split("#", 1)[0]) if isinstance(whole, str) and "#" in whole else "head"


def _plain(value: object) -> str:
    """A name that a stranger chose, fit to be written into an ad."""
    return _FREE.sub("_", value)[:200] if isinstance(value, str) else ""
