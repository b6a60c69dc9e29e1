"""Figures of a simulation: what a site asks, and what others measure elasticity by."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from updraft.sim.reports.bound import clairvoyant
from updraft.sim.world.outcome import Floats, MachineColumns, Outcome

IDLE = "part of the paid core-hours that no job had"
"""What *idle* means, in every report: boots, machines without a job, and cores that jobs leave of theirs. A
run that came to nothing had its cores."""

__all__ = ["Elasticity", "Metrics", "clairvoyant", "elasticity", "metrics"]

THRESHOLD = 10.0  # seconds: of the bounded slowdown
LADDER = (10, 100, 1000, 10_000)  # cores


@dataclass(frozen=True, slots=True)
class Elasticity:
    """How well the cores that were there followed those that were wanted; see `elasticity`."""

    under_accuracy: float
    over_accuracy: float
    under_timeshare: float
    over_timeshare: float


@dataclass(frozen=True, slots=True)
class Metrics:
    """Its figures; null where one doesn't apply. Times in seconds, money in the unit of the prices.

    One that never started has waited until the end. The last four are `elasticity`'s. `to_cores` maps a
    number of cores to the seconds from the first arrival until so many had joined, None where never.
    """

    jobs: Annotated[int, "Jobs that arrived."]
    completed: Annotated[int, "Jobs that were done at the end."]
    wait_mean: Annotated[float, "Mean wait in seconds, from a job's arrival to its first start."]
    wait_p50: Annotated[float, "Half of the jobs waited no longer."]
    wait_p95: Annotated[float, "95 of 100 jobs waited no longer."]
    wait_p99: Annotated[float, "99 of 100 jobs waited no longer."]
    wait_max: Annotated[float, "The longest wait."]
    slowdown: Annotated[float, "Mean bounded slowdown: wait and run time over the run time (at least 10 s)."]
    makespan: Annotated[float, "Seconds from the first arrival to the last job's end."]
    cost: Annotated[float, "What all machines cost, in the unit of the prices."]
    core_hours_paid: Annotated[float, "Core-hours of all machines."]
    core_hours_used: Annotated[float, "Core-hours of jobs that came to something."]
    paid_per_used: Annotated[float | None, "The one divided by the other."]
    idle_share: Annotated[float, IDLE[0].upper() + IDLE[1:] + "."]
    killed: Annotated[int, "Runs of jobs that an order to end a machine cut short."]
    lost: Annotated[int, "Runs of jobs that ended with their machine's own death."]
    machines: Annotated[int, "Machines that were launched."]
    per_thousand: Annotated[float, "The same for 1,000 jobs."]
    api_calls: Annotated[int, "Calls to the clouds."]
    violations: Annotated[int, "Looks at which a limit was exceeded."]
    over_bound: Annotated[float | None, "The cost divided by the least possible."]
    to_cores: Mapping[int, float | None]
    under_accuracy: Annotated[float, "SPEC's elasticity: cores that lacked, as a part of those asked for."]
    over_accuracy: Annotated[float, "Cores that were too many, as a part of those asked for."]
    under_timeshare: Annotated[float, "Part of the time in which cores lacked."]
    over_timeshare: Annotated[float, "Part of the time in which there were too many."]


def metrics(outcome: Outcome, bound: float | None = None) -> Metrics:
    """The figures of this outcome; `bound` is the least that its workload can cost (see `clairvoyant`)."""
    jobs, machines = outcome.jobs, outcome.machines
    waits = _or_end(jobs.first_start, outcome.ended) - jobs.submitted
    mean, *ranks = (0.0,) * 5 if not len(jobs) else (waits.mean(), *np.percentile(waits, (50, 95, 99, 100)))
    p50, p95, p99, longest = (float(rank) for rank in ranks)
    hours = machines.paid / 3600
    cost, paid = float((hours * machines.price).sum()), float((hours * machines.cpus).sum())
    follows = elasticity(outcome)
    used = float((np.minimum(jobs.ran, jobs.seconds) * jobs.cpus).sum()) / 3600
    ran = float((jobs.ran * jobs.cpus).sum()) / 3600
    first = float(jobs.submitted.min()) if len(jobs) else 0.0
    return Metrics(
        jobs=len(jobs),
        completed=int((~np.isnan(jobs.ended)).sum()),
        wait_mean=float(mean),
        wait_p50=p50,
        wait_p95=p95,
        wait_p99=p99,
        wait_max=longest,
        slowdown=_slowdown(outcome),
        makespan=float(_or_end(jobs.ended, outcome.ended).max()) - first if len(jobs) else 0.0,
        cost=cost,
        core_hours_paid=paid,
        core_hours_used=used,
        paid_per_used=paid / used if used > 0 else None,
        idle_share=1 - min(1.0, ran / paid) if paid > 0 else 0.0,
        killed=outcome.killed,
        lost=outcome.lost,
        machines=len(machines),
        per_thousand=1000 * len(machines) / len(jobs) if len(jobs) else 0.0,
        api_calls=sum(outcome.calls.values()),
        violations=sum(outcome.violations.values()),
        over_bound=cost / bound if bound else None,
        to_cores=_to_cores(machines, outcome.ended, first),
        under_accuracy=follows.under_accuracy,
        over_accuracy=follows.over_accuracy,
        under_timeshare=follows.under_timeshare,
        over_timeshare=follows.over_timeshare,
    )


def elasticity(outcome: Outcome) -> Elasticity:
    """Under- and over-provisioning as SPEC's research group on clouds defines them.

    With d(t) the cores that waiting and running jobs ask for, s(t) the cores of machines in the pool, and T
    the time from the first arrival to the last job's end:

        under_accuracy = ∫ max(d - s, 0) dt / ∫ d dt     under_timeshare = 1/T ∫ [d > s] dt
        over_accuracy  = ∫ max(s - d, 0) dt / ∫ d dt     over_timeshare  = 1/T ∫ [s > d] dt

    From N. Herbst, S. Kounev, R. Reussner: Elasticity in Cloud Computing: What It Is, and What It Is Not,
    ICAC 2013, and N. Herbst et al.: Ready for Rain? A View from SPEC Research on the Future of Cloud Metrics,
    SPEC RG 2016. The former gives the accuracies in cores (divided by T), the latter divides by d(t) at each
    moment, which is no number while nothing is wanted: here they are parts of the mean of d. Both are sampled
    once a cycle.
    """
    series, jobs = outcome.series, outcome.jobs
    if not len(jobs) or not len(series):
        return Elasticity(0.0, 0.0, 0.0, 0.0)
    first, last = jobs.submitted.min(), _or_end(jobs.ended, outcome.ended).max()
    during = (series.t >= first) & (series.t <= last)
    if not during.any():
        return Elasticity(0.0, 0.0, 0.0, 0.0)
    missing = (series.wanted - series.booted)[during]
    under, over = np.maximum(missing, 0), np.maximum(-missing, 0)
    asked = max(1.0, float(series.wanted[during].sum()))
    return Elasticity(
        float(under.sum()) / asked,
        float(over.sum()) / asked,
        float((under > 0).mean()),
        float((over > 0).mean()),
    )


def _slowdown(outcome: Outcome) -> float:
    """Mean of max(1, response / max(run time, 10 s)) of completed jobs (Feitelson, Rudolph: JSSPP 1998)."""
    jobs = outcome.jobs
    done = ~np.isnan(jobs.ended)
    if not done.any():
        return 0.0
    response = (jobs.ended - jobs.submitted)[done]
    return float(np.maximum(1.0, response / np.maximum(jobs.seconds[done], THRESHOLD)).mean())


def _to_cores(machines: MachineColumns, ended: float, first: float) -> dict[int, float | None]:
    """When so many cores were in the pool at one time, for each step that could have been reached."""
    joined = ~np.isnan(machines.joined_at)
    comes, cores = machines.joined_at[joined], machines.cpus[joined]
    goes = _or_end(machines.ended_at, ended)[joined]
    times = np.concatenate((comes, goes))
    order = np.argsort(times, kind="stable")
    there = np.cumsum(np.concatenate((cores, -cores))[order])
    found: dict[int, float | None] = {}
    for step in LADDER:
        reached = np.flatnonzero(there >= step)
        found[step] = float(times[order][reached[0]] - first) if len(reached) else None
    return found


def _or_end(moments: Floats, ended: float) -> Floats:
    """Moments that never came, as the end of the simulation."""
    return np.where(np.isnan(moments), ended, moments)
