"""What of a cycle can't be written as a document is left out of it and named; all else is written."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.rigs.rig import Rig
from updraft.core.model import AnnexOutlook, GroupOutlook, MachineOutlook, Phase, Plan, Reason, Snapshot
from updraft.core.plan import Planning
from updraft.core.settings import Policy

WHY = Reason("some", "why")
CODE = "left-out-report"


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def machine(name: str, **changes: Any) -> MachineOutlook:
    return replace(MachineOutlook(name, "c1", Phase.JOINED, WHY), **changes)


def also(**more: object) -> Callable[[Snapshot, Policy], Plan]:
    """Plans as ever, and has these besides in the named parts of the plan, in front of the sane ones."""
    planning = Planning()

    def decide(snapshot: Snapshot, policy: Policy) -> Plan:
        plan = planning(snapshot, policy)
        return replace(plan, **{name: (one, *getattr(plan, name)) for name, one in more.items()})

    return decide


ODD: dict[str, tuple[str, object, str]] = {
    "machine, no reason": ("machines", machine("odd", reason=None), "machine odd"),
    "machine, NaN": ("machines", machine("odd", deadline=float("nan")), "machine odd"),
    "machine, no text": ("machines", machine("odd", cloud=object()), "machine odd"),
    "group, no reasons": ("groups", GroupOutlook("odd", 1, held_back=(None,)), "group odd"),  # type: ignore[arg-type]
    "group, infinite": ("groups", GroupOutlook("odd", float("inf")), "group odd"),  # type: ignore[arg-type]
    "annex": ("annexes", AnnexOutlook("odd", object(), 1), "annex odd"),  # type: ignore[arg-type]
    "warning, no text": ("warnings", Reason("odd", 7), "warning odd"),  # type: ignore[arg-type]
    "warning, no row": ("warnings", None, "warning one without an id"),
    "cooldown": ("cooldowns", None, "cooldown one without an id"),
}


@pytest.mark.parametrize("which", ODD)
def test_one_that_cannot_be_written_is_left_out_of_the_report_and_named_once(rig: Rig, which: str) -> None:
    part, odd, named = ODD[which]
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start(decide=also(**{part: odd}))
    for _ in range(30):
        daemon.cycle()
        rig.clock.forward(2)
    assert rig.ledger is not None
    doc = rig.ledger.last_cycle()
    assert doc is not None
    (said,) = [one["text"] for one in doc["warnings"] if one["code"] == CODE]
    assert said.startswith(f"left out of the report: {named}: ")
    assert [one["machine"] for one in doc["machines"]] == rig.alive() != []
    assert [one["key"] for one in doc["groups"]] == ["schedd-g"]
    assert {one["name"] for one in doc["clouds"]} == {"c1"}
    assert [one.text for one in rig.ledger.events() if one.code == CODE] == [said], "told once"


def test_a_text_that_no_file_can_hold_is_written_as_it_can_be(rig: Rig) -> None:
    daemon = rig.start(decide=also(warnings=Reason("odd", "a \ud800 b")))
    daemon.cycle()
    daemon.cycle()
    assert rig.ledger is not None
    assert [one.text for one in rig.ledger.events() if one.code == "odd"] == ["a \\ud800 b"]
