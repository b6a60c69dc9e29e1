"""Jobs that a controller has put on hold to give them back, and died: the next one releases them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.rig import Rig
from updraft.daemon import LeaderElection
from updraft.daemon.election import Rhythm
from updraft.ledger import Event

LEFT = ["7.0", "7.1"]


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    made.pool.queues["schedd"].held = list(LEFT)
    yield made
    made.close()


def told(rig: Rig) -> list[Event]:
    assert rig.ledger is not None
    return [event for event in rig.ledger.events() if event.kind == "requeue-jobs"]


def test_the_first_look_releases_them_and_says_so(rig: Rig) -> None:
    daemon = rig.start()
    daemon.cycle()
    queue = rig.pool.queues["schedd"]
    assert (queue.held, queue.idle) == ([], 2)
    (event,) = told(rig)
    assert (event.subject, event.code, event.detail["jobs"]) == ("schedd", "left-on-hold", LEFT)
    rig.turn(daemon, 20)
    assert len(told(rig)) == 1


def test_a_silent_schedd_is_asked_again(rig: Rig) -> None:
    queue = rig.pool.queues["schedd"]
    queue.silent = True
    daemon = rig.start()
    rig.turn(daemon, 20)
    assert queue.held == LEFT
    queue.silent = False
    rig.turn(daemon, 60)
    assert queue.held == []
    assert rig.pool.requeued == LEFT


def test_who_doesnt_lead_leaves_them(rig: Rig) -> None:
    first = LeaderElection(rig.pool, "a@one", "one", rig.clock, Rhythm(2, 8))
    first.standing(rig.pool.started)
    rig.clock.forward(2)
    daemon = rig.start(election=LeaderElection(rig.pool, "b@two", "two", rig.clock, Rhythm(2, 8)))
    for _ in range(10):
        first.standing(rig.pool.started)
        assert daemon.cycle().standing is not None
        rig.clock.forward(2)
    assert rig.pool.queues["schedd"].held == LEFT
