"""The report of some days: what really was, and beside it what updraft would have done."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from updraft.core.settings import Policy
from updraft.ledger.reader import Event
from updraft.recording.pool_record import Waited
from updraft.sim.conditions import Conditions, SimCloud
from updraft.sim.reports.metrics import metrics
from updraft.sim.reports.month_document import (
    MonthReport,
    ReallySide,
    ReportedFailure,
    ReportedJobs,
    ReportedUser,
    ReportedWait,
    SideFigures,
    WouldSide,
)
from updraft.sim.reports.really import Fate, Past, PastJob, arrivals, comparable
from updraft.sim.world.outcome import Floats, Outcome
from updraft.sim.world.simulation import simulate
from updraft.sim.world.stock import slots_of
from updraft.usage.period import ReportPeriod, moment
from updraft.usage.report import UsageReport

HOUR = 3600.0
HOLDS = 300.0  # seconds for which a look of the record holds at most: of longer gaps nothing is known
USERS_SHOWN = 200
WAITS_SHOWN = 100
ESTIMATE = "an estimate: the jobs as they really came, in simulated time, on machines that were never there"
ASSUMED = (
    "updraft's machines are the only ones: what else is in the pool, and what others launched, isn't there",
    "jobs arrive when they really did, and run as long as they really did, whatever machine they are on",
    "jobs run where their cores, memory, disk and GPUs find room: other requirements are not looked at",
    "clouds have all that they sell, at the latest price that they said; quotas are those of the settings",
)


@dataclass(frozen=True, slots=True)
class Would:
    """What updraft would have done with jobs of which it knows the size: the policy, and how it came out.

    `unfit` jobs fit no machine that it may buy, and are in neither column.
    """

    outcome: Outcome
    unfit: int
    conditions: Conditions


@dataclass(frozen=True, slots=True)
class Found:
    """All that a report is made of. `paid` is what `updraft usage` says, by user; None without records."""

    pool: str
    period: ReportPeriod
    past: Past
    jobs: tuple[PastJob, ...]
    really: Outcome
    would: Would | None
    why_not: str
    waits: tuple[Waited, ...]
    failures: tuple[ReportedFailure, ...] = ()
    paid: UsageReport | None = None
    currency: str = ""
    notes: tuple[str, ...] = ()


def would_be(
    past: Past, policy: Policy, clouds: Mapping[str, SimCloud], conditions: Conditions
) -> tuple[list[PastJob], Would]:
    """The jobs that count for both, and what would have become of them."""
    jobs, unfit = comparable(past.jobs, slots_of(policy, clouds))
    conditions = replace(conditions, begins=past.first, horizon=past.last - past.first)
    made = simulate(arrivals(past, jobs), policy, clouds, conditions=conditions)
    return jobs, Would(made, unfit, conditions)


def document(found: Found) -> MonthReport:
    """The report."""
    past, would = found.past, found.would
    return MonthReport(
        pool=found.pool,
        from_=found.period.first.isoformat(),
        to=found.period.last.isoformat(),
        since=moment(past.first),
        until=moment(past.last),
        watched=past.watched,
        jobs=_jobs(past),
        really=ReallySide(_side(found.really), _paid(found.paid), found.currency),
        would=None if would is None else WouldSide(_side(would.outcome), *_cost(would), found.currency),
        unfit=0 if would is None else would.unfit,
        why_not=found.why_not or None,
        estimate=ESTIMATE,
        assumed=[*ASSUMED, *_conditions(would)] if would is not None else [],
        users=[ReportedUser(**row) for row in _users(found)[:USERS_SHOWN]],
        waits=[_wait(one) for one in found.waits[:WAITS_SHOWN]],
        failures=found.failures,
        notes=[*_notes(past), *found.notes],
    )


def _jobs(past: Past) -> ReportedJobs:
    counts = {str(fate): sum(one.fate is fate for one in past.jobs) for fate in Fate}
    return ReportedJobs(arrived=len(past.jobs), failed=sum(one.failed for one in past.jobs), **counts)


def _side(made: Outcome) -> SideFigures:
    """The figures of one of the two; `None` where there is nothing to say."""
    found, series = metrics(made), made.series
    steps = _steps(series.t, made.ended)
    there, claimed = float((series.paid * steps).sum()), float((series.running * steps).sum())
    none = not len(made.jobs)
    return SideFigures(
        jobs=found.jobs,
        ended=found.completed,
        not_begun=int(np.isnan(made.jobs.first_start).sum()),
        mean_wait=None if none else round(found.wait_mean, 1),
        median_wait=None if none else round(found.wait_p50, 1),
        p95_wait=None if none else round(found.wait_p95, 1),
        longest_wait=None if none else round(found.wait_max, 1),
        core_hours_there=round(there / HOUR, 3),
        core_hours_claimed=round(claimed / HOUR, 3),
        idle_share=round(1 - min(1.0, claimed / there), 4) if there > 0 else None,
        machines=found.machines,
        most_machines=int(series.machines.max(initial=0)),
        most_cores=int(series.paid.max(initial=0)),
    )


def _steps(at: Floats, ended: float) -> Floats:
    """For how many seconds each look holds."""
    gaps = np.diff(at, append=max(ended, float(at[-1]) if len(at) else 0.0))
    return np.clip(gaps, 0.0, HOLDS)


def _cost(would: Would) -> tuple[float | None, int]:
    """What it would have cost, None where it isn't known; and how many machines have no price."""
    machines = would.outcome.machines
    unpriced = int((machines.price <= 0).sum())
    known = unpriced < len(machines) or not len(machines)
    return round(metrics(would.outcome).cost, 4) if known else None, unpriced


def _paid(paid: UsageReport | None) -> float | None:
    """What updraft's own machines really cost; None where it had none, or knows no price."""
    costs = [] if paid is None else [one.cost for one in paid.totals if one.cost is not None]
    return round(sum(costs), 4) if costs else None


def _users(found: Found) -> list[dict[str, Any]]:
    """Each user's jobs, whose work is most first; what they would have waited, where that is known."""
    would = {} if found.would is None else _waits_of(found.would.outcome)
    really = _waits_of(found.really)
    cost = _cost_of_users(found.paid)
    rows: dict[str, dict[str, Any]] = {}
    for one in found.past.jobs:
        name = one.arrival.owner
        row = rows.setdefault(name, {"name": name, "jobs": 0, "failed": 0, "removed": 0, "core_hours": 0.0})
        row["jobs"] += 1
        row["failed"] += one.failed
        row["removed"] += one.fate is Fate.REMOVED
        row["core_hours"] += _work(one, found.past.last) / HOUR
    for name, row in rows.items():
        row["core_hours"] = round(row["core_hours"], 3)
        row["mean_wait"], row["p95_wait"] = really.get(name, (None, None))
        row["would_mean_wait"], row["would_p95_wait"] = would.get(name, (None, None))
        row["cost"] = cost.get(name)
    return sorted(rows.values(), key=lambda row: (-row["core_hours"], -row["jobs"], row["name"]))


def _work(one: PastJob, last: float) -> float:
    """Core-seconds that it has had."""
    if one.started is None:
        return 0.0
    seconds = one.arrival.seconds if one.ended is not None else max(0.0, last - one.started)
    return one.arrival.request.cpus * seconds


def _waits_of(made: Outcome) -> dict[str, tuple[float, float]]:
    jobs = made.jobs
    waited = np.where(np.isnan(jobs.first_start), made.ended, jobs.first_start) - jobs.submitted
    found = {}
    for index, name in enumerate(jobs.owners):
        own = waited[jobs.owner == index]
        if len(own):
            found[name] = (round(float(own.mean()), 1), round(float(np.percentile(own, 95)), 1))
    return found


def _cost_of_users(paid: UsageReport | None) -> dict[str, float]:
    found: dict[str, float] = {}
    for row in () if paid is None else paid.rows:
        if row.kind == "user" and row.figures.cost is not None:
            name = row.name.split("@", 1)[0]
            found[name] = found.get(name, 0.0) + row.figures.cost
    return found


def _wait(one: Waited) -> ReportedWait:
    return ReportedWait(one.user, one.code, one.text, round(one.job_seconds / HOUR, 3))


def _conditions(would: Would | None) -> Sequence[str]:
    if would is None:
        return ()
    boots, cycle = would.conditions.boots.median, would.conditions.cycle
    return (
        f"machines join {boots:g} s after they are asked for, unless their cloud's settings say another time",
        f"updraft looks every {cycle:g} s, and no machine fails",
    )


def _notes(past: Past) -> list[str]:
    notes = [f"left out: {number} jobs that {why}" for why, number in sorted(past.left_out.items())]
    assumed = sum(one.assumed and one.fate in (Fate.RUNNING, Fate.WAITING) for one in past.jobs)
    if assumed:
        notes.append(f"{assumed} jobs have not ended: they are taken to run as long as such jobs usually do")
    always = min(one.cores for one in past.looks)
    if past.watched and always:
        notes.append(
            f"{always:,} cores were there at every look: where they stay, updraft would have bought less; "
            "its estimate is of a pool without them"
        )
    gaps = np.diff([one.at for one in past.looks])
    silent = float((gaps[gaps > HOLDS] - HOLDS).sum())
    if silent:
        notes.append(f"for {silent / HOUR:.1f} hours no controller looked: what was then isn't in the cores")
    return notes


def failures_of(events: Iterable[Event], first: float, last: float) -> tuple[ReportedFailure, ...]:
    """What failed between these moments, by code: how often, when last, and in which words."""
    found: dict[str, ReportedFailure] = {}
    for event in events:
        if first <= event.at <= last:
            before = found[event.code].number if event.code in found else 0
            found[event.code] = ReportedFailure(event.code, before + 1, moment(event.at), event.text)
    return tuple(sorted(found.values(), key=lambda row: (-row.number, row.code)))
