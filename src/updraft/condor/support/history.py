"""The jobs that a pool's schedds have finished with: for a simulation, or for the record of what was."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from updraft.condor.access import PoolAccess, environment
from updraft.condor.advalues import value
from updraft.condor.collector.views import read_schedds
from updraft.condor.demand.schedd import locate
from updraft.condor.process.children import Children
from updraft.errors import UsageError

NEEDED = (
    *("Owner", "QDate", "JobStatus", "JobUniverse", "CompletionDate", "JobCurrentStartDate"),
    *("EnteredCurrentStatus", "RemoteWallClockTime", "NumJobStarts", "GlobalJobId", "ClusterId", "ProcId"),
    *("RequestCpus", "RequestMemory", "RequestDisk", "RequestGPUs", "MaxHosts", "JobPrio", "Cmd"),
    *("MemoryUsage", "ResidentSetSize", "ImageSize", "DiskUsage", "UpdraftRunTime"),
    *("AllowedExecuteDuration", "AllowedJobDuration", "MaxRuntime", "MaxWallTimeMins"),
)
"""What is read of a job: name these with `condor_history -attributes` for a smaller file."""
RECORDED = (*NEEDED, "JobStartDate", "ExitCode", "ExitBySignal")
"""What is read of it for the record: when it first began, and how it ended, too."""
GRACE = 86400.0  # seconds that what enters the history may be out of order
SOON = 3600.0  # the same where it is asked again and again
LATE = 60.0  # seconds that a job may take from its end into the history
LONGEST_TEXT = 200
Row = dict[str, int | float | str | bool | None]
Fields = list[int | float | str | bool | None]
_UNIVERSES = "(JobUniverse == 5 || JobUniverse == 10 || JobUniverse == 11 || JobUniverse == 13)"


def past_jobs(
    access: PoolAccess, wanted: str, since: float, names: Sequence[str], deadline: float
) -> list[Row]:
    """These attributes of each job that ended after `since` (POSIX seconds), of one schedd or all.

    An expression comes as text in HTCondor's JSON form, "/Expr(…)/". Each schedd is asked with this deadline
    in seconds. `wanted` names the schedd, empty for all.
    Raises UsageError where there is no such schedd, PoolError where one doesn't answer.
    """
    folder = Path(tempfile.mkdtemp(prefix="updraft-history-"))
    children = Children(environment(access, folder))
    try:
        schedds = children.call("the collector", deadline, read_schedds, access.collector)
        asked = [one for one in schedds if wanted in ("", one, one.split(".", 1)[0])]
        if not asked:
            raise UsageError(f"the pool has no schedd {wanted}; it has {', '.join(schedds) or 'none'}")
        answers = [
            children.call(
                f"schedd {schedd}", deadline, read_past, access.collector, schedd, since, tuple(names)
            )
            for schedd in asked
        ]
    finally:
        children.close()
        shutil.rmtree(folder, ignore_errors=True)
    return [row for rows in answers for row in rows]


class JobReader:
    """Asks schedds for their jobs again and again, for the record. Close it to end its children."""

    def __init__(self, access: PoolAccess) -> None:
        self._access = access
        self._folder = Path(tempfile.mkdtemp(prefix="updraft-jobs-"))
        self._children = Children(environment(access, self._folder))

    def schedds(self, deadline: float) -> tuple[str, ...]:
        """The names of all schedds. Raises PoolError where the collector doesn't answer."""
        return self._children.call("the collector", deadline, read_schedds, self._access.collector)

    def jobs(
        self, schedd: str, since: float, most: int, deadline: float
    ) -> tuple[list[Fields], list[Fields]]:
        """Jobs that ended after `since`, and at most `most` that are in the queue: `RECORDED` of each.

        Raises PoolError where the schedd doesn't answer.
        """
        where = self._access.collector
        return self._children.call(f"schedd {schedd}", deadline, read_jobs, where, schedd, since, most)

    def close(self) -> None:
        """End its children."""
        self._children.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def read_jobs(
    collector: str | None, schedd: str, since: float, most: int
) -> tuple[list[Fields], list[Fields]]:
    """See `JobReader.jobs`. Runs in a child process."""
    import classad2
    import htcondor2

    source = htcondor2.Schedd(classad2.ClassAd(locate(collector, schedd)))
    queued = source.query(_UNIVERSES, list(RECORDED), limit=most)
    # A job is in the history a moment after it has ended: one that ended as it was asked before is there now.
    ended = _history(source, since - LATE, RECORDED, SOON)
    return [[_short(row.get(name)) for name in RECORDED] for row in ended], [
        [_short(row.get(name)) for name in RECORDED] for row in (_plain(ad, RECORDED) for ad in queued)
    ]


def read_past(collector: str | None, schedd: str, since: float, names: Sequence[str]) -> list[Row]:
    """The same of one schedd. Runs in a child process."""
    import classad2
    import htcondor2

    source = htcondor2.Schedd(classad2.ClassAd(locate(collector, schedd)))
    return _history(source, since, names, GRACE)


def _history(source: Any, since: float, names: Sequence[str], grace: float) -> list[Row]:
    end = int(since)
    constraint = f"EnteredCurrentStatus > {end} && {_UNIVERSES}"
    # The newest come first: some grace, since what enters the history isn't in perfect order.
    rows = source.history(constraint, list(names), since=f"EnteredCurrentStatus < {end - int(grace)}")
    return [_plain(row, names) for row in rows]


def _short(value: int | float | str | bool | None) -> int | float | str | bool | None:
    """A job's owner may write a book into an attribute."""
    return value[:LONGEST_TEXT] if isinstance(value, str) else value


def _plain(ad: object, names: Sequence[str]) -> Row:
    import classad2

    row: Row = {}
    for name in names:
        found = value(ad, name)
        if isinstance(found, classad2.ExprTree):
            row[name] = f"/Expr({found})/"
        elif isinstance(found, int | float | str | bool) and not isinstance(found, classad2.Value):
            row[name] = found
    return row
