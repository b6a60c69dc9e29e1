"""A machine of the site's own beside the cloud's, on a real pool: nothing is bought for what it takes."""

from typing import Any

from tests.rigs.pools.controlling import (
    DONE_ONCE,
    await_done,
    await_running,
    events,
    let_end,
    of_class,
    outcomes,
    sh,
    sleepers,
    waiters,
)
from tests.rigs.pools.realpool import until
from updraft.demo.pool import RealPool, Wishes

# The head's own startd stands for a machine that somebody else looks after.
OWN_STARTD = {
    "DAEMON_LIST": "MASTER COLLECTOR NEGOTIATOR SCHEDD STARTD",
    "NUM_CPUS": "2",
    "MEMORY": "2048",
    "NUM_SLOTS_TYPE_1": "1",
    "SLOT_TYPE_1": "100%",
    "SLOT_TYPE_1_PARTITIONABLE": "True",
    "START": 'TARGET.Owner =!= "bob"',
    "UPDATE_INTERVAL": "5",
    "MAXJOBRETIREMENTTIME": "3600",
}


def own(pool: RealPool) -> list[dict[str, Any]]:
    """The slots that no machine of updraft's has."""
    return [slot for slot in pool.slots() if not slot.get("UpdraftInstance")]


def test_the_sites_own_machine_is_room_that_costs_nothing_until_it_takes_nothing(real_pool: Any) -> None:
    pool = real_pool(Wishes(head_settings=OWN_STARTD))
    until(lambda: own(pool), 60, "the site's own slot is in the collector")

    free = pool.submit(sleepers(2, 3))
    await_done(pool, [free], 60)
    assert outcomes(pool, free) == [DONE_ONCE] * 2
    assert not pool.workers(), "nothing was bought for what it took"

    refused = pool.submit(sleepers(1, 1, user="bob"), user="bob")
    await_done(pool, [refused], 120)
    assert len(of_class(pool, "worker")) == 1, "its START refuses bob: a machine came for him"

    busy = pool.submit(waiters(2, "drained"))
    await_running(pool, busy, 2)
    before = len(pool.workers())
    sh(pool, f"condor_drain -pool $(condor_config_val COLLECTOR_HOST) -graceful {own(pool)[0]['Name']}")
    until(lambda: own(pool)[0].get("Start") is not True, 30, "it drains")
    over = pool.submit(sleepers(1, 1))
    await_done(pool, [over], 120)
    assert len(pool.workers()) >= before, "what it no longer takes has another machine"
    let_end(pool, "drained")
    await_done(pool, [busy], 60)
    assert not events(pool, "unexplained-slot"), "it is nobody's riddle"

    sh(pool, "condor_off -fast -daemon startd")
    until(lambda: not own(pool), 60, "it has gone")
    more = pool.submit(sleepers(2, 1))
    await_done(pool, [more], 120)
    assert outcomes(pool, more) == [DONE_ONCE] * 2
    assert of_class(pool, "worker")
