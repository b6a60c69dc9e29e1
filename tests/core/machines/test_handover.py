"""Who is handed a machine's own token, and for what reason nobody else."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import DOWN, instance, record
from updraft.core.machines.handover import Asked, Call, Decision, Give, Handed, Refuse, Wait, decide
from updraft.core.model import CloudState, CloudView, Instance, Known, MachineRecord, Quota, Unknown

NOW = 1000.0
DEADLINE = 600.0
ASKED = Asked("k1", "i-1", "l1", "l1")
RECORD = record("i-1", launch_key="l1", requested_at=NOW - 60)
MACHINE = instance("i-1", launch_key="l1", address="10.0.0.5")


def cloud(*instances: Instance, silent: bool = False) -> CloudView:
    known = Known(instances, NOW)
    return CloudView(Unknown(DOWN, NOW, known) if silent else known, Known((), NOW), Known(Quota(), NOW))


def decided(
    asked: Asked = ASKED,
    *,
    machine: Instance | None = MACHINE,
    row: MachineRecord | None = RECORD,
    **given: Any,
) -> Decision:
    said: dict[str, Any] = {
        "clouds": {"c1": cloud(*([machine] if machine else []))},
        "records": {row.id: row} if row else {},
        "handed": None,
        "found": "k1",
        "witnessed": True,
        "boot_deadline": DEADLINE,
        "now": NOW,
    }
    return decide(asked, **{**said, **given})


def refused(decision: Decision) -> str:
    assert isinstance(decision, Refuse)
    assert "i-1" in decision.reason.text
    return decision.reason.code


def waits(decision: Decision) -> str:
    assert isinstance(decision, Wait)
    return decision.reason.code


def test_a_machine_of_ours_that_boots_at_the_address_that_its_cloud_shows() -> None:
    assert decided(found=None) == Call("c1", "10.0.0.5")
    assert decided() == Give("c1")
    assert decided(row=replace(RECORD, requested_at=NOW + 50)) == Give("c1"), "a clock that was set back"


def test_one_that_cannot_be_called_is_believed() -> None:
    assert decided(found=None, witnessed=False) == Give("c1")
    assert decided(found=None, witnessed=False, machine=replace(MACHINE, address="")) == Give("c1")


def test_whoever_has_another_key_than_is_at_the_address() -> None:
    assert refused(decided(found="k2")) == "elsewhere"
    assert waits(decided(found="")) == "no-answer", "it may only begin to listen"


def test_a_token_is_handed_once_and_again_to_the_same_key_only() -> None:
    assert decided(handed=Handed("k1", NOW - 5)) == Give("c1"), "the answer was lost"
    assert refused(decided(handed=Handed("k2", NOW - 5))) == "handed"
    assert refused(decided(handed=Handed("k2", NOW - 5), witnessed=False)) == "handed"


def test_of_another_launch_than_the_token_that_was_shown() -> None:
    assert refused(decided(replace(ASKED, shown="l2"))) == "other-launch"
    assert refused(decided(replace(ASKED, shown=""))) == "other-launch", (
        "a machine's own token, or none of ours"
    )
    assert refused(decided(row=replace(RECORD, launch_key="l2"))) == "other-launch"
    assert refused(decided(machine=replace(MACHINE, launch_key="l2"))) == "other-launch"
    assert decided(machine=replace(MACHINE, launch_key="")) == Give("c1"), "a cloud without tags at launch"


def test_what_no_cloud_lists_or_the_ledger_does_not_know_yet() -> None:
    assert waits(decided(machine=None)) == "not-listed"
    assert waits(decided(row=None)) == "not-listed"
    assert waits(decided(clouds={"c1": cloud(MACHINE, silent=True)})) == "not-listed", "unknown is not listed"
    assert waits(decided(machine=replace(MACHINE, tagged=False))) == "not-listed"
    assert waits(decided(clouds={"c1": cloud(MACHINE), "c2": cloud(MACHINE)})) == "not-listed", "which one?"
    assert waits(decided(machine=replace(MACHINE, address=""))) == "no-address"


def test_what_has_ended_joined_or_is_late() -> None:
    assert refused(decided(machine=replace(MACHINE, state=CloudState.TERMINATED))) == "ended"
    assert refused(decided(row=replace(RECORD, ended_at=NOW))) == "ended"
    assert refused(decided(row=replace(RECORD, joined_at=NOW))) == "joined"
    assert refused(decided(now=NOW + DEADLINE)) == "too-late"
    assert refused(decided(handed=Handed("k1", NOW), now=NOW + DEADLINE)) == "too-late"


@given(
    key=st.sampled_from(["k1", "k2"]),
    launch=st.sampled_from(["l1", "l2"]),
    shown=st.sampled_from(["", "l1", "l2"]),
    handed=st.none() | st.builds(Handed, st.sampled_from(["k1", "k2"]), st.just(NOW)),
    found=st.none() | st.sampled_from(["", "k1", "k2"]),
    state=st.sampled_from(CloudState),
    silent=st.booleans(),
    ended=st.booleans(),
    after=st.floats(-100, 2000),
)
def test_nobody_is_given_a_token_who_lacks_one_of_the_signs(
    key: str, launch: str, shown: str, handed: Handed | None, found: str | None, state: CloudState,
    silent: bool, ended: bool, after: float,
) -> None:  # fmt: skip
    decision = decided(
        Asked(key, "i-1", launch, shown),
        clouds={"c1": cloud(replace(MACHINE, state=state), silent=silent)},
        row=replace(RECORD, ended_at=NOW if ended else None),
        handed=handed,
        found=found,
        now=RECORD.requested_at + after,
    )
    if isinstance(decision, Give):
        assert key == found
        assert launch == shown == "l1"
        assert handed is None or handed.key == key
        assert after <= DEADLINE
        assert not silent
        assert not ended
        assert replace(MACHINE, state=state).alive


@pytest.mark.parametrize("decision", [decided(found="k2"), decided(found="")])
def test_why_is_said_with_the_place(decision: Refuse | Wait) -> None:
    assert "10.0.0.5" in decision.reason.text
