"""Giving jobs back to the queue. Runs in a child process, as queue superuser."""

import re
from collections.abc import Sequence

from updraft.condor.demand import locate
from updraft.condor.shadows import end, shadows_of
from updraft.errors import PoolError

_NOTICED = 5.0  # seconds for a schedd to notice that shadows have ended
_JOB_ID = re.compile(r"^\d{1,10}\.\d{1,10}$")


def requeue_jobs(collector: str | None, schedd: str, jobs: Sequence[str], reason: str) -> None:
    """Give those of `jobs` that still run back to the queue, so that they can start again.

    A job that isn't running any more, or that is gone, is left alone. Each is held, its shadow is ended where
    that runs on this host (see `shadows`), and it is released; held first, because the schedd starts another
    shadow for a running job that has lost its own.
    """
    import classad2
    import htcondor2

    if bad := [job for job in jobs if not _JOB_ID.match(job)]:
        raise PoolError(f"{bad[0][:40]!r} is no job id")
    location = classad2.ClassAd(locate(collector, schedd))
    source = htcondor2.Schedd(location)
    held: list[str] = []
    doomed: list[int] = []
    for job in jobs:
        one = _constraint(job)
        rows = source.query(f"{one} && JobStatus == 2", ["ShadowBday"])
        # The schedd tests the constraint and acts in one step: what ended meanwhile isn't held.
        done = source.act(htcondor2.JobAction.Hold, f"{one} && JobStatus == 2", reason=reason[:200])
        if done["TotalSuccess"]:
            held.append(job)
            born = next((float(row.get("ShadowBday", 0)) for row in rows), 0.0)
            doomed.extend(shadows_of(str(location.get("MyAddress", "")), job, born))
    end(doomed, _NOTICED)
    for job in held:
        constraint = f"{_constraint(job)} && JobStatus == 5"
        source.act(htcondor2.JobAction.Release, constraint, reason=reason[:200])


def _constraint(job: str) -> str:
    cluster, proc = job.split(".")
    return f"ClusterId == {cluster} && ProcId == {proc}"
