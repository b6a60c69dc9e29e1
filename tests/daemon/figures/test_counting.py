"""Jobs that end with a machine that we end: by order or deadline, or lost, which must not be."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.rig import Rig
from updraft.clouds.counted import CallTally, CloudCall
from updraft.core.model import DrainMode, DrainRecord, Known, Plan, Reason, Snapshot, Terminate
from updraft.core.plan import plan
from updraft.core.settings import Policy
from updraft.daemon.figures.counting import TurnCounter, jobs
from updraft.daemon.reporting import Cycle
from updraft.ledger.counters import Count

CLAIMS = 1  # the pool in memory shows all jobs of a machine as one claim
IDLE = Reason("idle-limit", "idle for long")
ORDERED = Reason("operator", "alice said so")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


@pytest.fixture
def busy(rig: Rig) -> tuple[Snapshot, str]:
    """A look at one machine on which two jobs run, and that machine."""
    _, machine = rig.one_busy()
    return rig.look(), machine


def ended(machine: str, reason: Reason) -> Plan:
    return Plan(actions=(Terminate((machine,), "c1", reason),))


def test_jobs_of_a_machine_that_is_ended_for_no_good_reason_are_lost(busy: tuple[Snapshot, str]) -> None:
    snapshot, machine = busy
    assert isinstance(snapshot.collector, Known)
    heard = {slot.heard for slot in snapshot.collector.value.slots}
    view = snapshot.clouds["c1"]
    assert isinstance(view.machines, Known)
    older = replace(view, machines=replace(view.machines, at=min(heard) - 1))
    cycle = Cycle(replace(snapshot, clouds={"c1": older}), ended(machine, IDLE), None)
    assert list(jobs(cycle)) == [Count("jobs_lost", {}, CLAIMS)]
    # What was heard before the cloud was asked proves nothing: the cloud may have ended it meanwhile.
    newer = replace(view, machines=replace(view.machines, at=max(heard) + 1))
    assert not list(jobs(replace(cycle, snapshot=replace(snapshot, clouds={"c1": newer}))))


def test_jobs_that_end_by_order_are_not_lost(busy: tuple[Snapshot, str]) -> None:
    snapshot, machine = busy
    cycle = Cycle(snapshot, ended(machine, ORDERED), None)
    assert list(jobs(cycle)) == [Count("jobs_cut_short", {"reason": "operator"}, CLAIMS)]


def test_an_end_that_is_asked_for_again_counts_once(busy: tuple[Snapshot, str]) -> None:
    snapshot, machine = busy
    asked = tuple(replace(one, terminate_asked_at=snapshot.now) for one in snapshot.ledger.machines)
    again = replace(snapshot, ledger=replace(snapshot.ledger, machines=asked))
    assert not list(jobs(Cycle(again, ended(machine, ORDERED), None)))


def test_who_does_not_act_ends_nothing(busy: tuple[Snapshot, str]) -> None:
    snapshot, machine = busy
    cycle = Cycle(snapshot, ended(machine, IDLE), Reason("second-controller", "another acts"))
    assert not list(jobs(cycle))


def test_a_deadline_of_a_drain_is_counted_as_such(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    assert rig.ledger is not None
    until = rig.clock() + 10
    drain = DrainRecord(DrainMode.BUSY, rig.clock(), ORDERED, deadline=until)
    rig.ledger.change("c1", [machine], wanted_drain=drain)
    counted: list[Count] = []
    daemon._seen = lambda cycle, _policy, _clouds: counted.extend(jobs(cycle))
    rig.turn(daemon, 60)
    assert [(one.name, one.more) for one in counted] == [("jobs_cut_short", CLAIMS)]


def test_a_life_from_the_queue_to_the_end_loses_nothing(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 6
    counted: list[Count] = []
    daemon = rig.start(decide=plan)
    daemon._seen = lambda cycle, _policy, _clouds: counted.extend(jobs(cycle))
    rig.turn(daemon, 60)
    assert rig.alive()
    for worker in rig.pool.workers.values():
        worker.jobs = 0
    rig.turn_to_zero(daemon, 600)
    assert not rig.alive()
    assert counted == []


def test_calls_reach_the_ledger_each_once(rig: Rig) -> None:
    rig.start()
    assert rig.ledger is not None
    tally = CallTally()
    counter = TurnCounter(rig.ledger, tally)
    cycle = Cycle(rig.look(), Plan(), None)
    counter = TurnCounter(rig.ledger, tally)
    tally.add(CloudCall("c1", "launch", "throttled"), 1.5)
    tally.add(CloudCall("c1", "launch"), 0.5)
    for _ in range(2):
        counter.watch(cycle, Policy("test", {}), {})
    found = rig.ledger.counters()
    where = (("call", "launch"), ("cloud", "c1"))
    assert found["cloud_calls"] == {where: 2}
    assert found["cloud_call_seconds"] == {where: 2.0}
    assert found["cloud_call_errors"] == {(*where, ("reason", "throttled")): 1}


def test_a_ledger_that_cannot_be_written_stops_nobody(rig: Rig) -> None:
    cycle = Cycle(rig.look(), Plan(), None)
    assert rig.ledger is not None
    tally = CallTally()
    tally.add(CloudCall("c1", "launch"), 0.5)
    counter = TurnCounter(rig.ledger, tally)
    rig.ledger.close()
    counter.watch(cycle, Policy("test", {}), {})
