"""Machines as APEL takes them: its cloud record, version 0.4, a block of lines for each.

A record is of a machine's whole life up to the end of the period, as EGI's accounting wants it: sent again
later, it takes the place of the earlier one. `CpuDuration` is the time of the cores that were claimed; what a
job did with them isn't known here. What isn't known has no line.
"""

from collections.abc import Iterable, Iterator
from typing import Any, TextIO

HEADER = "APEL-cloud-message: v0.4"
END = "%%"


def records(machines: Iterable[dict[str, Any]], site: str, until: float) -> Iterator[dict[str, object]]:
    """The fields of each machine's record, in their order. `until` is up to when they are told."""
    for one in machines:
        ended = bool(one["ended"])
        yield {
            "RecordCreateTime": int(until),
            "VMUUID": one["instance"],
            "SiteName": site,
            "CloudComputeService": one["cloud"],
            "MachineName": one["instance"],
            "LocalUserId": one["owner"],
            "LocalGroupId": one["pool"],
            "Status": "completed" if ended else "started",
            "StartTime": int(one["asked"]),
            "EndTime": int(one["until"]) if ended else None,
            "WallDuration": round(one["alive"]),
            "CpuDuration": round(one["core_seconds"]),
            "CpuCount": one["cores"],
            "Memory": one["memory"],
            "BenchmarkType": one["benchmark"],
            "Benchmark": one["score"],
            "ImageId": one["image"],
            "CloudType": "updraft",
        }


def write(found: Iterable[dict[str, object]], out: TextIO) -> None:
    """The message: a header, then the records, each with a line that ends it."""
    out.write(f"{HEADER}\n")
    for record in found:
        for name, value in record.items():
            if value not in (None, ""):
                out.write(f"{name}: {_line(value)}\n")
        out.write(f"{END}\n")


def _line(value: object) -> str:
    """A value as one line: names come from outside."""
    return " ".join(str(value).split())[:255]
