"""csv2: a shortfall of sums, five machines to a call, nine on their way, retirement without a way back."""

from dataclasses import replace

from tests.rigs.sim.stage import LARGE, ONE, SMALL, Stage, drained, ended, launched
from updraft.core.model import CloudState, Resources
from updraft.sim.rivals.csv2 import DEFAULT, Csv2, Settings

TEN = 10.0


def stage(settings: Settings = DEFAULT, **limits: int) -> Stage:
    return Stage(Csv2(settings), **limits)


def test_nine_machines_on_their_way_at_most() -> None:
    there = stage()
    there.waiting(1000)
    assert launched(there.look()) == 5
    there.join(1)
    assert launched(there.look(TEN)) == 5, "four were on their way: below five, so five more"
    assert len(there.coming()) == 9
    for _ in range(30):
        assert not there.look(TEN).actions
    there.join(4)
    there.fill()
    assert not there.look(TEN).actions, "five are on their way"
    there.join(1)
    there.fill()
    assert launched(there.look(TEN)) == 5


def test_its_ramp_is_bound_by_its_boots_and_by_nothing_else() -> None:
    """300 s from call to pool: about a hundred machines an hour, however many jobs wait."""
    there = stage()
    there.offers = there.offers[:1]
    there.waiting(10_000)
    due: list[tuple[float, int]] = []
    while there.now < 1_000_000 + 3600:
        count = launched(there.look(TEN))
        due += [(there.now + 300, count)] if count else []
        while due and due[0][0] <= there.now:
            there.join(due.pop(0)[1])
            there.fill()
    assert 55 <= len(there.boxes) <= 115


def test_one_call_of_five_each_ten_seconds() -> None:
    there = stage(replace(DEFAULT, new_throttle=100))
    there.waiting(1000)
    assert (launched(there.look()), there.calls) == (5, 1)
    assert not there.look(5).actions
    assert (launched(there.look(5)), there.calls) == (5, 2)
    assert launched(there.look(30)) == 15, "a late look makes up for the rounds between"


def test_the_smallest_flavor_that_holds_a_job() -> None:
    there = stage()
    there.waiting(3)
    there.look()
    assert {box.instance.flavor for box in there.boxes.values()} == {SMALL}
    assert len(there.boxes) == 2, "three cores are two machines of two"
    there = stage()
    there.waiting(3, request=Resources(4, 1024, 1024))
    there.look()
    assert {box.instance.flavor for box in there.boxes.values()} == {LARGE}


def test_sums_do_not_see_how_jobs_pack() -> None:
    """Eight jobs of five cores: forty cores, five machines of eight; three jobs never get one."""
    there = stage()
    wide = Resources(5, 1024, 1024)
    there.waiting(8, request=wide)
    for _ in range(20):
        there.look(TEN)
        there.join()
        there.fill(request=wide)
    assert len(there.boxes) == 5
    assert [one.idle for one in there.groups] == [3]


def test_one_resource_alone_starts_machines() -> None:
    there = stage()
    there.waiting(4, request=Resources(1, 4096, 1024))
    there.look()
    assert len(there.boxes) == 4, "four cores would be two machines, sixteen GiB are four"


def test_running_jobs_and_machines_on_their_way_are_in_the_sums() -> None:
    there = stage()
    (name,) = there.add(1)
    there.run(name, ("alice", ONE), ("alice", ONE))
    there.waiting(2)
    assert launched(there.look()) == 1, "its two cores are taken"
    assert not there.look(TEN).actions, "and two more are coming"


def test_enough_idle_machines_stop_it() -> None:
    there = stage()
    there.add(10)
    there.waiting(500)
    assert not there.look().actions
    there.run("i-0", ("alice", ONE))
    assert launched(there.look(TEN)) == 5


def test_a_machine_without_a_job_is_retired_blind_to_the_queue_and_never_comes_back() -> None:
    there = stage()
    (name,) = there.add(1)
    there.run(name, ("alice", ONE))
    there.look()
    there.run(name)
    there.look(TEN)
    there.looks(300, TEN)
    assert name in there.boxes
    there.waiting(1)
    made = there.look(TEN)
    assert drained(made) == [name]
    assert ended(there.look(TEN)) == [name]


def test_keep_alive_is_two_minutes_at_least() -> None:
    there = stage(replace(DEFAULT, keep_alive=1.0))
    (name,) = there.add(1)
    there.run(name, ("alice", ONE))
    there.look()
    there.run(name)
    there.looks(120, TEN)
    assert not there.boxes[name].draining
    there.looks(20, TEN)
    assert name not in there.boxes or there.boxes[name].draining


def test_a_busy_machine_is_never_ended() -> None:
    there = stage()
    (name,) = there.add(1)
    there.run(name, ("alice", ONE))
    there.looks(9000, 100.0)
    assert name in there.boxes


def test_machines_that_never_come_hold_up_everybody_for_two_hours() -> None:
    there = stage()
    there.waiting(100)
    there.looks(100, TEN)
    stuck = len(there.boxes)
    assert stuck == 5
    there.looks(7000, 100.0)
    assert len(there.boxes) == stuck
    there.looks(300, 100.0)
    assert len(there.ended) == stuck


def test_machines_in_error_go_after_five_minutes() -> None:
    there = stage()
    (name,) = there.add(1, joined=False, state=CloudState.ERROR)
    there.looks(300, TEN)
    assert name in there.boxes
    there.looks(20, TEN)
    assert name in there.ended


def test_one_that_has_never_had_a_job_is_given_half_an_hour() -> None:
    there = stage()
    (name,) = there.add(1)
    there.looks(1800, TEN)
    assert name in there.boxes
    there.looks(40, TEN)
    assert name in there.ended


def test_the_sites_limits() -> None:
    for limits in ({"cores": 6}, {"memory": 3 * 4096}):
        there = stage(**limits)
        there.waiting(100)
        assert launched(there.look()) == 3
        there.join()
        assert launched(there.look(TEN)) == 0
