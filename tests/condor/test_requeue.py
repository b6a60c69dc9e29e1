"""Jobs of a vanished machine are given back to a real schedd, however that is cut short."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.pools.livepool import COLLECTOR, TRUST_DOMAIN, LivePool, live_pool, wait_for
from updraft.condor import jobs as giving_back
from updraft.condor.access import PoolAccess, environment
from updraft.condor.pool import HTCondorPool
from updraft.condor.process.children import Children
from updraft.errors import PoolDenied, PoolTimeout

pytestmark = [pytest.mark.integration, pytest.mark.long]

SCHEDD = "head.pool.test"
COUNT = 12
WORDS = "updraft (test) gives this job back to the queue: its machine is gone"
JOBS = "executable = /bin/sleep\narguments = 600\nrequest_memory = 100\nrequest_disk = 1\nqueue {count}\n"
ROOM = "NUM_CPUS = 16\nMEMORY = 8000\n"
DIES = f"""
import os, signal, sys
from updraft.condor import jobs
def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(jobs, sys.argv[1], die)
jobs.requeue_jobs("{COLLECTOR}", "test", "head.pool.test", sys.argv[3:], sys.argv[2])
"""


@pytest.fixture(scope="module")
def live() -> Iterator[LivePool]:
    with live_pool() as pool:
        pool.head_key("updraft-workers")
        yield pool


@pytest.fixture(scope="module")
def access(live: LivePool) -> PoolAccess:
    return live.access()


@pytest.fixture(scope="module")
def pool(live: LivePool, access: PoolAccess) -> Iterator[HTCondorPool]:
    with live.network(), HTCondorPool(access) as made:
        yield made


@pytest.fixture
def vanished(live: LivePool, pool: HTCondorPool) -> Iterator[tuple[str, list[str]]]:
    """The name of a machine that is gone, and the ids of the jobs that the schedd believes to run there."""
    number = 10 + len(live.nodes)
    node = live.worker(f"w{number}", number, ROOM)
    cluster = live.submit(JOBS.format(count=COUNT))
    ids = [f"{cluster}.{proc}" for proc in range(COUNT)]
    wait_for("all run", lambda: states(live) == dict.fromkeys(ids, "2"), 90)
    node.kill()
    pool.forget([f"slot1@{node.name}.pool.test"], 10)  # or the negotiator gives its jobs to it again
    yield f"{node.name}.pool.test", ids
    empty(live)


def empty(live: LivePool) -> None:
    """Leave nothing in the queue, jobs with a shadow that waits for a lost machine included."""
    head = live.nodes["head"]
    for words in (("-all",), ("-all", "-forcex")):
        head.run("condor_rm", *words, check=False)
    for shadow in shadows(live):
        head.run("kill", "-9", shadow, check=False)
    wait_for("an empty queue", lambda: not states(live), 30)


def states(live: LivePool) -> dict[str, str]:
    """The JobStatus of each job in the queue."""
    rows = live.nodes["head"].run("condor_q", "-allusers", "-af:j", "JobStatus").splitlines()
    return dict(row.split()[:2] for row in rows)


def hold_reason(live: LivePool, job: str) -> str:
    words = ("condor_q", job, "-af", "HoldReason", "HoldReasonCode", "HoldReasonSubCode")
    return live.nodes["head"].run(*words).strip()


def look(pool: HTCondorPool) -> tuple[str, ...]:
    return pool.demand(SCHEDD, running=True, deadline=20).held


def shadows(live: LivePool) -> list[str]:
    return live.nodes["head"].run("pgrep", "-x", "condor_shadow", check=False).split()


def run_again(live: LivePool, pool: HTCondorPool, ids: list[str]) -> None:
    """On a machine that has room for all of them, long before their leases are over."""
    number = 10 + len(live.nodes)
    node = live.worker(f"w{number}", number, ROOM)
    try:
        wait_for("all run again", lambda: all(states(live)[job] == "2" for job in ids), 90)
    finally:
        empty(live)
        node.kill()
        pool.forget([f"slot1@{node.name}.pool.test"], 10)


def killed_at(step: str, live: LivePool, access: PoolAccess, tmp_path: Path, *words: str) -> None:
    """Giving back in a process that dies by -9 when it comes to this step."""
    given = {**os.environ, **environment(access, tmp_path)}
    with live.network():
        command = [sys.executable, "-c", DIES, step, *words]
        done = subprocess.run(command, env=given, timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr


@pytest.mark.parametrize(("step", "rest"), [("shadows_of", True), ("end", False), ("release", True)])
def test_what_a_killed_controller_has_left_on_hold_is_released_by_the_next(
    live: LivePool,
    access: PoolAccess,
    pool: HTCondorPool,
    vanished: tuple[str, list[str]],
    tmp_path: Path,
    step: str,
    rest: bool,
) -> None:
    machine, ids = vanished
    held = ids[:5] if rest else ids
    killed_at(step, live, access, tmp_path, machine, *held)
    assert {job for job, state in states(live).items() if state == "5"} == set(held)
    assert set(look(pool)) == set(held)
    assert {hold_reason(live, job) for job in held} == {f"{WORDS} (by user condor) 1 20931"}
    # With others that still run there, all at once; else what is on hold, whoever its machine was.
    words = (ids[5:], machine) if rest else (held, "")
    assert set(pool.requeue(SCHEDD, *words, 20)) == set(ids)
    assert set(states(live).values()) == {"1"}
    assert look(pool) == ()
    wait_for("no shadow of them is left", lambda: not shadows(live), 10)
    run_again(live, pool, ids)


def hangs(machine: str, ids: list[str]) -> None:
    """Giving back, in a child that hangs when the first are on hold."""
    giving_back.end = lambda *_: time.sleep(600)
    giving_back.requeue_jobs(COLLECTOR, "test", SCHEDD, ids, machine)


@pytest.fixture
def children(live: LivePool, access: PoolAccess, tmp_path: Path) -> Iterator[Children]:
    with live.network():
        made = Children(environment(access, tmp_path))
        yield made
        made.close()


def test_what_a_deadline_has_left_on_hold_is_released_at_the_next_look(
    live: LivePool, children: Children, pool: HTCondorPool, vanished: tuple[str, list[str]]
) -> None:
    machine, ids = vanished
    with pytest.raises(PoolTimeout):
        children.call("the schedd", 8, hangs, machine, ids)
    assert set(states(live).values()) == {"5"}
    held = look(pool)
    assert set(held) == set(ids)
    assert set(pool.requeue(SCHEDD, held, "", 20)) == set(ids)
    assert set(states(live).values()) == {"1"}
    assert look(pool) == ()
    run_again(live, pool, ids)


def test_what_others_hold_stays_on_hold_and_what_runs_elsewhere_runs_on(
    live: LivePool, pool: HTCondorPool, vanished: tuple[str, list[str]]
) -> None:
    machine, ids = vanished
    head = live.nodes["head"]
    users, removed, elsewhere = ids[0], ids[1], ids[2]
    head.run("condor_hold", users, "-reason", WORDS, user="alice")  # not with our code
    head.run("condor_rm", removed)
    assert look(pool) == ()
    assert pool.requeue(SCHEDD, [elsewhere], "another-machine", 20) == ()
    assert states(live)[elsewhere] == "2"
    given = pool.requeue(SCHEDD, ids, machine, 20)
    assert sorted(given) == sorted(ids[2:])
    assert states(live)[users] == "5"
    assert pool.requeue(SCHEDD, [users], "", 20) == ()
    assert hold_reason(live, users).startswith(WORDS)
    # Held by its user after it was given back: that is the user's hold.
    head.run("condor_hold", elsewhere, "-reason", "not now", user="alice")
    assert look(pool) == ()
    assert pool.requeue(SCHEDD, ids, machine, 20) == ()
    assert states(live)[elsewhere] == "5"


def test_another_pools_controller_leaves_them(
    live: LivePool,
    access: PoolAccess,
    pool: HTCondorPool,
    vanished: tuple[str, list[str]],
    tmp_path: Path,
) -> None:
    machine, ids = vanished
    killed_at("release", live, access, tmp_path, machine, *ids[:2])
    other = PoolAccess(
        "test2",
        collector=access.collector,
        token_dir=access.token_dir,
        trust_domain=access.trust_domain,
        tools=access.tools,
    )
    with HTCondorPool(other) as stranger:
        assert look(stranger) == ()
        assert stranger.requeue(SCHEDD, ids[:2], "", 20) == ()
    assert set(look(pool)) == set(ids[:2])


def test_who_may_not_is_told_so(live: LivePool, vanished: tuple[str, list[str]], tmp_path: Path) -> None:
    machine, ids = vanished
    folder = tmp_path / "tokens"
    folder.mkdir(mode=0o700)
    path = folder / "bob"
    path.write_text(live.nodes["head"].run("condor_token_create", "-identity", f"bob@{TRUST_DOMAIN}"))
    path.chmod(0o600)
    weak = PoolAccess("test", collector=COLLECTOR, token_dir=folder, trust_domain=TRUST_DOMAIN)
    with live.network(), HTCondorPool(weak) as stranger, pytest.raises(PoolDenied, match="QUEUE_SUPER_USERS"):
        stranger.requeue(SCHEDD, ids, machine, 20)
    assert set(states(live).values()) == {"2"}
