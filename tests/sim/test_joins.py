"""A collector that takes only so many joins: growth keeps to that, and those that stay keep their updates."""

from dataclasses import replace

import pytest

from tests.rigs.sim.simtools import WHOLE, engine, policy, shape
from updraft.core.model import JoinPace, Plan, Snapshot
from updraft.core.plan import plan
from updraft.core.settings import Policy
from updraft.sim.conditions import Pace
from updraft.sim.engine import Decide, Engine
from updraft.sim.workloads.workload import burst

pytestmark = pytest.mark.slow
MACHINES = 150
TAKES = 3.0  # joins a second
LONG = 20 * 3600.0
WAVE = 200.0  # seconds from one loss of machines to the next


def unpaced(snapshot: Snapshot, made: Policy) -> Plan:
    """The same decision by one that doesn't know of the collectors."""
    return plan(replace(snapshot, pace=JoinPace()), made)


def grown(decide: Decide = plan, takes: float | None = TAKES) -> Engine:
    """A pool in which all machines have joined that were wanted at once."""
    made = policy(flavors=("small",), timings={"cycle": 5.0})
    site = {"f": {"boots": [{"start": "20s", "join": "20s", "spread": 0.05}]}}
    work = burst(MACHINES, shapes=(shape_of_all(),))
    sim = engine(made, site, workload=work, pace=Pace(joins=takes), decide=decide)
    assert sim.run(1200.0, lambda: here(sim) == MACHINES)
    return sim


def shape_of_all() -> object:
    return replace(shape(LONG), request=WHOLE)


def here(sim: Engine) -> int:
    return sum(machine.works for machine in sim.pool.machines.values())


def lost(sim: Engine) -> int:
    return sum(load.lost for load in sim.pool.loads().values())


def churned(sim: Engine, waves: int) -> list[int]:
    """Two of three machines are taken away at once, again and again; the updates lost after each time."""
    found = []
    for _ in range(waves):
        living = sorted(machine.id for machine in sim.pool.machines.values() if machine.works)
        for name in living[: 2 * MACHINES // 3]:
            sim.sites["f"].kill(name)
        before = lost(sim)
        sim.run(WAVE)
        found.append(lost(sim) - before)
        assert here(sim) == MACHINES
    return found


def test_churn_starves_nobody_once_the_collector_has_shown_what_it_takes() -> None:
    sim = grown()
    assert lost(sim) > 0  # the first burst was more than it takes: that is how it was found out
    assert churned(sim, 5) == [0, 0, 0, 0, 0]


def test_without_a_pace_each_wave_drowns_it() -> None:
    assert min(churned(grown(unpaced), 3)) > 0


def test_where_collectors_have_room_nothing_is_slower() -> None:
    assert grown(takes=1000.0).timeline() == grown(unpaced, takes=1000.0).timeline()
    assert grown(takes=None).timeline() == grown(unpaced, takes=None).timeline()
