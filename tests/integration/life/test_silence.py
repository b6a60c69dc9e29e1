"""Sources that fall silent on a real pool: while one is, nothing is taken away on the word of the others."""

from typing import Any

import pytest

from tests.integration.life.test_sources import now, unknown
from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    acting,
    await_done,
    await_running,
    edit,
    events,
    in_machine,
    kill_service,
    let_end,
    looks,
    outcomes,
    reload,
    run_killer,
    sh,
    sleepers,
    slot_of,
    start_and_wait,
    starts_and_ends,
    waiters,
)
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.base import TAG_RETIRING
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

LONG, SHORT = 'idle_limit = "1h"', 'idle_limit = "1s"'
LOOKS = 1  # and one more: at the first that it sees it, a controller tells an idle machine to go
TAKEN_AWAY = {"drain", "terminate", "forget", "requeue-jobs", "disown"}
DOWN = {
    "the schedd is frozen": ("pkill -STOP -x condor_schedd", "pkill -CONT -x condor_schedd"),
    "the schedd is off": ("condor_off -fast -daemon schedd", "condor_on -daemon schedd"),
    "the collector is frozen": (
        "pkill -STOP -x condor_collecto",
        "pkill -CONT -x condor_collecto",
    ),
}


def taken_away(pool: RealPool, since: int) -> list[str]:
    """What was taken away after the event `since`."""
    found = [event for event in events(pool) if event["id"] > since]
    return [f"{event['kind']} {event['subject']}" for event in found if event["kind"] in TAKEN_AWAY]


def stays(pool: RealPool, machines: set[str]) -> None:
    """These machines stay as they are, while the controller looks so often that it would take them away."""

    def as_they_were() -> None:
        there = {m["id"]: m for m in pool.workers("running")}
        assert set(there) == machines
        assert not any(TAG_RETIRING in m["tags"] for m in there.values())

    looks(pool, LOOKS, as_they_were)


def test_nothing_goes_while_a_source_is_silent(real_pool: Any) -> None:
    text = settings(worker={"idle_limit": "1s"}, timings={"collector_age": "30s"})
    pool: RealPool = real_pool(Wishes(settings=text))
    until(lambda: acting(pool), 60, "the controller acts")
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
    assert starts_and_ends(pool, long) == ["001", "005"]
    assert [found[:2] for found in outcomes(pool, long)] == [DONE_ONCE[:2]]
    until(lambda: not pool.workers(*ALIVE), 60, "all machines go in the end")
    assert [event for event in events(pool, "requeue-jobs") if event["id"] > since] == []


INVALIDATE = 'MyType = "Query"\nTargetType = "Machine"\nRequirements = UpdraftInstance == "{}"\n'


@pytest.mark.extended
def test_a_machine_that_joined_while_the_controller_slept_keeps_its_job_though_its_ad_is_gone(
    real_pool: Any,
) -> None:
    text = settings(worker={"boot_deadline": "10s"}, timings={"collector_age": "5s", "end_patience": "5s"})
    # A machine that has to be given a token of its own can't join meanwhile: this one has it from the start.
    pool: RealPool = real_pool(Wishes(settings=text, head_settings={"UPDRAFT_OWN_TOKENS": "False"}))
    until(lambda: acting(pool), 60, "the controller acts")
    kill_service(pool)
    cluster = pool.submit(waiters(1, "done"))
    run_killer(pool, "launch: recorded")
    await_running(pool, cluster, deadline=90)
    [machine] = pool.workers("running")
    in_machine(pool, machine["id"], "pkill", "-STOP", "-x", "condor_startd")
    sh(pool, "condor_advertise INVALIDATE_STARTD_ADS -", stdin=INVALIDATE.format(machine["id"]))
    until(lambda: slot_of(pool, machine["id"]) is None, 10, "the collector has no ad of it")

    start_and_wait(pool)  # by now its boot is over its deadline, and nobody has seen it join
    looks(pool, 20)

    assert [m["id"] for m in pool.workers("running")] == [machine["id"]]
    in_machine(pool, machine["id"], "pkill", "-CONT", "-x", "condor_startd")
    until(lambda: slot_of(pool, machine["id"]), 60, "its ad is back")
    let_end(pool, "done")
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == [DONE_ONCE]
