"""Machines that their cloud shows running, and whose system is dead: a person ends them, and at once."""

import time

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    acting,
    await_done,
    await_running,
    in_machine,
    let_end,
    of_class,
    outcomes,
    waiters,
)
from tests.rigs.pools.realpool import RealPools, patience, settings, until
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def pool(module_pool: RealPools) -> RealPool:
    pool = module_pool(Wishes(settings=settings(worker={"flavors": ["small"]})))
    until(lambda: acting(pool), 60, "the controller acts")
    return pool


def with_a_dead_system(pool: RealPool, cluster: int) -> str:
    """The machine on which the job runs: every process there stops, while its cloud shows it running."""
    await_running(pool, cluster)
    (job,) = pool.queue(f"ClusterId == {cluster}")
    machine = str(job["RemoteHost"].split("@")[1])
    in_machine(pool, machine, "sh", "-c", "kill -STOP -1")
    return machine


def test_one_is_ended_by_hand_with_its_jobs(pool: RealPool) -> None:
    cluster = pool.submit(waiters(1, "again"))
    machine, begun = with_a_dead_system(pool, cluster), time.monotonic()
    done = pool.updraft("terminate", machine, "--kill-jobs", "--wait", timeout=120 * patience())
    took = time.monotonic() - begun
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"terminate {machine}: gone" in done.stdout
    assert took < 30 * patience(), "it waited for a startd that answers nobody"
    await_running(pool, cluster)
    let_end(pool, "again")
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster)[0][:2] == (4, 0)


@pytest.mark.extended
def test_all_are_ended_by_hand_with_their_jobs(pool: RealPool) -> None:
    dead, alive = pool.submit(waiters(1, "never")), pool.submit(waiters(1, "never"))
    await_running(pool, alive)
    machine, begun = with_a_dead_system(pool, dead), time.monotonic()
    done = pool.updraft("destroy", "--yes", "--kill-jobs", "--wait", timeout=180 * patience())
    took = time.monotonic() - begun
    assert done.returncode == 0, done.stdout + done.stderr
    assert took < 60 * patience(), "it waited for a startd that answers nobody"
    assert machine in {m["id"] for m in of_class(pool, "worker", "terminated")}
    assert not pool.workers(*ALIVE)
    until(lambda: not pool.queue("JobStatus == 2"), 60, "the jobs of both are in the queue again")
