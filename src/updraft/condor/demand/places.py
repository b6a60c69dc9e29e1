"""Where a schedd believes its jobs to run: on all nodes, until their shadows end. Runs in a child process."""

from typing import Any

from updraft.condor.advalues import integer, list_of_texts, text
from updraft.condor.demand.conditions import RUNNING, plain
from updraft.condor.demand.queue import JobQueue
from updraft.core.model import RunningJob

# The slot of a job, of this node of a parallel one, and of all of its nodes.
HOSTS = ("RemoteHost", "RemoteHosts", "AllRemoteHosts")
_WHERE = ("ClusterId", "ProcId", "Owner", "JobStatus", *HOSTS)
_REMOVED, _HELD = 3, 5  # values of JobStatus
PLACES = (*_WHERE, "JobLeaseDuration", "LastJobLeaseRenewal", "JobCurrentStartDate")
"""What is asked of a job that runs."""


def running_jobs(queue: JobQueue, schedd: str) -> tuple[RunningJob, ...]:
    """Where the schedd believes jobs to run."""
    ads = queue.jobs(RUNNING, PLACES)
    # One that can't be read, or whose lease can't be asked for, still runs where it runs.
    ads += queue.jobs(f"{RUNNING} && {plain(PLACES)} isnt true", _WHERE)
    ads += queue.running_unread(_WHERE)
    return tuple(place for ad in ads for place in running_job(schedd, ad))


def running_job(schedd: str, ad: Any) -> tuple[RunningJob, ...]:
    """Where a running job runs, from its ad. One without a lease has it until the end of time."""
    renewed = integer(ad, "LastJobLeaseRenewal") or integer(ad, "JobCurrentStartDate")
    lease = integer(ad, "JobLeaseDuration")
    said = (host for name in HOSTS for host in list_of_texts(ad, name))
    return tuple(
        RunningJob(
            schedd,
            f"{integer(ad, 'ClusterId')}.{integer(ad, 'ProcId')}",
            host,
            text(ad, "Owner"),
            float(renewed + lease) if lease else float("inf"),
            float(integer(ad, "JobCurrentStartDate")),
            leaving=integer(ad, "JobStatus") in (_REMOVED, _HELD),
        )
        for host in dict.fromkeys(said)
    )
