"""Machines that say that they have room, and take no job: whose room counts for whom."""

from dataclasses import replace
from typing import Any

from tests.rigs.snapshots import ASK, NOW, group, instance, policy, record, slot, snapshot
from updraft.core.model import (
    Child,
    JobGroup,
    Known,
    Launch,
    LedgerView,
    Plan,
    Slot,
    Snapshot,
    Standstill,
    Untaken,
)
from updraft.core.plan import plan

LIAR = ("c1", "i-1")
LATE = NOW - 5000


def world(
    about: Slot,
    known: Untaken | None = None,
    now: float = NOW,
    others: tuple[JobGroup, ...] = (),
    **jobs: Any,
) -> Snapshot:
    """One machine with this slot, idle or not for long, and one group that waits, beside `others`."""
    made = snapshot(
        instances=[instance("i-1")],
        records=[record("i-1", joined_at=NOW - 3000, last_claimed_at=NOW - 1000)],
        slots=[replace(about, heard=now)],
        groups=[group("g", **{"idle": 2, "oldest": LATE, **jobs}), *others],
        now=now,
    )
    assert isinstance(made.collector, Known)
    seen = replace(made.collector.value, cycle_began=now - 20, cycle_ended=now - 10, cycle_heard=now)
    untaken = {} if known is None else {"g": known}
    ledger = LedgerView(made.ledger.launches, made.ledger.machines, untaken=untaken)
    return replace(made, collector=Known(seen, now), ledger=ledger)


def bought(made: Plan) -> int:
    return sum(action.count for action in made.actions if isinstance(action, Launch))


def busy_with_room() -> Slot:
    """It says that a job runs there, and that nearly all of it is free."""
    return replace(slot("i-1"), children=(Child("Claimed", "Busy", ASK, "eve@pool"),))


def claimed_for_alice() -> Slot:
    """It says that two claims of hers wait for a job there."""
    return replace(slot("i-1"), children=(Child("Claimed", "Idle", ASK, "alice@pool"),) * 2)


def test_the_machine_whose_room_is_not_taken_is_doubted_with_the_group() -> None:
    made = plan(world(slot("i-1")), policy())
    assert replace(made.untaken["g"], still=None) == Untaken(1, NOW, NOW + 240, 0, (LIAR,))
    assert bought(made) == 0


def test_the_next_try_is_on_another_machine_though_the_first_still_says_that_it_has_room() -> None:
    doubting = Untaken(1, NOW - 300, NOW - 10, 0, (LIAR,))
    assert bought(plan(world(slot("i-1"), doubting), policy())) == 1
    assert bought(plan(world(slot("i-1"), replace(doubting, doubted=())), policy())) == 0


def test_what_it_says_of_work_changes_nothing_about_that() -> None:
    doubting = Untaken(1, NOW - 300, NOW - 10, 0, (LIAR,))
    for lie in (busy_with_room(), claimed_for_alice()):
        assert bought(plan(world(lie, doubting), policy())) == 1


def test_a_try_beside_it_is_for_one_job_and_for_twice_as_many_as_have_begun_since() -> None:
    doubting = Untaken(1, NOW - 300, NOW - 10, 50, (LIAR,))
    for running, jobs in ((50, 1), (40, 1), (53, 6)):
        made = plan(world(slot("i-1"), doubting, idle=40, running=running), policy())
        (outlook,) = made.groups
        assert outlook.new == jobs
        assert [why.code for why in outlook.held_back] == ["not-taken"]


def test_other_groups_have_its_room_until_the_first_begins_elsewhere() -> None:
    doubting = Untaken(1, NOW - 300, NOW - 10, 3, (LIAR,))
    other = group("h", idle=1, oldest=NOW - 1)
    for running, faulty in ((3, False), (4, True)):
        made = plan(world(slot("i-1"), doubting, idle=1, running=running, others=(other,)), policy())
        (outlook,) = [one for one in made.groups if one.group == "h"]
        assert (outlook.joined, outlook.new) == ((0, 1) if faulty else (1, 0))
        said = [why.text for why in made.warnings if why.code == "room-in-doubt"]
        assert [("machine i-1" in text, "`updraft terminate i-1`" in text) for text in said] == (
            [(True, True)] if faulty else []
        )
        (machine,) = made.machines
        assert "it is no room for 1 group of jobs that match and don't begin there" in machine.reason.text


def test_one_that_has_worked_since_is_not_said_to_be_at_fault() -> None:
    doubting = Untaken(1, NOW - 2000, NOW - 1500, 3, (LIAR,))
    made = plan(world(slot("i-1"), doubting, running=9), policy())
    assert [why for why in made.warnings if why.code == "room-in-doubt"] == []


def test_room_and_claims_of_one_that_says_it_works_are_doubted_once_nobody_begins_for_long() -> None:
    for lie in (busy_with_room(), claimed_for_alice()):
        first = plan(world(lie), policy()).untaken["g"]
        assert first == Untaken(0, NOW, NOW, 0, (), Standstill(NOW, 2, 0, LATE))
        for later, doubted in ((239.0, ()), (241.0, (LIAR,))):
            there = plan(world(lie, first, now=NOW + later), policy()).untaken["g"]
            assert (there.times, there.doubted) == (0, doubted)
        assert bought(plan(world(lie, there, now=NOW + 243), policy())) == 1


def test_whoever_begins_or_leaves_the_queue_doubts_nobody() -> None:
    first = Untaken(0, NOW - 300, NOW - 300, 0, (), Standstill(NOW - 300, 5, 7, LATE))
    for jobs in (
        {"idle": 4, "running": 7},
        {"idle": 5, "running": 8},
        {"idle": 5, "running": 7, "oldest": LATE + 1},
    ):
        there = plan(world(busy_with_room(), first, **jobs), policy()).untaken["g"]
        assert there.doubted == ()
        assert there.still is not None
        assert there.still.since == NOW


def test_without_a_cycle_of_the_negotiator_nobody_is_doubted() -> None:
    first = Untaken(0, NOW - 300, NOW - 300, 0, (), Standstill(NOW - 300, 2, 0, LATE))
    there = world(busy_with_room(), first)
    assert isinstance(there.collector, Known)
    asleep = replace(there.collector.value, cycle_began=NOW - 400, cycle_ended=NOW - 390)
    assert plan(replace(there, collector=Known(asleep, NOW)), policy()).untaken["g"].doubted == ()


def test_a_machine_that_has_just_joined_is_given_time() -> None:
    first = Untaken(0, NOW - 300, NOW - 300, 0, (), Standstill(NOW - 300, 2, 0, LATE))
    there = world(busy_with_room(), first)
    young = tuple(replace(one, joined_at=NOW - 60) for one in there.ledger.machines)
    ledger = replace(there.ledger, machines=young)
    assert plan(replace(there, ledger=ledger), policy()).untaken == {}
