"""A collector tree as `updraft pool config` prints it, on a real pool: what updraft does goes through it."""

from collections.abc import Iterator

import pytest

from tests.condor.test_livepool import MARKS, SCHEDD, when
from tests.rigs.pools.livepool import COLLECTOR, LivePool, Node, live_pool, wait_for
from updraft.bootstrap.sizing import PoolSize, child_of, configuration, rendered
from updraft.condor.pool import HTCondorPool
from updraft.core.limits.pace import BUSY, WINDOW, paced
from updraft.core.model import CollectorLoad, DrainMode, JoinPace, Slot

pytestmark = pytest.mark.integration

SIZE = PoolSize(2000, jobs=5000)  # of two children
# With HTCondor's own interval a slot is seen anew only where something has changed.
SELDOM = "UPDATE_INTERVAL = 300\nMASTER_UPDATE_INTERVAL = 300\n"
QUICK = (
    "NEGOTIATOR_INTERVAL = 2\nNEGOTIATOR_CYCLE_DELAY = 1\nNEGOTIATOR_MIN_INTERVAL = 1\nSCHEDD_INTERVAL = 5\n"
)
SLEEP = "executable = /bin/sleep\narguments = 600\nrequest_memory = 300\n"


def printed(role: str, machine: str = "") -> str:
    return rendered(configuration(SIZE, role, version="feature", machine=machine), "htcondor")


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool(printed("head") + QUICK) as pool:
        pool.head_key("updraft-workers")
        yield pool


@pytest.fixture(scope="module")
def pool(live: LivePool) -> Iterator[HTCondorPool]:
    with live.network(), HTCondorPool(live.access()) as made:
        yield made


def started(live: LivePool, pool: HTCondorPool, name: str, number: int) -> str:
    """Boot a worker that chooses its child by its id; which one that is."""
    config = MARKS + printed("worker", f"i-{name}") + SELDOM
    live.worker(name, number, config, pool.mint_token("l1", 600))
    return f"collector{child_of(f'i-{name}', 2)}"


def ads_at(live: LivePool, collector: str, *words: str) -> list[str]:
    where = f"<{COLLECTOR}:9618?sock={collector}>"
    return live.nodes["head"].run("condor_status", "-pool", where, *words, check=False).split()


def test_slots_of_all_children_are_at_the_top_and_work(live: LivePool, pool: HTCondorPool) -> None:
    names = ("w1", "w2", "w3")
    children = {name: started(live, pool, name, 10 + at) for at, name in enumerate(names)}
    assert set(children.values()) == {"collector1", "collector2"}
    for name, child in children.items():
        machine = f"{name}.pool.test"
        assert machine in ads_at(live, child, "-af", "Machine")
        other = "collector1" if child == "collector2" else "collector2"
        assert machine not in ads_at(live, other, "-af", "Machine")
        when(pool, live.nodes[name], lambda slot: slot.accepting)
        wait_for(
            f"{name}'s master", lambda machine=machine: machine in live.status("-master", "-af", "Machine")
        )
    # A job is matched through the top collector; that it is at work is seen at once, not in five minutes.
    cluster = live.submit(SLEEP)
    busy = wait_for("a job at work", lambda: [name for name in names if at_work(pool, live, name)], 40)
    assert isinstance(busy, list)
    [name] = busy
    live.nodes["head"].run("condor_rm", cluster)
    when(pool, live.nodes[name], lambda slot: not slot.children, 60)
    # Empty: it is closed for good through the top collector, and its ads leave with it.
    slot = when(pool, live.nodes[name], lambda slot: slot.accepting)
    pool.drain([slot], DrainMode.EMPTY, "idle", 10)
    seen = wait_for("the drain", lambda: closed(pool, name), 30)
    assert seen


def test_every_collector_of_the_tree_says_how_it_is(live: LivePool, pool: HTCondorPool) -> None:
    """By ads of its own, with the names that are read: those of the children are at the top, and renewed."""
    names = (
        "Collector1@head.pool.test",
        "Collector2@head.pool.test",
        f"My Pool - {COLLECTOR}@head.pool.test",
    )

    def told() -> dict[str, CollectorLoad]:
        return {name: load for name, load in pool.slots(10).view.loads.items() if name in names}

    # The first test's machines have joined by now: each at one child, and all at the top.
    wait_for("all joins", lambda: sum(told()[name].joined for name in names[:2] if name in told()) >= 3, 90)
    first = told()
    assert set(first) == set(names)
    assert first[names[2]].joined >= 3
    for load in first.values():
        assert 0 < load.busy < load.told - load.started
        assert (load.lost, load.dropped) == (0, 0)
    later = wait_for("the next word", lambda: newer if all_newer(newer := told(), first) else None, 90)
    assert isinstance(later, dict)
    for name, load in later.items():
        assert abs(load.started - first[name].started) < 2
        # It has almost nothing to do; the lifetime is in whole seconds, so a little less may be told later.
        assert -0.1 < load.busy - first[name].busy < BUSY * (load.told - first[name].told)
    paces = paced(paced(JoinPace(), first, True, first[names[2]].told), later, True, later[names[2]].told)
    assert paces.most is None


def all_newer(loads: dict[str, CollectorLoad], before: dict[str, CollectorLoad]) -> bool:
    return all(name in loads and loads[name].told >= load.told + WINDOW for name, load in before.items())


def at_work(pool: HTCondorPool, live: LivePool, name: str) -> bool:
    slots = [one for one in pool.slots(10).view.slots if one.instance_id == f"i-{name}"]
    return any(child.activity == "Busy" for slot in slots for child in slot.children)


def closed(pool: HTCondorPool, name: str) -> bool:
    """The startd has gone, or is seen to take nothing more."""
    slots: list[Slot] = [one for one in pool.slots(10).view.slots if one.instance_id == f"i-{name}"]
    return all(slot.draining for slot in slots)


def test_a_busy_machine_is_drained_and_taken_back_through_the_tree(
    live: LivePool, pool: HTCondorPool
) -> None:
    some = [node for name, node in live.nodes.items() if name != "head"]
    node = wait_for(
        "one is open", lambda: next((one for one in some if not closed(pool, one.name)), None), 30
    )
    assert isinstance(node, Node)
    cluster = live.submit(SLEEP + f'requirements = Machine == "{node.name}.pool.test"\n')
    busy = when(pool, node, lambda slot: slot.children)
    pool.drain([busy], DrainMode.BUSY, "lifetime", 10)
    draining = when(pool, node, lambda slot: slot.draining, 30)
    assert draining.children
    pool.undrain([draining], 10)
    when(pool, node, lambda slot: slot.accepting and not slot.draining, 30)
    assert pool.demand(SCHEDD, running=True, deadline=20).running
    live.nodes["head"].run("condor_rm", cluster)
