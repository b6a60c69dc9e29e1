"""Annexes on a real pool: asked for by a user, seen by HTCondor's own tools, and over with their lease."""

import subprocess
import time
from collections.abc import Callable

import pytest

from tests.rigs.pools.controlling import ALIVE, kill_service
from tests.rigs.pools.realpool import patience, say, settings, until
from updraft.bootstrap.lease import CLOSING
from updraft.clouds.base import TAG_LEASE
from updraft.demo.pool import USER, RealPool, Wishes

Pools = Callable[..., RealPool]
USERS = """
[annexes]
users = ["alice"]
machines = 2
longest = "1h"
"""
# It takes no notice of being told to end: the machine has to end it.
JOB = '''\
executable = /bin/sh
arguments = "-c 'trap """" TERM; exec sleep 900'"
transfer_executable = false
request_cpus = 1
request_memory = 200MB
request_disk = 10MB
+TargetAnnexName = "{annex}"
log = /home/alice/$(Cluster).log
queue {count}
'''
LATE = 60.0  # seconds after its lease by which a machine must be gone


@pytest.fixture(scope="module")
def shared(module_pool: Pools) -> RealPool:
    pool = module_pool(Wishes(settings=settings(worker={"flavors": ["small"]}, more=USERS)))
    until(lambda: pool.show("status")["daemon"]["acting"], 60, "the controller acts")
    return pool


def as_user(pool: RealPool, *words: str, user: str = USER) -> "subprocess.CompletedProcess[str]":
    return pool.on_head("updraft", "annex", *words, user=user)


def names(pool: RealPool, annex: str, *kind: str) -> list[str]:
    """The slots that `condor_status -annex` shows, or its ads of another kind."""
    done = pool.on_head("condor_status", *kind, "-annex", annex, "-af", "Name")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def joined(pool: RealPool, annex: str, count: int) -> list[str]:
    def found() -> list[str]:
        some = names(pool, annex)
        return some if len(some) == count else []

    return until(found, 90, f"{count} machines of annex {annex} joined")


def lease_of(pool: RealPool, annex: str) -> float:
    (row,) = pool.show("annex", "status", annex)["annexes"]
    return float(row["until"])


def test_a_user_without_the_ledger_asks_within_a_budget_and_condor_off_sees_the_annex(
    shared: RealPool,
) -> None:
    assert shared.on_head("cat", "/etc/updraft/updraft.toml", user=USER).returncode != 0
    refused = as_user(shared, "create", "off", "--count", "3")
    assert refused.returncode == 2
    assert "you may have 2" in refused.stderr
    assert "may have no annexes" in as_user(shared, "create", "off", "--count", "1", user="bob").stderr
    made = as_user(shared, "create", "off", "--count", "1", "--idle", "10m")
    assert made.returncode == 0, made.stderr
    (name,) = joined(shared, "off", 1)
    assert names(shared, "another") == []
    assert USER in as_user(shared, "status", "off").stdout
    # A startd is heard of before its master, and condor_off speaks to masters.
    until(lambda: names(shared, "off", "-master"), 30, "its master is known as well")
    done = shared.on_head("condor_off", "-annex", "off")
    assert done.returncode == 0, done.stderr
    until(lambda: name not in names(shared, "off"), 60, "condor_off -annex has turned it off")
    assert as_user(shared, "delete", "off", "--kill-jobs").returncode == 0
    until(lambda: not shared.workers(*ALIVE), 90, "its machine gone")


def test_the_machines_end_with_a_later_lease_though_the_controller_is_killed(shared: RealPool) -> None:
    lease = f"{CLOSING + 30 * patience():.0f}s"  # machines boot and jobs begin before the last minute
    ask = ("create", "burst", "--owner", USER, "--count", "2", "--duration", lease, "--idle", "15m")
    made = shared.updraft("annex", *ask, "--unchecked")  # a busy machine's collector may be late to answer
    assert made.returncode == 0, made.stderr
    first = lease_of(shared, "burst")
    hosts = joined(shared, "burst", 2)
    mine, other = (
        shared.submit(JOB.format(annex="burst", count=2)),
        shared.submit(JOB.format(annex="x", count=1)),
    )
    until(lambda: len(shared.queue(f"ClusterId == {mine} && JobStatus == 2")) == 2, 60, "both jobs running")
    machines = {host.split("@")[-2] for host in hosts}
    ran = {job["RemoteHost"].split("@")[-2] for job in shared.queue(f"ClusterId == {mine}")}
    assert ran <= machines
    assert "annex-only" in shared.updraft("explain", f"{other}.0", "--json").stdout
    assert {one["id"] for one in shared.workers(*ALIVE)} == machines, "nothing else was bought"
    later = f"{max(40, int(first - time.time())) + 15}s"
    assert shared.updraft("annex", "extend", "burst", "--duration", later).returncode == 0
    end = lease_of(shared, "burst")
    assert end > first
    told = str(int(end))
    until(lambda: {one["tags"].get(TAG_LEASE) for one in shared.workers()} >= {told}, 20, "the tag written")
    until(
        lambda: all(
            f"lease is until {time.strftime('%Y-%m-%d %H:%M:%SZ', time.gmtime(int(end)))}"
            in shared.cloud.client().console(machine)
            for machine in machines
        ),
        40,
        "both have heard of the later lease",
    )
    kill_service(shared)
    while shared.workers(*ALIVE) and time.time() < end + LATE + 30:
        time.sleep(0.5)
    late = time.time() - end
    say(f"the last machine was gone {late:.1f} s after its lease")
    assert shared.workers(*ALIVE) == []
    assert -1 < late <= LATE
    until(lambda: not shared.queue("JobStatus == 2"), 30, "its jobs are back in the queue")
