"""A controller at work on the crowd, in a process of its own: what a cycle takes, and how much memory.

`python -m tests.bench.daemon.whole FOLDER` leaves the ledger in the folder and prints what it measured as
JSON.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.daemon.quiet import Quiet
from tests.bench.decision import crowd
from tests.bench.rows import spread
from updraft.act import Actor
from updraft.app import serving, wiring
from updraft.clouds.base import TAG_CLASS, TAG_GENERATION, TAG_LAUNCH, TAG_POOL, LaunchRequest, Machines
from updraft.clouds.cloud import Cloud
from updraft.clouds.fake import FakeCloud, Site, site_settings
from updraft.condor.base import PoolSlots
from updraft.condor.process.children import Children
from updraft.condor.process.judge import Judge
from updraft.core.model import (
    Launch,
    LaunchRecord,
    LaunchState,
    MachineRecord,
    ScheddView,
    Snapshot,
)
from updraft.core.plan import Planning, plan
from updraft.core.settings import Policy
from updraft.daemon import Daemon, Parts, Switch
from updraft.garbage import look_seldom
from updraft.ledger import Ledger
from updraft.observe import Observer

CYCLES = 15
TIMES = 7
AGE = 3600.0
LEDGER = "ledger.sqlite"


class CrowdPool(Quiet):
    """Implements `updraft.condor.base.Pool`. Its answers come out of real children, as a real pool's do."""

    def __init__(self) -> None:
        self._children = Children({})

    def schedds(self, deadline: float) -> tuple[str, ...]:
        return (crowd.SCHEDD,)

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        return self._children.call(f"schedd {schedd}", deadline, crowd.demand, time.time())

    def slots(self, deadline: float) -> PoolSlots:
        return self._children.call("the collector", deadline, crowd.pool_slots, time.time())

    def close(self) -> None:
        """End the children."""
        self._children.close()


def cloud(name: str, ledger: Ledger, now: float) -> FakeCloud:
    """A cloud with its share of the machines, all running, and each written in the ledger."""
    sold = {
        flavor: {
            "cpus": size.cpus,
            "memory": f"{size.memory}MiB",
            "disk": f"{size.disk}KiB",
            "gpus": size.gpus,
            "price": price,
        }
        for flavor, (size, price) in crowd.flavors().items()
    }
    boots = [{"start": "5s", "never_joins": 1.0}]
    site = Site(
        name, site_settings(name, {"zones": [crowd.ZONE], "flavors": sold, "boots": boots}), time.time
    )
    site.clock = lambda: now - AGE
    driver = FakeCloud(site, crowd.POOL)
    for batch in crowd.batches(name):
        _launched(batch, driver, ledger, now)
    site.clock = time.time
    return driver


def _launched(batch: crowd.Batch, driver: FakeCloud, ledger: Ledger, now: float) -> None:
    tags = {TAG_POOL: crowd.POOL, TAG_CLASS: batch.worker_class, TAG_LAUNCH: batch.key}
    tags[TAG_GENERATION] = crowd.GENERATION
    made = driver.launch(
        LaunchRequest(
            batch.key, crowd.EACH, crowd.IMAGE, batch.flavor, crowd.ZONE, "on-demand", b"x" * 8000, tags
        )
    )
    ids = tuple(one.id for one in made)
    if ids != batch.ids:
        raise AssertionError(f"the cloud numbers its machines otherwise: {ids}")
    size, price = crowd.flavors()[batch.flavor]
    launch = LaunchRecord(
        batch.key, batch.cloud, crowd.ZONE, batch.flavor, "on-demand", batch.worker_class, crowd.IMAGE,
        crowd.GENERATION, crowd.EACH, size, price, now - AGE, LaunchState.INTENDED,
    )  # fmt: skip
    ledger.intend(launch)
    ledger.outcome(batch.key, LaunchState.ACCEPTED, ids)
    for joined in (None, now - AGE + 60):  # the second time teaches how long a boot takes
        ledger.remember(_record(one, launch, joined, now) for one in ids)


def _record(machine: str, launch: LaunchRecord, joined: float | None, now: float) -> MachineRecord:
    return MachineRecord(
        machine, launch.cloud, launch.key, launch.worker_class, launch.flavor, launch.generation,
        now - AGE, launch.resources, launch.zone, launch.market, launch.image, launch.price,
        joined_at=joined, last_claimed_at=joined and now - 5, job_starts=7, seen_at=now - AGE + 3,
    )  # fmt: skip


def daemon(
    ledger: Ledger,
    machines: Mapping[str, Machines],
    pool: CrowdPool,
    judge: Judge,
    policy: Policy | None = None,
) -> Daemon:
    """The real daemon on the crowd: only what it asks is made up."""

    def user_data(launch: Launch, token: str) -> bytes:
        return f"{launch.key} {token}".encode()

    clouds = {name: Cloud(name, one) for name, one in machines.items()}
    parts = Parts(policy or crowd.policy(), pool, clouds, user_data)
    actor = Actor(
        policy=parts.policy, pool=pool, clouds=clouds, user_data=user_data, ledger=ledger, clock=time.time
    )
    observer: Observer = wiring.make_observer(parts, ledger)
    return Daemon(
        parts=parts,
        ledger=ledger,
        observer=observer,
        preparer=wiring.make_preparer(ledger, judge),
        actor=actor,
        plan=Planning(),
        clock=time.time,
        switch=Switch(),
    )


def measure(folder: Path) -> dict[str, Any]:
    """Cycles, then the memory, then the parts of a decision by themselves."""
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(folder / LEDGER))
        judge = stack.enter_context(Judge())
        pool = CrowdPool()
        stack.callback(pool.close)
        now = time.time()
        with ledger.together():
            drivers = {name: cloud(name, ledger, now) for name in crowd.CLOUDS}
        controller = daemon(ledger, drivers, pool, judge)
        look_seldom()
        begun, cycle = timed(controller.cycle)
        cycles, resident, parts = [], [], []
        for _ in range(CYCLES):
            took, cycle = timed(controller.cycle)
            cycles.append(took)
            resident.append(memory(os.getpid())["VmRSS"])
            parts.append((ledger.last_cycle() or {})["timings"])
        found = {
            "world": world(cycle.snapshot),
            "first_cycle_s": round(begun, 3),
            "cycle_s": spread(cycles),
            "last_saved_parts_s": parts[-1],
            "resident_mib": spread(resident),
            "peak_mib": memory(os.getpid())["VmHWM"],
            "children_mib": children(),
        }
        return {**found, "decision": decision(cycle.snapshot, judge, controller)}


def decision(snapshot: Snapshot, judge: Judge, controller: Daemon) -> dict[str, Any]:
    """The warm verdicts, the plan with more or less to buy, and the whole look, each some times over."""
    groups, kinds = snapshot.schedds[crowd.SCHEDD].value.groups, list(snapshot.kinds.values())  # type: ignore[union-attr]
    room = {"bought_out": 100, "room_for_100_more": 200, "no_limit": None}
    found = {
        f"plan_{name}_s": spread([timed(plan, snapshot, crowd.policy(more))[0] for _ in range(TIMES)])
        for name, more in room.items()
    }
    judged = [timed(judge.verdicts, groups, kinds, snapshot.now, 10.0)[0] for _ in range(TIMES)]
    looks = [timed(_look, controller)[0] for _ in range(TIMES)]
    machines = {
        name: sum(getattr(action, "count", 0) for action in plan(snapshot, crowd.policy(more)).actions)
        for name, more in room.items()
    }
    return {**found, "verdicts_warm_s": spread(judged), "look_s": spread(looks), "would_launch": machines}


def _look(controller: Daemon) -> Snapshot:
    seen = controller._observer.look(time.time())
    return controller._preparer.at_once(seen, controller.policy).snapshot


def timed(call: Callable[..., Any], *arguments: object) -> tuple[float, Any]:
    """How long a call took, and what it returned."""
    begun = time.perf_counter()
    value = call(*arguments)
    return time.perf_counter() - begun, value


def world(snapshot: Snapshot) -> dict[str, int]:
    """How large what was decided about is, counted in the snapshot itself."""
    slots = snapshot.collector.value.slots  # type: ignore[union-attr]
    view = snapshot.schedds[crowd.SCHEDD].value  # type: ignore[union-attr]
    return {
        "machines": sum(record.ended_at is None for record in snapshot.ledger.machines),
        "slots": len(slots),
        "busy_slots": sum(slot.busy for slot in slots),
        "idle_jobs": sum(group.idle for group in view.groups),
        "groups": len(view.groups),
        "offers": len(snapshot.offers),
        "kinds": len(snapshot.kinds),
        "pairs_decided": sum(verdict.decided for verdict in snapshot.verdicts.values()),
        "pairs_that_match": sum(verdict.copies > 0 for verdict in snapshot.verdicts.values()),
    }


def memory(pid: int) -> dict[str, float]:
    """VmRSS and VmHWM of a process, in MiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    sizes = {line.partition(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return {name: round(int(sizes[name]) / 1024, 1) for name in ("VmRSS", "VmHWM")}


def children() -> dict[str, float]:
    """The resident memory of every process that this one has started, by id and name."""
    found = {}
    # A list for each thread: the children of a source are started by the thread that asks it.
    lists = (path.read_text().split() for path in Path("/proc/self/task").glob("*/children"))
    for pid in sorted({int(pid) for pids in lists for pid in pids}):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        kind = "tracker" if any(b"resource_tracker" in word for word in words) else "child"
        found[f"{kind} {pid}"] = memory(pid)["VmRSS"]
    return found


if __name__ == "__main__":
    serving.start_log("json")
    print(json.dumps(measure(Path(sys.argv[1]))))
