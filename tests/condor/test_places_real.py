"""Where a real schedd believes jobs to run, whatever they do there: all nodes, suspended, being removed."""

import contextlib
from collections.abc import Iterator

import pytest

from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from updraft.condor.pool import HTCondorPool
from updraft.core.model import RunningJob
from updraft.errors import PoolError

pytestmark = [pytest.mark.integration, pytest.mark.long]

SCHEDD = "head.pool.test"
DEDICATED = f"""
DedicatedScheduler = "DedicatedScheduler@{SCHEDD}"
STARTD_ATTRS = $(STARTD_ATTRS) DedicatedScheduler
"""
SMALL = "request_cpus = 1\nrequest_memory = 100\nrequest_disk = 1\nqueue\n"
SLEEPS = f"executable = /bin/sleep\narguments = 600\n{SMALL}"
ON_TWO = f"universe = parallel\nmachine_count = 2\nexecutable = /bin/sleep\narguments = 600\n{SMALL}"
STAYS = f"""
executable = /bin/sh
arguments = "-c 'trap : TERM; until test -e /srv/end; do sleep 1; done'"
job_max_vacate_time = 600
{SMALL}
"""


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool() as pool:
        pool.worker("w1", 11, DEDICATED)
        pool.worker("w2", 12, DEDICATED)
        yield pool


@pytest.fixture(scope="module")
def pool(live: LivePool) -> Iterator[HTCondorPool]:
    with live.network(), HTCondorPool(live.access()) as made:
        yield made


def places(pool: HTCondorPool, job: str) -> tuple[RunningJob, ...]:
    found = pool.demand(SCHEDD, running=True, deadline=20).running
    assert found is not None
    return tuple(one for one in found if one.job_id == f"{job}.0")


def machines(pool: HTCondorPool, job: str) -> set[str]:
    return {one.slot.partition("@")[2].partition(".")[0] for one in places(pool, job)}


def state(live: LivePool, job: str) -> str:
    return live.nodes["head"].run("condor_q", f"{job}.0", "-af", "JobStatus", check=False).strip()


def loops(live: LivePool, worker: str) -> bool:
    """Whether the job that stays is in its loop on this worker."""
    return bool(live.nodes[worker].run("pgrep", "-f", "-x", "sleep 1", check=False).strip())


def test_a_suspended_job_and_one_that_is_removed_run_until_their_shadow_ends(
    live: LivePool, pool: HTCondorPool
) -> None:
    head = live.nodes["head"]
    suspended, removed = live.submit(SLEEPS), live.submit(STAYS)
    wait_for("both run", lambda: [state(live, job) for job in (suspended, removed)] == ["2", "2"])
    # The schedd says so before its shell has begun: until the loop goes round, it can be told to end.
    wait_for("it minds no signal", lambda: any(loops(live, name) for name in ("w1", "w2")))
    before = [places(pool, job)[0] for job in (suspended, removed)]
    head.run("condor_suspend", suspended)
    head.run("condor_rm", removed)
    wait_for("the states", lambda: [state(live, job) for job in (suspended, removed)] == ["7", "3"])
    after = [places(pool, job)[0] for job in (suspended, removed)]
    assert [one.slot for one in after] == [one.slot for one in before]
    assert [one.leaving for one in after] == [False, True]
    head.run("condor_rm", suspended)
    for name in ("w1", "w2"):
        live.nodes[name].run("touch", "/srv/end")
    wait_for("both have gone", lambda: not places(pool, suspended) and not places(pool, removed))


def test_a_parallel_job_runs_on_all_its_nodes_and_is_given_back_whichever_is_lost(
    live: LivePool, pool: HTCondorPool
) -> None:
    # With all cpus of each, so that each has a node.
    job = live.submit(ON_TWO.replace("request_cpus = 1", "request_cpus = 4"))
    wait_for("both nodes", lambda: machines(pool, job) == {"w1", "w2"})
    first = live.nodes["head"].run("condor_q", f"{job}.0", "-af", "RemoteHost").strip()
    (other,) = {"w1", "w2"} - {first.partition("@")[2].partition(".")[0]}
    live.nodes[other].kill()
    pool.forget([f"slot1@{other}.pool.test", f"slot1_1@{other}.pool.test"], 10)
    assert machines(pool, job) == {"w1", "w2"}, "nobody has told the schedd"

    def given_back() -> bool:
        """At one look or another: while the schedd tries to reach the lost node it answers nobody."""
        with contextlib.suppress(PoolError):
            pool.requeue(SCHEDD, [f"{job}.0"], f"{other}.pool.test", 20)
            return not machines(pool, job) and state(live, job) == "1"
        return False

    wait_for("it waits again", given_back, 120)
