"""A job of a real schedd is found with the very group that a look plans it in."""

from collections.abc import Iterator

import pytest

from tests.rigs.pools.livepool import COLLECTOR, TRUST_DOMAIN, LivePool, live_pool, wait_for
from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool
from updraft.condor.support.lookup import JobName, find_jobs
from updraft.errors import UsageError

pytestmark = pytest.mark.integration

SCHEDD = "head.pool.test"
SLEEP = "executable = /bin/sleep\narguments = 600\n"


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool() as pool, pool.network():
        yield pool


@pytest.fixture(scope="module")
def access(live: LivePool) -> PoolAccess:
    return PoolAccess("test", collector=COLLECTOR, token_dir=live.token_dir(), trust_domain=TRUST_DOMAIN)


def test_the_group_of_a_job_is_the_one_of_the_look(live: LivePool, access: PoolAccess) -> None:
    small = live.submit(f"{SLEEP}request_memory = 300\nrequirements = TARGET.Odd =!= 3\nqueue 3\n")
    large = live.submit(
        f"{SLEEP}request_cpus = 4\n+Special = 5\nrequirements = MY.Special < TARGET.Cpus\nqueue 2\n"
    )
    with HTCondorPool(access) as pool:
        seen = {group.first_id: group for group in pool.demand(SCHEDD, running=False, deadline=20).groups}
    for cluster, count in ((small, 3), (large, 2)):
        found = find_jobs(access, [SCHEDD], JobName(int(cluster)), 20)
        assert [job.state for job in found.jobs] == ["idle"] * count
        assert [group.key for group in found.groups] == [seen[f"{cluster}.0"].key]
    one = find_jobs(access, [SCHEDD], JobName(int(small), 2, "head"), 20)
    assert [job.id for job in one.jobs] == [f"{small}.2"]
    assert [group.key for group in one.groups] == [seen[f"{small}.0"].key]


def test_a_held_job_says_why_and_is_in_no_group(live: LivePool, access: PoolAccess) -> None:
    cluster = live.submit(f"{SLEEP}hold = true\nqueue\n")
    found = find_jobs(access, [SCHEDD], JobName(int(cluster)), 20)
    assert [(job.state, job.owner) for job in found.jobs] == [("held", "alice")]
    assert "hold" in found.jobs[0].hold_reason
    assert found.groups == ()


def test_a_job_or_schedd_that_is_not_there(live: LivePool, access: PoolAccess) -> None:
    assert find_jobs(access, [SCHEDD], JobName(9999), 20).jobs == ()
    with pytest.raises(UsageError, match=r"it has head\.pool\.test"):
        find_jobs(access, [SCHEDD], JobName(1, 0, "other"), 20)


def test_a_job_that_is_yet_to_be_made_is_not_said_to_have_ended(live: LivePool, access: PoolAccess) -> None:
    cluster = int(live.submit(f"{SLEEP}max_materialize = 2\nqueue 5\n"))
    assert [job.state for job in find_jobs(access, [SCHEDD], JobName(cluster, 1), 20).jobs] == ["idle"]
    later = find_jobs(access, [SCHEDD], JobName(cluster, 4), 20)
    assert later.jobs == ()
    assert later.unmade == "the schedd has yet to make it: 2 of its cluster are in the queue at one time"
    assert find_jobs(access, [SCHEDD], JobName(cluster, 5), 20).unmade == ""


def test_a_held_cluster_makes_no_demand_of_the_jobs_it_has_yet_to_make(
    live: LivePool, access: PoolAccess
) -> None:
    text = f"{SLEEP}request_memory = 77\nmax_materialize = 4\nqueue 9\n"
    with HTCondorPool(access) as pool:
        waiting = lambda: [  # noqa: E731
            group.idle
            for group in pool.demand(SCHEDD, running=False, deadline=20).groups
            if group.request.memory == 77
        ]
        cluster = live.submit(text)
        assert waiting() == [4]
        head = live.nodes["head"]
        head.run("condor_hold", cluster)
        head.run("condor_rm", f"{cluster}.0")
        present = ("condor_q", "-factory", "-allusers", "-af", "JobsPresent", "-constraint")
        wait_for("room for one more", lambda: "3" in head.run(*present, f"ClusterId == {cluster}"), 20)
        assert waiting() == []
