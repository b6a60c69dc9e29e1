"""Cloud Scheduler's fair share: a machine for a job, shares among users, and how machines retire."""

from collections import Counter
from dataclasses import replace

from tests.rigs.sim.stage import ONE, SMALL, Stage, drained, ended, launched
from updraft.core.model import Launch, Resources
from updraft.sim.rivals.cloud_scheduler import DEFAULT, CloudScheduler, Settings

FIVE = 5.0


def stage(settings: Settings = DEFAULT, **limits: int) -> Stage:
    return Stage(CloudScheduler(settings), (SMALL,), **limits)


def owners(there: Stage, *names: str) -> Counter[str]:
    """For whom its machines were made: each user asks for a memory of his own here."""
    rule = there.decide
    assert isinstance(rule, CloudScheduler)
    return Counter(rule._type_of(box.instance).owner for box in there.boxes.values())


def test_one_machine_for_each_job_one_at_a_time() -> None:
    there = stage()
    there.waiting(4)
    assert [launched(there.look(FIVE)) for _ in range(6)] == [1, 1, 1, 1, 0, 0], "of two cores, for one core"
    there = stage()
    there.waiting(1000)
    there.look()
    assert launched(there.look(60)) == 12, "a late look makes up for the rounds between"


def test_one_machine_for_each_user_in_a_round() -> None:
    there = stage()
    for name in ("ada", "grace", "kay"):
        there.waiting(10, name)
    made = there.look()
    assert launched(made) == 3
    assert all(action.count == 1 for action in made.actions if isinstance(action, Launch))


def test_jobs_per_core() -> None:
    there = stage(replace(DEFAULT, job_per_core=True))
    there.waiting(4)
    assert [launched(there.look(FIVE)) for _ in range(4)] == [1, 1, 0, 0]


def test_users_share_the_machines_however_many_jobs_they_have() -> None:
    there = stage(machines=9)
    there.waiting(1000, "ada")
    there.waiting(3, "grace")
    there.waiting(50, "kay")
    there.looks(60, FIVE)
    assert owners(there) == Counter({"ada": 3, "grace": 3, "kay": 3})


def test_who_is_above_his_share_waits_while_another_has_room() -> None:
    there = stage()
    there.waiting(40, "ada")
    there.looks(50, FIVE)
    assert owners(there)["ada"] == 10
    there.waiting(40, "grace")
    plans = there.looks(40, FIVE)
    assert [launched(made) for made in plans] == [1] * 8
    assert owners(there) == Counter({"ada": 10, "grace": 8})
    there.looks(20, FIVE)
    assert abs(owners(there)["ada"] - owners(there)["grace"]) <= 1


def test_over_a_share_where_nobody_below_his_can_use_the_room() -> None:
    there = stage()
    there.waiting(40, "ada")
    there.looks(50, FIVE)
    there.waiting(40, "grace", Resources(64, 1024, 1024))
    assert launched(there.look(FIVE)) == 1, "no machine holds her jobs, so he goes on"


def test_balance_drains_busy_machines_of_those_above_their_share() -> None:
    there = stage(machines=8)
    there.waiting(8, "ada")
    there.looks(60, FIVE)
    there.join()
    for name in there.boxes:
        there.run(name, ("ada", ONE))
    there.waiting(40, "ada")
    there.looks(10, FIVE)
    there.waiting(8, "grace")
    made = there.look(FIVE)
    assert len(drained(made)) == 4, "half of them"
    assert not ended(made)
    assert not there.looks(30, FIVE)[-1].actions, "and they finish their jobs"
    for name in drained(made):
        there.run(name)
    there.looks(60, FIVE)
    assert owners(there) == Counter({"ada": 4, "grace": 4})
    assert not there.shot


def test_balance_takes_machines_that_are_starting_first() -> None:
    there = stage(machines=4)
    there.waiting(40, "ada")
    there.looks(40, FIVE)
    there.join(2)
    for box in there.joined():
        there.run(box.instance.id, ("ada", ONE))
    there.waiting(40, "grace")
    assert len(ended(there.look(FIVE))) == 2
    assert not any(box.draining for box in there.joined())


def test_machines_beyond_the_jobs_of_their_type_retire_when_they_are_empty() -> None:
    there = stage()
    there.waiting(4)
    there.looks(40, FIVE)
    there.join()
    names = list(there.boxes)
    for name in names[:3]:
        there.run(name, ("alice", ONE))
    there.waiting(0)
    assert drained(there.look(FIVE)) == names[3:]
    assert ended(there.look(FIVE)) == names[3:]
    assert set(there.boxes) == set(names[:3])


def test_machines_that_nobody_has_a_job_for_end_at_once_or_after_keep_alive() -> None:
    for keep, gone in ((0.0, 2), (120.0, 0)):
        there = stage(replace(DEFAULT, keep_alive=keep))
        there.waiting(2)
        there.looks(20, FIVE)
        there.join()
        there.fill()
        there.look(FIVE)
        for name in there.boxes:
            there.run(name)
        assert len(ended(there.look(FIVE))) == gone
        there.looks(130, FIVE)
        assert len(there.ended) == 2


def test_machines_that_never_register_end_after_a_quarter_of_an_hour() -> None:
    there = stage()
    (name,) = there.add(1)
    there.boxes[name].joined = False
    there.looks(900, FIVE)
    assert name in there.boxes
    there.looks(10, FIVE)
    assert name in there.ended


def test_limits_of_users_and_of_starting_machines() -> None:
    there = stage(replace(DEFAULT, user_limit=2))
    there.waiting(10, "ada")
    there.waiting(10, "grace")
    there.looks(60, FIVE)
    assert owners(there) == Counter({"ada": 2, "grace": 2})
    there = stage(replace(DEFAULT, max_starting=3))
    there.waiting(10)
    there.looks(60, FIVE)
    assert len(there.coming()) == 3


def test_a_user_who_works_on_anothers_machine_has_it() -> None:
    there = stage()
    there.waiting(1, "ada")
    there.look()
    there.join()
    (name,) = there.boxes
    there.run(name, ("grace", ONE))
    there.look(FIVE)
    assert owners(there)["grace"] == 1
    assert len(there.boxes) == 2, "and he gets another"
