"""Outcomes by hand, for tests of what is made of them."""

import numpy as np

from updraft.sim.conditions import example_clouds, example_policy
from updraft.sim.reports.metrics import metrics
from updraft.sim.runs import Run
from updraft.sim.sweep import Setting
from updraft.sim.world.outcome import JobColumns, MachineColumns, Outcome, SeriesColumns


def outcome(jobs: int = 40, wait: float = 60.0, price: float = 0.1, *, unfinished: int = 0) -> Outcome:
    """One job a minute, each waits and runs five minutes; two machines all the time."""
    submitted = np.arange(jobs) * 60.0
    first = submitted + wait
    ended = first + 300.0
    if unfinished:
        ended[-unfinished:] = np.nan
        first[-unfinished:] = np.nan
    end = float(submitted[-1] + wait + 400)
    ones = np.ones(jobs, dtype=np.int64)
    at = np.arange(0.0, end, 60.0)
    flat = np.ones(len(at), dtype=np.int64)
    return Outcome(
        jobs=JobColumns(
            submitted, first, ended, np.full(jobs, 300.0), np.full(jobs, 300.0),
            ones, ones * 0, ones, ones * 0, ("ada",),
        ),
        machines=MachineColumns(
            np.zeros(2), np.full(2, 90.0), np.full(2, np.nan), np.full(2, 8), np.full(2, price),
            np.full(2, end),
            ("w", "w"), ("cloud", "cloud"), ("c8", "c8"), ("on-demand", "spot"),
        ),
        series=SeriesColumns(
            at, flat, flat * 6, flat * 5, flat * 16, flat * 16, flat * 2, flat * 2 * price
        ),
        begun=0.0,
        ended=end,
        calls={"launch": 1, "machines": len(at)},
        cycles=len(at),
        decisions=len(at),
    )  # fmt: skip


def run(name: str = "one", *, rival: bool = False, **changes: float) -> Run:
    """A setting of this name, and such an outcome."""
    made = outcome(**changes)  # type: ignore[arg-type]
    setting = Setting(name, example_policy(), example_clouds(), rival=rival)
    return Run(setting, made, metrics(made, 0.05), 0.05, 60.0)
