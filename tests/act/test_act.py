"""Carrying out a plan: every action by itself, its failure an event, and its outcome in the ledger."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.pools.virtualpool import Clock
from tests.rigs.rig import POOL, Rig, policy
from updraft.act import Actor, Lanes
from updraft.act.lanes import Task
from updraft.clouds.base import TAG_POOL, LaunchRequest
from updraft.core.model import (
    AtWork,
    Disown,
    Drain,
    DrainMode,
    DrainRecord,
    Launch,
    LaunchState,
    MachineRecord,
    Plan,
    Reason,
    Snapshot,
    Terminate,
    Untaken,
)
from updraft.errors import (
    AuthFailed,
    BadRequest,
    BootstrapError,
    CloudUnavailable,
    LedgerError,
    NoCapacity,
    PoolTimeout,
    QuotaExceeded,
    Throttled,
)
from updraft.ledger import Ledger

WHY = Reason("test", "because")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def parts(rig: Rig) -> tuple[Actor, Ledger, Snapshot]:
    snapshot = rig.look()
    assert rig.ledger is not None
    return rig.actor, rig.ledger, snapshot


def look(rig: Rig, actor: Actor) -> Snapshot:
    del actor
    return rig.look()


def launch(snapshot: Snapshot, key: str = "k", count: int = 1) -> Launch:
    return Launch(key, snapshot.offers[0], count, WHY)


def events(ledger: Ledger) -> list[tuple[str, str]]:
    return [(event.kind, event.code) for event in ledger.events()]


def running(rig: Rig, count: int = 1) -> tuple[Actor, Ledger, Snapshot, list[str]]:
    """A cloud with joined machines, and a fresh look at them."""
    actor, _, snapshot = parts(rig)
    actor.carry_out(Plan((launch(snapshot, count=count),)), snapshot)
    rig.clock.forward(20)
    snapshot = rig.look()
    assert rig.ledger is not None
    return rig.actor, rig.ledger, snapshot, rig.alive()


def test_a_launch_is_intended_tagged_and_recorded(rig: Rig) -> None:
    actor, ledger, snapshot = parts(rig)
    actor.carry_out(Plan((launch(snapshot, count=2),)), snapshot)
    row = ledger.launch("k")
    assert row is not None
    assert row.state is LaunchState.ACCEPTED
    assert list(row.ids) == rig.alive()
    instance = rig.site.instances[row.ids[0]]
    assert instance.tags[TAG_POOL] == POOL
    assert instance.key == "k"
    assert {record.id for record in ledger.view(rig.clock()).machines} == set(row.ids)
    assert events(ledger) == [("launch", "test")]


@pytest.mark.parametrize(
    ("error", "state", "code"),
    [
        (NoCapacity("x"), LaunchState.REFUSED, "no-capacity"),
        (QuotaExceeded("x"), LaunchState.REFUSED, "quota-exceeded"),
        (Throttled("x", 3), LaunchState.REFUSED, "throttled"),
        (AuthFailed("x"), LaunchState.REFUSED, "auth-failed"),
        (BadRequest("x"), LaunchState.REFUSED, "bad-request"),
        (CloudUnavailable("x"), LaunchState.UNKNOWN, "cloud-unavailable"),
        (TimeoutError("x"), LaunchState.UNKNOWN, "unexpected"),
    ],
)
def test_an_error_is_an_outcome(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, error: Exception, state: LaunchState, code: str
) -> None:
    actor, ledger, snapshot = parts(rig)

    def fail(_request: LaunchRequest) -> None:
        raise error

    monkeypatch.setattr(rig.driver, "launch", fail)
    actor.carry_out(Plan((launch(snapshot),)), snapshot)
    row = ledger.launch("k")
    assert row is not None
    assert row.error is not None
    assert (row.state, row.error.code) == (state, code)


@pytest.mark.parametrize("what", ["token", "user-data"])
def test_what_fails_before_the_call_is_refused(rig: Rig, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    actor, ledger, snapshot = parts(rig)

    def fail(*_arguments: object) -> str:
        raise PoolTimeout("no token") if what == "token" else BootstrapError("too large")

    if what == "token":
        monkeypatch.setattr(rig.pool, "mint_token", fail)
    else:
        actor.reconfigure(policy(), rig.pool, {"c1": rig.cloud}, fail)  # type: ignore[arg-type]
    actor.carry_out(Plan((launch(snapshot),)), snapshot)
    row = ledger.launch("k")
    assert row is not None
    assert row.state is LaunchState.REFUSED
    assert rig.site.calls_by_name().get("launch") is None


def test_no_token_reaches_the_ledger(rig: Rig) -> None:
    actor, ledger, snapshot = parts(rig)
    actor.carry_out(Plan((launch(snapshot),)), snapshot)
    token = rig.pool.mint_token("k", 1)
    ledger.close()
    assert all(token.encode() not in file.read_bytes() for file in rig.state.glob("ledger*"))


def test_an_empty_drain_is_tagged_first(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    actor, ledger, snapshot, [machine] = running(rig)

    def fail(*_arguments: object) -> None:
        raise CloudUnavailable("down")

    with monkeypatch.context() as broken:
        broken.setattr(rig.driver, "tag", fail)
        actor.carry_out(Plan((Drain(machine, "c1", DrainMode.EMPTY, WHY),)), snapshot)
    assert rig.pool.drains == []
    actor.carry_out(Plan((Drain(machine, "c1", DrainMode.EMPTY, WHY),)), snapshot)
    assert rig.pool.drains == [(machine, DrainMode.EMPTY)]
    assert rig.driver.machines()[0].retiring
    record = ledger.machine(machine)
    assert record is not None
    assert record.drain is not None
    assert record.drain.accepted_at == rig.clock()


def test_who_is_at_work_is_written_with_the_records(rig: Rig) -> None:
    actor, ledger, snapshot, [machine] = running(rig)
    busy = frozenset({("c1", machine)})
    actor.carry_out(Plan(at_work=busy), snapshot)
    assert ledger.view(rig.clock()).at_work == AtWork(busy, snapshot.now)
    actor.carry_out(Plan(), snapshot)
    assert ledger.view(rig.clock()).at_work == AtWork(busy, snapshot.now), "it didn't say"


def test_groups_that_take_no_room_are_written_down_and_forgotten(rig: Rig) -> None:
    actor, ledger, snapshot, _ = running(rig)
    rests = {"g": Untaken(2, snapshot.now, snapshot.now + 480, 3)}
    actor.carry_out(Plan(untaken=rests), snapshot)
    assert ledger.view(rig.clock()).untaken == rests
    actor.carry_out(Plan(), replace(snapshot, ledger=ledger.view(rig.clock())))
    assert ledger.view(rig.clock()).untaken == {}


def test_a_refused_drain_leaves_no_trace(rig: Rig) -> None:
    actor, ledger, snapshot, [machine] = running(rig)
    rig.pool.queues["schedd"].idle = 1
    rig.pool.negotiate()
    actor.carry_out(Plan((Drain(machine, "c1", DrainMode.EMPTY, WHY),)), snapshot)
    assert not rig.driver.machines()[0].retiring
    record = ledger.machine(machine)
    assert record is not None
    assert (record.drain, record.last_claimed_at) == (None, rig.clock())
    assert ("busy-again", "busy-again") in events(ledger)
    assert rig.pool.workers[machine].closed is None


def test_a_drain_without_an_answer_keeps_its_intent(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    actor, ledger, snapshot, [machine] = running(rig)

    def silent(*_arguments: object) -> None:
        raise PoolTimeout("no answer")

    monkeypatch.setattr(rig.pool, "drain", silent)
    actor.carry_out(Plan((Drain(machine, "c1", DrainMode.EMPTY, WHY),)), snapshot)
    record = ledger.machine(machine)
    assert record is not None
    assert record.drain == DrainRecord(DrainMode.EMPTY, rig.clock(), WHY)
    assert record.unanswered_since == record.unanswered_at == rig.clock()
    assert rig.driver.machines()[0].retiring


def test_slots_of_another_launch_are_not_drained(rig: Rig) -> None:
    actor, ledger, snapshot, [machine] = running(rig)
    record = ledger.machine(machine)
    assert record is not None
    ledger.remember((replace(record, launch_key="another"),))
    view = ledger.view(rig.clock())
    actor.carry_out(Plan((Drain(machine, "c1", DrainMode.BUSY, WHY),)), replace(snapshot, ledger=view))
    assert rig.pool.drains == []


def test_terminate_keeps_the_console_of_what_never_joined(rig: Rig) -> None:
    actor, ledger, snapshot, machines = running(rig, count=3)
    record = ledger.machine(machines[0])
    assert record is not None
    joined = replace(record, joined_at=rig.clock())
    plan = Plan((Terminate(tuple(machines), "c1", WHY),), records=(joined,))
    actor.carry_out(plan, snapshot)
    assert ledger.console(machines[0]) is None
    assert "booting" in (ledger.console(machines[1]) or "")
    assert rig.site.calls_by_name()["terminate"] == 1
    asked = {record.terminate_asked_at for record in ledger.view(rig.clock()).machines}
    assert asked == {rig.clock()}


def test_a_boot_that_says_why_it_failed_is_quoted(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    actor, ledger, snapshot, [machine] = running(rig)
    said = "booting\nupdraft-boot: FAILED: first\r\n[  9.1] updraft-boot: FAILED: no \x1b[2Jmirror\nlogin:\n"
    monkeypatch.setattr(rig.driver, "console", lambda _machine: said)
    record = ledger.machine(machine)
    assert record is not None
    why = Reason("never-joined", "it has not joined the pool in 60 s")
    plan = Plan((Terminate((machine,), "c1", why),), records=(replace(record, end=why),))
    actor.carry_out(plan, snapshot)
    quoted = Reason("never-joined", f"{why.text}; its boot said: no  [2Jmirror")
    ended = ledger.machine(machine)
    assert ended is not None
    assert ended.end == quoted
    [event] = [row for row in ledger.events() if row.kind == "terminate"]
    assert (event.code, event.text) == (quoted.code, quoted.text)


def test_a_stranger_is_left_alone(rig: Rig) -> None:
    actor, ledger, snapshot, machines = running(rig)
    foreign = rig.site.add_foreign()
    actor.carry_out(Plan((Terminate((foreign, *machines), "c1", WHY),)), snapshot)
    rig.clock.forward(10)
    assert [one.id for one in rig.site.current() if one.occupies(rig.clock())] == [foreign]
    assert ("failed", "not-ours") in events(ledger)


def test_one_failure_does_not_stop_the_others(rig: Rig) -> None:
    actor, ledger, snapshot, [machine] = running(rig)
    actions = (
        Drain(machine, "nowhere", DrainMode.EMPTY, WHY),
        Terminate(("x",), "nowhere", WHY),
        Terminate((machine,), "c1", WHY),
    )
    actor.carry_out(Plan(actions), snapshot)
    rig.clock.forward(10)
    assert rig.alive() == []
    assert events(ledger).count(("failed", "failed")) >= 2


def test_disowned_machines_stay(rig: Rig) -> None:
    actor, ledger, snapshot, [machine] = running(rig)
    actor.carry_out(Plan((Disown(machine, "c1", WHY),)), snapshot)
    assert rig.driver.machines() == ()
    assert rig.site.instances[machine].occupies(rig.clock())
    record = ledger.machine(machine)
    assert record is not None
    assert record.end == WHY


def test_without_a_ledger_nothing_is_done(rig: Rig) -> None:
    actor, ledger, snapshot = parts(rig)
    ledger.close()
    with pytest.raises(LedgerError):
        actor.carry_out(Plan((launch(snapshot),)), snapshot)
    assert rig.alive() == []


def test_records_are_written_before_any_action(rig: Rig) -> None:
    _, ledger, snapshot = parts(rig)
    known: list[MachineRecord] = []

    def step(name: str) -> None:
        if name.startswith("launch"):
            known.extend(ledger.view(rig.clock()).machines)

    rig.start(step)
    assert rig.ledger is not None
    ledger = rig.ledger
    record = MachineRecord("m9", "c1", "k9", "default", "small", "g1", rig.clock())
    rig.actor.carry_out(Plan((launch(snapshot),), records=(record,)), snapshot)
    assert known[0] == record


# --------------------------------------------------------------------------------------------- lanes


def test_a_slow_cloud_holds_up_only_itself() -> None:
    gate, done = threading.Event(), []
    lanes = Lanes(width=2, deadline=0.5)

    def hang() -> None:
        gate.wait(30)

    slow = [Task("slow", f"s{number}", hang) for number in range(4)]
    fast = [Task("fast", f"f{number}", lambda: done.append(1)) for number in range(8)]
    late = lanes.run([*slow, *fast])
    assert len(done) == 8
    assert set(late) == {"s0", "s1", "s2", "s3"}, "what hangs was not waited for to its end"
    # What hangs is not begun again, and what had not begun never begins by itself.
    assert set(lanes.run(slow)) == {"s0", "s1", "s2", "s3"}
    gate.set()
    for thread in threading.enumerate():
        if thread.name == "updraft-act-slow":
            thread.join(30)
    assert lanes.run([Task("slow", "probe", lambda: done.append(2))]) == ()
    assert done.count(2) == 1


def test_a_lane_hands_on_what_kills_it() -> None:
    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    after: list[int] = []
    with pytest.raises(Killed):
        Lanes(width=1).run([Task("a", "die", die), Task("a", "after", lambda: after.append(1))])
    assert after == []
    assert Clock()() > 0
