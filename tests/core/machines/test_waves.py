"""Idle machines that come back into use soon enough are kept; those that don't are not."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, instance, policy, record, slot, snapshot, worker
from updraft.core.machines.waves import Waves, waves
from updraft.core.model import (
    DrainMode,
    DrainRecord,
    LaunchRecord,
    LaunchState,
    LedgerView,
    MachineRecord,
    Reason,
    Resources,
)
from updraft.core.plan import plan

IDLE = Reason("idle-limit", "idle")
BOOTS = {("img", "small"): (90.0,)}


def test_work_that_comes_back_before_a_boot_would_be_over_keeps_the_machine() -> None:
    regular = Waves((630.0,) * 6, boot=90.0)
    assert regular.keep(600.0) is not None
    assert regular.keep(631.0) is None, "it should have come by now"


def test_work_that_comes_back_much_later_does_not() -> None:
    assert Waves((900.0,) * 6, boot=90.0).keep(600.0) is None
    assert Waves((float("inf"),) * 6, boot=90.0).keep(600.0) is None


def test_little_is_no_evidence() -> None:
    assert Waves((630.0,) * 3, boot=90.0).keep(600.0) is None


@given(gaps=st.lists(st.floats(1, 5000), max_size=20), idle=st.floats(1, 5000), boot=st.floats(1, 500))
def test_keeping_is_never_dearer_than_what_it_saves(gaps: list[float], idle: float, boot: float) -> None:
    if Waves(tuple(gaps), boot).keep(idle) is not None:
        alike = [gap for gap in gaps if gap > idle]
        paid = sum(min(gap - idle, boot) for gap in alike)
        saved = boot * sum(gap <= idle + boot for gap in alike)
        assert paid < saved


def _ended(number: int, at: float) -> MachineRecord:
    left = DrainRecord(DrainMode.EMPTY, at, IDLE, at)
    return replace(record(f"old-{number}"), last_claimed_at=at - 600.0, drain=left, ended_at=at + 5, end=IDLE)


def _launch(at: float) -> LaunchRecord:
    return LaunchRecord(
        f"k{at}", "c1", "z1", "small", "on-demand", "default", "img", "g1", 1, Resources(2), 0.1, at,
        LaunchState.ACCEPTED,
    )  # fmt: skip


def test_a_machine_that_left_counts_until_its_class_was_launched_again() -> None:
    ledger = LedgerView(
        machines=(_ended(1, 1000.0),), launches=(_launch(900.0), _launch(1040.0)), boots=BOOTS
    )
    found = waves("default", ledger)
    assert found is not None
    assert found.gaps == (640.0,)
    assert found.boot == 90.0
    never = waves("default", replace(ledger, launches=()))
    assert never is not None
    assert never.gaps == (float("inf"),)
    assert waves("other", ledger) is None


def test_the_plan_keeps_what_comes_back_in_the_next_wave() -> None:
    seen = snapshot(
        instances=[instance("i-1")],
        slots=[slot("i-1")],
        records=[replace(record("i-1"), joined_at=NOW - 3000, last_claimed_at=NOW - 601, gaps=(620.0,) * 5)],
    )
    seen = replace(seen, ledger=replace(seen.ledger, boots=BOOTS))
    kept = plan(seen, policy(worker(idle_limit=600.0)))
    assert [action for action in kept.actions if type(action).__name__ == "Drain"] == []
    assert [outlook.reason.code for outlook in kept.machines] == ["wave-expected"]
    late = replace(seen, now=NOW + 30)
    assert [type(action).__name__ for action in plan(late, policy()).actions] == ["Drain"]


def test_the_gap_between_two_claims_is_remembered() -> None:
    seen = snapshot(
        instances=[instance("i-1")],
        slots=[slot("i-1", True)],
        records=[replace(record("i-1"), joined_at=NOW - 3000, last_claimed_at=NOW - 300)],
    )
    (changed,) = plan(seen, policy()).records
    assert changed.gaps == (300.0,)
