"""elastiq's rule as a rival: its three sets of numbers, its double count, its credits, its shots.

`tests/sim/test_elastiq.py` runs the same rule against updraft's plan in whole simulations.
"""

from dataclasses import replace

import pytest

from tests.rigs.sim.stage import ONE, SMALL, Stage, ended, launched
from updraft.core.model import CloudState, Unknown
from updraft.core.model import Reason as Why
from updraft.sim.rivals.elastiq import DEFAULT, ECM, SAMPLE, ElastiqRule, Numbers

TICK = 5.0


def stage(numbers: Numbers = DEFAULT, **more: object) -> Stage:
    return Stage(ElastiqRule(numbers, flavor=SMALL), **more)  # type: ignore[arg-type]


def first_order(there: Stage, within: float = 400) -> tuple[float, int]:
    """When it first orders, counted from the first look, and how many."""
    begun = there.now
    if count := launched(there.look()):
        return 0.0, count
    while there.now - begun < within:
        if count := launched(there.look(TICK)):
            return there.now - begun, count
    return within, 0


@pytest.mark.parametrize(
    ("numbers", "idle", "earliest", "latest", "ordered"),
    [
        (DEFAULT, 9, 40, 60, 3),  # ceil(9 / 4), at once
        (SAMPLE, 12, 100, 120, 3),
        (SAMPLE, 9, 400, 400, 0),  # below its threshold of ten
        (ECM, 9, 90, 100, 5),  # ceil(9 / 2): as many jobs per machine as it has cores
    ],
)
def test_jobs_must_wait_long_enough_and_then_all_machines_are_ordered_at_once(
    numbers: Numbers, idle: int, earliest: float, latest: float, ordered: int
) -> None:
    there = stage(numbers)
    there.waiting(idle)
    when, count = first_order(there)
    assert earliest <= when <= latest
    assert count == ordered
    assert there.calls == ordered, "one call for each"


def test_a_machine_that_runs_is_counted_twice_until_its_credit_expires() -> None:
    there = stage(replace(DEFAULT, per_vm=2), machines=10)
    there.waiting(10)
    assert first_order(there)[1] == 5
    there.join()
    there.fill()
    there.waiting(20)
    there.looks(520, TICK)
    assert len(there.boxes) == 5, "5 that run and the credits of the same 5 are the whole quota"
    there.looks(180, TICK)
    assert len(there.boxes) == 10


def test_a_credited_machine_covers_jobs_although_it_has_joined_and_is_full() -> None:
    there = stage(replace(DEFAULT, per_vm=2))
    there.waiting(4)
    first_order(there)
    there.join()
    there.fill()
    there.waiting(4)
    assert first_order(there, 500)[1] == 0, "the two that are full are still believed to take four jobs"


def test_an_idle_machine_that_ends_takes_the_credit_of_one_that_is_coming() -> None:
    rule = ElastiqRule(replace(DEFAULT, per_vm=2, idle=300, deploy=2000), flavor=SMALL)
    there = Stage(rule)
    (name,) = there.add(1)
    rule.daemon.owned.add(there.boxes[name].instance.launch_key)
    there.looks(240, TICK)
    there.waiting(2)
    assert first_order(there, 100)[1] == 1
    there.looks(40, TICK)
    assert len(there.coming()) == 1, "it has credit for both jobs"
    there.looks(160, TICK)
    assert name in there.ended
    assert len(there.coming()) == 2, "another one, for the same two jobs"


def test_strangers_take_room_in_the_quota() -> None:
    rule = ElastiqRule(DEFAULT, flavor=SMALL, strangers=("head", "somebody's"))
    there = Stage(rule, machines=3)
    there.waiting(40)
    assert first_order(there)[1] == 1


def test_a_slow_boot_is_killed_at_the_deploy_time_and_ordered_again() -> None:
    there = stage(replace(DEFAULT, per_vm=2), machines=4)
    there.waiting(8)
    first_order(there)
    for box in there.coming():
        box.instance = replace(box.instance, state=CloudState.RUNNING)
    first = set(there.boxes)
    there.looks(700, TICK)
    assert first <= set(there.ended)
    assert len(there.boxes) == 4, "and as many are on their way again"


def test_a_host_that_is_idle_at_every_look_is_shot_with_what_runs_on_it() -> None:
    there = stage(replace(DEFAULT, idle=300))
    (name,) = there.add(1)
    short = False
    while name in there.boxes and there.now < 1_000_000 + 1000:
        there.look(TICK)
        if name in there.boxes:  # a job starts right after each look, and is gone before the next
            looked = round((there.now - 1_000_000) / TICK) % 9
            there.run(name, *([("alice", ONE)] if looked in (2, 3, 4, 5) else []))
            short = short or bool(there.boxes[name].jobs)
    assert short
    assert name in there.ended


def test_idle_machines_go_after_the_limit_even_while_jobs_wait() -> None:
    there = stage(replace(DEFAULT, idle=300, threshold=1000))
    names = there.add(2)
    there.waiting(5)
    there.looks(400, TICK)
    assert set(names) == set(there.ended)


def test_a_minimum_is_filled_and_kept() -> None:
    there = stage(replace(DEFAULT, min_vms=2, idle=300))
    there.look()
    assert len(there.boxes) == 2
    there.join()
    there.looks(900, TICK)
    assert len(there.boxes) == 2


def test_an_order_that_is_refused_gives_no_credit() -> None:
    there = stage(replace(DEFAULT, per_vm=2), refuse=True)
    there.waiting(8)
    first_order(there)
    there.refuse = False
    assert first_order(there, 120)[1] == 4, "it goes on asking for all four"


def test_machines_in_error_are_replaced_at_once() -> None:
    there = stage()
    there.waiting(8)
    assert first_order(there)[1] == 2
    for box in there.coming():
        box.instance = replace(box.instance, state=CloudState.ERROR)
    plans = there.looks(30, TICK)
    assert sum(map(launched, plans)) == 2
    assert sum(len(ended(made)) for made in plans) == 2


def test_a_silent_collector_or_schedd_changes_nothing() -> None:
    rule = ElastiqRule(replace(DEFAULT, idle=300), flavor=SMALL)
    there = Stage(rule)
    there.add(1)
    there.waiting(8)
    silent = Why("timeout", "no answer")
    while there.now < 1_000_000 + 600:
        there.now += TICK
        seen = there.snapshot()
        unknown = replace(
            seen, collector=Unknown(silent, there.now), schedds={"schedd": Unknown(silent, there.now)}
        )
        assert not rule(unknown, there.policy).actions


def test_between_its_looks_it_does_nothing() -> None:
    there = stage()
    there.waiting(9)
    there.look()
    assert there.look(4.0).actions == ()
