"""The jobs of the demonstration, and what became of them: real submissions, real histories."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from updraft.demo.pool import USER, RealPool

SCRIPT = """\
#!/bin/sh
# A job that takes its time, and says where it was.
sleep "$1"
echo "$(hostname) did $2 in $1 s"
"""

DESCRIPTION = """\
executable = work.sh
arguments = {seconds} $(ClusterId).$(ProcId)
output = out.$(ClusterId).$(ProcId)
log = jobs.log
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
request_cpus = {cpus}
request_memory = {memory}
request_disk = 50MB
queue {count}
"""

ATTRIBUTES = (
    "ClusterId",
    "ProcId",
    "QDate",
    "JobStatus",
    "ExitCode",
    "JobStartDate",
    "JobCurrentStartDate",
    "CompletionDate",
    "NumJobStarts",
    "LastRemoteHost",
)


@dataclass(frozen=True, slots=True)
class Batch:
    """So many jobs of one shape: `memory` as condor_submit takes it, `seconds` as sh's sleep does."""

    count: int
    cpus: int
    memory: str
    seconds: str


SMALL = Batch(40, 1, "300MB", "$$([4 + (ProcId % 5)])")
WIDE = Batch(6, 4, "3GB", "12")


def submit(pool: RealPool, batches: Sequence[Batch] = (SMALL, WIDE)) -> int:
    """Submit these jobs as the first user does, from the home directory; returns how many they are."""
    done = pool.on_head("sh", "-c", "cat > work.sh && chmod +x work.sh", user=USER, stdin=SCRIPT)
    done.check_returncode()
    for batch in batches:
        pool.submit(
            DESCRIPTION.format(seconds=batch.seconds, cpus=batch.cpus, memory=batch.memory, count=batch.count)
        )
    return sum(batch.count for batch in batches)


def evictions(pool: RealPool) -> int:
    """How often a job was thrown off its machine, as the user's own log tells it (events 004, 022, 024)."""
    log = pool.on_head("cat", f"/home/{USER}/jobs.log").stdout
    return sum(line.startswith(("004 (", "022 (", "024 (")) for line in log.splitlines())


def outputs(pool: RealPool) -> int:
    """How many jobs' outputs came back to the submitter with something in them."""
    found = pool.on_head("sh", "-c", "find . -name 'out.*' -size +0c | wc -l", user=USER)
    return int(found.stdout.strip() or 0)


def waits(history: Iterable[Mapping[str, Any]]) -> list[float]:
    """Seconds from submission to the first start, of each job that started."""
    return [job["JobStartDate"] - job["QDate"] for job in history if "JobStartDate" in job]


def median_wait(history: Iterable[Mapping[str, Any]]) -> float | None:
    """The middle one of those waits; None where no job started."""
    found = waits(history)
    return statistics.median(found) if found else None


def used_seconds(history: Iterable[Mapping[str, Any]]) -> float:
    """Machine-seconds in which at least one job ran, over all machines."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for job in history:
        if job.get("CompletionDate") and job.get("JobCurrentStartDate"):
            machine = str(job.get("LastRemoteHost", "")).partition("@")[2]
            spans.setdefault(machine, []).append((job["JobCurrentStartDate"], job["CompletionDate"]))
    return sum(_covered(found) for found in spans.values())


def _covered(spans: list[tuple[float, float]]) -> float:
    total, end = 0.0, float("-inf")
    for start, stop in sorted(spans):
        total += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return total
