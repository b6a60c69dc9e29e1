"""What has been counted since the ledger was made: the counters and histograms of `updraft metrics`.

They are written in the transaction of what they count, so that a crash counts nothing twice, and outlive the
controller, so that they only grow. Nothing is decided by them. Label values are names of the site's
configuration and codes of our own, never a user's words: their number is bounded.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from updraft.core.model import LaunchRecord, MachineRecord, Reason
from updraft.ledger.rows import dump

Labels = tuple[tuple[str, str], ...]
Counters = Mapping[str, Mapping[Labels, float]]
"""Values by the names of counters and by labels, the latter in the order of their names."""

BOOT, JOIN = "machine_boot_seconds", "machine_join_seconds"
BOUNDS: Mapping[str, tuple[float, ...]] = dict.fromkeys(
    (BOOT, JOIN), (5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 180.0, 300.0, 600.0, 1200.0, 3600.0)
)
"""The upper bounds of the histograms' buckets, in seconds."""
BUCKET, SUM, NUMBER = "/bucket", "/sum", "/count"
"""What is put behind a histogram's name: how many within each bound alone, their sum, their number."""
NO_REASON = "ended"
"""The code of an end that nobody wrote down."""
REQUEUED = "requeue-jobs"
"""The kind of the events of jobs that were given back."""


@dataclass(frozen=True, slots=True)
class Count:
    """So much `more` of what is called so, under these labels."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    more: float = 1.0


class CounterRows(Protocol):
    """A connection to the ledger's file."""

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        """Run a statement."""


def add(rows: CounterRows, counts: Iterable[Count]) -> None:
    """Add these. Runs in the caller's transaction."""
    for one in counts:
        rows.execute(
            "INSERT INTO counters (name, labels, value) VALUES (?, ?, ?) "
            "ON CONFLICT (name, labels) DO UPDATE SET value = value + excluded.value",
            (one.name, dump(dict(one.labels)), one.more),
        )


def read(rows: CounterRows) -> Counters:
    """All of them; none in a file that no newer daemon has opened yet."""
    if not rows.execute("SELECT 1 FROM sqlite_master WHERE name = 'counters'").fetchone():
        return {}
    found: dict[str, dict[Labels, float]] = {}
    for name, labels, value in rows.execute("SELECT name, labels, value FROM counters"):
        found.setdefault(name, {})[tuple(sorted(json.loads(labels).items()))] = value
    return found


def observed(name: str, seconds: float, labels: Mapping[str, str]) -> list[Count]:
    """What one value adds to a histogram."""
    bounds = BOUNDS[name]
    place = bisect_left(bounds, seconds)
    within = f"{bounds[place]:g}" if place < len(bounds) else "+Inf"
    return [
        Count(name + BUCKET, {**labels, "le": within}),
        Count(name + SUM, labels, seconds),
        Count(name + NUMBER, labels),
    ]


# -------------------------------------------------------------------------------- what records add


def launched(record: LaunchRecord) -> list[Count]:
    """What a launch adds when it is intended."""
    labels = _place(record)
    return [Count("launches", labels), Count("launched_machines_wanted", labels, record.count)]


def answered(record: LaunchRecord, made: int, error: Reason | None) -> list[Count]:
    """What a cloud's answer to a launch adds: how many machines it made, or why none."""
    labels = _place(record)
    counts = [Count("launched_machines", labels, made)] if made else []
    if error is not None:
        counts.append(Count("launch_failures", {**labels, "reason": error.code}))
    return counts


def joined(record: MachineRecord) -> list[Count]:
    """What a machine adds that has joined, of which it is known when it was asked for."""
    at = record.joined_at or 0.0
    # A cloud may be slower to list a machine than that is to join.
    booted = at if record.seen_at is None else max(0.0, at - record.seen_at)
    took = max(0.0, at - record.requested_at)
    labels = {"class": record.worker_class, "cloud": record.cloud}
    return [*observed(BOOT, min(booted, took), labels), *observed(JOIN, took, labels)]


def ended(record: MachineRecord) -> list[Count]:
    """What a machine adds that is over."""
    code = NO_REASON if record.end is None else record.end.code
    return [Count("machine_ends", {**_place(record), "reason": code})]


def happened(kind: str, reason: Reason, detail: Mapping[str, Any]) -> list[Count]:
    """What an event adds: the jobs that were given back to their queue."""
    if kind != REQUEUED:
        return []
    return [Count("jobs_requeued", {"reason": reason.code}, len(detail.get("jobs", ())))]


def turned(took: Mapping[str, float]) -> list[Count]:
    """What a turn of the controller's loop adds that took so many seconds for each of its stages."""
    return [Count("cycles"), *(Count("cycle_stage_seconds", {"stage": one}, s) for one, s in took.items())]


def _place(record: LaunchRecord | MachineRecord) -> dict[str, str]:
    return {"class": record.worker_class, "cloud": record.cloud, "market": record.market}
