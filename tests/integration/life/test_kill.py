"""The controller killed with -9 in the middle of a launch, a drain and an end, on real parts.

Whatever step it dies at: every job is done exactly once, no machine is launched twice, none is left behind.
All steps of the actor are tried in virtual time (`test_killed_by_hand` has the list); here are those where a
real cloud, or a real startd, has done what the ledger can't know.
"""

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    acting,
    await_done,
    disturbed,
    edit,
    kill_service,
    of_class,
    outcomes,
    run_killer,
    runs,
    sleepers,
    start_and_wait,
    start_service,
)
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.clouds.base import TAG_RETIRING
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

CLASSES = ("dies", "refused")
RUNS_THERE = "condor_q -allusers -format '%d\\n' JobStatus -constraint 'ClusterId == '$cluster | grep -q 2"


def classes() -> str:
    """The tables of the worker classes, one for each test."""
    tables = (
        f'[classes.{name}]\nimage = "{{image}}"\nflavors = ["small"]\nidle_limit = "1h"  # of {name}\n'
        for name in CLASSES
    )
    return "\n".join(tables)


def wants(name: str) -> str:
    """What a job requires that only a machine of this class satisfies."""
    return f'TARGET.UpdraftClass == "{name}"'


@pytest.fixture(scope="module")
def pool(module_pool: RealPools) -> RealPool:
    text = settings(
        timings={"settle": "4s", "cooldown_first": "3s", "trial": 20, "end_patience": "10s"},
        more=classes(),
    )
    pool = module_pool(Wishes(settings=text))
    until(lambda: acting(pool), 40, "the controller acts")
    return pool


@pytest.mark.extended
def test_it_dies_at_a_machines_launch_at_its_drain_and_at_its_end(pool: RealPool) -> None:
    name = "dies"
    kill_service(pool)
    cluster = pool.submit(sleepers(1, 1, requirements=wants(name)))
    pool.cloud.set_faults(Fault(FaultKind.LOST_ANSWER, call="run", times=1))
    run_killer(pool, "launch: failed")  # the machine is made, and the answer lost
    start_service(pool)
    await_done(pool, [cluster], 90)
    assert outcomes(pool, cluster) == [DONE_ONCE]
    assert len(of_class(pool, name)) == 1

    kill_service(pool)
    edit(pool, f'"1h"  # of {name}\n', f'"1s"  # of {name}\n')
    run_killer(pool, "drain: asked")  # the startd has closed, and is on its way out
    run_killer(pool, "terminate: asked")  # the cloud has ended it
    start_service(pool)
    until(lambda: not of_class(pool, name, *ALIVE), 40, "the machine is gone")
    until(lambda: not pool.show("machines")["machines"], 20, "the ledger knows of no machine any more")
    assert len(of_class(pool, name)) == 1


def test_a_job_starts_between_the_decision_and_the_drain(pool: RealPool) -> None:
    name = "refused"
    first = pool.submit(sleepers(1, 1, requirements=wants(name)))
    await_done(pool, [first], 60)
    (machine,) = of_class(pool, name, "running")
    kill_service(pool)
    edit(pool, f'"1h"  # of {name}\n', f'"1s"  # of {name}\n')
    # Decided, written down, and not yet asked: now a job starts there. The startd refuses the drain.
    job = sleepers(1, 15, requirements=wants(name)).replace("\n", "\\n")
    starts = (
        f"cluster=$(printf '{job}' | runuser -u alice -- condor_submit -terse - | cut -d. -f1); "
        f"until {RUNS_THERE}; do sleep 0.2; done"
    )
    run_killer(pool, "drain: refused", "drain: recorded", starts)
    second = first + 1
    assert runs(pool, second)
    edit(pool, f'"1s"  # of {name}\n', f'"1h"  # of {name}\n')
    start_and_wait(pool)
    untagged = lambda: TAG_RETIRING not in of_class(pool, name, "running")[0]["tags"]  # noqa: E731
    until(untagged, 20, "the machine is not marked as retiring any more")
    await_done(pool, [second], 60)
    assert outcomes(pool, second) == [DONE_ONCE]
    assert disturbed(pool, second) == ""
    assert [m["id"] for m in of_class(pool, name)] == [machine["id"]]
