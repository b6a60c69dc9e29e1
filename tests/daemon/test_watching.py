"""`[pool] act = false`: the daemon looks, plans and writes down, and touches nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.rig import Rig
from updraft.app import serving, wiring
from updraft.app.call import Call
from updraft.clouds.watched import WatchedMachines
from updraft.condor.watched import WatchedPool
from updraft.config import load, place
from updraft.core.model import Launch
from updraft.daemon import LeaderElection
from updraft.daemon.election import WATCHES
from updraft.errors import ConfigError, UsageError
from updraft.ledger.identity import Host, kept

SETTINGS = """
[pool]
name = "test"
state_dir = "{state}"
collector = "127.0.0.1:1"
trust_domain = "test"
uid_domain = "test"
act = {act}
[clouds.c1]
driver = "fake"
[classes.default]
image = "img"
"""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def written(tmp_path: Path, act: str) -> Path:
    path = tmp_path / "updraft.toml"
    path.write_text(SETTINGS.format(state=tmp_path, act=act))
    return path


def test_it_plans_launches_and_makes_none(rig: Rig) -> None:
    pool, cloud = rig.pool, rig.driver
    rig.pool = WatchedPool(pool)  # type: ignore[assignment]
    rig.driver = WatchedMachines(cloud)  # type: ignore[assignment]
    election = LeaderElection(rig.pool, "me", "here", rig.clock, barred=WATCHES)
    pool.queues["schedd"].idle = 8
    daemon = rig.start(election=election)
    election.start()
    for _ in range(20):
        cycle = daemon.cycle()
        assert cycle.standing == WATCHES
        assert any(isinstance(action, Launch) for action in cycle.plan.actions)
        rig.clock.forward(2)
        pool.negotiate()
    election.stop()
    assert cloud.machines() == ()
    assert pool.controllers(5) == ()
    assert rig.ledger is not None
    assert rig.ledger.view(rig.clock()).launches == ()
    assert {event.kind for event in rig.ledger.events()} <= {"standing", "warning"}


def test_the_settings_alone_make_all_parts_of_the_daemon_harmless(tmp_path: Path) -> None:
    settings = load(written(tmp_path, "false"))
    parts = wiring.make_parts(settings)
    try:
        assert isinstance(parts.pool, WatchedPool)
        assert all(isinstance(one.machines, WatchedMachines) for one in parts.clouds.values())
        identity = kept(tmp_path, Host())
        assert serving._election(settings, parts.pool, identity, lambda: True).barred == WATCHES
    finally:
        parts.close()


def test_who_acts_has_the_real_ones(tmp_path: Path) -> None:
    parts = wiring.make_parts(load(written(tmp_path, "true")))
    try:
        assert not isinstance(parts.pool, WatchedPool)
        assert not any(isinstance(one.machines, WatchedMachines) for one in parts.clouds.values())
    finally:
        parts.close()


def test_a_reload_does_not_let_it_act(tmp_path: Path) -> None:
    watches, acts = (load(written(tmp_path, act)) for act in ("false", "true"))
    serving.same_manner(watches, watches)
    for old, new in ((watches, acts), (acts, watches)):
        with pytest.raises(ConfigError, match="restart updraft"):
            serving.same_manner(old, new)


def test_a_wish_is_refused_while_it_watches(tmp_path: Path) -> None:
    path = written(tmp_path, "false")
    assert place(path).acts is False
    with pytest.raises(UsageError, match="only watches"):
        Call(str(path)).acting()
    Call(str(written(tmp_path, "true"))).acting()
