"""The jobs that a pool's schedds have finished with, read for a simulation."""

import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from updraft.condor.access import PoolAccess, environment
from updraft.condor.advalues import value
from updraft.condor.collector.views import read_schedds
from updraft.condor.demand.schedd import locate
from updraft.condor.process.children import Children
from updraft.errors import UsageError

Row = dict[str, int | float | str | bool | None]
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


def read_past(collector: str | None, schedd: str, since: float, names: Sequence[str]) -> list[Row]:
    """The same of one schedd. Runs in a child process."""
    import classad2
    import htcondor2

    source = htcondor2.Schedd(classad2.ClassAd(locate(collector, schedd)))
    end = int(since)
    constraint = f"EnteredCurrentStatus > {end} && {_UNIVERSES}"
    # The newest come first: a day's grace, since what enters the history isn't in perfect order.
    rows = source.history(constraint, list(names), since=f"EnteredCurrentStatus < {end - 86400}")
    return [_plain(row, names) for row in rows]


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
