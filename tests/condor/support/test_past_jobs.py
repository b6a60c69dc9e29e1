"""A real schedd's history is read for a simulation, and so is all that `condor_history` writes."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.pools.livepool import LivePool, live_pool, wait_for
from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool
from updraft.condor.support.history import NEEDED, past_jobs
from updraft.errors import UsageError
from updraft.sim.workloads.history import history, read_history
from updraft.sim.workloads.records import json_record
from updraft.sim.workloads.sources import Reading, Workload

pytestmark = pytest.mark.integration

JOBS = """\
executable = /bin/sleep
arguments = 3
request_memory = {memory}
request_cpus = 2
+UpdraftRunTime = 4
queue 2
"""


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    """A pool in which four jobs have ended, and one was removed before it ran."""
    with live_pool() as pool:
        pool.head_key("updraft-workers")
        access = access_of(pool)
        with pool.network(), HTCondorPool(access) as asked:
            token = asked.mint_token("l1", 600)
        worker = pool.worker("w10", 10, "", token)
        head = pool.nodes["head"]
        pool.submit(JOBS.format(memory="300"))
        pool.submit(JOBS.format(memory="150 * 2"))
        pool.submit("executable = /bin/sleep\nrequest_memory = 999999\nqueue 1\n")
        ended = ("condor_history", "-constraint", "JobStatus == 4", "-af", "ClusterId")
        wait_for("four jobs to end", lambda: len(head.run(*ended).split()) == 4, 90)
        head.run("condor_rm", "-all")
        wait_for("a removal", lambda: len(head.run("condor_history", "-af", "ClusterId").split()) == 5, 30)
        yield pool
        worker.kill()


def access_of(pool: LivePool) -> PoolAccess:
    return pool.access()


def check(found: Workload) -> None:
    assert len(found.arrivals) == 4
    assert found.left_out == {"were removed before they ran": 1}
    for job in found.arrivals:
        assert (job.request.cpus, job.request.memory) == (2, 300)
        assert 2 <= job.seconds <= 10
        assert (job.owner, job.schedd, job.executable) == ("alice", "head.pool.test", "/bin/sleep")
        assert job.estimate == 4
        assert job.request.disk > 0
    assert found.begins is not None
    assert abs(found.begins - time.time()) < 600


def test_a_schedd_is_asked_for_its_history(live: LivePool) -> None:
    with live.network():
        rows = past_jobs(access_of(live), "", time.time() - 3600, NEEDED, 30)
        check(history("schedd:", (json_record(row) for row in rows), Reading()))
        assert past_jobs(access_of(live), "head", time.time() + 60, NEEDED, 30) == []
        with pytest.raises(UsageError, match=r"no schedd other; it has head\.pool\.test"):
            past_jobs(access_of(live), "other", 0, NEEDED, 30)


@pytest.mark.parametrize("form", ["-json", "-jsonl", "-long"])
def test_what_condor_history_writes_is_read(live: LivePool, tmp_path: Path, form: str) -> None:
    path = tmp_path / "history"
    path.write_text(live.nodes["head"].run("condor_history", form))
    check(read_history(path))


def test_the_call_of_the_how_to(live: LivePool, tmp_path: Path) -> None:
    since = f"EnteredCurrentStatus < {time.time() - 3600:.0f}"
    path = tmp_path / "history"
    words = ("condor_history", "-jsonl", "-since", since, "-attributes", ",".join(NEEDED))
    path.write_text(live.nodes["head"].run(*words))
    check(read_history(path))


def test_the_history_file_itself_is_read(live: LivePool, tmp_path: Path) -> None:
    head = live.nodes["head"]
    path = tmp_path / "history"
    path.write_text(head.run("cat", head.run("condor_config_val", "HISTORY").strip()))
    check(read_history(path))
