"""The controller dies between any two steps, with or without its ledger: nothing leaked, nothing doubled."""

import pytest

from tests.rigs.sim.simtools import Killer, Watch, engine, policy, shape
from updraft.sim.conditions import Pace
from updraft.sim.engine import Crash, Engine
from updraft.sim.workloads.workload import burst as jobs

HOUR = 3600.0
PROMPT = Pace(start=0.0, reuse=0.0)

STEPS = (
    "plan: recorded",
    "launch: before the intent",
    "launch: intended",
    "launch: prepared",
    "launch: asked",
    "launch: recorded",
    "drain: tagged",
    "drain: recorded",
    "drain: asked",
    "drain: accepted",
    "terminate: before the record",
    "terminate: recorded",
    "terminate: asked",
)


MEDIUM = policy(idle_limit=30.0, flavors=("medium",))


def play_with_crash(step: str, keep_ledger: bool, pause: float) -> tuple[Engine, Watch]:
    killer = Killer(step)
    sim = engine(MEDIUM, workload=jobs(24, shapes=(shape(30),)), step=killer, pace=PROMPT)
    watch = Watch(sim)
    try:
        sim.run_to_zero(HOUR)
    except Crash:
        sim.idle(pause)
        sim.restart(keep_ledger=keep_ledger)
    assert killer.struck, f"the story has no step {step!r}"
    assert sim.run_to_zero(HOUR)
    return sim, watch


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keep_ledger", "pause"),
    [(True, 1.0), (False, 1.0), (False, 100.0)],
    ids=["ledger", "no-ledger", "no-ledger-and-late"],
)
@pytest.mark.parametrize("step", STEPS)
def test_a_controller_that_dies_between_two_steps_leaks_and_doubles_nothing(
    step: str, keep_ledger: bool, pause: float
) -> None:
    sim, watch = play_with_crash(step, keep_ledger, pause)
    watch.closing()
    assert sim.result().launched == 6


def test_an_instance_in_error_is_ended_also_after_the_ledger_was_lost() -> None:
    killer = Killer("launch: asked")
    tuning = {"f": {"boots": [{"breaks": 1.0, "start": "1s"}]}}
    sim = engine(policy(), tuning, workload=jobs(4, shapes=(shape(60),)), step=killer)
    with pytest.raises(Crash):
        sim.run(60)
    first = {one.id for one in sim.sites["f"].current()}
    sim.idle(5)
    sim.restart(keep_ledger=False)
    assert sim.run(HOUR, lambda: not first & {one.id for one in sim.sites["f"].alive("p")})
