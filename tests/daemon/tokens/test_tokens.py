"""What becomes of workers' tokens beside the loop: those that nobody needs any more are revoked."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.rig import Rig
from updraft.condor.tokens.workers import launch_of
from updraft.core.model import Reason, Snapshot
from updraft.daemon import Daemon
from updraft.daemon.tokens import REVOKE_EVERY, TokenKeeper
from updraft.errors import PoolError
from updraft.ledger.tokens import Issued, note


class Collector:
    """What the head was told is over."""

    def __init__(self) -> None:
        self.revoked: dict[str, float | None] = {}
        self.calls = 0
        self.fails = False

    def known(self) -> frozenset[str]:
        return frozenset(self.revoked)

    def revoke(self, identities: Mapping[str, float | None], now: float) -> None:
        self.calls += 1
        if self.fails:
            raise PoolError("it can't be reached")
        self.revoked |= identities


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with closing(Rig(tmp_path)) as made:
        yield made


def watched(rig: Rig, collector: Collector) -> tuple[Daemon, TokenKeeper]:
    """A controller with its keeper, and one machine whose jobs are done."""
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start()
    assert rig.ledger is not None
    keeper = TokenKeeper(rig.ledger, collector, rig.clock)
    return daemon, keeper


def turn(rig: Rig, daemon: Daemon, keeper: TokenKeeper, seconds: float) -> Snapshot:
    until = rig.clock() + seconds
    while True:
        cycle = daemon.cycle()
        keeper.watch(cycle, daemon.policy, {})
        keeper.turn()
        rig.clock.forward(2)
        rig.pool.negotiate()
        if rig.clock() >= until:
            return cycle.snapshot


def noted(rig: Rig, snapshot: Snapshot) -> str:
    """The virtual pool mints no real token: what would be noted of one is."""
    assert rig.ledger is not None
    [launch] = {one.launch_key for one in snapshot.ledger.machines}
    now = rig.clock()
    note(rig.ledger, Issued(launch, "default", f"worker-{launch}@d", "id", "k", now, now + 1e6))
    return launch


def test_the_token_of_a_launch_ends_with_its_last_machine_and_that_is_told(rig: Rig) -> None:
    collector = Collector()
    daemon, keeper = watched(rig, collector)
    launch = noted(rig, turn(rig, daemon, keeper, 30))
    turn(rig, daemon, keeper, 2 * REVOKE_EVERY)
    assert collector.revoked == {}, "its machine works"
    rig.pool.finish()
    turn(rig, daemon, keeper, 120 + 2 * REVOKE_EVERY)
    assert [launch_of(name) for name in collector.revoked] == [launch]
    assert collector.calls == 1, "once"
    assert rig.ledger is not None
    [event] = [one for one in rig.ledger.events(limit=200) if one.code == "token-over"]
    assert event.subject == launch


def test_a_collector_that_is_not_there_is_told_later(rig: Rig) -> None:
    collector = Collector()
    daemon, keeper = watched(rig, collector)
    noted(rig, turn(rig, daemon, keeper, 30))
    collector.fails = True
    rig.pool.finish()
    turn(rig, daemon, keeper, 200)
    assert collector.calls >= 1
    assert collector.revoked == {}
    collector.fails = False
    turn(rig, daemon, keeper, 2 * REVOKE_EVERY)
    assert len(collector.revoked) == 1


def test_after_destroy_it_is_done_at_once(rig: Rig) -> None:
    collector = Collector()
    daemon, keeper = watched(rig, collector)
    launch = noted(rig, turn(rig, daemon, keeper, 30))
    keeper.turn(at_once=True)  # within its minute
    rig.pool.finish()
    while rig.alive():
        keeper.watch(daemon.cycle(), daemon.policy, {})
        rig.clock.forward(2)
        rig.pool.negotiate()
    while rig.standing():
        rig.clock.forward(2)
        keeper.watch(daemon.cycle(), daemon.policy, {})
    keeper.start()
    keeper.stop()
    assert [launch_of(name) for name in collector.revoked] == [launch]


def test_a_controller_that_waits_revokes_nothing(rig: Rig) -> None:
    collector = Collector()
    daemon, keeper = watched(rig, collector)
    noted(rig, turn(rig, daemon, keeper, 30))
    rig.pool.finish()
    turn(rig, daemon, keeper, 10)
    while rig.standing():
        rig.clock.forward(2)
        cycle = daemon.cycle()
    keeper.watch(replace(cycle, standing=Reason("second-controller", "another acts")), daemon.policy, {})
    keeper.turn(at_once=True)
    assert collector.calls == 0
