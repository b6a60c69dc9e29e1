"""A machine has no more slots, and no more room, than what was bought can have."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, group, instance, policy, prepared, record, slot, snapshot
from updraft.core.model import CollectorView, Known, Reason, Resources, Slot, Unknown
from updraft.core.plan import plan
from updraft.core.slots.counts import OVERSOLD, believable, bounded, most_slots

TWO = Resources(2, 4096, 1 << 20)


def seen(*slots: Slot) -> Known[CollectorView]:
    return Known(CollectorView(slots, NOW - 5000), NOW)


def forged(count: int, machine: str = "i-1") -> list[Slot]:
    return [replace(slot(machine), name=f"slot{n}@{machine}@host") for n in range(1, count + 1)]


def test_what_a_machine_cannot_have_is_left_out_and_named_with_it() -> None:
    mine, site = slot("i-2"), replace(slot("x"), name="slot1@site", instance_id="")
    many = forged(300)
    found = bounded(seen(*many, mine, site), [record("i-1", resources=TWO), record("i-2")])
    assert isinstance(found, Known)
    slots = found.value.slots
    assert [one for one in slots if one.instance_id != "i-1"] == [mine, site]
    assert [one.name for one in slots if one.instance_id == "i-1"] == [one.name for one in many[:40]]
    assert [one.fault for one in slots if one.fault] == [
        "its machine has 300 slots; its size allows 40: the others are left out"
    ]


def test_the_warning_names_the_machine_and_others_are_bought_for() -> None:
    there = snapshot(
        instances=[instance("i-1")],
        records=[record("i-1", joined_at=NOW - 9, last_claimed_at=NOW - 9, resources=TWO)],
        slots=forged(300),
        groups=[group("g", idle=4000, oldest=NOW - 1)],
    )
    made = plan(prepared(there, policy()).snapshot, policy())
    assert [why.code for why in made.warnings] == ["odd-slot"]
    assert "of machine i-1: its machine has 300 slots" in made.warnings[0].text
    assert made.groups[0].joined <= 80, "two jobs for each slot that is left"


@given(st.integers(0, 2000), st.integers(0, 64))
def test_no_machine_has_more_than_its_size_allows_and_one_that_has_fewer_is_left_alone(
    count: int, cpus: int
) -> None:
    size = Resources(cpus, 1024 * cpus)
    there = seen(*forged(count))
    found = bounded(there, [record("i-1", resources=size)])
    assert isinstance(found, Known)
    assert len(found.value.slots) == min(count, most_slots(size))
    assert (found is there) == (count <= most_slots(size))


def test_what_is_not_known_stays_so() -> None:
    silent: Unknown[CollectorView] = Unknown(Reason("down", "no answer"), NOW)
    assert bounded(silent, []) is silent


def test_room_is_believed_up_to_what_a_site_may_make_of_it() -> None:
    most = Resources(2 * OVERSOLD, 4096 * OVERSOLD, 1 << 40)
    assert believable(most, TWO) is most
    assert believable(Resources(10**9, 10**9, 1 << 40), TWO) == most
    assert believable(most, Resources()) is most
