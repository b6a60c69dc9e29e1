"""Slots that no machine of ours explains are told of, and are room for nothing."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.rigs.snapshots import NOW, group, instance, policy, record, slot, snapshot
from updraft.core.model import CollectorView, Known, Launch, Resources, Slot, Snapshot
from updraft.core.plan import plan


def seen(other: Slot) -> Snapshot:
    """A full machine, this slot with room, and a job that waits."""
    full = slot("i-1", busy=True, free=Resources())
    shown = snapshot(
        groups=[group("g", 1)],
        records=[record("i-1", joined_at=NOW - 500, seen_at=NOW - 500)],
        instances=[instance("i-1")],
    )
    return replace(shown, collector=Known(CollectorView((full, other), NOW - 100_000, NOW - 5), NOW))


@pytest.mark.parametrize(
    ("says", "told"),
    [
        ({"instance_id": "i-1", "launch_key": "L-i-1@pool.test"}, "tokens revoke L-i-1`"),
        ({"instance_id": "", "cloud": "", "launch_key": "L-i-1"}, "tokens revoke L-i-1`"),
        ({"instance_id": "i-9", "launch_key": "L-i-1"}, "i-9, which is no machine of ours"),
        (
            {"instance_id": "i-1", "launch_key": "L-i-1+i-2@pool.test"},
            "i-1, and has shown a token that isn't that machine's; it has a token of launch L-i-1+i-2: "
            "`updraft tokens revoke L-i-1+i-2`",
        ),
        (
            {"name": "slot1@a\n\x1b[2Jb", "instance_id": "i-9", "launch_key": "L-i-1"},
            "slot slot1@a??[2Jb says",
        ),
    ],
    ids=["another's name", "another pool's", "no machine of its launch", "a sibling's own", "unprintable"],
)
def test_a_slot_with_our_token_that_says_it_is_anothers_is_no_room(
    says: Mapping[str, str], told: str
) -> None:
    shown = seen(replace(slot("x"), **says))  # type: ignore[arg-type]
    made = plan(shown, policy())
    [warning] = [one for one in made.warnings if one.code == "unexplained-slot"]
    assert told in warning.text
    assert [action.count for action in made.actions if isinstance(action, Launch)] == [1]


def test_a_slot_of_another_pool_with_a_token_of_its_own_is_the_sites() -> None:
    shown = seen(replace(slot("x"), instance_id="", cloud="", launch_key="theirs-1"))
    made = plan(shown, policy())
    assert not [one for one in made.warnings if one.code == "unexplained-slot"]
    assert not [action for action in made.actions if isinstance(action, Launch)], "it is room"
