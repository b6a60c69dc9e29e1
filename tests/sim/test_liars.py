"""Whole stories with machines that say that they have room and take no job: others are bought."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.rigs.sim.liars import Liars, Lie
from tests.rigs.sim.simtools import Watch, engine, policy, shape
from updraft.core.model import Launch
from updraft.sim.workloads.workload import burst as jobs

HOUR = 3600.0
OWNERS = ("ada", "grace")
BOUND = 45 * 60.0
"""Seconds in which all have begun who wait beside such machines, also if one is doubted after the other."""


def story(lie: Lie, liars: int, count: int, over: float) -> tuple[float, int]:
    """How long the last of these jobs waited, and how many machines were launched besides the liars."""
    made = policy(timings={"cycle": 10.0}, min_machines=liars)
    sim = engine(made, workload=jobs(count, at=300, over=over, shapes=[shape(600)], owners=OWNERS))
    Liars(sim, liars, lie, OWNERS)
    watch, begun = Watch(sim), sim.timeline()

    def all_begun() -> bool:
        mine = sim.pool.jobs
        return len(mine) == count and all(job.first_started_at is not None for job in mine)

    assert sim.run(300 + over + BOUND, all_begun), "somebody waits for ever"
    launched = sum(action.count for _, action in watch.actions if isinstance(action, Launch))
    return sim.timeline() - begun - 300, launched - liars


@pytest.mark.slow
@pytest.mark.parametrize("lie", list(Lie))
def test_a_job_that_fits_a_machine_that_takes_none_is_bought_another(lie: Lie) -> None:
    """It was never bought any, as long as that machine was there."""
    waited, launched = story(lie, 1, 1, 1.0)
    assert waited < 600
    assert launched == 1


@pytest.mark.slow
@settings(max_examples=10, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(
    lie=st.sampled_from(Lie),
    liars=st.integers(1, 3),
    count=st.integers(1, 12),
    over=st.sampled_from([1.0, 300.0]),
)
def test_whoever_waits_is_bought_for_within_a_bound(lie: Lie, liars: int, count: int, over: float) -> None:
    _, launched = story(lie, liars, count, over)
    assert launched <= count + 2
