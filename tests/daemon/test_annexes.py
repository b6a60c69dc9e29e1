"""Annexes under a whole controller in virtual time: asked for, there, over; a crash, an extension, an end."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.daemon.test_daemon import Killed, Steps
from tests.rigs.rig import POOL, Rig, policy
from updraft.clouds.base import TAG_LEASE, TAG_VARIANT
from updraft.clouds.fake.faults import Fault
from updraft.core.model import Annex
from updraft.core.settings import Limits
from updraft.core.slots.variants import annex_of
from updraft.errors import LedgerError, UsageError
from updraft.ledger import Ledger, Reader, RequestKind, annexes


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def ask(rig: Rig, name: str = "big", *, layer: str = "", **changes: object) -> Annex:
    """Ask for an annex as the command line does: with a ledger of its own."""
    now = rig.clock()
    about = {"machines": 3, "cores": 0, "until": now + 600, "idle": 120.0, "since": now, **changes}
    with Ledger(rig.state / "ledger.db") as ledger:
        return annexes.create(ledger, Annex(name, "alice", "default", **about), "ann@head", layer)  # type: ignore[arg-type]


def of(rig: Rig, name: str = "big") -> list[str]:
    """The live machines of an annex, by their tags."""
    return [one.id for one in rig.site.alive(POOL) if annex_of(one.tags.get(TAG_VARIANT, "")) == name]


def codes(rig: Rig, kind: str = "annex") -> list[str]:
    assert rig.ledger is not None
    return [event.code for event in rig.ledger.events(kinds=(kind,))]


@pytest.mark.slow
def test_it_is_there_until_its_lease_ends_and_then_all_of_it_goes(rig: Rig) -> None:
    daemon = rig.start()
    asked = ask(rig, idle=10_000.0, tags={"project": "x"})
    rig.turn(daemon, 60)
    assert len(of(rig)) == 3
    [tags] = {tuple(sorted(one.tags.items())) for one in rig.site.alive(POOL)} or [()]
    assert dict(tags)["project"] == "x"
    assert dict(tags)[TAG_LEASE] == str(int(asked.until))
    rig.turn(daemon, asked.until - rig.clock() - 4)
    assert len(of(rig)) == 3, "never before its end"
    rig.turn(daemon, 12)
    assert of(rig) == []
    rig.turn(daemon, 60)
    assert rig.ledger is not None
    ended = rig.ledger.view(rig.clock()).machines
    assert {row.end.code for row in ended if row.end} == {"lease-over"}
    assert codes(rig) == ["annex-created"]
    assert len(ended) == 3, "and none was launched after it"


def test_idle_machines_leave_and_are_not_replaced(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, until=rig.clock() + 5000)
    rig.turn(daemon, 60)
    assert len(of(rig)) == 3
    rig.turn(daemon, 300)
    assert of(rig) == []
    assert rig.ledger is not None
    [kept] = rig.ledger.annexes()
    assert (kept.left, kept.left_cores) == (3, 3 * rig.ledger.view(rig.clock()).machines[0].resources.cpus)
    assert len(rig.ledger.view(rig.clock()).machines) == 3
    assert rig.pool.killed_jobs == 0


def test_one_that_its_cloud_takes_is_replaced(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, idle=10_000.0)
    rig.turn(daemon, 60)
    gone = of(rig)[0]
    rig.driver.terminate([gone])
    rig.turn(daemon, 90)
    assert len(of(rig)) == 3
    assert gone not in of(rig)


def test_limits_hold_over_annexes_and_jobs_together(rig: Rig) -> None:
    daemon = rig.start(using=replace(policy(), limits=Limits(machines=4)))
    rig.pool.queues["schedd"].idle = 40
    ask(rig, machines=3)
    most = 0
    for _ in range(40):
        rig.turn(daemon, 2)
        most = max(most, len(rig.alive()))
    assert most == 4
    assert len(of(rig)) == 3


@pytest.mark.slow
def test_an_extension_reaches_its_machines_and_a_stop_ends_them(rig: Rig) -> None:
    daemon = rig.start()
    first = ask(rig, idle=10_000.0)
    rig.turn(daemon, 60)
    with Ledger(rig.state / "ledger.db") as other:
        annexes.extend(other, "big", first.until + 1000, "ann@head", rig.clock())
    rig.turn(daemon, first.until + 20 - rig.clock())
    assert len(of(rig)) == 3
    assert {one.tags[TAG_LEASE] for one in rig.site.alive(POOL)} == {str(int(first.until + 1000))}
    with Ledger(rig.state / "ledger.db") as other:
        annexes.stop(other, "big", "ann@head", rig.clock())
        with pytest.raises(UsageError, match="is over"):
            annexes.extend(other, "big", first.until + 9000, "ann@head", rig.clock())
    rig.turn_to_zero(daemon, 120)
    assert rig.alive() == []
    with Ledger(rig.state / "ledger.db") as other:
        annexes.delete(other, "big", "ann@head", rig.clock())
    rig.turn(daemon, 6)
    assert rig.ledger is not None
    assert rig.ledger.annexes() == ()
    assert codes(rig) == [
        "annex-created", "annex-extended", "annex-stopped", "annex-deleted", "annex-forgotten",
    ]  # fmt: skip


def test_a_crash_at_any_step_launches_no_machine_twice(tmp_path: Path) -> None:
    whole, steps = Rig(tmp_path / "whole"), Steps()
    daemon = whole.start(steps)
    ask(whole, idle=10_000.0)
    whole.turn(daemon, 6)
    whole.close()
    firsts = {name: at for at, name in reversed(list(enumerate(steps.names)))}
    assert {"launch: intended", "launch: asked", "launch: recorded"} <= firsts.keys()
    for name, at in firsts.items():
        rig = Rig(tmp_path / f"at-{at}")
        daemon = rig.start(Steps(at))
        ask(rig, idle=10_000.0)
        with pytest.raises(Killed):
            rig.turn(daemon, 6)
        rig.turn(rig.start(), 60, 4.0)
        assert len(rig.alive()) == len(of(rig)) == 3, name
        rig.close()


@pytest.mark.parametrize("made", [False, True])
def test_a_launch_without_an_answer_makes_no_machine_too_many(rig: Rig, made: bool) -> None:
    rig.site.faults.add(Fault("cloud-unavailable", "launch", times=1, after=made))
    daemon = rig.start()
    ask(rig, idle=10_000.0)
    for _ in range(80):
        rig.turn(daemon, 2)
        assert len(of(rig)) <= 3
    assert len(of(rig)) == 3


def test_a_name_is_used_once_and_its_layer_is_in_no_row(tmp_path: Path) -> None:
    text = "#cloud-config\npassword: s3cret\n"
    with Ledger(tmp_path / "ledger.db") as ledger:
        made = annexes.create(ledger, Annex("big", "alice", "default", 1, 0, 100.0, 9.0), "ann", text)
        assert annexes.layer_text(ledger.path, made.layer) == text
        [path] = (tmp_path / annexes.LAYERS).iterdir()
        assert path.stat().st_mode & 0o777 == 0o600
        with pytest.raises(UsageError, match="already"):
            annexes.create(ledger, made, "ann")
        with pytest.raises(UsageError, match="there is no annex small"):
            annexes.stop(ledger, "small", "ann", 1.0)
    for file in tmp_path.glob("ledger.db*"):
        assert b"s3cret" not in file.read_bytes()
    with Reader(tmp_path / "ledger.db") as reader:
        assert reader.annexes() == (made,)
    with pytest.raises(LedgerError, match="is gone"):
        annexes.layer_text(tmp_path / "ledger.db", "0" * 64)


def test_a_forgotten_annex_takes_its_layer_along_unless_another_has_it(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, "one", layer="#!/bin/sh\ntrue\n", machines=1)
    ask(rig, "two", layer="#!/bin/sh\ntrue\n", machines=1)
    folder = rig.state / annexes.LAYERS
    for name, left in (("one", 1), ("two", 0)):
        with Ledger(rig.state / "ledger.db") as other:
            annexes.delete(other, name, "ann", rig.clock(), kill_jobs=True)
        rig.turn(daemon, 40)
        assert len(list(folder.iterdir())) == left


@pytest.mark.slow
def test_with_a_lost_ledger_its_machines_leave_when_idle_and_it_is_told(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig)
    rig.turn(daemon, 40)
    rig.lose_ledger()
    daemon = rig.start()
    rig.turn(daemon, 30)
    assert len(of(rig)) == 3
    assert "annex-unknown" in codes(rig, "warning")
    rig.turn(daemon, 1500)
    assert of(rig) == []


def test_what_was_destroyed_is_not_bought_again(rig: Rig) -> None:
    daemon = rig.start()
    ask(rig, idle=10_000.0)
    rig.turn(daemon, 40)
    with Ledger(rig.state / "ledger.db") as other:
        other.request(rig.clock(), "ann@head", RequestKind.DESTROY)
    rig.turn_to_zero(daemon, 200)
    assert daemon.destroyed
    again = rig.start()
    rig.turn(again, 40)
    assert rig.alive() == []
    assert codes(rig) == ["annex-created", "annex-stopped"]
