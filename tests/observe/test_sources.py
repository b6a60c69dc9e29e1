"""Machines asked for by their ids: whom a look asks about, how often, and what it makes of the answers."""

from collections.abc import Iterable

from tests.rigs.snapshots import instance
from updraft.clouds.base import Found
from updraft.core.model import Instance
from updraft.errors import CloudUnavailable
from updraft.observe.sources import AGAIN, AT_ONCE, VIRTUAL, ById


class Cloud:
    """One that has these instances, and notes whom it was asked for."""

    def __init__(self, **there: Instance) -> None:
        self.there = there
        self.mute: set[str] = set()
        self.down = False
        self.asked: list[list[str]] = []

    def look_up(self, ids: Iterable[str]) -> Found:
        named = list(ids)
        self.asked.append(named)
        if self.down:
            raise CloudUnavailable("no answer")
        return {one: self.there.get(one) for one in named if one not in self.mute}


def looks(cloud: Cloud, byid: ById, wanted: list[str], now: float) -> dict[str, tuple[float, bool]]:
    """When each was asked for, and whether it was there."""
    found = byid.found(cloud, wanted, 1.0, lambda: now)
    return {one: (said.at, said.value is not None) for one, said in found.items()}


def test_each_is_asked_for_no_more_often_than_it_has_news() -> None:
    cloud, byid = Cloud(a=instance("a")), ById("cloud c", 60.0, VIRTUAL)
    assert looks(cloud, byid, ["a", "b"], 100.0) == {"a": (100.0, True), "b": (100.0, False)}
    assert looks(cloud, byid, ["a", "b"], 102.0) == {"a": (100.0, True), "b": (100.0, False)}
    assert looks(cloud, byid, ["a", "b", "c"], 104.0)["c"] == (104.0, False), "a new one at once"
    assert looks(cloud, byid, ["a", "b", "c"], 100.0 + AGAIN)["a"] == (100.0 + AGAIN, True)
    assert cloud.asked == [["a", "b"], ["c"], ["a", "b"]]


def test_who_is_in_no_doubt_any_more_is_forgotten() -> None:
    cloud, byid = Cloud(), ById("cloud c", 60.0, VIRTUAL)
    looks(cloud, byid, ["a", "b"], 100.0)
    assert looks(cloud, byid, ["b"], 102.0) == {"b": (100.0, False)}
    assert looks(cloud, byid, [], 103.0) == {}
    assert looks(cloud, byid, ["b"], 104.0) == {"b": (104.0, False)}, "an old answer says nothing of now"


def test_what_the_cloud_does_not_say_leaves_the_last_answer() -> None:
    cloud, byid = Cloud(a=instance("a")), ById("cloud c", 60.0, VIRTUAL)
    looks(cloud, byid, ["a"], 100.0)
    cloud.mute = {"a"}
    assert looks(cloud, byid, ["a"], 111.0) == {"a": (100.0, True)}
    cloud.down = True
    assert looks(cloud, byid, ["a"], 122.0) == {"a": (100.0, True)}


def test_many_are_asked_for_in_parts_and_each_in_its_turn() -> None:
    cloud, byid = Cloud(), ById("cloud c", 60.0, VIRTUAL)
    wanted = [f"i-{number:04d}" for number in range(AT_ONCE + 50)]
    assert len(looks(cloud, byid, wanted, 100.0)) == AT_ONCE
    assert len(looks(cloud, byid, wanted, 102.0)) == len(wanted)
    assert [len(one) for one in cloud.asked] == [AT_ONCE, 50]


def test_a_clock_that_is_set_back_holds_nothing_up() -> None:
    cloud, byid = Cloud(a=instance("a")), ById("cloud c", 60.0, VIRTUAL)
    looks(cloud, byid, ["a"], 5000.0)
    assert looks(cloud, byid, ["a"], 100.0) == {"a": (100.0, True)}
