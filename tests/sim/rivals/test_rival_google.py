"""Google's autoscaler: the sum of idle cores, rounded up; idle machines are deleted without a drain."""

import pytest

from tests.rigs.sim.stage import LARGE, ONE, SMALL, Stage, ended, launched
from updraft.core.model import Resources
from updraft.sim.rivals.google import Google

MINUTE = 60.0


def stage(flavor: str = LARGE, min_idle: int = 0, **limits: int) -> Stage:
    return Stage(Google(flavor=flavor, min_idle=min_idle), **limits)


@pytest.mark.parametrize(("cores", "machines"), [(0, 0), (1, 1), (8, 1), (9, 2), (64, 8), (65, 9)])
def test_the_cores_of_idle_jobs_divided_and_rounded_up(cores: int, machines: int) -> None:
    there = stage()
    there.waiting(cores)
    made = there.look()
    assert launched(made) == machines
    assert there.calls == min(1, machines), "one call, whatever the number"


def test_memory_is_not_looked_at() -> None:
    there = stage()
    there.waiting(8, request=Resources(1, 16_000, 1024))
    assert launched(there.look()) == 1, "although one such job fills a machine"


def test_five_core_jobs_on_eight_cores_are_too_few_machines() -> None:
    there = stage()
    there.waiting(8, request=Resources(5, 1024, 1024))
    assert launched(there.look()) == 5


def test_those_on_their_way_count_as_idle() -> None:
    there = stage()
    there.waiting(16)
    assert launched(there.look()) == 2
    assert not there.look(MINUTE).actions, "the same sixteen jobs"
    there.join()
    there.fill()
    there.waiting(8)
    assert launched(there.look(MINUTE)) == 1


def test_idle_machines_are_deleted_at_once_and_those_that_are_being_made_first() -> None:
    there = stage()
    idle = there.add(2, LARGE)
    (young,) = there.add(1, LARGE, joined=False)
    (busy,) = there.add(1, LARGE)
    there.run(busy, ("alice", ONE))
    there.waiting(9)
    assert ended(there.look()) == [young]
    there.waiting(0)
    assert sorted(ended(there.look(MINUTE))) == idle
    assert busy in there.boxes


def test_jobs_that_had_no_chance_to_match_do_not_count() -> None:
    there = stage()
    there.waiting(8, age=1.0)
    assert not there.look().actions
    there.negotiated = False
    there.waiting(8)
    assert not there.look(MINUTE).actions, "without a negotiator it does nothing at all"


def test_a_limit_and_a_minimum_of_idle_machines() -> None:
    there = stage(SMALL, machines=3)
    there.waiting(100)
    assert launched(there.look()) == 3
    there = stage(min_idle=2)
    assert launched(there.look()) == 2


def test_once_a_minute() -> None:
    there = stage()
    there.look()
    there.waiting(8)
    assert not there.look(30).actions
    assert launched(there.look(30)) == 1
