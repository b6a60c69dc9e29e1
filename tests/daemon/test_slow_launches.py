"""A launch whose call takes longer than a cloud needs to show a machine: it counts until it has ended."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.rig import TIMINGS, Rig
from tests.waiting import until
from updraft.act import Lanes
from updraft.clouds.base import LaunchRequest
from updraft.core.model import Instance, LaunchState
from updraft.errors import CloudUnavailable


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def bought(rig: Rig) -> int:
    return len(rig.site.instances)


def test_a_call_that_goes_on_is_not_given_up(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its token, its listing and its request together may take minutes."""
    gate, launch = threading.Event(), rig.driver.launch

    def slowly(request: LaunchRequest) -> tuple[Instance, ...]:
        gate.wait(60)
        return launch(request)

    monkeypatch.setattr(rig.driver, "launch", slowly)
    monkeypatch.setattr("tests.rigs.rig.Lanes", lambda width: Lanes(width=2, deadline=0.1))
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start()
    for _ in range(6):
        daemon.cycle()
        rig.clock.forward(TIMINGS.settle)
    assert [task.name[:6] for task in rig.actor.under_way()] == ["launch"], "one, which was begun once"
    assert not bought(rig)
    gate.set()
    until(lambda: not rig.actor.under_way(), 10, "the call ends")
    rig.turn(daemon, 60)
    assert bought(rig) == 1


def test_a_call_that_failed_after_minutes_counts_from_then(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it asked for may still show up."""
    launch = rig.driver.launch

    def late(request: LaunchRequest) -> tuple[Instance, ...]:
        rig.clock.forward(3 * TIMINGS.settle)
        if not bought(rig):
            launch(request)
            (made,) = rig.site.instances
            rig.site.out_of_reach.add(made)  # not listed yet
            raise CloudUnavailable("no answer")
        return launch(request)

    monkeypatch.setattr(rig.driver, "launch", late)
    rig.pool.queues["schedd"].idle = 2
    daemon = rig.start()
    daemon.cycle()
    rig.clock.forward(TIMINGS.settle - 4)
    daemon.cycle()
    rig.site.out_of_reach.clear()
    rig.turn(daemon, 60)
    assert bought(rig) == 1


def test_a_call_that_was_cut_off_counts_from_the_restart(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The cloud may have taken it in the moment in which the controller died."""

    class Killed(BaseException):
        """As by SIGKILL."""

    def step(name: str) -> None:
        if name == "launch: asked":
            rig.clock.forward(3 * TIMINGS.settle)
            raise Killed

    rig.pool.queues["schedd"].idle = 2
    with pytest.raises(Killed):
        rig.start(step).cycle()
    (made,) = rig.site.instances
    rig.site.out_of_reach.add(made)
    daemon = rig.start()
    rig.turn(daemon, TIMINGS.settle - 4)
    assert rig.ledger is not None
    assert [one.state for one in rig.ledger.view(rig.clock()).launches] == [LaunchState.INTENDED]
    rig.site.out_of_reach.clear()
    rig.turn(daemon, 60)
    assert bought(rig) == 1
