"""Whatever arrives and whatever goes wrong: no job is killed or forgotten, and no limit is exceeded."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from updraft.core.model import CloudOffer, Known, Plan, Resources, Snapshot
from updraft.core.plan import plan as core_plan
from updraft.core.settings import Limits, Policy, WorkerClass
from updraft.sim.reports.bound import clairvoyant
from updraft.sim.reports.metrics import metrics
from updraft.sim.workloads.workload import Arrival
from updraft.sim.world.outcome import Outcome
from updraft.sim.world.simulation import Boots, Conditions, SimCloud, World, simulate

GIB = 1024
OFFERS = tuple(
    CloudOffer(
        "f", "a", f"c{cpus}", market, Resources(cpus, cpus * 2 * GIB, 40 << 20), cpus * price, left, "X86_64"
    )
    for cpus, left in ((1, None), (2, 3), (4, None))
    for market, price in (("on-demand", 0.1), ("spot", 0.03))
)

requests = st.builds(Resources, cpus=st.integers(1, 4), memory=st.integers(1, 3 * GIB), disk=st.just(1024))
arrivals = st.builds(
    Arrival,
    at=st.integers(0, 3000).map(float),
    owner=st.sampled_from(("ada", "grace", "mary")),
    request=requests,
    seconds=st.integers(1, 2500).map(float),
    estimate=st.none() | st.floats(1, 5000),
    longest=st.none() | st.floats(2500, 9000),
    priority=st.integers(-1, 1),
    executable=st.sampled_from(("", "a.out")),
)
worlds = st.builds(
    Conditions,
    cycle=st.sampled_from((20.0, 60.0, 97.0)),
    negotiation=st.sampled_from((20.0, 60.0)),
    shows_after=st.sampled_from((0.0, 30.0)),
    boots=st.builds(
        Boots,
        median=st.floats(10, 400),
        spread=st.floats(0, 1),
        failures=st.sampled_from((0.0, 0.0, 0.3)),
    ),
    interruptions=st.sampled_from((0.0, 1.0)),
    worklife=st.sampled_from((0.0, 1200.0)),
    seed=st.integers(0, 5),
)
sites = st.builds(
    Limits,
    machines=st.none() | st.integers(2, 6),
    cores=st.none() | st.integers(4, 12),
    cost_per_hour=st.none() | st.floats(0.5, 2.0),
)


WORKER = WorkerClass(
    "w",
    "g",
    ("f",),
    images={"f": "i"},
    markets=("on-demand", "spot"),
    idle_limit=200.0,
    boot_deadline=2400.0,
)


class Watch:
    """The real planner, with an eye on every snapshot that it is given."""

    def __init__(self) -> None:
        self.given = 0

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        assert isinstance(snapshot.collector, Known)
        for slot in snapshot.collector.value.slots:
            used = sum((child.resources for child in slot.children), Resources())
            assert used + slot.free == slot.total, "what is taken and what is free is the whole slot"
            assert min(slot.free.cpus, slot.free.memory, slot.free.disk) >= 0
        for source in snapshot.schedds.values():
            assert isinstance(source, Known)
            assert source.value.idle_total == sum(group.idle for group in source.value.groups)
            assert all(group.idle > 0 for group in source.value.groups)
        plan = core_plan(snapshot, policy)
        assert plan == core_plan(snapshot, policy)
        self.given += 1
        return plan


def play(work: list[Arrival], limits: Limits, conditions: Conditions, thorough: bool) -> Outcome:
    policy = Policy("p", {"w": WORKER}, limits)
    clouds = {"f": SimCloud(OFFERS, machines=8, cores=14, tells_left=thorough)}
    if thorough:
        return simulate(work, policy, clouds, decide=Watch(), conditions=conditions)
    return simulate(work, policy, clouds, conditions=conditions)


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(arrivals, min_size=1, max_size=25), sites, worlds, st.booleans())
def test_no_job_is_killed_or_forgotten_and_limits_hold(
    work: list[Arrival], limits: Limits, conditions: Conditions, watched: bool
) -> None:
    outcome = play(work, limits, conditions, watched)
    jobs, machines = outcome.jobs, outcome.machines
    assert outcome.killed == 0
    assert jobs.kills.sum() == 0
    assert not outcome.violations
    assert outcome.series.machines.max() <= 8
    assert outcome.series.paid.max() <= 14
    assert not np.isnan(jobs.ended).any()
    assert not np.isnan(machines.ended_at).any()
    assert jobs.runs.sum() == len(work) + outcome.lost
    assert np.all(jobs.first_start >= jobs.submitted)
    assert np.all(jobs.ran >= jobs.seconds - 1e-3)
    figures = metrics(outcome, clairvoyant(work, OFFERS))
    assert figures.over_bound is not None
    assert figures.over_bound >= 1 - 1e-6
    assert figures.completed == len(work)


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(arrivals, min_size=1, max_size=10), worlds)
# A machine is taken away between a look and its deeds: what is written down of a cycle is what comes after.
@example(
    work=[
        Arrival(2026.0, "grace", Resources(1, 956, 1024), 116.0),
        Arrival(200.0, "ada", Resources(3, 98, 1024), 306.0),
        Arrival(28.0, "grace", Resources(4, 14, 1024), 2499.0),
    ],
    conditions=Conditions(
        cycle=20.0, negotiation=20.0, worklife=0.0, boots=Boots(215.3, 0.7), interruptions=1.0, seed=3
    ),
)
def test_cycles_that_are_left_out_change_nothing(work: list[Arrival], conditions: Conditions) -> None:
    lazy = play(work, Limits(), conditions, thorough=False)
    every = play(work, Limits(), replace(conditions, thorough=True), thorough=False)
    assert np.array_equal(lazy.jobs.ended, every.jobs.ended)
    assert np.array_equal(lazy.machines.ended_at, every.machines.ended_at)
    assert np.array_equal(lazy.series.cost, every.series.cost)
    assert lazy.calls == every.calls


@pytest.mark.slow
@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(arrivals, min_size=1, max_size=10), worlds)
def test_what_a_world_remembers_of_its_machines_changes_no_plan(
    work: list[Arrival], conditions: Conditions
) -> None:
    world = World(work, Policy("p", {"w": WORKER}), {"f": SimCloud(OFFERS)}, core_plan, conditions)
    decide = world.decide

    def checked(snapshot: Snapshot, policy: Policy) -> Plan:
        made = decide(snapshot, policy)
        assert made == core_plan(snapshot, policy)
        return made

    world.decide = checked
    world.run()
