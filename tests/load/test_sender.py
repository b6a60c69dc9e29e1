"""The sender with its processes; what it says is taken down in a file instead of going to a collector."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from updraft.condor.support import loading
from updraft.load.schedule import Kind, Load, events
from updraft.load.sender import Order, Result, Sender

LOAD = Load(6, updates_every=0.25, jitter=0.1, join_rate=40.0, seconds=0.7)
REFUSED = "load-000003-0"


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of what was sent, a line for each call. The first call of machine 3 fails."""
    file, refused = tmp_path / "said", tmp_path / "refused"

    def advertise(collector: str, ads: Mapping[str, Sequence[Any]]) -> None:
        (startd, _), (master,) = ads["UPDATE_STARTD_AD"], ads["UPDATE_MASTER_AD"]
        assert startd["Machine"] == master["Machine"]
        if startd["Machine"] == REFUSED and not refused.exists():
            refused.touch()
            raise OSError("refused")
        with file.open("a") as out:
            out.write(json.dumps([collector, startd["Machine"], startd["UpdateSequenceNumber"]]) + "\n")

    monkeypatch.setattr(loading, "advertise", advertise)
    monkeypatch.setattr(loading, "failures", lambda: (OSError,))
    return file


def carried_out(load: Load, part: int = 0, parts: int = 1) -> Result:
    return Sender(Order(load, part, parts, time.time(), ("a", "b"), "/nowhere")).run()


def test_all_that_is_due_is_sent_in_order_and_a_failed_join_is_tried_again(said: Path) -> None:
    result = carried_out(LOAD)
    calls = [json.loads(line) for line in said.read_text().splitlines()]
    due = events(LOAD)
    assert result.joins == LOAD.machines
    assert (result.failed, result.errors) == (1, ["refused"])
    assert result.joins + result.updates == len(calls) == len(due) - 1
    assert len(result.calls) + len(result.join_calls) == len(due)
    for seat in range(LOAD.machines):
        mine = [(collector, number) for collector, name, number in calls if name == f"load-{seat:06d}-0"]
        wanted = [event.number for event in due if event.seat == seat]
        assert mine == [("ab"[seat % 2], number) for number in (wanted[1:] if seat == 3 else wanted)]
        assert result.machines[f"load-{seat:06d}-0"][0] == len(mine)


def test_a_part_sends_its_own_seats_only(said: Path) -> None:
    result = carried_out(LOAD, part=1, parts=3)
    assert set(result.machines) == {"load-000001-0", "load-000004-0"}


def test_a_machine_that_vanishes_says_nothing_more(said: Path) -> None:
    load = Load(8, updates_every=0.2, jitter=0.0, join_rate=100.0, seconds=0.6, loss_rate=6000.0, seed=2)
    losses = {event.seat: event for event in events(load) if event.kind is Kind.LOSS}
    assert losses, "this seed loses none: take another"
    result = carried_out(load)
    assert result.losses == len(losses)
    for seat, loss in losses.items():
        count, _, lost = result.machines[f"load-{seat:06d}-0"]
        assert lost == 1.0
        assert 1 <= count <= loss.number  # fewer where it vanished while its join was under way
