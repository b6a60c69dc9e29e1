"""Who is handed a machine's own token, and for what reason nobody else."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import DOWN, instance, record
from updraft.core.machines.handover import (
    ABSENCE,
    UNSHOWN,
    Call,
    Decision,
    Give,
    Handed,
    Read,
    Refuse,
    TokenRequest,
    Wait,
    Witness,
    decide,
    fair_deadline,
)
from updraft.core.model import CloudState, CloudView, Instance, Known, MachineRecord, Quota, Unknown

NOW = 1000.0
DEADLINE = 600.0
ASKED = TokenRequest("k1", "i-1", "l1", "l1")
RECORD = record("i-1", launch_key="l1", requested_at=NOW - 60)
MACHINE = instance("i-1", launch_key="l1", address="10.0.0.5")


def cloud(*instances: Instance, silent: bool = False) -> CloudView:
    known = Known(instances, NOW)
    return CloudView(Unknown(DOWN, NOW, known) if silent else known, Known((), NOW), Known(Quota(), NOW))


def called(*found: str) -> Witness:
    return Witness("", frozenset(found))


def read(*found: str, **more: Any) -> Witness:
    return Witness(None, frozenset(found), **more)


def decided(
    asked: TokenRequest = ASKED,
    *,
    machine: Instance | None = MACHINE,
    row: MachineRecord | None = RECORD,
    **given: Any,
) -> Decision:
    said: dict[str, Any] = {
        "clouds": {"c1": cloud(*([machine] if machine else []))},
        "records": {row.id: row} if row else {},
        "handed": None,
        "witness": called("k1"),
        "boot_deadline": DEADLINE,
        "began": 0.0,
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
    assert decided(witness=Witness()) == Call("c1", "10.0.0.5")
    assert decided() == Give("c1")
    assert decided(row=replace(RECORD, requested_at=NOW + 50)) == Give("c1"), "a clock that was set back"


def test_one_that_is_forwarded_to_is_called_where_the_site_says() -> None:
    bare = replace(MACHINE, address="")
    assert decided(machine=bare, witness=Witness("192.0.2.7")) == Call("c1", "192.0.2.7")
    assert decided(machine=bare, witness=Witness("192.0.2.7", frozenset({"k1"}))) == Give("c1")
    assert refused(decided(witness=Witness("192.0.2.7", frozenset({"k2"})))) == "elsewhere"


def test_one_that_cannot_be_called_shows_its_key_on_its_console() -> None:
    assert decided(witness=Witness(None)) == Read("c1", "i-1")
    assert decided(witness=read("k1")) == Give("c1")
    assert decided(witness=read("k0", "k1", contested=True)) == Give("c1"), "after a second start"
    for later in (0.0, 10 * UNSHOWN):
        assert waits(decided(witness=read("k2", asked_for=later))) == "elsewhere", "who asks first gets none"
        assert waits(decided(witness=read(proven=True, asked_for=later))) == "unshown", "this cloud does show"
        assert waits(decided(witness=read(contested=True, asked_for=later))) == "contested", "which of them?"


def test_of_a_cloud_without_consoles_one_that_alone_asks_is_believed_after_a_while() -> None:
    assert waits(decided(witness=read(asked_for=UNSHOWN - 1))) == "unshown"
    assert decided(witness=read(asked_for=UNSHOWN)) == Give("c1", unseen=True)


def test_whoever_has_another_key_than_is_at_the_address() -> None:
    assert refused(decided(witness=called("k2"))) == "elsewhere"
    assert waits(decided(witness=called())) == "no-answer", "it may only begin to listen"


def test_a_token_is_handed_once_and_again_to_the_same_key_only() -> None:
    assert decided(handed=Handed("k1", NOW - 5)) == Give("c1"), "the answer was lost"
    assert decided(handed=Handed("k1", NOW - 5), witness=Witness()) == Give("c1"), "it is sealed to that key"
    assert refused(decided(handed=Handed("k2", NOW - 5))) == "handed"
    assert refused(decided(handed=Handed("k2", NOW - 5), witness=Witness(None))) == "handed"


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
    address=st.sampled_from(["", "192.0.2.7", None]),
    found=st.none() | st.frozensets(st.sampled_from(["k1", "k2"])),
    state=st.sampled_from(CloudState),
    silent=st.booleans(),
    ended=st.booleans(),
    after=st.floats(-100, 2000),
)
def test_nobody_is_given_a_token_who_lacks_one_of_the_signs(
    key: str, launch: str, shown: str, handed: Handed | None, address: str | None,
    found: frozenset[str] | None, state: CloudState, silent: bool, ended: bool, after: float,
) -> None:  # fmt: skip
    decision = decided(
        TokenRequest(key, "i-1", launch, shown),
        clouds={"c1": cloud(replace(MACHINE, state=state), silent=silent)},
        row=replace(RECORD, ended_at=NOW if ended else None),
        handed=handed,
        witness=Witness(address, found, proven=True, asked_for=1e6),
        now=RECORD.requested_at + after,
    )
    if isinstance(decision, Give):
        assert handed is not None or key in (found or ())
        assert launch == shown == "l1"
        assert handed is None or handed.key == key
        assert after <= DEADLINE
        assert not silent
        assert not ended
        assert replace(MACHINE, state=state).alive


@pytest.mark.parametrize("decision", [decided(witness=called("k2")), decided(witness=called())])
def test_why_is_said_with_the_place(decision: Refuse | Wait) -> None:
    assert "10.0.0.5" in decision.reason.text


def test_time_without_a_controller_does_not_count() -> None:
    """Ten minutes of a restart cost no machine its token, and no broken one stays for ever."""
    row = replace(RECORD, requested_at=NOW - DEADLINE - 500)
    assert refused(decided(row=row)) == "too-late"
    assert decided(row=row, began=NOW - 5) == Give("c1")
    assert refused(decided(row=row, began=NOW - DEADLINE - 5)) == "too-late"
    old = replace(RECORD, requested_at=NOW - DEADLINE - ABSENCE - 5)
    assert refused(decided(row=old, began=NOW - 5)) == "too-late"


@given(asked=st.floats(0, 1e5), allowed=st.floats(1, 3600), more=st.floats(0, 3600), began=st.floats(0, 2e5))
def test_a_deadline_is_never_shorter_for_a_restart_nor_longer_than_a_machine_waits(
    asked: float, allowed: float, more: float, began: float
) -> None:
    longest = allowed + more
    found = fair_deadline(asked, allowed, longest, began)
    assert asked + allowed <= found <= asked + longest + ABSENCE
    assert found == asked + allowed or began > asked
    if asked < began < asked + ABSENCE:
        assert found >= began + allowed or found == asked + longest + ABSENCE
