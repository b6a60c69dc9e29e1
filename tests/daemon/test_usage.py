"""A whole controller keeps the records of what was used: by what the cloud and the pool really had."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.daemon.test_daemon import Killed, Steps, steps_of_a_life
from tests.rigs.rig import Rig
from updraft.daemon import Daemon
from updraft.daemon import usage as module

LOOK = 2.0


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def recorded(rig: Rig) -> dict[str, tuple[float, ...]]:
    """Of each machine: seconds alive, doubtful, unseen, core-seconds, by all its days."""
    with sqlite3.connect(rig.state / "ledger.db") as rows:
        found = rows.execute(
            "SELECT instance, sum(alive), sum(doubtful), sum(unseen), sum(core_seconds) FROM usage_days d "
            "JOIN usage_machines m ON m.id = d.machine GROUP BY instance"
        ).fetchall()
    return {name: tuple(numbers) for name, *numbers in found}


def lived(rig: Rig) -> dict[str, float]:
    """How long each machine really was there."""
    return {one.id: min(rig.clock(), one.end()) - one.launched_at for one in rig.site.instances.values()}


def worked(rig: Rig, daemon: Daemon) -> None:
    """A burst of jobs, which end after a minute; then nothing more to do."""
    rig.turn(daemon, 70)
    rig.pool.finish()
    rig.turn(daemon, 150)


def test_what_was_used_is_what_was_there(rig: Rig) -> None:
    rig.pool.queues["schedd"].idle = 4
    worked(rig, rig.start())
    assert rig.alive() == []
    found, real = recorded(rig), lived(rig)
    assert found.keys() == real.keys()
    assert len(found) > 0
    for name, (alive, doubtful, unseen, _) in found.items():
        assert alive == pytest.approx(real[name], abs=3 * LOOK), name
        assert (doubtful, unseen) == (0, 0)
    with sqlite3.connect(rig.state / "ledger.db") as rows:
        users = rows.execute("SELECT user, sum(core_seconds) FROM usage_users GROUP BY user").fetchall()
        assert {code for (code,) in rows.execute("SELECT ended FROM usage_days")} == {"idle-limit"}
    assert [user for user, _ in users] == ["alice"]
    assert users[0][1] == sum(row[-1] for row in found.values())
    assert 4 * 50 <= users[0][1] <= 4 * 70


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_killed_at_any_step_it_loses_no_more_than_a_look(tmp_path: Path, part: int) -> None:
    names = steps_of_a_life(tmp_path / "count")
    points = [at for at, name in enumerate(names) if not name.startswith("plan") or at < 6 or at % 20 < 2]
    for at in points[part::4]:
        rig = Rig(tmp_path / str(at))
        rig.pool.queues["schedd"].idle = 4
        daemon = rig.start(Steps(at))
        with pytest.raises(Killed) as death:
            worked(rig, daemon)
        daemon = rig.start()
        worked(rig, daemon)
        rig.turn_to_zero(daemon, 400)
        found, real = recorded(rig), lived(rig)
        where = f"killed at {death.value}"
        assert found.keys() == real.keys(), where
        for name, (alive, doubtful, unseen, _) in found.items():
            assert alive + doubtful == pytest.approx(real[name], abs=4 * LOOK), where
            assert unseen <= 4 * LOOK, where
        rig.close()


def test_a_controller_that_was_away_for_hours(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    before = recorded(rig).get(machine, (0.0,))[0]
    rig.clock.forward(5 * 3600)
    rig.turn(rig.start(), 10)
    alive, doubtful, unseen, _ = recorded(rig)[machine]
    assert alive - before == pytest.approx(5 * 3600, abs=60)
    assert unseen == pytest.approx(5 * 3600, abs=2 * LOOK)
    assert doubtful == 0
    assert daemon is not None


def test_a_lost_ledger_counts_what_the_cloud_lists(rig: Rig) -> None:
    _, machine = rig.one_busy()
    rig.clock.forward(300)
    rig.lose_ledger()
    daemon = rig.start()
    rig.turn(daemon, 10)
    rig.pool.finish()
    rig.turn_to_zero(daemon, 400)
    alive, _, unseen, _ = recorded(rig)[machine]
    assert alive == pytest.approx(lived(rig)[machine], abs=4 * LOOK)
    assert unseen >= 300


def test_a_clock_that_is_set_makes_no_time(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    rig.set_clock(2 * 86400)
    rig.turn(daemon, 20)
    alive, doubtful, _, _ = recorded(rig)[machine]
    assert alive <= 60
    assert doubtful == pytest.approx(2 * 86400, abs=20)
    rig.set_clock(-86400)
    rig.turn(daemon, 20)
    alive, again, _, _ = recorded(rig)[machine]
    assert alive <= 100
    assert again == doubtful


def test_what_cannot_be_recorded_costs_the_record_and_no_look(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start()
    real = module.turn

    def fails(*_: object, **__: object) -> object:
        raise ValueError("odd")

    monkeypatch.setattr(module, "turn", fails)
    with capture_logs() as log:
        rig.turn(daemon, 40)
    assert len(rig.alive()) == 1
    assert [line["code"] for line in log if line.get("code") == "no-usage"] == ["no-usage"]
    monkeypatch.setattr(module, "turn", real)
    rig.pool.finish()
    rig.turn_to_zero(daemon, 300)
    (name,) = lived(rig)
    assert recorded(rig)[name][0] == pytest.approx(lived(rig)[name], abs=4 * LOOK)
