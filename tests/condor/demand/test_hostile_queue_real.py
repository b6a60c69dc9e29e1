"""A controller that starts among ten thousand hostile jobs: an honest user waits for none of them."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.condor.test_livepool import SCHEDD
from tests.rigs.pools import hostile
from tests.rigs.pools.livepool import live_pool
from tests.waiting import until
from updraft.condor.pool import HTCondorPool
from updraft.core.model import ScheddView
from updraft.errors import PoolTimeout

pytestmark = [pytest.mark.integration, pytest.mark.extended, pytest.mark.timeout(900)]

JOBS = 10_000
HONEST, HOSTILE = "alice", "bob"
NOWHERE = "executable = /bin/sleep\narguments = 600\nrequirements = TARGET.Nowhere =?= 1\n"
SCRIPT = Path(hostile.__file__).read_text(encoding="utf-8")
# As often as HTCondor does it by itself: our other pools are in a hurry, and a schedd that negotiates for
# thousands of jobs answers nobody meanwhile.
USUAL_PACE = """
NEGOTIATOR_INTERVAL = 60
NEGOTIATOR_CYCLE_DELAY = 20
NEGOTIATOR_MIN_INTERVAL = 5
SCHEDD_INTERVAL = 300
SCHEDD_MIN_INTERVAL = 5
"""
LOOK = 20.0  # seconds that a daemon gives a schedd for each answer
LOOKS = 4  # until the honest user is seen


@pytest.fixture
def seed(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> int:
    """That of all generated cases, where the run has one."""
    given = request.config.getoption("--hypothesis-seed")
    seed = int(given) if given else random.SystemRandom().randrange(1 << 32)
    record_property("seed", seed)
    return seed


@pytest.mark.parametrize("suite", ["", "trixie"])
def test_a_controller_that_starts_among_hostile_jobs_sees_the_others(suite: str, seed: int) -> None:
    with live_pool(USUAL_PACE, suite=suite) as live:
        words = ("env", "PYTHONPATH=/opt/updraft/lib", "python3", "-", str(seed), str(JOBS), "0")
        made = live.nodes["head"].run(*words, text=SCRIPT, user=HOSTILE, seconds=600)
        assert made.split() == [str(JOBS), "0"]
        live.submit(f"{NOWHERE}queue 20\n", HONEST)
        looks: list[ScheddView | None] = []
        with live.network(), HTCondorPool(live.access()) as pool:

            def look() -> ScheddView | None:
                try:
                    looks.append(pool.demand(SCHEDD, running=True, deadline=LOOK))
                except PoolTimeout:
                    looks.append(None)
                return looks[-1]

            def seen() -> bool:
                view = look()
                return view is not None and [
                    g.idle for g in view.groups if g.owner == HONEST and g.evaluable
                ] == [20]

            until(seen, LOOKS * LOOK, "the honest user's jobs are seen", every=0)
            assert len(looks) <= LOOKS, (seed, [view is None for view in looks])

            def all_told() -> bool:
                view = look()
                assert view is not None, (seed, "what is known is known")
                return sum(g.idle for g in view.groups if g.owner == HOSTILE) == JOBS

            until(all_told, 300, "each hostile job is read, or said why not", every=2)
