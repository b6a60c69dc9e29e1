"""The controller on a real pool: killed and robbed, its file changed, told by hand."""

import re
from collections.abc import Iterator

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    FILE,
    LOG,
    LONG_AT_FIRST,
    STATE,
    acting,
    await_done,
    await_running,
    daemon_pid,
    disturbed,
    edit,
    events,
    kill_service,
    let_end,
    outcomes,
    reload,
    runs,
    sh,
    sleepers,
    slot_of,
    start_service,
    waiters,
)
from tests.rigs.pools.realpool import RealPools, settings, until
from updraft.clouds.base import TAG_GENERATION
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

MIB = 1024  # KiB, as ps counts
IDLE = 'idle_limit = "3s"'


@pytest.fixture(scope="module")
def shared(module_pool: RealPools) -> RealPool:
    return module_pool(Wishes(settings=settings(worker={"idle_limit": "3s"}, timings={"settle": "4s"})))


@pytest.fixture
def pool(shared: RealPool) -> Iterator[RealPool]:
    """The module's pool as it was made: the controller acts by its first file, and no machine is there."""
    before = sh(shared, f"cat {FILE}")
    until(lambda: acting(shared), 60, "the controller acts")
    until(lambda: not shared.workers(*ALIVE), 60, "no machine is there")
    yield shared
    shared.cloud.set_faults()
    if sh(shared, f"cat {FILE}") != before:
        assert shared.on_head("sh", "-c", f"cat >{FILE}", stdin=before).returncode == 0
        reload(shared, "reloaded")


def host_of(pool: RealPool, cluster: int) -> str:
    """The machine that a running job is on."""
    (job,) = pool.queue(f"ClusterId == {cluster}")
    return str(job["RemoteHost"].split("@")[1])


# ------------------------------------------------------------------------------------- killed, and lost


def test_it_is_killed_and_all_it_had_is_lost_while_jobs_run(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(3, 20))
    await_running(pool, cluster, 3)
    before = {m["id"] for m in pool.workers(*ALIVE)}
    kill_service(pool)
    sh(pool, f"rm -f {STATE}/*")
    # Nobody says what the pool's identity was, either.
    alive = "PoolIdentity =!= undefined && LastHeardFrom + ClassAdLifetime >= time()"
    until(
        lambda: not sh(pool, f"condor_status -generic -af Name -constraint '{alive}'").strip(),
        60,
        "its ad runs out",
    )
    start_service(pool)
    until(
        lambda: pool.on_head("test", "-e", f"{STATE}/ledger.sqlite").returncode == 0,
        30,
        "its ledger is there",
    )
    until(lambda: acting(pool), 90, "the controller acts again")
    known = {machine["id"] for machine in pool.show("machines")["machines"]}
    assert known <= before
    assert {event["subject"] for event in events(pool, "adopt")} == before & known | before
    await_done(pool, [cluster], 90)
    assert outcomes(pool, cluster) == [DONE_ONCE] * 3
    assert disturbed(pool, cluster) == ""
    until(lambda: not pool.workers(*ALIVE), 60, "the adopted machines go when they are idle")
    assert {m["id"] for m in pool.workers() if m["id"] in before} == before
    assert not events(pool, "launch")


# -------------------------------------------------------------------------------------- a changed file


def test_a_broken_file_keeps_the_old_one_and_a_changed_limit_is_taken_up(pool: RealPool) -> None:
    edit(pool, "machines = 8", "machines = 0")
    reload(pool, "reloaded")
    edit(pool, IDLE, IDLE.replace("limit", "limt"))
    text = reload(pool, "bad-configuration")
    number = sh(pool, f"grep -n idle_limt {FILE} | cut -d: -f1").strip()
    assert "the old one stays in force" in text
    assert f"updraft.toml, line {number}:" in text
    assert "idle_limit" in text  # what was meant
    cluster = pool.submit(sleepers(1, 1))
    held = lambda: [g for g in pool.show("status")["groups"] if g["held_back"]]  # noqa: E731
    (group,) = until(held, 20, "the limit holds the job back")
    assert "limit" in group["held_back"][0]["code"]
    assert not pool.workers(*ALIVE)
    edit(pool, IDLE.replace("limit", "limt"), IDLE)
    edit(pool, "machines = 0", "machines = 8")
    reload(pool, "reloaded")
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == [DONE_ONCE]


def test_machines_of_an_older_generation_finish_their_work_and_are_replaced(pool: RealPool) -> None:
    cluster = pool.submit(waiters(1, "replaced"))
    await_running(pool, cluster)
    (old,) = pool.workers("running")
    edit(pool, IDLE, IDLE + "\nattributes = { Painted = '\"red\"' }")
    reload(pool, "reloaded")
    until(lambda: (slot_of(pool, old["id"]) or {}).get("Draining"), 20, "the old machine is closed")
    assert runs(pool, cluster)
    following = pool.submit(sleepers(1, 1, requirements='TARGET.Painted == "red"'))
    await_done(pool, [following], 60)
    assert runs(pool, cluster)
    let_end(pool, "replaced")
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == outcomes(pool, following) == [DONE_ONCE]
    assert disturbed(pool, cluster) == ""
    gone = lambda: next(m for m in pool.workers() if m["id"] == old["id"])["state"] == "terminated"  # noqa: E731
    until(gone, 30, "the old machine goes")
    assert [event["code"] for event in events(pool, "drain") if event["subject"] == old["id"]] == ["drifted"]
    assert len({m["tags"][TAG_GENERATION] for m in pool.workers()}) == 2


# ----------------------------------------------------------------------------------------- by hand


def test_a_machine_is_drained_and_taken_back_and_ended_by_hand_only_with_its_jobs(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(1, LONG_AT_FIRST))
    await_running(pool, cluster)
    machine = host_of(pool, cluster)
    assert pool.updraft("drain", machine[:10]).returncode == 0
    closed = lambda: bool((slot_of(pool, machine) or {}).get("Draining"))  # noqa: E731
    until(closed, 20, "the machine is closed")
    told = pool.updraft("explain", machine).stdout
    assert "draining" in told
    assert "asked for drain" in " ".join(told.split())
    assert pool.updraft("undrain", machine, "--wait").returncode == 0
    until(lambda: not closed(), 20, "the machine is open again")
    assert runs(pool, cluster)

    refused = pool.updraft("terminate", machine, "--wait")
    assert refused.returncode == 1
    # By the controller, or by the startd itself where the collector is a moment behind.
    assert f"terminate {machine}: refused: " in refused.stdout
    assert "--kill-jobs" in refused.stdout
    assert refused.stderr == "updraft: 1 wish refused\n"
    assert runs(pool, cluster)

    killed = pool.updraft("terminate", machine, "--kill-jobs", "--wait")
    assert (killed.returncode, killed.stderr) == (0, "")
    assert f"terminate {machine}: gone" in killed.stdout
    await_done(pool, [cluster], 60)
    assert outcomes(pool, cluster) == [(4, 0, 2)]
    wrong = pool.updraft("drain", "i-nothing")
    assert wrong.returncode == 2
    assert wrong.stderr.count("\n") == 1


def test_a_drain_by_hand_waits_for_the_end_of_its_job(pool: RealPool) -> None:
    cluster = pool.submit(sleepers(1, 10))
    await_running(pool, cluster)
    assert pool.updraft("drain", host_of(pool, cluster), "--wait").returncode == 0
    assert outcomes(pool, cluster) == [DONE_ONCE]


# ------------------------------------------------------------------------- after all that


def test_it_is_small_and_its_log_is_for_people(pool: RealPool) -> None:
    size = int(sh(pool, f"ps -o rss= -p {daemon_pid(pool)}"))
    assert size < 150 * MIB
    own = daemon_pid(pool)
    children = [int(rss) for rss in sh(pool, f"ps -o rss= --ppid {own}").split()]
    assert len(children) < 8
    assert sum(children) < 400 * MIB
    log = sh(pool, f"cat {LOG}")
    assert "Traceback" not in log
    lines = [line for line in log.splitlines() if not re.match(r"\S+Z \[(info|warning|error) *\] \S", line)]
    # What a shell and Python say of a process that was killed is the kill's, not the program's.
    of_the_kill = ("resource_tracker", "warnings.warn", "Killed")
    assert [line for line in lines if not any(word in line for word in of_the_kill)] == []
