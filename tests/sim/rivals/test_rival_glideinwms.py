"""glideinWMS: a third of what is missing, its curbs, and pilots that leave by themselves."""

import pytest

from tests.rigs.sim.stage import LARGE, ONE, SMALL, Stage, drained, ended, launched
from updraft.core.model import Resources
from updraft.sim.rivals.glideinwms import DEFAULT, GlideinWms, Thirds

MINUTE = 60.0
MANY = 10_000


def stage(settings: Thirds = DEFAULT, flavor: str = SMALL, **limits: int) -> Stage:
    return Stage(GlideinWms(settings, flavor=flavor), **limits)


@pytest.mark.parametrize(
    ("missing", "old", "room", "pilots"),
    [
        (0, 0, 0, 0),
        (1, 0, 0, 1),  # never less than one
        (30, 0, 0, 10),  # a third
        (30, 30, 0, 15),  # and five in reserve for those that have waited long
        (30, 6, 0, 12),
        (3000, 3000, 0, 100),  # never more pressure than this
        (30, 0, 5, 5),  # five have room: a half of it
        (30, 0, 100, 0),  # a hundred have: nothing more
    ],
)
def test_a_third_and_its_curbs(missing: int, old: int, room: int, pilots: int) -> None:
    assert GlideinWms().pressure(missing, old, total=room, room=room, limit=MANY) == pilots


def test_ceilings_come_before_the_third() -> None:
    assert GlideinWms().pressure(300, 0, total=70, room=0, limit=100) == 10
    assert GlideinWms().pressure(300, 0, total=100, room=0, limit=100) == 0


def test_without_attenuation_it_asks_for_all() -> None:
    assert GlideinWms(Thirds(attenuation=1.0)).pressure(60, 0, total=0, room=0, limit=MANY) == 60


def test_so_many_are_kept_on_their_way_and_no_more() -> None:
    there = stage()
    there.waiting(60, age=1.0)
    assert launched(there.look()) == 10, "sixty jobs are thirty machines"
    assert not there.look(MINUTE).actions
    there.join(4)
    there.fill()
    assert launched(there.look(MINUTE)) == 2, "26 are missing: 8 on their way, of which 6 are"


def test_pilots_with_room_are_believed_to_take_jobs_that_they_cannot_take() -> None:
    there = stage(flavor=LARGE)
    there.add(20, LARGE)
    there.waiting(20, request=Resources(8, 60_000, 1024), age=1.0)
    assert not there.look().actions, "nothing new, while these jobs fit none of the twenty"


def test_a_pilot_without_memory_left_has_no_room() -> None:
    there = stage(flavor=LARGE)
    for name in there.add(3, LARGE):
        there.run(name, ("alice", Resources(1, 15_000, 1024)))
    there.waiting(24, age=1.0)
    assert launched(there.look()) == 1


@pytest.mark.parametrize(("worked", "limit"), [(False, 1200.0), (True, 400.0)])
def test_a_pilot_that_finds_nothing_leaves(worked: bool, limit: float) -> None:
    there = stage()
    (name,) = there.add(1)
    if worked:
        there.run(name, ("alice", ONE))
        there.look()
        there.run(name)
    begun = there.now
    while name in there.boxes and there.now - begun < 3000:
        made = there.look(MINUTE)
        assert not ended(made) or there.boxes.get(name) is None
    assert limit <= there.now - begun <= limit + 3 * MINUTE


def test_a_pilot_between_short_jobs_stays() -> None:
    there = stage()
    (name,) = there.add(1)
    for _ in range(30):
        there.boxes[name].starts += 1  # one has come and gone since the last look
        assert not drained(there.look(MINUTE))


def test_those_on_their_way_are_called_off_when_nobody_asks_any_more() -> None:
    there = stage()
    there.waiting(30, age=1.0)
    there.look()
    there.waiting(0)
    there.looks(9 * MINUTE, MINUTE)
    assert there.coming()
    there.looks(3 * MINUTE, MINUTE)
    assert not there.coming()


def test_all_pilots_together_stay_near_what_jobs_ask_for() -> None:
    there = stage(Thirds(attenuation=1.0))
    for name in there.add(10):
        there.run(name, ("alice", ONE), ("alice", ONE))
    there.waiting(2, age=1.0)
    there.add(20, joined=False)
    assert not there.look().actions


def test_the_sites_limit() -> None:
    there = stage(Thirds(attenuation=1.0), machines=7)
    there.waiting(100)
    assert launched(there.look()) == 7
