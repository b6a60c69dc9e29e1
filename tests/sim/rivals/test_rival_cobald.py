"""COBalD's linear feedback: thresholds, rate, and no look at the queue."""

from collections.abc import Callable

import pytest

from tests.rigs.sim.stage import LARGE, ONE, SMALL, Stage, drained, ended, launched
from updraft.core.model import Resources
from updraft.sim.rivals.cobald import DEFAULT, SLOW, Cobald, Linear

HALF = 30.0


def stage(settings: Linear = DEFAULT, flavor: str = SMALL, **limits: int) -> tuple[Cobald, Stage]:
    rule = Cobald(settings, flavor=flavor)
    return rule, Stage(rule, **limits)


def steady(rule: Cobald, there: Stage, machines: int, used: int) -> None:
    """So many machines of two cores in the pool, with so many cores in use, and as much demand."""
    names = there.add(machines)
    for number in range(used):
        box = there.boxes[names[number % machines]]
        box.jobs.append(("alice", ONE))
    rule.demand = 2.0 * machines


@pytest.mark.parametrize(
    ("settings", "used", "change"),
    [
        (DEFAULT, 11, 30.0),  # 11 of 20 cores: above a half
        (DEFAULT, 10, 0.0),  # just a half: neither below nor above
        (DEFAULT, 9, -20.0),  # below: it would fall by 30, and stops at nothing
        (Linear(low=0.9, high=0.9), 19, 30.0),
        (Linear(low=0.9, high=0.9), 17, -20.0),
        (Linear(low=0.2, high=0.8), 10, 0.0),
        (SLOW, 11, 3.0),
        (Linear(rate=0.1), 9, -3.0),
    ],
)
def test_demand_follows_the_use_by_the_rate(settings: Linear, used: int, change: float) -> None:
    rule, there = stage(settings)
    steady(rule, there, 10, used)
    there.look()
    assert rule.demand == pytest.approx(20.0 + change)


def test_the_queue_is_nothing_to_it() -> None:
    def demand_after(idle: int) -> float:
        rule, there = stage()
        steady(rule, there, 10, 20)
        there.waiting(idle)
        there.looks(300, HALF)
        return rule.demand

    assert demand_after(0) == demand_after(100_000)


def test_an_empty_pool_is_tried_out_without_a_job() -> None:
    rule, there = stage()
    assert launched(there.look()) == 15, "30 s of a core each second"
    there.join()
    seen = []
    for _ in range(20):
        there.look(HALF)
        there.join()
        seen.append(rule.demand)
    assert 0.0 in seen, "nothing is used: it shrinks to nothing"
    assert seen.count(60.0) > 3, "and begins again each time"
    assert len(there.ended) > 60


def test_machines_start_until_what_they_are_worth_reaches_demand() -> None:
    rule, there = stage(flavor=LARGE)
    rule.demand = 1.0
    assert launched(there.look()) == 4, "31 cores"
    assert launched(there.look(HALF)) == 4, "61 cores"


def test_those_least_used_go_and_are_drained_and_only_as_far_as_the_excess_covers() -> None:
    rule, there = stage(Linear(low=0.5, high=0.5, rate=0.1))
    steady(rule, there, 10, 0)
    names = list(there.boxes)
    for name in names[:4]:
        there.run(name, ("alice", ONE), ("alice", ONE))
    made = there.look()
    assert rule.demand == pytest.approx(17.0)
    assert drained(made) == names[4:5], "three cores too many: one machine of two"
    assert not ended(made)
    assert ended(there.look(HALF)) == names[4:5]


def test_a_busy_machine_that_goes_finishes_its_job() -> None:
    rule, there = stage(Linear(minimum=0.0))
    (name,) = there.add(1, LARGE)
    there.run(name, ("alice", ONE))
    rule.demand = 8.0
    assert drained(there.look()) == [name]
    for _ in range(5):
        there.look(HALF)
        assert name in there.boxes
    there.run(name)
    there.look(HALF)
    assert name in there.ended
    assert not there.shot


def test_one_that_has_not_joined_is_ended_at_once() -> None:
    rule, there = stage()
    (idle,) = there.add(1)
    (young,) = there.add(1, joined=False)
    rule.demand = 4.0
    there.look()
    assert rule.demand == 0.0
    assert young in there.ended
    assert there.boxes[idle].draining


def test_the_limiter() -> None:
    rule, there = stage(machines=5)
    there.looks(600, HALF)
    assert rule.demand <= 10.0
    assert len(there.boxes) <= 5
    rule, there = stage(Linear(minimum=6.0))
    steady(rule, there, 10, 0)
    there.looks(300, HALF)
    assert rule.demand == 6.0


@pytest.mark.parametrize(
    ("shares", "expected"), [(("cpus",), lambda d: d > 8), (("cpus", "memory"), lambda d: d < 8)]
)
def test_memory_that_nobody_asks_for_keeps_utilisation_low(
    shares: tuple[str, ...], expected: Callable[[float], bool]
) -> None:
    rule, there = stage(Linear(shares=shares))
    (name,) = there.add(1, LARGE)
    there.run(name, *[("alice", Resources(1, 100, 1024))] * 8)
    rule.demand = 8.0
    there.look()
    assert expected(rule.demand)
