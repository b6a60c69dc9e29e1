"""Sources that fall silent on a real pool: while one is, nothing is taken away on the word of the others."""

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    acting,
    await_done,
    await_running,
    disturbed,
    edit,
    events,
    let_end,
    looks,
    outcomes,
    reload,
    sh,
    sleepers,
    waiters,
)
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.clouds.base import TAG_RETIRING
from updraft.demo.pool import USER, RealPool, Wishes

LONG, SHORT = 'idle_limit = "1h"', 'idle_limit = "1s"'
LOOKS = 1  # and one more: at the first that it sees it, a controller tells an idle machine to go
TAKEN_AWAY = {"drain", "terminate", "forget", "requeue-jobs", "disown"}
SECOND_SCHEDD = """\
SCHEDD_TWO = $(SCHEDD)
SCHEDD_TWO_ARGS = -local-name two
TWO.SCHEDD_NAME = two
TWO.SCHEDD_LOG = $(LOG)/SchedLog.two
TWO.SPOOL = $(SPOOL)/two
TWO.SCHEDD_ADDRESS_FILE = $(SPOOL)/two/.address
TWO.SCHEDD_DAEMON_AD_FILE = $(SPOOL)/two/.classad
DAEMON_LIST = $(DAEMON_LIST) SCHEDD_TWO
DC_DAEMON_LIST = +SCHEDD_TWO
"""
DOWN = {
    "the schedd is frozen": ("kill -STOP $(pidof condor_schedd)", "kill -CONT $(pidof condor_schedd)"),
    "the schedd is off": ("condor_off -fast -daemon schedd", "condor_on -daemon schedd"),
    "the collector is frozen": (
        "kill -STOP $(pidof condor_collector)",
        "kill -CONT $(pidof condor_collector)",
    ),
}


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


def taken_away(pool: RealPool, since: int) -> list[str]:
    """What was taken away after the event `since`."""
    found = [event for event in events(pool) if event["id"] > since]
    return [f"{event['kind']} {event['subject']}" for event in found if event["kind"] in TAKEN_AWAY]


def now(pool: RealPool) -> int:
    """The number of the latest event."""
    return int(events(pool)[-1]["id"])


def unknown(pool: RealPool) -> set[str]:
    """The sources that the controller's last look knows nothing of."""
    sources = pool.show("status")["sources"]
    return {name.split()[0] for name, source in sources.items() if source["state"] == "unknown"}


def stays(pool: RealPool, machines: set[str]) -> None:
    """These machines stay as they are, while the controller looks so often that it would take them away."""

    def as_they_were() -> None:
        there = {m["id"]: m for m in pool.workers("running")}
        assert set(there) == machines
        assert not any(TAG_RETIRING in m["tags"] for m in there.values())

    looks(pool, LOOKS, as_they_were)


def test_the_collector_is_restarted_while_machines_run(pool: RealPool) -> None:
    cluster = pool.submit(waiters(3, "over"))
    await_running(pool, cluster, 3)
    since, before = now(pool), {m["id"] for m in pool.workers()}
    sh(pool, "kill -9 $(pidof condor_collector)")
    until(lambda: "collector" in unknown(pool), 20, "the controller sees that the collector is gone")
    until(lambda: pool.on_head("condor_status", "-negotiator").returncode == 0, 60, "the collector is back")
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
    assert len({m["id"] for m in pool.workers()} - before) == 1


def test_nothing_goes_while_a_source_is_silent(pool: RealPool) -> None:
    edit(pool, SHORT, LONG)
    reload(pool, "reloaded")
    long, short = pool.submit(waiters(1, "done", cpus=2)), pool.submit(sleepers(1, 1, cpus=4))
    await_running(pool, long)
    await_done(pool, [short], 60)
    busy = {job["RemoteHost"].split("@")[1] for job in pool.queue(f"ClusterId == {long}")}
    machines = {m["id"] for m in pool.workers("running")}
    since = now(pool)
    for what, (down, up) in DOWN.items():
        sh(pool, down)
        try:
            until(lambda what=what: what.split()[1] in unknown(pool), 40, f"the controller sees that {what}")
            edit(pool, LONG, SHORT)  # one of them has been idle for long enough
            reload(pool, "reloaded")
            stays(pool, machines)
            edit(pool, SHORT, LONG)
            reload(pool, "reloaded")  # from here on none goes for being idle
        finally:
            sh(pool, up)
        until(lambda: acting(pool) and not unknown(pool), 60, "all is known again")
        assert {m["id"] for m in pool.workers("running")} == machines, f"what there was before {what}"
        assert taken_away(pool, since) == []
    edit(pool, LONG, SHORT)
    reload(pool, "reloaded")
    until(lambda: {m["id"] for m in pool.workers(*ALIVE)} == busy, 40, "the idle machine goes")
    let_end(pool, "done")
    await_done(pool, [long], 60)
    # By its own log: a schedd that is killed may lose the latest counts of its jobs' starts.
    log = sh(pool, f"cat /home/{USER}/{long}.log").splitlines()
    assert [line[:3] for line in log if line.startswith(("001 ", "004 ", "005 "))] == ["001", "005"]
    assert [found[:2] for found in outcomes(pool, long)] == [DONE_ONCE[:2]]
    until(lambda: not pool.workers(*ALIVE), 60, "all machines go in the end")
    assert [event for event in events(pool, "requeue-jobs") if event["id"] > since] == []


def test_jobs_of_two_schedds_are_served(pool: RealPool) -> None:
    conf = "/etc/condor/config.d/95-two.conf"
    assert pool.on_head("sh", "-c", f"cat >{conf}", stdin=SECOND_SCHEDD).returncode == 0
    sh(pool, "install -d -o condor -g condor /var/spool/condor/two && condor_reconfig")
    names = lambda: sh(pool, "condor_status -schedd -af Name").split()  # noqa: E731
    until(lambda: len(names()) == 2, 40, "the second schedd is in the collector")
    (second,) = (name for name in names() if name.startswith("two@"))
    first = pool.submit(sleepers(2, 3))
    text = sleepers(3, 3).replace("$(Cluster)", "two-$(Cluster)")
    done = pool.on_head("condor_submit", "-terse", "-name", second, "-", user=USER, stdin=text)
    assert done.returncode == 0, done.stderr
    both = lambda: {group["schedd"] for group in pool.show("status")["groups"]} == set(names())  # noqa: E731
    until(both, 15, "the demand of both is seen", every=0.2)
    await_done(pool, [first], 60)
    left = lambda: sh(pool, f"condor_q -allusers -name {second} -af ClusterId")  # noqa: E731
    until(lambda: not left(), 60, "the jobs of the second are done")
    ended = sh(pool, f"condor_history -name {second} -af JobStatus ExitCode NumJobStarts").splitlines()
    assert ended == ["4 0 1"] * 3
    assert outcomes(pool, first) == [DONE_ONCE] * 2
    until(lambda: not pool.workers(*ALIVE), 60, "all machines go")
