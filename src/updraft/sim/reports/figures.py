"""The figures of a simulation as people read them: their names, what they mean, and how they are written."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from updraft.core.reasons import spell
from updraft.sim.reports.metrics import IDLE, Metrics

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure of a table: what it is called, what it means, and how it is written.

    `main` ones are in a table with a line for each setting, `narrow` ones also where there is little room.
    """

    title: str
    about: str
    of: Callable[[Metrics], str]
    main: bool = True
    narrow: bool = False


def duration(seconds: float) -> str:
    """A length of time in at most two units; a dash where there is none."""
    if math.isnan(seconds):  # nobody has waited
        return "–"
    if seconds < 10:
        return f"{seconds:.1f}s"
    for size, smaller in ((DAY, HOUR), (HOUR, MINUTE)):
        if seconds >= size:
            return spell(smaller * round(seconds / smaller))
    return spell(round(seconds))


def money(amount: float) -> str:
    """An amount in the unit of the prices."""
    return f"{amount:,.0f}" if amount >= 1000 else f"{amount:.2f}"


def share(part: float) -> str:
    """A part of one, in percent."""
    return "–" if math.isnan(part) else f"{part * 100:.1f} %"


def _ratio(value: float | None) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.3f}"


def _to_cores(found: Metrics) -> str:
    reached = [(cores, at) for cores, at in sorted(found.to_cores.items()) if at is not None]
    return ", ".join(f"{cores}: {duration(at)}" for cores, at in reached[-3:]) or "–"


FIGURES: Sequence[Figure] = (
    Figure("cost", "in the unit of the prices", lambda m: money(m.cost), narrow=True),
    Figure(
        "cost ÷ least possible",
        "the least that these jobs can cost on these offers, whoever decides",
        lambda m: _ratio(m.over_bound),
    ),
    Figure(
        "mean wait", "from a job's arrival to its first start", lambda m: duration(m.wait_mean), narrow=True
    ),
    Figure("median wait", "half of the jobs waited no longer", lambda m: duration(m.wait_p50)),
    Figure("95 % wait", "95 of 100 jobs waited no longer", lambda m: duration(m.wait_p95), narrow=True),
    Figure("99 % wait", "99 of 100 jobs waited no longer", lambda m: duration(m.wait_p99), main=False),
    Figure("longest wait", "of all jobs", lambda m: duration(m.wait_max), main=False),
    Figure(
        "slowdown",
        "wait and run time ÷ run time, bounded, the mean",
        lambda m: f"{m.slowdown:.2f}",
        main=False,
    ),
    Figure("makespan", "from the first arrival to the last end", lambda m: duration(m.makespan), main=False),
    Figure("core-hours paid", "of all machines", lambda m: f"{m.core_hours_paid:,.0f}", main=False),
    Figure("paid ÷ used", "core-hours paid for each that a job used", lambda m: _ratio(m.paid_per_used)),
    Figure("idle", IDLE, lambda m: share(m.idle_share), narrow=True),
    Figure("machines", "bought in all", lambda m: f"{m.machines:,}", narrow=True),
    Figure("for 1,000 jobs", "machines bought", lambda m: f"{m.per_thousand:.1f}", main=False),
    Figure("time to cores", "until so many cores had joined", _to_cores, main=False),
    Figure("API calls", "to the clouds", lambda m: f"{m.api_calls:,}", main=False),
    Figure(
        "too few cores",
        "mean of the cores that lacked, ÷ those asked for",
        lambda m: share(m.under_accuracy),
        main=False,
    ),
    Figure(
        "too many cores",
        "mean of the cores too many, ÷ those asked for",
        lambda m: share(m.over_accuracy),
        main=False,
    ),
    Figure("time with too few", "share of the time", lambda m: share(m.under_timeshare), main=False),
    Figure("time with too many", "share of the time", lambda m: share(m.over_timeshare), main=False),
    Figure(
        "killed",
        "runs of jobs that an order to end a machine cut short",
        lambda m: f"{m.killed:,}",
        narrow=True,
    ),
    Figure("lost", "runs that ended with their machine's own death", lambda m: f"{m.lost:,}", main=False),
    Figure("limits exceeded", "cycles in which a limit didn't hold", lambda m: f"{m.violations:,}"),
    Figure("not finished", "jobs", lambda m: f"{m.jobs - m.completed:,}"),
)
