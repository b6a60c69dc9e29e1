"""Ten thousand hostile jobs and a thousand hostile slots at a real pool: an honest user waits for none."""

import random
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median

import pytest

from tests.condor.test_livepool import SCHEDD
from tests.rigs.pools import hostile
from tests.rigs.pools.livepool import LivePool, live_pool
from tests.waiting import deadline, patience, until
from updraft.condor.demand.groups import pending
from updraft.condor.pool import HTCondorPool
from updraft.core.model import ScheddView
from updraft.core.slots.kinds import problem

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(900)]

JOBS, MACHINES = 10_000, 1_000
HONEST, HOSTILE = "alice", "bob"
NOWHERE = "executable = /bin/sleep\narguments = 600\nrequirements = TARGET.Nowhere =?= 1\n"
SCRIPT = Path(hostile.__file__).read_text(encoding="utf-8")
LOOKS = 10
DECIDES = 0.7  # seconds from a look to the launch that it leads to, at the least
# As often as HTCondor does it by itself: our other pools are in a hurry.
USUAL_PACE = """
NEGOTIATOR_INTERVAL = 60
NEGOTIATOR_CYCLE_DELAY = 20
NEGOTIATOR_MIN_INTERVAL = 5
SCHEDD_INTERVAL = 300
SCHEDD_MIN_INTERVAL = 5
"""


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool(USUAL_PACE) as pool:
        yield pool


@pytest.fixture(scope="module")
def pool(live: LivePool) -> Iterator[HTCondorPool]:
    with live.network(), HTCondorPool(live.access()) as made:
        yield made


def look(pool: HTCondorPool) -> ScheddView:
    """What a controller asks of a pool in each of its looks."""
    pool.slots(60)
    return pool.demand(SCHEDD, running=True, deadline=60)


def served(live: LivePool, pool: HTCondorPool, cpus: int) -> tuple[float, ScheddView]:
    """How many seconds after the schedd took them a look shows jobs of the honest user, and what else."""
    live.submit(f"{NOWHERE}request_cpus = {cpus}\nqueue 20\n", HONEST)
    live.nodes["head"].run("condor_q", "-limit", "1", "-af", "ClusterId", seconds=120)
    begun = time.monotonic()
    while True:
        view = look(pool)
        took = time.monotonic() - begun
        if (HONEST, cpus, 20) in {(g.owner, g.request.cpus, g.idle) for g in view.groups if g.evaluable}:
            return took, view
        assert took < deadline(60), "an honest user's jobs are never seen"


def made(live: LivePool, user: str, *numbers: int) -> list[int]:
    """Of a seed, so many hostile jobs and so many hostile slots: how many were taken."""
    words = ("env", "PYTHONPATH=/opt/updraft/lib", "python3", "-", *map(str, numbers))
    return [int(word) for word in live.nodes["head"].run(*words, text=SCRIPT, user=user, seconds=600).split()]


@pytest.fixture
def seed(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> int:
    """That of all generated cases, where the run has one."""
    given = request.config.getoption("--hypothesis-seed")
    seed = int(given) if given else random.SystemRandom().randrange(1 << 32)
    record_property("seed", seed)
    return seed


def test_an_honest_user_waits_for_no_hostile_one(
    live: LivePool, pool: HTCondorPool, seed: int, record_property: Callable[[str, object], None]
) -> None:
    if " 23." in live.nodes["head"].run("condor_version"):
        pytest.skip("a collector of 23.9 takes no ads from its own bindings here")
    cpus = iter(range(1, 100))
    look(pool)  # the first one begins the processes that ask
    alone = [served(live, pool, next(cpus))[0] for _ in range(LOOKS)]
    _, slots = made(live, "root", seed, 0, MACHINES)
    assert slots > MACHINES / 2
    look(pool)
    usual = [served(live, pool, next(cpus))[0] for _ in range(LOOKS)]
    record_property("alone", alone)
    jobs, _ = made(live, HOSTILE, seed, JOBS, 0)
    assert jobs == JOBS

    seen = [served(live, pool, next(cpus)) for _ in range(LOOKS)]
    slow = [took for took, _ in seen]
    record_property("usual", usual)
    record_property("slow", slow)
    # With such jobs a schedd stands still by itself for seconds now and then, and `condor_submit` waits, too:
    # so it is asked for something else before, and of the looks most count.
    decides = DECIDES * patience()
    assert median(slow) + decides <= 2 * (max(usual) + decides), (seed, usual, slow)
    assert {sum(g.idle for g in view.groups if g.owner == HOSTILE) for _, view in seen} == {JOBS}

    whole = pending(SCHEDD, HOSTILE, 0, 0).key

    def told() -> ScheddView | None:
        view = look(pool)
        return None if whole in {g.key for g in view.groups} else view

    view = until(told, 120, "each hostile job is read, or said why not", every=2)
    assert view is not None
    theirs = [g for g in view.groups if g.owner == HOSTILE]
    left_out = [g for g in theirs if not g.evaluable]
    record_property("left out", sum(g.idle for g in left_out))
    assert sum(g.idle for g in theirs) == JOBS, seed
    assert all(problem(g.ad) for g in left_out)
    assert 0 < sum(g.idle for g in left_out) < JOBS
    assert len(pool.slots(60).view.slots) > slots / 2
