"""Boots that fail, under a whole controller in virtual time: a learned deadline, a rest, one probe."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.rig import Rig, policy
from updraft.clouds.fake import site_settings

QUICK = {"start": "4s", "join": "4s"}
TIMINGS = replace(policy().timings, boot_floor=12.0, boot_slack=2.0, failures_to_probe=1, cooldown_first=40.0)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def boots(rig: Rig, **more: object) -> None:
    """From now on the cloud's machines boot so."""
    rig.site.settings = site_settings("c1", {"boots": [{**QUICK, **more}]})


@pytest.mark.slow
def test_a_boot_that_never_joins_ends_at_its_learned_deadline_and_its_image_rests(rig: Rig) -> None:
    daemon = rig.start(using=replace(policy(), timings=TIMINGS))
    rig.pool.queues["schedd"].idle = 1
    rig.turn(daemon, 30)
    assert rig.ledger is not None
    [first] = rig.ledger.view(rig.clock()).machines
    assert first.joined_at is not None
    deadline = max(TIMINGS.boot_floor, TIMINGS.boot_slack * (first.joined_at - first.requested_at))
    assert deadline < 120, "its class would wait longer"
    rig.pool.finish()
    rig.turn_to_zero(daemon, 300)

    boots(rig, never_joins=1.0)
    rig.pool.queues["schedd"].idle = 1
    while not (rests := daemon.cycle().plan.cooldowns):
        rig.turn(daemon, 2)
    failed = [row for row in rig.ledger.view(rig.clock()).machines if row.id != first.id]
    ends = {one.subject: one for one in rig.ledger.events(kinds=("terminate",)) if one.subject != first.id}
    assert {one.code for one in ends.values()} == {"never-joined"}
    assert failed
    for row in failed:
        assert deadline <= ends[row.id].at - row.requested_at <= deadline + 4
        assert rig.ledger.console(row.id), "what it printed is kept"
    [rest] = rests
    assert (rest.scope, rest.failures, rest.probe) == ("image", len(failed), True)

    boots(rig)
    asked = len(rig.ledger.events(kinds=("launch",)))
    while len(launches := rig.ledger.events(kinds=("launch",))) == asked:
        rig.turn(daemon, 2)
    probe = launches[-1]
    assert probe.detail["asked"] == 1
    assert probe.at >= rest.until
    rig.turn(daemon, 60)
    assert rig.pool.queues["schedd"].idle == 0, "the jobs are served once the fault is over"
    assert not daemon.cycle().plan.cooldowns


def test_a_controller_that_was_away_costs_no_machine_that_boots(rig: Rig) -> None:
    """Machines need a controller to join: the time without one doesn't count for their deadlines."""
    quick = replace(policy(), timings=TIMINGS)
    daemon = rig.start(using=quick)
    rig.pool.queues["schedd"].idle = 1
    rig.turn(daemon, 30)
    rig.pool.finish()
    rig.turn_to_zero(daemon, 300)

    boots(rig, join="100s")
    rig.pool.queues["schedd"].idle = 1
    rig.turn(daemon, 4)
    [machine] = rig.alive()
    rig.clock.forward(95)
    daemon = rig.start(using=quick)
    rig.turn(daemon, 30)
    assert rig.alive() == [machine]
    assert rig.ledger is not None
    assert [one for one in rig.ledger.view(rig.clock()).machines if one.id == machine and one.joined_at]
