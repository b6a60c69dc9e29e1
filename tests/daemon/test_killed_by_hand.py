"""The controller killed at the steps that only an order, or a job in between, leads it through."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import updraft.act
from tests.daemon.test_adoption import STEPS as LET_GO
from tests.daemon.test_never import STEPS as BY_ITSELF
from tests.rigs.rig import POOL, Rig
from updraft.clouds.base import TAG_RETIRING
from updraft.core.model import DrainMode
from updraft.daemon import Daemon
from updraft.ledger import RequestKind

REFUSED = ("drain: refused", "drain: untagged")
TAKEN_BACK = ("undrain: asked",)
FORCED = ("terminate: before the record", "terminate: recorded", "terminate: asked")


class Killed(BaseException):
    """kill -9."""


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.close()


def at(step: str, before: str = "", happens: Callable[[], None] = lambda: None) -> Callable[[str], None]:
    """Dies at this step; what `happens` does so when `before` is first reached."""
    left = [before]

    def reached(name: str) -> None:
        if name in left:
            left.remove(name)
            happens()
        if name == step:
            raise Killed(name)

    return reached


def ask(rig: Rig, kind: RequestKind, machine: str, *, kill_jobs: bool = False) -> None:
    assert rig.ledger is not None
    rig.ledger.request(rig.clock(), "root", kind, machine, kill_jobs=kill_jobs)


def dies(rig: Rig, daemon: Daemon, seconds: float) -> None:
    with pytest.raises(Killed):
        rig.turn(daemon, seconds)


def bought(rig: Rig) -> int:
    """How many machines there ever were."""
    return len(list(rig.site.of_pool(POOL)))


def test_each_step_of_the_actor_is_one_at_which_it_is_killed() -> None:
    """With those at which test_never and test_adoption kill it."""
    folder = Path(updraft.act.__file__).parent
    named = {
        step for file in folder.glob("*.py") for step in re.findall(r'_step\("(.+?)"\)', file.read_text())
    }
    assert named == {*BY_ITSELF, *LET_GO, *REFUSED, *TAKEN_BACK, *FORCED}


@pytest.mark.parametrize("step", REFUSED)
def test_a_job_started_before_the_drain_and_it_dies_of_the_refusal(rig: Rig, step: str) -> None:
    daemon, machine = rig.one_busy()
    rig.pool.finish()

    def starts() -> None:
        rig.pool.queues["schedd"].idle = 1
        rig.pool.negotiate()

    dies(rig, rig.start(at(step, "drain: recorded", starts)), 120)
    assert rig.pool.workers[machine].jobs == 1
    daemon = rig.start()
    rig.turn(daemon, 90)  # longer than the idle limit
    assert rig.alive() == [machine]
    assert TAG_RETIRING not in rig.site.instances[machine].tags
    assert rig.pool.workers[machine].closed is None
    rig.pool.finish()
    rig.turn_to_zero(daemon, 200)
    assert (rig.alive(), rig.standing(), rig.pool.killed_jobs, bought(rig)) == ([], [], 0, 1)


def test_it_dies_between_taking_a_drain_back_and_writing_that_down(rig: Rig) -> None:
    daemon, machine = rig.one_busy()
    ask(rig, RequestKind.DRAIN, machine)
    rig.turn(daemon, 6)
    assert rig.pool.workers[machine].closed is DrainMode.BUSY
    ask(rig, RequestKind.UNDRAIN, machine)
    dies(rig, rig.start(at("undrain: asked")), 10)
    daemon = rig.start()
    rig.turn(daemon, 10)
    assert rig.pool.workers[machine].closed is None
    assert TAG_RETIRING not in rig.site.instances[machine].tags
    rig.pool.finish(machine)
    rig.pool.queues["schedd"].idle = 1
    rig.pool.negotiate()
    rig.turn(daemon, 10)
    assert (rig.pool.queues["schedd"].idle, bought(rig), rig.pool.killed_jobs) == (0, 1, 0)


@pytest.mark.parametrize("step", FORCED)
def test_it_dies_while_it_ends_a_busy_machine_by_force(rig: Rig, step: str) -> None:
    daemon, machine = rig.one_busy()
    rig.turn(daemon, 2)
    dying = rig.start(at(step))
    ask(rig, RequestKind.TERMINATE, machine, kill_jobs=True)
    dies(rig, dying, 30)
    daemon = rig.start()
    rig.turn(daemon, 60)
    assert machine not in rig.alive()
    assert machine not in rig.standing()
    assert rig.pool.killed_jobs == 2  # by order
    assert bought(rig) == 1
