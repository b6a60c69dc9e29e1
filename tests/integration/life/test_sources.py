"""A collector that is restarted, and a second schedd, on a real pool."""

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    acting,
    await_done,
    await_running,
    disturbed,
    events,
    let_end,
    outcomes,
    second_schedd,
    sh,
    sleepers,
    waiters,
)
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.demo.pool import USER, RealPool, Wishes


@pytest.fixture(scope="module")
def shared(module_pool: RealPools) -> RealPool:
    text = settings(worker={"idle_limit": "1s"}, timings={"collector_age": "30s"})
    return module_pool(Wishes(settings=text))


@pytest.fixture
def pool(shared: RealPool) -> RealPool:
    """The module's pool, with the controller acting and no machine."""
    until(lambda: acting(shared), 60, "the controller acts")
    until(lambda: not shared.workers(*ALIVE), 60, "no machine is there")
    return shared


def now(pool: RealPool) -> int:
    """The number of the latest event."""
    return int(events(pool)[-1]["id"])


def unknown(pool: RealPool) -> set[str]:
    """The sources that the controller's last look knows nothing of."""
    sources = pool.show("status")["sources"]
    return {name.split()[0] for name, source in sources.items() if source["state"] == "unknown"}


def shown(pool: RealPool) -> set[str]:
    """The machines that have a slot in the collector, shown by a token of their own."""
    words = ("-af", "UpdraftInstance", "AuthenticatedIdentity")
    found = [line.split() for line in pool.on_head("condor_status", *words).stdout.splitlines()]
    return {machine for machine, who in found if f"+{machine}@" in who}


def test_the_collector_is_restarted_while_machines_run(pool: RealPool) -> None:
    cluster = pool.submit(waiters(3, "over", cpus=4))
    await_running(pool, cluster, 3)
    since, before = now(pool), {m["id"] for m in pool.workers(*ALIVE)}
    assert len(before) == 3, "each job fills a machine"
    known = {m["id"] for m in pool.workers()}
    assert shown(pool) == before
    sh(pool, "pkill -9 -x condor_collecto")
    until(lambda: "collector" in unknown(pool), 20, "the controller sees that the collector is gone")
    until(lambda: pool.on_head("condor_status", "-negotiator").returncode == 0, 60, "the collector is back")
    until(lambda: shown(pool) == before, 60, "all workers are back, each with its own token")
    until(lambda: acting(pool) and not unknown(pool), 60, "the controller acts again")
    late = pool.submit(waiters(1, "over", cpus=4))  # demand that came after it is served by one machine more
    await_running(pool, late)
    let_end(pool, "over")
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == [DONE_ONCE] * 3
    assert disturbed(pool, cluster) == ""
    assert [event["kind"] for event in events(pool) if event["kind"] in ("requeue-jobs", "forget")] == []
    # Machines go only as their last jobs end, empty: none by a rule for those that vanished.
    codes = {event["code"] for event in events(pool, "terminate") if event["id"] > since}
    assert codes <= {"idle-limit"}
    await_done(pool, [late], 60)
    until(lambda: not pool.workers(*ALIVE), 60, "idle machines go as ever")
    assert len({m["id"] for m in pool.workers()} - known) == 1


def test_jobs_of_two_schedds_are_served(pool: RealPool) -> None:
    second, names = second_schedd(pool), set(sh(pool, "condor_status -schedd -af Name").split())
    first = pool.submit(sleepers(2, 3))
    text = sleepers(3, 3).replace("$(Cluster)", "two-$(Cluster)")
    done = pool.on_head("condor_submit", "-terse", "-name", second, "-", user=USER, stdin=text)
    assert done.returncode == 0, done.stderr
    both = lambda: {group["schedd"] for group in pool.show("status")["groups"]} == names  # noqa: E731
    until(both, 15, "the demand of both is seen", every=0.2)
    await_done(pool, [first], 60)
    left = lambda: sh(pool, f"condor_q -allusers -name {second} -af ClusterId")  # noqa: E731
    until(lambda: not left(), 60, "the jobs of the second are done")
    ended = sh(pool, f"condor_history -name {second} -af JobStatus ExitCode NumJobStarts").splitlines()
    assert ended == ["4 0 1"] * 3
    assert outcomes(pool, first) == [DONE_ONCE] * 2
    until(lambda: not pool.workers(*ALIVE), 60, "all machines go")
