"""Figures of outcomes that were written by hand, and the bound on cases that can be told by heart."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from updraft.core.model import CloudOffer, Resources
from updraft.sim.reports.bound import clairvoyant
from updraft.sim.reports.metrics import elasticity, metrics
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.outcome import JobColumns, MachineColumns, Outcome, SeriesColumns

NEVER = math.nan


def floats(*values: float) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array(values, dtype=np.float64)


def ints(*values: int) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    return np.array(values, dtype=np.int64)


# Three jobs of 1, 2 and 4 cores; the second was killed once after 100 s, the third has not begun.
# A machine of 4 cores from 0 to 3600 that joined at 60, one of 8 cores from 1800 that is still there.
OUTCOME = Outcome(
    jobs=JobColumns(
        submitted=floats(0, 100, 200),
        first_start=floats(60, 160, NEVER),
        ended=floats(1060, 2160, NEVER),
        seconds=floats(1000, 1000, 5),
        ran=floats(1000, 1100, 0),
        cpus=ints(1, 2, 4),
        owner=ints(0, 0, 1),
        runs=ints(1, 2, 0),
        kills=ints(0, 1, 0),
        owners=("ada", "grace"),
    ),
    machines=MachineColumns(
        asked_at=floats(0, 1800),
        joined_at=floats(60, 1900),
        ended_at=floats(3600, NEVER),
        cpus=ints(4, 8),
        price=floats(0.4, 0.9),
        paid=floats(3600, 1800),
        worker_class=("w", "w"),
        cloud=("f", "f"),
        flavor=("c4", "c8"),
        market=("on-demand", "spot"),
    ),
    series=SeriesColumns(
        t=floats(0, 1000, 2000, 3000),
        waiting=ints(1, 1, 1, 1),
        wanted=ints(1, 7, 6, 4),
        running=ints(0, 3, 2, 0),
        booted=ints(0, 4, 12, 12),
        paid=ints(4, 4, 12, 12),
        machines=ints(1, 1, 2, 2),
        cost=floats(0.4, 0.4, 1.3, 1.3),
    ),
    begun=0.0,
    ended=3600.0,
    killed=1,
    lost=0,
    calls={"machines": 4, "launch": 2},
    violations={"cores": 2, "cost": 1},
)


def test_figures_of_an_outcome() -> None:
    found = metrics(OUTCOME, bound=0.5)
    assert (found.jobs, found.completed, found.killed, found.machines) == (3, 2, 1, 2)
    assert found.wait_mean == pytest.approx((60 + 60 + 3400) / 3), "what never began waits until the end"
    assert (found.wait_p50, found.wait_max) == (60, 3400)
    assert found.slowdown == pytest.approx((1060 / 1000 + 2060 / 1000) / 2)
    assert found.makespan == 3600
    assert found.cost == pytest.approx(0.4 + 0.45)
    assert found.core_hours_paid == pytest.approx(4 + 4)
    assert found.core_hours_used == pytest.approx((1000 + 2 * 1000) / 3600), "not the run that was killed"
    assert found.paid_per_used == pytest.approx(8 / (3000 / 3600))
    assert found.idle_share == pytest.approx(1 - 3200 / 3600 / 8)
    assert found.per_thousand == pytest.approx(2000 / 3)
    assert (found.api_calls, found.violations) == (6, 3)
    assert found.over_bound == pytest.approx(1.7)
    assert found.to_cores == {10: 1900.0, 100: None, 1000: None, 10_000: None}


def test_elasticity_is_what_lacked_and_what_was_too_much() -> None:
    """Wanted 1, 7, 6, 4 with 0, 4, 12, 12 there: 1 + 3 too few, 6 + 8 too many, of 18."""
    found = elasticity(OUTCOME)
    assert found.under_accuracy == pytest.approx(4 / 18)
    assert found.over_accuracy == pytest.approx(14 / 18)
    assert (found.under_timeshare, found.over_timeshare) == (0.5, 0.5)


def test_short_jobs_don_t_make_the_slowdown_endless() -> None:
    jobs = replace(OUTCOME.jobs, seconds=floats(1, 1000, 5), ended=floats(61, 1160, NEVER))
    found = metrics(replace(OUTCOME, jobs=jobs))
    assert found.slowdown == pytest.approx((6.1 + 1.06) / 2)


def test_an_outcome_of_nothing() -> None:
    jobs = JobColumns(*(floats(),) * 5, *(ints(),) * 4)
    machines = MachineColumns(floats(), floats(), floats(), ints(), floats(), floats(), (), (), (), ())
    series = SeriesColumns(floats(), *(ints(),) * 6, floats())
    found = metrics(Outcome(jobs, machines, series, 0.0, 0.0))
    assert (found.jobs, found.cost, found.wait_mean, found.makespan) == (0, 0.0, 0.0, 0.0)
    assert found.paid_per_used is None
    assert found.over_bound is None


# ------------------------------------------------------------------------------------------------ the bound


def sold(cpus: int, memory: int, price: float | None, gpus: int = 0) -> CloudOffer:
    return CloudOffer("f", "a", f"c{cpus}m{memory}", "on-demand", Resources(cpus, memory, 1000, gpus), price)


def work(*jobs: tuple[Resources, float]) -> Sequence[Arrival]:
    return [Arrival(0.0, "ada", request, hours * 3600) for request, hours in jobs]


def test_the_bound_pays_for_work_alone() -> None:
    jobs = work((Resources(1, 10), 3.0), (Resources(2, 10), 5.0))
    assert clairvoyant(jobs, [sold(4, 1000, 0.4)]) == pytest.approx(13 * 0.1)
    assert clairvoyant(jobs, [sold(4, 1000, 0.4), sold(8, 1000, 0.6)]) == pytest.approx(13 * 0.075)


def test_the_bound_mixes_what_fits_together() -> None:
    """One machine holds a job of cores and one of memory side by side: each alone would fill one."""
    jobs = work((Resources(3, 100), 1.0), (Resources(1, 900), 1.0))
    assert clairvoyant(jobs, [sold(4, 1000, 1.0)]) == pytest.approx(1.0)


def test_a_job_runs_only_where_it_fits() -> None:
    jobs = work((Resources(1, 10, gpus=1), 2.0), (Resources(64, 1), 100.0))
    offers = [sold(4, 1000, 0.01), sold(4, 1000, 4.0, gpus=2), sold(64, 1000, None)]
    assert clairvoyant(jobs, offers) == pytest.approx(4.0), (
        "half a machine for two hours; the wide job has none"
    )


def test_very_many_different_requests_lower_the_bound_a_little() -> None:
    jobs = work(*((Resources(1, 10_000 + n), 1.0) for n in range(3000)))
    exact = sum(10_000 + n for n in range(3000)) / 100_000
    found = clairvoyant(jobs, [sold(1000, 100_000, 1.0)])
    assert exact * 0.99 < found < exact


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 400), st.integers(1, 50)), min_size=1, max_size=8),
    st.lists(st.tuples(st.integers(1, 8), st.integers(100, 800), st.integers(1, 99)), min_size=1, max_size=4),
)
def test_a_machine_for_each_job_never_costs_less(
    jobs: list[tuple[int, int, int]], flavors: list[tuple[int, int, int]]
) -> None:
    offers = [sold(cpus, memory, price / 10) for cpus, memory, price in flavors]
    held = [
        (Resources(cpus, memory), hours)
        for cpus, memory, hours in jobs
        if any(offer.resources.holds(Resources(cpus, memory)) for offer in offers)
    ]
    alone = sum(
        hours * min(offer.price or 0.0 for offer in offers if offer.resources.holds(request))
        for request, hours in held
    )
    assert clairvoyant(work(*held), offers) <= alone * (1 + 1e-9)
