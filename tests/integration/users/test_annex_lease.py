"""Annexes on a real pool: asked for by a user, seen by HTCondor's own tools, and over with their lease."""

import json
import shlex
import subprocess
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    acting,
    await_done,
    events,
    in_machine,
    kill_service,
    let_end,
    outcomes,
    runs,
    sh,
    start_service,
    waiters,
)
from tests.rigs.pools.realpool import say, settings, until
from updraft.clouds.base import TAG_LEASE
from updraft.demo.pool import USER, RealPool, Wishes

pytestmark = pytest.mark.long

Pools = Callable[..., RealPool]
USERS = """
[annexes]
users = ["alice"]
machines = 2
longest = "1h"
"""
# It takes no notice of being told to end: the machine has to end it.
STUBBORN = """\
executable = /bin/sh
arguments = "-c 'trap \"\"\"\" TERM; exec sleep 900'"
transfer_executable = false
request_cpus = 1
request_memory = 200MB
request_disk = 10MB
+TargetAnnexName = "{annex}"
log = /home/alice/$(Cluster).log
queue {count}
"""
LAYER = "#cloud-config\nwrite_files: [{path: /etc/lab, content: of the lab}]\n"
PYTHON = "PYTHONPATH=/opt/updraft/src:/opt/updraft/lib python3"
NEARER = """
import sys, time
from updraft.config import find, place
from updraft.ledger import Ledger, annexes
with Ledger(place(find()).ledger) as ledger:
    annexes.extend(ledger, sys.argv[1], float(sys.argv[2]), "test", time.time())
"""
SOON = 25  # seconds: a machine looks for another lease every 15
LATE = 60.0  # seconds after its lease by which a machine must be gone


@pytest.fixture(scope="module")
def shared(module_pool: Pools) -> RealPool:
    pool = module_pool(Wishes(settings=settings(worker={"flavors": ["small"]}, more=USERS)))
    until(lambda: acting(pool), 60, "the controller acts")
    return pool


def as_user(pool: RealPool, *words: str, user: str = USER) -> "subprocess.CompletedProcess[str]":
    return pool.on_head("updraft", "annex", *words, user=user)


def annex(pool: RealPool, *words: str) -> Any:
    """The document that a verb of annexes prints to root on the head; it has to succeed."""
    return pool.show("annex", *words)


def names(pool: RealPool, name: str, *kind: str) -> list[str]:
    """The slots that `condor_status -annex` shows, or its ads of another kind."""
    done = pool.on_head("condor_status", *kind, "-annex", name, "-af", "Name")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def joined(pool: RealPool, name: str, count: int) -> list[str]:
    """The machines of an annex, once there are so many of them in the collector."""

    def found() -> list[str]:
        some = names(pool, name)
        return some if len(some) == count else []

    return [slot.split("@")[-2] for slot in until(found, 90, f"{count} machines of annex {name} joined")]


def lease_ends(pool: RealPool, name: str, seconds: float) -> float:
    """Move an annex's end to so many seconds from now; returns it once its machines' tags say so.

    No verb moves it nearer: it is done in the ledger, so that nobody has to wait for the end of a long one.
    """
    [row] = annex(pool, "status", name)["annexes"]
    until_then = time.time() + seconds
    if until_then > row["until"]:
        annex(pool, "extend", name, "--duration", f"{seconds:g}s")
    else:
        sh(pool, f"{PYTHON} -c {shlex.quote(NEARER)} {name} {until_then:.0f}")
    [row] = annex(pool, "status", name)["annexes"]
    told = str(int(row["until"]))
    until(
        lambda: {m["tags"].get(TAG_LEASE) for m in pool.workers(*ALIVE)} == {told}, 20, "the tags are written"
    )
    return float(row["until"])


def say_all(pool: RealPool, machines: list[str], text: str) -> None:
    """Wait until all these machines have said so on their consoles."""
    console = pool.cloud.client().console
    until(lambda: all(text in console(one) for one in machines), 40, f"all machines say {text!r}")


def test_a_user_without_the_ledger_asks_within_an_allowance_and_condor_off_sees_the_annex(
    shared: RealPool,
) -> None:
    assert shared.on_head("cat", "/etc/updraft/updraft.toml", user=USER).returncode != 0
    refused = as_user(shared, "create", "off", "--count", "3")
    assert refused.returncode == 2
    assert "you may have 2" in refused.stderr
    assert "may have no annexes" in as_user(shared, "create", "off", "--count", "1", user="bob").stderr
    made = as_user(shared, "create", "off", "--count", "1", "--idle", "10m")
    assert made.returncode == 0, made.stderr
    (machine,) = joined(shared, "off", 1)
    assert names(shared, "another") == []
    assert USER in as_user(shared, "status", "off").stdout
    # A startd is heard of before its master, and condor_off speaks to masters.
    until(lambda: names(shared, "off", "-master"), 30, "its master is known as well")
    done = shared.on_head("condor_off", "-annex", "off")
    assert done.returncode == 0, done.stderr
    until(lambda: not names(shared, "off"), 60, "condor_off -annex has turned it off")
    assert as_user(shared, "delete", "off", "--kill-jobs").returncode == 0
    until(lambda: machine not in {m["id"] for m in shared.workers(*ALIVE)}, 90, "its machine gone")


@pytest.mark.extended
def test_its_machines_are_its_owners_until_a_lease_that_was_moved_ends_without_a_controller(
    shared: RealPool,
) -> None:
    sh(shared, f"cat >/root/lab <<'END'\n{LAYER}END")
    ask = ("create", "lab", "--count", "2", "--owner", USER, "--duration", "30m", "--idle", "15m")
    ask = (*ask, "--tag", "project=x", "--user-data", "/root/lab", "--unchecked")  # a busy collector is late
    before = {m["id"] for m in shared.workers()}
    ours = lambda *states: [m for m in shared.workers(*states) if m["id"] not in before]  # noqa: E731
    would = annex(shared, *ask, "--dry-run")
    assert sum(one["count"] for one in would["launches"]) == 2
    assert ours() == [], "a dry run buys nothing"
    annex(shared, *ask)
    machines = joined(shared, "lab", 2)
    assert {m["tags"]["project"] for m in ours()} == {"x"}
    assert in_machine(shared, machines[0], "cat", "/etc/lab") == "of the lab"
    there = " || ".join(f'TARGET.UpdraftInstance == "{one}"' for one in machines)

    # Before its end no job begins; with a later end they do. They are its owner's and nobody else's.
    lease_ends(shared, "lab", 55)
    say_all(shared, machines, "no new jobs: the lease is nearly over")
    lease_ends(shared, "lab", 3000)
    say_all(shared, machines, "new jobs again: the lease is not over")
    others = shared.submit(waiters(1, "others", requirements=there, user="bob"), user="bob")
    short = shared.submit(waiters(1, "short", requirements=there))
    until(lambda: runs(shared, short), 60, "a job of its owner runs")
    let_end(shared, "short")
    await_done(shared, [short], 40)
    assert [row[0] for row in outcomes(shared, short)] == [4]
    mine = shared.submit(STUBBORN.format(annex="lab", count=2))
    nowhere = shared.submit(STUBBORN.format(annex="x", count=1))
    until(lambda: runs(shared, mine, 2), 60, "both jobs running")
    assert {job["RemoteHost"].split("@")[-2] for job in shared.queue(f"ClusterId == {mine}")} == set(machines)
    assert "annex-only" in shared.updraft("explain", f"{nowhere}.0", "--json").stdout
    until(lambda: annex(shared, "status", "lab")["annexes"][0]["look"]["busy"] == 2, 15, "known to be busy")

    end = lease_ends(shared, "lab", SOON)
    kill_service(shared)
    assert time.time() < end
    assert {m["id"] for m in ours(*ALIVE)} == set(machines), (
        "they were made once, and nothing else was bought"
    )
    assert not runs(shared, others), "nobody else's job has run there"
    gone: list[float] = []

    def over() -> bool:
        left = ours(*ALIVE)
        gone.append(time.time())
        return not left

    until(over, SOON + LATE + 30, "its machines have ended", every=0.5)
    late = gone[-1] - end
    say(f"the last machine was gone {late:.1f} s after its lease")
    assert 0 < late <= LATE
    say_all(shared, machines, "powering off: the lease is over")
    until(
        lambda: not runs(shared, mine, 2) and not shared.queue("JobStatus == 2"), 30, "their jobs wait again"
    )

    start_service(shared)
    ended = lambda: {e["subject"] for e in events(shared, "lease-over") if e["kind"] == "gone"}  # noqa: E731
    until(lambda: ended() == set(machines), 40, "the next controller has seen why they have gone")
    assert annex(shared, "delete", "lab")["annex"]["deleted"]
    until(lambda: not annex(shared, "list")["annexes"], 30, "it is forgotten")
    assert len(ours()) == 2
    assert json.loads(as_user(shared, "list", "--json").stdout)["annexes"] == []
