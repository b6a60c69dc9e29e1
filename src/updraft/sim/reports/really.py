"""What really was, as the record has it: in the form of a simulation's outcome, and as jobs to simulate.

Jobs count that arrived while there were looks: of those before nobody knows what they found. What a job asks
for is read of its ad as everywhere; times are what the schedd wrote down.
"""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from updraft.core.model import Resources
from updraft.recording.pool_record import PoolLook, RecordReader, Row, SeenMachine
from updraft.sim.workloads.history import COMPLETED, ON_A_MACHINE, REMOVED, HistoryReader, number, run_time
from updraft.sim.workloads.records import json_record
from updraft.sim.workloads.sources import BadLines, Reading
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.outcome import JobColumns, MachineColumns, Outcome, SeriesColumns

HELD = 5
UNKNOWN_RUN = 3600.0
"""Seconds that a job is taken to run of which nobody knows anything: where none has ended yet."""


class Fate(StrEnum):
    """What has become of a job."""

    ENDED = "ended"
    RUNNING = "running"
    WAITING = "waiting"
    HELD = "held"
    REMOVED = "removed"
    """Before it ever ran."""


@dataclass(frozen=True, slots=True)
class PastJob:
    """A job as it really was; times are POSIX. `arrival.seconds` is how long it ran.

    Where it hasn't ended, that is what such jobs usually take (`assumed`). `failed`: it ended with another
    exit code than 0, or by a signal.
    """

    arrival: Arrival
    fate: Fate
    started: float | None
    ended: float | None
    failed: bool = False
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Past:
    """What really was from `first` to `last` (POSIX).

    `left_out` counts jobs that are not among `jobs`, by the reason; `queued` are all that were in the queues
    when these were last asked, also those that the record doesn't have for their number.
    """

    first: float
    last: float
    jobs: tuple[PastJob, ...]
    looks: tuple[PoolLook, ...]
    machines: tuple[SeenMachine, ...]
    left_out: Mapping[str, int]
    queued: int

    @property
    def watched(self) -> bool:
        """Whether updraft only watched, at least for a time."""
        return any(not one.acts for one in self.looks)


def read(reader: RecordReader, first: float, last: float) -> Past | None:
    """What the record has between these moments; None where there was no look."""
    looks = reader.looks(first, last)
    if not looks:
        return None
    begin, end = looks[0].at, looks[-1].at
    left_out: Counter[str] = Counter()
    jobs = _jobs(reader, begin, end, left_out)
    return Past(
        first=begin,
        last=end,
        jobs=tuple(sorted(jobs, key=lambda one: one.arrival.at)),
        looks=tuple(looks),
        machines=tuple(reader.machines(begin, end + 1)),
        left_out=dict(left_out),
        queued=reader.queued()[0],
    )


def comparable(jobs: Iterable[PastJob], largest: Sequence[Resources]) -> tuple[list[PastJob], int]:
    """Jobs that a machine of these sizes can run, and how many there are that none can.

    Those that were removed before they ran, or are on hold, are neither: nobody waits for them.
    """
    known: dict[Resources, bool] = {}
    kept, unfit = [], 0
    for one in jobs:
        if one.fate in (Fate.REMOVED, Fate.HELD):
            continue
        request = one.arrival.request
        if request not in known:
            known[request] = any(slot.holds(request) for slot in largest)
        if known[request]:
            kept.append(one)
        else:
            unfit += 1
    return kept, unfit


# ------------------------------------------------------------------------------------------------ jobs


def _jobs(reader: RecordReader, begin: float, end: float, left_out: Counter[str]) -> list[PastJob]:
    rows = {_name(row): row for row in reader.queue()}
    rows |= {_name(row): row for row in reader.jobs()}
    history = HistoryReader(BadLines("the record", skip=True), Reading())
    found = []
    for row in rows.values():
        one = _job(history, row, begin, end)
        if isinstance(one, str):
            left_out[one] += 1
        elif one is not None:
            found.append(one)
    left_out.update(history.left_out)
    return list(_estimated(found, end))


def _name(row: Row) -> tuple[object, ...]:
    """What tells a job from others: it comes once from a queue, and once or twice from a history."""
    return (row.get("GlobalJobId"), row.get("ClusterId"), row.get("ProcId"))


def _job(history: HistoryReader, row: Row, begin: float, end: float) -> PastJob | str | None:
    """The job of this row, or why it is left out; None for one that is of another time."""
    record = json_record(row)
    if number(record, "JobUniverse") not in (None, *ON_A_MACHINE):
        return None
    arrived, status = number(record, "QDate"), number(record, "JobStatus")
    if arrived is None or status is None:
        return "say nothing of their times"
    left = number(record, "CompletionDate") or number(record, "EnteredCurrentStatus")
    over = status in (REMOVED, COMPLETED)
    if arrived >= end or (over and left is not None and left < begin):
        return None
    if arrived + 1 <= begin:
        return "arrived before the record begins"
    arrived = max(arrived, begin)  # a queue tells whole seconds
    began = number(record, "JobStartDate") or number(record, "JobCurrentStartDate")
    started = max(began, arrived) if began else None
    took = _took(record) if over and started else None
    made = history.arrival(record, arrived, max(1.0, took or 0.0))
    if made is None:
        return None
    ended = left if over and left is not None and left <= end else None
    fate = _fate(status, started, end, over=ended is not None)
    if fate is Fate.WAITING:
        started = None  # what came later isn't of this time
    failed = status == COMPLETED and (record.get("ExitBySignal") is True or bool(number(record, "ExitCode")))
    return PastJob(made, fate, started or None, ended, failed, assumed=took is None)


def _took(record: Mapping[str, object]) -> float | None:
    try:
        return run_time(record)  # type: ignore[arg-type]
    except ValueError:  # a clock that was set back while it ran
        return None


def _fate(status: float, started: float | None, end: float, *, over: bool) -> Fate:
    if over:
        return Fate.ENDED if started else Fate.REMOVED
    if status == HELD:
        return Fate.HELD
    # One that waits again has begun once: what it waited for first is over.
    return Fate.RUNNING if started and started <= end else Fate.WAITING


def _estimated(jobs: Sequence[PastJob], end: float) -> Iterator[PastJob]:
    """The same, those that haven't ended with what such jobs take: the owner's of this program, or all."""
    some: dict[tuple[str, str], list[float]] = {}
    for one in jobs:
        if not one.assumed:
            some.setdefault((one.arrival.owner, one.arrival.executable), []).append(one.arrival.seconds)
    usual = {key: statistics.median(runs) for key, runs in some.items()}
    every = statistics.median(usual.values()) if usual else UNKNOWN_RUN
    for one in jobs:
        if not one.assumed:
            yield one
            continue
        least = end - one.started if one.fate is Fate.RUNNING and one.started else 1.0
        key = (one.arrival.owner, one.arrival.executable)
        seconds = max(1.0, least, usual.get(key, every))
        yield PastJob(_lasting(one.arrival, seconds), one.fate, one.started, one.ended, assumed=True)


def _lasting(arrival: Arrival, seconds: float) -> Arrival:
    longest = arrival.longest
    return replace(arrival, seconds=seconds, longest=None if longest is None else max(longest, seconds))


# --------------------------------------------------------------------------------------------- outcome


def arrivals(past: Past, jobs: Sequence[PastJob]) -> tuple[Arrival, ...]:
    """These jobs as a workload: they arrive so many seconds after the first look."""
    return tuple(replace(one.arrival, at=one.arrival.at - past.first) for one in jobs)


def outcome(past: Past, jobs: Sequence[PastJob]) -> Outcome:
    """What really became of these jobs, in seconds since the first look; prices are not known here (0)."""
    return Outcome(
        jobs=_job_columns(past, jobs),
        machines=_machine_columns(past),
        series=_series(past),
        begun=0.0,
        ended=past.last - past.first,
    )


def _job_columns(past: Past, jobs: Sequence[PastJob]) -> JobColumns:
    owners = {name: index for index, name in enumerate(sorted({one.arrival.owner for one in jobs}))}
    nan = float("nan")

    def times(moments: Iterable[float | None]) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
        plain = [nan if moment is None else moment for moment in moments]
        return np.array(plain, dtype=np.float64) - past.first

    seconds = np.array([one.arrival.seconds for one in jobs], dtype=np.float64)
    started, ended = times(one.started for one in jobs), times(one.ended for one in jobs)
    ran = np.where(np.isnan(ended), np.maximum(past.last - past.first - started, 0.0), seconds)
    return JobColumns(
        submitted=times(one.arrival.at for one in jobs),
        first_start=started,
        ended=ended,
        seconds=seconds,
        ran=np.nan_to_num(ran),
        cpus=np.array([one.arrival.request.cpus for one in jobs], dtype=np.int64),
        owner=np.array([owners[one.arrival.owner] for one in jobs], dtype=np.int64),
        runs=np.array([one.started is not None for one in jobs], dtype=np.int64),
        kills=np.zeros(len(jobs), dtype=np.int64),
        owners=tuple(owners),
    )


def _machine_columns(past: Past) -> MachineColumns:
    some = past.machines
    begin, end = past.first, past.last
    came = np.array([max(one.first, begin) for one in some], dtype=np.float64) - begin
    went = np.array([one.last if one.last < end else float("nan") for one in some], dtype=np.float64) - begin
    names = ("",) * len(some)
    return MachineColumns(
        asked_at=came,
        joined_at=came,
        ended_at=went,
        cpus=np.array([one.cores for one in some], dtype=np.int64),
        price=np.zeros(len(some)),
        paid=np.where(np.isnan(went), end - begin, went) - came,
        worker_class=names,
        cloud=names,
        flavor=names,
        market=names,
    )


def _series(past: Past) -> SeriesColumns:
    looks = past.looks

    def column(name: str) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        return np.array([getattr(one, name) for one in looks], dtype=np.int64)

    return SeriesColumns(
        t=np.array([one.at for one in looks], dtype=np.float64) - past.first,
        waiting=column("idle"),
        wanted=column("wanted"),
        running=column("claimed"),
        booted=column("cores"),
        paid=column("cores"),
        machines=column("machines"),
        cost=np.zeros(len(looks)),
    )
