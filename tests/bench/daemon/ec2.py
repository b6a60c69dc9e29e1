"""The EC2 driver at work: the real daemon, on a pool in memory, against an endpoint in a process of its own.

`python -m tests.bench.daemon.ec2 batch|quiet FOLDER` prints what it measured as JSON.
"""

import json
import os
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.bench.daemon.quiet import Quiet
from tests.bench.decision import crowd
from tests.rigs.clouds.ec2site import IMAGE, KEYS, REGION, EC2Site
from tests.rigs.clouds.made import made
from updraft.act import Actor
from updraft.app import serving, wiring
from updraft.clouds.paced import Paced
from updraft.condor.base import PoolSlots
from updraft.condor.process.judge import Judge
from updraft.core.model import (
    Child,
    CloudOffer,
    CollectorView,
    JobGroup,
    Launch,
    MachineRecord,
    Resources,
    ScheddView,
    Slot,
)
from updraft.core.plan import plan
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots.catalogue import imagine, usable
from updraft.core.slots.kinds import kind_key
from updraft.daemon import Daemon, Parts, Switch
from updraft.ledger import Ledger

POOL, CLOUD, CLASS, GENERATION, SCHEDD = "bench", "cloud", "worker", "g1", "head.bench.test"
FLAVOR = "t3.small"
WHOLE = Resources(2, 2048, 8 << 20)
JOB = Resources(2, 1024, 1 << 20)  # a machine takes one of them
BATCH, CROWD = 500, 1000
QUIET = 60.0
KIND = kind_key(CLASS, GENERATION, CLOUD, FLAVOR)


class EndpointPool(Quiet):
    """Implements `updraft.condor.base.Pool`: the machines in `joined` are there, each with a job on it."""

    def __init__(self) -> None:
        self.idle = 0
        self.joined: list[str] = []
        self.launch_key = ""
        offer = CloudOffer(CLOUD, f"{REGION}a", FLAVOR, "on-demand", WHOLE, None)
        self._ads = {KIND: imagine(worker_class(), offer, IMAGE, POOL, KIND).ad}

    def schedds(self, deadline: float) -> tuple[str, ...]:
        return (SCHEDD,)

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        group = JobGroup(
            key="0", schedd=SCHEDD, owner="user0", submitter=f"user0@{POOL}.test",
            ad=crowd.job_ad(0, "user0", JOB, crowd.WISHES[0]), request=JOB, idle=self.idle,
            running=len(self.joined), oldest=time.time() - 1, first_id="1.0",
        )  # fmt: skip
        return ScheddView((group,) if self.idle else (), None, self.idle, len(self.joined))

    def slots(self, deadline: float) -> PoolSlots:
        now = time.time()
        whole = usable(WHOLE)
        child = Child("Claimed", "Busy", whole, f"user0@{POOL}.test")
        found = tuple(
            Slot(
                name=f"slot1@{one}", instance_id=one, cloud=CLOUD, kind=KIND, total=whole,
                free=whole - child.resources, state="Unclaimed", activity="Idle", heard=now - 5,
                started=now - 60, children=(child,), job_starts=1, launch_key=self.launch_key,
            )
            for one in self.joined
        )  # fmt: skip
        return PoolSlots(CollectorView(found, now - 1e6, now), self._ads)


def worker_class() -> WorkerClass:
    """The one class, of one kind of machine."""
    return WorkerClass(CLASS, GENERATION, (CLOUD,), images={CLOUD: IMAGE})


class Trial:
    """A daemon with an endpoint, after the first machine has joined: its image is known to be good."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.site = EC2Site(folder / "endpoint.log")
        stack.callback(self.site.close)
        os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"] = KEYS
        settings = {"endpoint": self.site.url, "region": REGION, "flavors": [FLAVOR]}
        self.driver = made("ec2", CLOUD, POOL, settings)
        self.pool = EndpointPool()
        self.ledger = ledger = stack.enter_context(Ledger(folder / "ledger.sqlite"))
        judge = stack.enter_context(Judge())
        paced = Paced(self.driver, self.driver.cloud.traits.pace)
        clouds = {CLOUD: replace(self.driver.cloud, machines=paced, memory=paced)}
        policy = Policy(POOL, {CLASS: worker_class()})
        parts = Parts(policy, self.pool, clouds, user_data)
        self.daemon = Daemon(
            parts=parts,
            ledger=ledger,
            observer=wiring.make_observer(parts, ledger),
            preparer=wiring.make_preparer(ledger, judge),
            actor=Actor(
                policy=policy, pool=self.pool, clouds=clouds, user_data=user_data, ledger=ledger,
                clock=time.time,
            ),
            plan=plan,
            clock=time.time,
            switch=Switch(),
        )  # fmt: skip
        self.pause = policy.timings.cycle
        self._first()

    def _first(self) -> None:
        self.pool.idle = 1
        self.turn_until(lambda: len(self.standing()) == 1, 30)
        self.pool.launch_key = self.records()[0].launch_key
        self.pool.idle, self.pool.joined = 0, self.standing()
        self.turn_until(lambda: self.records()[0].joined_at, 30)

    def standing(self) -> list[str]:
        """The instances at the endpoint."""
        return list(self.site.ask("standing"))

    def records(self) -> tuple[MachineRecord, ...]:
        """The machines that the ledger knows."""
        return self.ledger.view(time.time()).machines

    def turn_until(self, condition: Any, seconds: float) -> None:
        """Cycles at the daemon's own pace."""
        until = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > until:
                raise TimeoutError(f"not within {seconds:.0f} s; {len(self.standing())} machines stand")
            self.daemon.cycle()
            if not condition():
                time.sleep(self.pause)

    def turn_for(self, seconds: float) -> int:
        """Cycles for so long; how many they were."""
        until, cycles = time.monotonic() + seconds, 0
        while time.monotonic() < until:
            self.daemon.cycle()
            cycles += 1
            time.sleep(max(0.0, min(self.pause, until - time.monotonic())))
        return cycles

    def calls_since(self, at: float) -> list[Any]:
        """The daemon's calls since a moment."""
        return [call for call in self.site.calls() if call.at >= at]


def user_data(launch: Launch, token: str) -> bytes:
    """As large as a worker's."""
    return f"#cloud-config\n# {launch.key} {token}\n".encode().ljust(8000, b"#")


def batch(trial: Trial) -> dict[str, Any]:
    """From the moment when 500 jobs wait until as many machines were made, and a while more."""
    at, begun, cpu = time.time(), time.monotonic(), time.process_time()
    trial.pool.idle = BATCH
    cycles = [0.0]
    while len(trial.standing()) < BATCH + 1:
        once = time.monotonic()
        trial.daemon.cycle()
        cycles.append(time.monotonic() - once)
        if time.monotonic() - begun > 120:
            raise TimeoutError(f"{len(trial.standing())} machines stand after 120 s")
    ended, used = time.monotonic(), time.process_time() - cpu
    busy = overlap(trial.site.spans(), begun, ended)
    trial.turn_for(10.0)
    launches = [call for call in trial.calls_since(at) if call.action == "RunInstances"]
    return {
        "run_instances_calls": len(launches),
        "asked_for": [call.count for call in launches],
        "machines": len(trial.standing()) - 1,
        "wall_s": round(ended - begun, 3),
        "endpoint_at_work_s": round(busy, 3),
        "own_s": round(ended - begun - busy, 3),
        "own_cpu_s": round(used, 3),
        "cycles_s": [round(took, 3) for took in cycles[1:]],
        "all_calls": dict(Counter(call.action for call in trial.calls_since(at))),
    }


def overlap(spans: Sequence[tuple[float, float]], begun: float, ended: float) -> float:
    """How much of this time the endpoint was at work on one call or several."""
    total, reached = 0.0, begun
    for start, end in sorted(spans):
        start, end = max(start, reached), min(end, ended)
        if end > start:
            total += end - start
            reached = end
    return total


def quiet(trial: Trial) -> dict[str, Any]:
    """A minute of 1,000 busy machines; what is asked more seldom than each minute is counted on top."""
    (one,) = trial.standing()
    trial.site.ask("multiply", one, CROWD - 1)
    trial.site.ask("quirks", {"quota": 2 * CROWD})
    trial.pool.joined = trial.standing()
    trial.turn_for(15.0)  # they are found, adopted and looked at
    at = time.time()
    cycles = trial.turn_for(QUIET)
    calls = Counter(call.action for call in trial.calls_since(at))
    at = time.time()
    trial.driver.offers()
    trial.driver.quota()
    seldom = Counter(call.action for call in trial.calls_since(at))
    return {
        "machines": len(trial.pool.joined),
        "cycles": cycles,
        "calls_in_a_minute": dict(calls),
        "calls_for_offers_and_quota": dict(seldom),
        "most_in_a_minute": calls.total() + seldom.total(),
        "machines_known": len(trial.records()),
    }


def main(what: str, folder: Path) -> None:
    with ExitStack() as stack:
        trial = Trial(folder, stack)
        found = {"batch": batch, "quiet": quiet}[what](trial)
    print(json.dumps(found))


if __name__ == "__main__":
    serving.start_log("json")
    main(sys.argv[1], Path(sys.argv[2]))
