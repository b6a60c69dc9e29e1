"""What is remembered of groups whose jobs don't take the room that matches."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.rigs.snapshots import NOW, group, instance, policy, record, slot, snapshot
from updraft.core.demand.room import Demand
from updraft.core.demand.untaken import allowed, noticed, recalled, resting
from updraft.core.model import Known, Untaken
from updraft.core.plan import plan
from updraft.core.settings import Timings

TIMINGS = Timings(negotiation_patience=120.0, cooldown_longest=3600.0)
LONG_AGO = NOW - 5000
NONE: Mapping[str, Untaken] = {}


def waiting(idle: int = 5, running: int = 0, oldest: float = LONG_AGO, complete: bool = True) -> Demand:
    """One group `g` in a queue."""
    return Demand((group("g", idle=idle, running=running, oldest=oldest),), (), complete)


def at(known: Mapping[str, Untaken], now: float, queue: Demand, *seen: str) -> dict[str, Untaken]:
    return noticed(recalled(known, queue, now, TIMINGS), dict.fromkeys(seen, ()), queue, now, TIMINGS)


def test_the_first_rest_is_twice_the_patience() -> None:
    assert at(NONE, NOW, waiting(), "g") == {"g": Untaken(1, NOW, NOW + 240)}


def test_while_it_rests_nothing_is_new() -> None:
    known = at(NONE, NOW, waiting(), "g")
    assert at(known, NOW + 239, waiting(), "g") == known
    assert at(known, NOW + 239, waiting()) == known, "its machine is gone"


def test_each_rest_is_twice_the_last_up_to_the_longest() -> None:
    known, now, rests = NONE, NOW, []
    for _ in range(8):
        known = at(known, now, waiting(), "g")
        rests.append(known["g"].until - now)
        now = known["g"].until
    assert rests == [240, 480, 960, 1920, 3600, 3600, 3600, 3600]
    assert known["g"].times == 8


def test_a_great_many_times_overflow_nothing() -> None:
    known = {"g": Untaken(10**9, NOW - 10, NOW)}
    assert at(known, NOW, waiting(), "g")["g"] == Untaken(10**9 + 1, NOW, NOW + 3600)


@pytest.mark.parametrize(("idle", "oldest"), [(0, LONG_AGO), (5, NOW + 1)])
def test_it_is_forgotten_once_nobody_waits_who_did_then(idle: int, oldest: float) -> None:
    known = at(NONE, NOW, waiting(), "g")
    assert at(known, NOW + 2, waiting(idle, oldest=oldest)) == {}


def test_a_group_that_is_gone_is_forgotten_where_all_schedds_answer() -> None:
    known = at(NONE, NOW, waiting(), "g")
    assert at(known, NOW + 2, Demand((), (), complete=True)) == {}
    assert at(known, NOW + 2, Demand((), (), complete=False)) == known


def test_a_silent_schedds_last_word_counts() -> None:
    known = at(NONE, NOW, waiting(), "g")
    assert at(known, NOW + 2, Demand((), waiting().fresh, complete=False)) == known


def test_a_try_that_had_as_long_as_the_longest_rest_is_over() -> None:
    known = at(NONE, NOW, waiting(), "g")
    until = known["g"].until
    assert at(known, until + 3600, waiting()) == known
    assert at(known, until + 3601, waiting()) == {}


def test_where_the_clock_was_set_back_it_is_forgotten() -> None:
    known = at(NONE, NOW, waiting(), "g")
    assert at(known, NOW - 1, waiting()) == {}
    assert at(known, NOW - 1, waiting(), "g") == {"g": Untaken(1, NOW - 1, NOW + 239)}


@pytest.mark.parametrize(("then", "now", "over"), [(0, 1, True), (3, 6, False), (3, 7, True), (9, 10, False)])
def test_where_many_more_run_than_did_then_the_rest_is_over(then: int, now: int, over: bool) -> None:
    known = at(NONE, NOW, waiting(running=then), "g")
    later = at(known, NOW + 9, waiting(running=now))
    assert later == {"g": Untaken(1, NOW, NOW + (9 if over else 240), then)}
    assert at(later, NOW + 11, waiting(running=now)) == later


def test_most_that_ever_ran_is_what_a_try_has_to_surpass() -> None:
    known = {"g": Untaken(1, NOW - 300, NOW - 10, 9)}
    assert at(known, NOW, waiting(running=7), "g")["g"].running == 9
    assert at(known, NOW, waiting(running=12), "g")["g"].running == 12


def test_while_it_rests_there_is_a_reason_and_none_after() -> None:
    known = {"g": Untaken(3, NOW - 60, NOW + 60)}
    reason = resting(known, NOW)["g"]
    assert reason.code == "not-taken"
    assert "3 times by 1970-01-12 13:45:40 UTC" in reason.text
    assert "tried again at 1970-01-12 13:47:40 UTC" in reason.text
    assert resting(known, NOW + 60) == {}


@pytest.mark.parametrize(("running", "expected"), [(0, 1), (1, 1), (3, 3), (5, 5), (7, 5)])
def test_after_a_rest_as_many_are_tried_as_run(running: int, expected: int) -> None:
    one = waiting(running=running).fresh[0]
    found, trying = allowed([(one, 5)], {"g": Untaken(1, NOW - 60, NOW)}, NOW)
    assert found == [(one, expected)]
    assert [why.code for why in trying.get("g", ())] == (["not-taken"] if expected < 5 else [])


def test_one_that_rests_takes_no_room_and_others_take_theirs() -> None:
    one, other = group("g"), group("h")
    assert allowed([(one, 5), (other, 3)], {"g": Untaken(1, NOW - 60, NOW + 1)}, NOW) == ([(other, 3)], {})


@pytest.mark.parametrize(
    ("ended", "began", "heard", "code", "text"),
    [
        # The negotiator's ad comes every five minutes: what has been since, nobody knows.
        (
            270,
            271,
            268,
            "no-negotiation",
            "no cycle of the negotiator is known that began and ended in these 250 s of room",
        ),
        (500, 501, 20, "no-negotiation", "the negotiator had finished no cycle for 480 s"),
        (30, 190, 20, "not-taken", "room that matches has not been taken for 250 s"),
    ],
)
def test_what_the_negotiator_said_is_as_old_as_its_ad(
    ended: float, began: float, heard: float, code: str, text: str
) -> None:
    there = snapshot(
        instances=[instance("i-1")],
        records=[record("i-1", joined_at=NOW - 3000, last_claimed_at=NOW - 250)],
        slots=[slot("i-1")],
        groups=[group("g", idle=10, oldest=LONG_AGO)],
    )
    assert isinstance(there.collector, Known)
    seen = replace(
        there.collector.value, cycle_ended=NOW - ended, cycle_began=NOW - began, cycle_heard=NOW - heard
    )
    made = plan(replace(there, collector=Known(seen, NOW)), policy())
    (outlook,) = made.groups
    (reason,) = outlook.held_back
    assert reason.code == code
    assert reason.text.startswith(text)
    if code != "not-taken":
        assert f"what it last said of itself is {heard} s old" in reason.text
