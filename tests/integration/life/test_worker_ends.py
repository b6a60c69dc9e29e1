"""Workers of a real pool that end by themselves: past their lifetime, and when nobody is left to work for."""

import re
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    await_done,
    await_running,
    kill_service,
    let_end,
    outcomes,
    slot_of,
    waiters,
)
from tests.rigs.pools.realpool import patience, settings, until
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

LONELY = """
[classes.lonely]
image = "{image}"
flavors = ["small"]
idle_limit = "1h"
head_gone_after = "10s"
"""


def shut_down_from_inside(pool: RealPool, machine: str, deadline: float) -> str:
    """Wait until the machine has powered itself off; returns its console."""
    off = lambda: [m for m in pool.workers("terminated") if m["id"] == machine]  # noqa: E731
    (found,) = until(off, deadline, f"{machine} powered off by itself", 1)
    assert found["why_ended"] == "it was shut down from inside"
    return pool.cloud.client().console(machine)


def test_machines_past_their_lifetime_and_those_without_a_head_power_themselves_off(real_pool: Any) -> None:
    """The workers' own doing: the controller is dead, and then its head too."""
    lifetime = 12 * patience()  # the job has to begin within it
    brief = {"flavors": ["small"], "lifetime": f"{lifetime:.0f}s", "drain_deadline": "25s"}
    text = settings(pool={"job_lease": "10s"}, worker=brief, more=LONELY)
    pool: RealPool = real_pool(Wishes(settings=text))
    jobs, machines = {}, {}
    for name in ("worker", "lonely"):
        jobs[name] = pool.submit(waiters(1, name, requirements=f'TARGET.UpdraftClass == "{name}"'))
    for name, cluster in jobs.items():
        await_running(pool, cluster)
        [job] = pool.queue(f"ClusterId == {cluster}")
        machines[name] = job["RemoteHost"].split("@")[1]
    kill_service(pool)

    # Past its lifetime it finishes its job, takes no other, and goes.
    console = lambda: pool.cloud.client().console(machines["worker"])  # noqa: E731
    until(lambda: "lifetime over: no new jobs" in console(), lifetime + 30, "its lifetime is over")
    late = pool.submit(waiters(1, "worker", requirements='TARGET.UpdraftClass == "worker"'))
    for name, cluster in jobs.items():
        assert pool.queue(f"ClusterId == {cluster} && JobStatus == 2"), f"the job on {name} runs on"
        let_end(pool, name)
    await_done(pool, jobs.values(), 30)
    for cluster in jobs.values():
        assert outcomes(pool, cluster) == [(4, 0, 1)]
    closed = lambda: (slot_of(pool, machines["worker"]) or {}).get("State") == "Drained"  # noqa: E731
    off = lambda: any(one["id"] == machines["worker"] for one in pool.workers("terminated"))  # noqa: E731
    until(lambda: closed() or off(), 20, "with its last job it has closed for good")
    (waits,) = pool.queue()
    assert (waits["ClusterId"], waits["JobStatus"], waits.get("NumJobStarts", 0)) == (late, 1, 0)

    # Without a claim and without a head there is nothing to stay for.
    pool.cloud.client().crash(pool.head)
    said = shut_down_from_inside(pool, machines["lonely"], 75)
    assert re.search(r"updraft-agent: powering off: no claim and no head for [1-9]\d+ s", said)
    said = shut_down_from_inside(pool, machines["worker"], 75)
    assert "updraft-agent: powering off: its lifetime and the time to finish are over" in said
