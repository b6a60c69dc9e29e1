"""Giving jobs back to the queue. Runs in a child process, as queue superuser.

It can be cut short at any point: by its deadline, with the controller, by the schedd. What it leaves on hold
says by its reason that it is ours (see `holds`), is seen at the next look, and comes here again.
"""

import re
from collections.abc import Sequence

from updraft.condor.advalues import real
from updraft.condor.demand.conditions import RUNNING
from updraft.condor.demand.holds import held_by, hold, job_id, release
from updraft.condor.demand.places import HOSTS
from updraft.condor.demand.schedd import locate
from updraft.condor.process.shadows import end, shadows_of
from updraft.condor.written import quoted, says, says_number, says_text
from updraft.errors import PoolError

_NOTICED = 5.0  # seconds for a schedd to notice that shadows have ended
# Neither being removed nor being held by somebody else.
_MAY_BE_HELD = f"!{says('JobStatus', '3', '5')}"
_JOB_ID = re.compile(r"^\d{1,10}\.\d{1,10}$")


def requeue_jobs(
    collector: str | None, pool: str, schedd: str, jobs: Sequence[str], machine: str
) -> tuple[str, ...]:
    """Give those of `jobs` that still run on `machine` back to the queue, and all that are on hold for us.

    Returns their ids. What has ended or runs elsewhere by now, or is held by somebody else, is left alone.
    All are held, their shadows are ended where those run on this host (see `shadows`), and all are released.
    Held first, because the schedd starts another shadow for a running job that has lost its own. Not one by
    one, because it gives the claim of a shadow that has ended to an idle job of the same user: each job would
    start again on the lost machine, by the claim of the one after it.
    """
    import classad2
    import htcondor2

    if bad := [job for job in jobs if not _JOB_ID.match(job)]:
        raise PoolError(f"{bad[0][:40]!r} is no job id")
    location = classad2.ClassAd(locate(collector, schedd))
    source = htcondor2.Schedd(location)
    if machine and jobs:
        # The schedd tests this and acts in one step: what ended meanwhile isn't held.
        hold(source, pool, f"{_one_of(jobs)} && {RUNNING} && {_MAY_BE_HELD} && {_on(machine)}")
    held = source.query(held_by(pool), ["ClusterId", "ProcId"])
    if not held:
        return ()
    # A job whose shadow is known to have ended has no ShadowBday.
    born = f"{held_by(pool)} && {says_number('ShadowBday')}"
    births = {job_id(row): 0.0 for row in held}
    for row in source.query(born, ["ClusterId", "ProcId", "ShadowBday"]):
        births[job_id(row)] = real(row, "ShadowBday")
    end(shadows_of(str(location.get("MyAddress", "")), births), _NOTICED)
    release(source, pool)
    return tuple(births)


def _on(machine: str) -> str:
    """The constraint of jobs with a node on this machine."""
    there = (
        f'{says_text(name)} && stringListMember({quoted(machine)}, {name}, "@,") =?= true' for name in HOSTS
    )
    return f"({' || '.join(there)})"


def _one_of(jobs: Sequence[str]) -> str:
    """The constraint of these jobs."""
    clusters: dict[str, list[str]] = {}
    for job in jobs:
        cluster, proc = job.split(".")
        clusters.setdefault(cluster, []).append(proc)
    parts = [f"ClusterId == {c} && member(ProcId, {{{', '.join(procs)}}})" for c, procs in clusters.items()]
    return f"({' || '.join(parts)})"
