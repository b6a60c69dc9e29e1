"""Where a real schedd believes jobs to run: on all nodes, suspended, being removed, while they send output.

Whether the collector has ads of the machine or not; with 23.9 (trixie) and the release of UPDRAFT_TEST_IMAGE.
"""

import contextlib
import time
from collections.abc import Iterator

import pytest

from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from updraft.condor.pool import HTCondorPool
from updraft.core.model import RunningJob
from updraft.errors import PoolError

pytestmark = [pytest.mark.integration, pytest.mark.long]

OLDER = pytest.param("trixie", marks=pytest.mark.extended, id="older")
SCHEDD = "head.pool.test"
DEDICATED = f"""
DedicatedScheduler = "DedicatedScheduler@{SCHEDD}"
STARTD_ATTRS = $(STARTD_ATTRS) DedicatedScheduler
"""
# A schedd of 23.9 that was given a job's two nodes in different rounds, and claimed the rest of the first
# machine as well, never started the job.
NO_REST = "CLAIM_PARTITIONABLE_LEFTOVERS = False\n"
SMALL = "request_cpus = 1\nrequest_memory = 100\nrequest_disk = 1\nqueue\n"
SLEEPS = f"executable = /bin/sleep\narguments = 600\n{SMALL}"
LEASE = 30
# With all cpus of each machine, so that each has a node.
ON_TWO = f"""
universe = parallel
machine_count = 2
job_lease_duration = {LEASE}
executable = /bin/sleep
arguments = 600
{SMALL.replace("cpus = 1", "cpus = 4")}
"""
# What its shadow writes to is read by nobody until the test does.
SENDS = f"""
executable = /bin/sh
arguments = "-c 'head -c 1000000 /dev/zero > out'"
should_transfer_files = yes
transfer_output_files = out
transfer_output_remaps = "out = /srv/pipe"
initialdir = /srv
job_lease_duration = {LEASE}
{SMALL}
"""
STAYS = f"""
executable = /bin/sh
arguments = "-c 'trap : TERM; until test -e /srv/end; do sleep 1; done'"
job_max_vacate_time = 600
{SMALL}
"""


@pytest.fixture(scope="module", params=[pytest.param("", id="newer"), OLDER])
def live(request: pytest.FixtureRequest) -> Iterator[LivePool]:
    with live_pool(NO_REST if request.param else "", request.param) as pool:
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


def lease_until(pool: HTCondorPool, job: str) -> float:
    """When the first of its leases ends; 0 where it runs nowhere."""
    return min((one.lease_until for one in places(pool, job)), default=0.0)


def gone(live: LivePool, pool: HTCondorPool, worker: str) -> None:
    """The collector has no ad of a worker of which no new one comes."""
    names = live.status("-constraint", f'Machine == "{worker}.pool.test"', "-af", "Name").split()
    pool.forget(names, 10)
    assert not [slot for slot in pool.slots(20).view.slots if worker in slot.name]


def keeps_its_lease(pool: HTCondorPool, job: str) -> None:
    """All its leases are renewed from now on, too."""
    begun = time.time()
    wait_for("a lease of later", lambda: lease_until(pool, job) > begun + LEASE, 60)


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


def test_a_job_that_sends_its_output_keeps_its_machine_of_which_there_is_no_ad(
    live: LivePool, pool: HTCondorPool
) -> None:
    head = live.nodes["head"]
    head.run("sh", "-c", "chmod 777 /srv; mkfifo -m 666 /srv/pipe; chown alice /srv/pipe")
    job = live.submit(SENDS)
    asked = ("condor_q", job, "-af", "TransferringOutput")
    wait_for("it sends its output", lambda: head.run(*asked).strip() == "true")
    [worker] = machines(pool, job)
    live.nodes[worker].run("pkill", "-STOP", "-x", "condor_startd")
    gone(live, pool, worker)
    assert machines(pool, job) == {worker}
    keeps_its_lease(pool, job)
    # Its state is 2 all the while: 6 stands for this, and is said by neither release. If one ever does:
    head.run("condor_qedit", job, "JobStatus", "6")
    assert state(live, job) == "6"
    assert machines(pool, job) == {worker}
    assert lease_until(pool, job) > time.time()
    live.nodes[worker].run("pkill", "-CONT", "-x", "condor_startd")
    assert head.run("sh", "-c", "wc -c < /srv/pipe").strip() == "1000000", "all the time it was at work"
    wait_for("it has ended", lambda: not places(pool, job))


def test_a_parallel_job_runs_on_all_its_nodes_and_is_given_back_whichever_is_lost(
    live: LivePool, pool: HTCondorPool
) -> None:
    job = live.submit(ON_TWO)
    wait_for("both nodes", lambda: machines(pool, job) == {"w1", "w2"})
    first = live.nodes["head"].run("condor_q", f"{job}.0", "-af", "RemoteHost").strip()
    (other,) = {"w1", "w2"} - {first.partition("@")[2].partition(".")[0]}
    live.nodes[other].kill()
    gone(live, pool, other)
    assert machines(pool, job) == {"w1", "w2"}, "nobody has told the schedd"
    keeps_its_lease(pool, job)

    def given_back() -> bool:
        """At one look or another: while the schedd tries to reach the lost node it answers nobody."""
        with contextlib.suppress(PoolError):
            pool.requeue(SCHEDD, [f"{job}.0"], f"{other}.pool.test", 20)
            return not machines(pool, job) and state(live, job) == "1"
        return False

    wait_for("it waits again", given_back, 120)
