"""What nothing can be made of is named with whose it is, and the list has an end."""

from dataclasses import replace

import pytest

from tests.rigs.snapshots import group, policy, slot, snapshot
from updraft.core.demand.left_out import (
    LEFT_OUT,
    LEFT_OUT_ANNEX,
    ODD_SLOT,
    UNREAD_ANNEX,
    Named,
    concerning,
    left_out,
)
from updraft.core.demand.room import demand
from updraft.core.model import JobGroup, Reason, Slot


def broken(at: int, owner: str = "ann", schedd: str = "schedd", ad: str = "[") -> JobGroup:
    return group(f"g{at}", owner=owner, schedd=schedd, ad=ad, evaluable=False, first_id=f"{at}.0")


def said(*groups: JobGroup, slots: tuple[Slot, ...] = ()) -> list[tuple[str, str]]:
    shown = snapshot(groups=groups, slots=slots)
    return [(one.code, one.text) for one in left_out(demand(shown, policy()), shown)]


def test_nothing_is_said_of_jobs_and_slots_in_order() -> None:
    assert said(group(), slots=(slot("i-1"),)) == []


@pytest.mark.parametrize(
    ("numbers", "names"),
    [
        ((7,), "job 7.0 of ann"),
        ((10, 9), "jobs 9.0, 10.0 of ann"),
        (tuple(range(1, 8)), "jobs 1.0, 2.0, 3.0, 4.0, 5.0 and 2 more of ann"),
    ],
)
def test_an_owners_jobs_are_named_together_in_their_order(numbers: tuple[int, ...], names: str) -> None:
    [(code, text)] = said(*(broken(at) for at in numbers), group())
    assert code == LEFT_OUT
    assert text.startswith(f"left out: {names} at schedd schedd: ")


def test_each_owner_is_told_apart_and_one_without_a_name_too() -> None:
    texts = [text for _, text in said(broken(1), broken(2, "bob"), broken(3, ""))]
    assert [text.partition(" at ")[0] for text in texts] == [
        "left out: job 3.0 of an unknown owner",
        "left out: job 1.0 of ann",
        "left out: job 2.0 of bob",
    ]


def test_an_odd_slot_is_named_with_its_machine_where_it_says_one() -> None:
    mine = slot("i-1", fault="its Memory is -1")
    theirs = replace(mine, instance_id="")
    assert said(slots=(mine, theirs)) == [
        (ODD_SLOT, f"slot {mine.name} of machine i-1: its Memory is -1"),
        (ODD_SLOT, f"slot {mine.name}: its Memory is -1"),
    ]


def test_whoever_sends_thousands_fills_no_page() -> None:
    groups = [broken(at, f"u{at:03}") for at in range(60)]
    slots = tuple(slot(f"i-{at}", fault="x") for at in range(60))
    found = said(*groups, slots=slots)
    assert len(found) == 102
    assert (LEFT_OUT, "10 more lots of jobs are left out: see `updraft status`") in found
    assert found[-1] == (ODD_SLOT, "10 more slots have ads that make no sense")


def test_what_concerns_an_annex_is_known_by_its_name() -> None:
    mine = Reason(LEFT_OUT_ANNEX, "left out: annex mine of ann: planning for it fails")
    unread = Reason(UNREAD_ANNEX, "left out: annex mine: its row in the ledger can't be read")
    other = Reason(LEFT_OUT_ANNEX, "left out: annex mine-too of ann: planning for it fails")
    assert concerning((mine, unread, other), Named("i-1", "here", "c", "mine")) == (mine, unread)
    assert concerning((mine, unread, other), Named("i-1", "here", "c", "")) == ()
