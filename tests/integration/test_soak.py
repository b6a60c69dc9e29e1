"""A pool that lives through whatever comes: jobs, a cloud's faults, deaths of machines, daemons and sources.

UPDRAFT_SOAK_MINUTES says for how long (10), UPDRAFT_SOAK_SEED makes the same happen again.
"""

import contextlib
import os
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.rigs.pools.controlling import (
    ALIVE,
    LOG,
    acting,
    daemon_pid,
    events,
    kill_service,
    sh,
    sleepers,
    start_and_wait,
)
from tests.rigs.pools.realpool import RealPools, say, settings, until
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.demo.pool import USER, RealPool, Wishes
from updraft.errors import CloudError

MINUTES = float(os.environ.get("UPDRAFT_SOAK_MINUTES", "10"))
SEED = int(os.environ.get("UPDRAFT_SOAK_SEED", str(random.SystemRandom().randrange(1 << 32))))
pytestmark = [pytest.mark.extended, pytest.mark.timeout(MINUTES * 60 + 900)]

MACHINES = 8
QUEUED = 25  # jobs at most at a time
FAULTS = (
    Fault(FaultKind.API_DOWN, lasts=12),
    Fault(FaultKind.API_SLOW, seconds=2, lasts=12),
    Fault(FaultKind.THROTTLED, seconds=1, lasts=8),
    Fault(FaultKind.NO_CAPACITY, lasts=12),
    Fault(FaultKind.LOST_ANSWER, call="run", times=1),
    Fault(FaultKind.NEVER_BOOTS, times=1),
)
MIB = 1024
START = re.compile(r"^001 \((\d+\.\d+)\.\d+\) .*Job executing on host: <([0-9.]+):", re.MULTILINE)
END = re.compile(r"^005 \((\d+\.\d+)\.\d+\)", re.MULTILINE)


@dataclass
class Soak:
    """What happens to a pool, drawn from a seed, and what was done to it on purpose."""

    pool: RealPool
    draw: random.Random
    jobs: int = 0
    crashed: dict[str, str] = field(default_factory=dict)  # addresses by machine

    def workers(self, *states: str) -> list[dict[str, Any]]:
        """The cloud's machines; none while it answers nobody."""
        try:
            return self.pool.workers(*states)
        except CloudError:
            return []

    def happenings(self) -> list[Callable[[], None]]:
        """Jobs come more often than trouble."""
        trouble = [self.fault, self.crash, self.kill, self.freeze_schedd, self.freeze_collector]
        return [self.submit] * 7 + [self.fault] + trouble

    def submit(self) -> None:
        if len(self.pool.queue()) < QUEUED:
            count, cpus = self.draw.randint(1, 6), self.draw.choice((1, 1, 2))
            text = sleepers(count, self.draw.choice((1, 1, 4, 15)), cpus=cpus)
            self.pool.submit(text.replace("$(Cluster).log", "soak.log"))
            self.jobs += count

    def fault(self) -> None:
        self.pool.cloud.set_faults(self.draw.choice(FAULTS))

    def crash(self) -> None:
        """A machine's sudden death: its jobs run again."""
        if running := self.workers("running"):
            victim = self.draw.choice(sorted(running, key=lambda machine: str(machine["id"])))
            with contextlib.suppress(CloudError):
                self.pool.cloud.client().crash(victim["id"])
                self.crashed[victim["id"]] = victim["address"]

    def kill(self) -> None:
        kill_service(self.pool)
        start_and_wait(self.pool)

    def freeze_schedd(self) -> None:
        self._freeze("condor_schedd")

    def freeze_collector(self) -> None:
        self._freeze("condor_collector")

    def _freeze(self, daemon: str) -> None:
        silence = self.draw.choice((3, 8))
        sh(self.pool, f"pkill -STOP -x {daemon[:15]}; sleep {silence}; pkill -CONT -x {daemon[:15]}")

    def run(self, minutes: float) -> None:
        """Let things happen for so long. The limit holds at every moment that is looked at."""
        end = time.monotonic() + 60 * minutes
        while time.monotonic() < end:
            self.draw.choice(self.happenings())()
            assert len(self.workers(*ALIVE)) <= MACHINES
            time.sleep(self.draw.uniform(1, 6))  # the pace at which things happen, not a wait for anything


def ran_once(soak: Soak) -> None:
    """Each job ended once, and started again only where its machine had died."""
    log = sh(soak.pool, f"cat /home/{USER}/soak.log")
    ends = END.findall(log)
    assert len(ends) == len(set(ends)) == soak.jobs
    hosts: dict[str, list[str]] = {}
    for job, address in START.findall(log):
        hosts.setdefault(job, []).append(address)
    lost = {address for earlier in hosts.values() for address in earlier[:-1]}
    assert lost <= set(soak.crashed.values()), "a job was started again whose machine had not died"


def test_whatever_comes_each_job_ends_once_and_nothing_is_left(real_pool: RealPools) -> None:
    say(f"UPDRAFT_SOAK_SEED={SEED}")
    text = settings(
        worker={"flavors": ["small", "medium"], "boot_deadline": "1m"},
        limits={"machines": MACHINES},
        timings={"cooldown_first": "5s", "trial": MACHINES},
    )
    pool = real_pool(Wishes(settings=text))
    until(lambda: acting(pool), 40, "the controller acts")
    soak = Soak(pool, random.Random(SEED))
    try:
        soak.run(MINUTES)
    finally:
        pool.cloud.set_faults()
    until(lambda: not pool.queue(), 240, "all jobs are done", every=1)
    until(lambda: not pool.workers(*ALIVE), 120, "all machines are gone", every=1)
    say(f"{soak.jobs} jobs, {len(pool.workers())} machines, {len(soak.crashed)} of them crashed")
    ran_once(soak)
    until(lambda: not pool.show("machines")["machines"], 60, "the controller knows of none", every=1)
    given_back = {event["subject"] for event in events(pool, "requeue-jobs")}
    assert given_back <= set(soak.crashed)
    own = daemon_pid(pool)
    assert int(sh(pool, f"ps -o rss= -p {own}")) < 150 * MIB
    assert int(sh(pool, f"ls /proc/{own}/fd | wc -l")) < 64
    assert "Traceback" not in sh(pool, f"cat {LOG}")
