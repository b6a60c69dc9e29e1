"""Everything that is promised of a pool, on a real one."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.rigs.pools.livepool import COLLECTOR, TRUST_DOMAIN, LivePool, Node, live_pool, wait_for
from tests.waiting import patience
from updraft.condor.access import PoolAccess
from updraft.condor.base import ControllerAd
from updraft.condor.demand.schedd import _LOOKS_FOR_HISTORY
from updraft.condor.pool import HTCondorPool
from updraft.core.model import DrainMode, ScheddView, Slot
from updraft.errors import DrainRefused, PoolDenied, PoolError, PoolTimeout

pytestmark = pytest.mark.integration

SCHEDD = "head.pool.test"
MARKS = """
UpdraftPool = "test"
UpdraftClass = "std"
UpdraftGeneration = "g1"
UpdraftCloud = "lab"
UpdraftFlavor = "m4"
UpdraftLaunch = "l1"
STARTD_ATTRS = $(STARTD_ATTRS) UpdraftPool UpdraftClass UpdraftGeneration UpdraftCloud
STARTD_ATTRS = $(STARTD_ATTRS) UpdraftFlavor UpdraftLaunch
"""
SLEEP = "executable = /bin/sleep\narguments = 600\nrequest_memory = 300\n"


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool() as pool:
        pool.head_key("updraft-workers")
        yield pool


@pytest.fixture(scope="module")
def pool(live: LivePool) -> Iterator[HTCondorPool]:
    with live.network(), HTCondorPool(live.access()) as made:
        yield made


@pytest.fixture
def worker(live: LivePool, pool: HTCondorPool, request: pytest.FixtureRequest) -> Iterator[Node]:
    number = 10 + len(live.nodes)
    node = live.worker(f"w{number}", number, MARKS, pool.mint_token("l1", 600))
    yield node
    live.nodes["head"].run("condor_rm", "-all", check=False)
    # A job whose machine vanishes while it is being removed has its shadow until its lease ends.
    wait_for("no job runs", lambda: not demand(pool, running=True).running, 30)
    node.kill()
    pool.forget([f"slot1@{node.name}.pool.test"], 10)


def slot_of(pool: HTCondorPool, node: Node) -> Slot | None:
    found = [s for s in pool.slots(10).view.slots if s.instance_id == f"i-{node.name}"]
    return found[0] if found else None


def when(pool: HTCondorPool, node: Node, condition: Callable[[Slot], Any], deadline: float = 40) -> Slot:
    def look() -> Slot | None:
        slot = slot_of(pool, node)
        return slot if slot and condition(slot) else None

    found = wait_for(f"the slot of {node.name}", look, deadline)
    assert isinstance(found, Slot)
    return found


def demand(pool: HTCondorPool, *, running: bool = False) -> ScheddView:
    return pool.demand(SCHEDD, running=running, deadline=20)


@pytest.mark.parametrize("group", ["", "bob."])
def test_what_a_user_says_of_himself_names_no_schedd(live: LivePool, pool: HTCondorPool, group: str) -> None:
    """Anybody with an account may send such an ad, with any schedd in it that will never answer."""
    address = '"<10.99.0.77:9618>"'
    name = f'"{group}alice@{TRUST_DOMAIN}"'
    ad = (
        f'MyType = "Submitter"\nName = {name}\nMachine = "head"\nIdleJobs = 5\n'
        f'ScheddName = "evil@{group}alice"\n'
        f"MyAddress = {address}\nScheddIpAddr = {address}\n"
    )
    send = ("condor_advertise", "-tcp", "UPDATE_OWN_SUBMITTOR_AD", "-")
    live.nodes["head"].run(*send, text=ad, user="alice")
    shown = ("-submitters", "-af", "ScheddName")
    wait_for("it is in the collector", lambda: f"evil@{group}alice" in live.status(*shown).split(), 20)
    assert pool.schedds(10) == (SCHEDD,)


def test_a_worker_with_a_minted_token_is_seen_whole(pool: HTCondorPool, worker: Node) -> None:
    slot = when(pool, worker, lambda s: s.accepting)
    assert (slot.kind, slot.launch_key, slot.cloud) == ("std/g1/lab/m4", "l1", "lab")
    assert (slot.total.cpus, slot.total.memory, slot.free.cpus) == (4, 4096, 4)
    assert slot.partitionable
    assert not slot.busy
    assert not slot.draining
    assert slot.job_starts == 0
    seen = pool.slots(10)
    assert abs(seen.view.started - time.time()) < 600
    assert seen.view.started <= time.time()
    assert seen.view.cycle_ended is not None
    assert seen.view.cycle_began is not None
    assert seen.view.started - 1 <= seen.view.cycle_began <= seen.view.cycle_ended <= time.time() + 1
    text = seen.templates["std/g1/lab/m4"]
    assert worker.name not in text
    assert worker.address not in text
    assert "Requirements" in text
    assert pool.schedds(10) == (SCHEDD,)


def test_one_second_jobs_move_the_counter(pool: HTCondorPool, live: LivePool, worker: Node) -> None:
    live.submit("executable = /bin/sleep\narguments = 1\nrequest_memory = 100\nqueue 4\n")
    slot = when(pool, worker, lambda s: (s.job_starts or 0) >= 5 and not s.busy, 60)
    assert slot.children == ()
    assert slot.begun is not None
    assert slot.begun >= 4


def test_a_busy_machine_refuses_to_close_as_empty(pool: HTCondorPool, live: LivePool, worker: Node) -> None:
    live.submit(SLEEP + "queue 1\n")
    slot = when(pool, worker, lambda s: s.busy)
    assert slot.children[0].user == "alice@pool.test"
    assert abs(slot.children[0].since - time.time()) < 300
    assert slot.children[0].resources.memory == 384
    with pytest.raises(DrainRefused):
        pool.drain([slot], DrainMode.EMPTY, "idle", 10)
    view = demand(pool, running=True)
    assert view.running is not None
    assert [j.slot for j in view.running] == [f"slot1_1@{worker.name}.pool.test"]
    assert 1800 < view.running[0].lease_until - time.time() <= 2401
    pool.drain([slot], DrainMode.BUSY, "lifetime", 10)
    drained = when(pool, worker, lambda s: s.draining)
    assert drained.drain_reason == "updraft: lifetime"
    assert drained.busy
    assert not drained.accepting
    pool.drain([slot], DrainMode.BUSY, "lifetime", 10)
    with pytest.raises(DrainRefused):
        pool.drain([slot], DrainMode.EMPTY, "idle", 10)
    pool.undrain([slot], 10)
    assert when(pool, worker, lambda s: not s.draining).busy
    pool.undrain([slot], 10)


def test_a_claim_between_two_jobs_refuses_too(pool: HTCondorPool, live: LivePool, worker: Node) -> None:
    live.submit(
        "executable = /bin/sleep\narguments = 1\nrequest_memory = 100\nkeep_claim_idle = 60\nqueue 1\n"
    )
    slot = when(pool, worker, lambda s: [c.activity for c in s.children] == ["Idle"])
    with pytest.raises(DrainRefused):
        pool.drain([slot], DrainMode.EMPTY, "idle", 10)


def test_an_empty_machine_closes_and_leaves(pool: HTCondorPool, worker: Node) -> None:
    slot = when(pool, worker, lambda s: s.accepting)
    with pytest.raises(DrainRefused):
        pool.drain([replace(slot, instance_id="i-other")], DrainMode.EMPTY, "idle", 10)
    with pytest.raises(PoolError):
        pool.drain([replace(slot, instance_id="i-other")], DrainMode.BUSY, "idle", 10)
    began = time.monotonic()
    pool.drain([slot], DrainMode.EMPTY, "idle", 10)
    pool.drain([slot], DrainMode.EMPTY, "idle", 10)
    wait_for("the slot is gone", lambda: slot_of(pool, worker) is None, 15)
    assert time.monotonic() - began < 12 * patience()


def test_a_startd_that_has_anothers_name_does_not_answer_for_it(
    pool: HTCondorPool, live: LivePool, worker: Node
) -> None:
    """Any machine of a launch has its token, and can say in its ad that it is another one."""
    slot = when(pool, worker, lambda s: s.accepting)
    thief = live.worker(worker.name, 99, MARKS, pool.mint_token("l1", 600), wait=False)
    live.nodes[worker.name] = worker
    startd = worker.run("pgrep", "-x", "condor_startd").split()
    worker.run("kill", "-STOP", *startd)  # or the two take turns at the collector
    try:
        wait_for("the thief's ad", lambda: thief.address in live.status("-af", "MyAddress"), 60)
        for mode in (DrainMode.BUSY, DrainMode.EMPTY):
            with pytest.raises(PoolError, match="another startd goes by this name"):
                pool.drain([slot], mode, "idle", 10)
        with pytest.raises(PoolError, match="another startd goes by the name"):
            pool.undrain([slot], 10)
    finally:
        thief.kill()
        pool.forget([slot.name], 10)
        worker.run("kill", "-CONT", *startd)
    assert when(pool, worker, lambda s: worker.address in s.address).accepting


def test_a_vanished_machine_gives_its_jobs_back(pool: HTCondorPool, live: LivePool, worker: Node) -> None:
    live.submit(SLEEP + "queue 1\n")
    slot = when(pool, worker, lambda s: s.busy)
    (job,) = demand(pool, running=True).running or ()
    assert abs(job.started - time.time()) < 120
    worker.kill()
    with pytest.raises(PoolError) as unreachable:
        pool.drain([slot], DrainMode.EMPTY, "idle", 5)
    assert not isinstance(unreachable.value, PoolDenied | DrainRefused)
    pool.forget([slot.name], 10)
    assert slot_of(pool, worker) is None
    assert worker.name not in live.status("-master", "-af", "Name")
    assert pool.requeue(SCHEDD, [job.job_id], f"{worker.name}.pool.test", 20) == (job.job_id,)
    wait_for("the job is idle again", lambda: demand(pool).idle_total == 1, 30)
    assert pool.requeue(SCHEDD, [job.job_id], f"{worker.name}.pool.test", 20) == ()
    assert demand(pool).idle_total == 1
    live.nodes["head"].run("condor_rm", "-all")


def test_demand_counts_what_waits_and_what_isnt_made_yet(pool: HTCondorPool, live: LivePool) -> None:
    big = "executable = /bin/sleep\narguments = 9\nrequest_cpus = 50\n"
    live.submit(big + "max_idle = 3\nqueue 40\n")
    live.submit(big + "request_cpus = 60\nmax_materialize = 2\nqueue 10\n")
    live.submit(big + "universe = local\nqueue 1\n")
    live.submit(big + '+Shade = "x"\nrequirements = TARGET.Colour == MY.Shade\nhold = true\nqueue 1\n')
    live.submit(big + '+Shade = "x"\nrequirements = TARGET.Colour == MY.Shade\nqueue 5\n', user="bob")
    live.submit(big + 'request_memory = regexp("(a*)*b", "aaaaaaaa") ? 1 : 2\nqueue 1\n', user="bob")
    view = wait_for("all groups", lambda: v if (v := demand(pool)).idle_total == 48 else None, 30)
    assert isinstance(view, ScheddView)
    seen = sorted((g.owner, g.idle, g.request.cpus, g.evaluable) for g in view.groups)
    assert seen == [
        ("alice", 2, 60, True),
        ("alice", 40, 50, True),
        ("bob", 1, 1, False),
        ("bob", 5, 50, True),
    ]
    assert all(abs(g.oldest - time.time()) < 120 for g in view.groups)
    (shaded,) = [g for g in view.groups if g.idle == 5]
    assert 'Shade = "x"' in shaded.ad
    assert shaded.request.disk == 1048576
    assert shaded.submitter == "bob@pool.test"
    live.nodes["head"].run("condor_rm", "-all")


def test_how_long_jobs_run_is_read_from_the_history_and_from_what_they_say(
    live: LivePool, worker: Node
) -> None:
    live.submit("executable = /bin/sleep\narguments = 1\nqueue 3\n")
    head = live.nodes["head"]
    ended = ("condor_history", "-constraint", 'Owner == "alice" && JobStatus == 4', "-af", "ClusterId")
    wait_for("three jobs ended", lambda: len(head.run(*ended).split()) >= 3, 60)
    big = "executable = /bin/sleep\narguments = 9\nrequest_cpus = 50\n"
    live.submit(big + "queue 1\n")
    live.submit(big + "+UpdraftRunTime = 500\nallowed_execute_duration = 300\nqueue 2\n")
    with live.network(), HTCondorPool(live.access()) as fresh:
        seen = {g.idle: g for g in demand(fresh).groups if g.request.cpus == 50}
    run_time = seen[1].run_time
    assert run_time is not None
    assert run_time < 1000, "the prior alone would be 1800 s"
    assert seen[1].longest is None
    assert (seen[2].run_time, seen[2].longest) == (300.0, 300.0)
    head.run("condor_rm", "-all")


def test_a_ladder_of_references_in_the_history_costs_no_time(live: LivePool, worker: Node) -> None:
    """A job's owner may change what it says until it leaves the queue, also when it is said to have ended."""
    head = live.nodes["head"]
    live.submit("executable = /bin/sleep\narguments = 1\nqueue\n")
    ended = ("condor_history", "-constraint", 'Owner == "alice" && JobStatus == 4', "-af", "ClusterId")
    wait_for("a job ended", lambda: head.run(*ended).split(), 60)
    rungs = [word for rung in range(40) for word in (f"Rung{rung}", f"Rung{rung + 1} + Rung{rung + 1}")]
    number = live.submit("executable = /bin/true\nhold = true\nqueue 40\n", user="bob")
    head.run("condor_qedit", str(number), *rungs, "CompletionDate", "Rung0", user="bob")
    took = []
    with live.network(), HTCondorPool(live.access()) as fresh:
        demand(fresh)  # knows until when the history is read
        head.run("condor_rm", str(number), user="bob")
        there = ("condor_history", str(number), "-af", "ProcId")
        wait_for("they are in the history", lambda: len(head.run(*there).split()) == 40, 30)
        for _ in range(_LOOKS_FOR_HISTORY + 1):
            begun = time.monotonic()
            demand(fresh)
            took.append(time.monotonic() - begun)
    assert max(took) < 5 * patience(), took


def test_controllers_see_each_other_until_their_ads_run_out(pool: HTCondorPool) -> None:
    first, second = ControllerAd("c1", "head", 1.5, 0, "this-pool"), ControllerAd("c2", "other", 2.5, 0)

    def told() -> set[tuple[str, str, float, str]]:
        return {(c.id, c.host, c.since, c.identity) for c in pool.controllers(10)}

    # A collector takes up what was sent to it in no particular order, also beside a question.
    pool.announce(first, 600, 10)
    one = ("c1", "head", 1.5, "this-pool")
    wait_for("the first is there", lambda: told() == {one}, 20)
    pool.announce(second, 2 * patience(), 10)
    wait_for("both are", lambda: told() == {one, ("c2", "other", 2.5, "")}, 20)
    wait_for("the second runs out", lambda: [c.id for c in pool.controllers(10)] == ["c1"], 20)
    pool.retract(first, 10)
    wait_for("nobody is left", lambda: told() == set(), 20)


def test_a_frozen_schedd_times_out_and_nothing_else_does(pool: HTCondorPool, live: LivePool) -> None:
    demand(pool)
    head = live.nodes["head"]
    pid = head.run("pgrep", "-o", "-x", "condor_schedd").strip()  # not those that it forks to answer
    head.run("kill", "-STOP", pid)
    try:
        began = time.monotonic()
        with pytest.raises(PoolTimeout):
            pool.demand(SCHEDD, running=False, deadline=1.5)
        assert time.monotonic() - began < 4 * patience()
        pool.slots(5)
    finally:
        head.run("kill", "-CONT", pid)
    demand(pool)


def test_without_the_right_a_drain_is_denied(live: LivePool, worker: Node) -> None:
    folder = live.work / "weak"
    folder.mkdir(mode=0o700)
    weak = live.nodes["head"].run(
        "condor_token_create", "-identity", f"weak@{TRUST_DOMAIN}", "-authz", "READ"
    )
    (folder / "t").write_text(weak)
    (folder / "t").chmod(0o600)
    as_alice = (
        *live.nodes["head"].enter(),
        "setpriv",
        "--reuid",
        "alice",
        "--regid",
        "nogroup",
        "--clear-groups",
    )
    access = PoolAccess("test", COLLECTOR, folder, TRUST_DOMAIN, tools=as_alice)
    with live.network(), HTCondorPool(access) as other:
        slot = when(other, worker, lambda s: s.accepting)
        with pytest.raises(PoolDenied):
            other.drain([slot], DrainMode.EMPTY, "idle", 10)
        with pytest.raises(PoolError):
            other.forget([slot.name], 10)
        assert when(other, worker, lambda s: s.accepting)
