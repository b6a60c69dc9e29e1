"""Runs on a head: the daemon's cycles about 5,000 machines that its collector has ads of. Prints JSON.

Between two cycles one machine in thirty sends its ad anew: a look every ten seconds of machines that
advertise themselves every five minutes.
"""

import json
import os
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.daemon.whole import children, cloud, daemon, memory, timed
from tests.bench.decision import crowd
from tests.bench.pool.cycle_ads import send
from tests.bench.rows import spread
from updraft.app import serving
from updraft.condor.access import PoolAccess
from updraft.condor.pool import HTCondorPool
from updraft.condor.process.children import Children
from updraft.condor.process.judge import Judge
from updraft.core.model import Phase
from updraft.daemon import Cycle
from updraft.garbage import look_seldom
from updraft.ledger import Ledger

CLOUDS = tuple(f"c{number}" for number in range(10))
CYCLES = 15
PARTS = 30
DEADLINE = 120.0


def measure(folder: Path) -> dict[str, Any]:
    """The first cycle, and those that follow."""
    with ExitStack() as stack:
        startds = Children({})
        stack.callback(startds.close)
        sent = startds.call("the startds", DEADLINE, send, CLOUDS, 0, 1)
        ledger = stack.enter_context(Ledger(folder / "ledger.sqlite"))
        judge = stack.enter_context(Judge())
        pool = stack.enter_context(HTCondorPool(PoolAccess(crowd.POOL)))
        with ledger.together():
            drivers = {name: cloud(name, ledger, time.time()) for name in CLOUDS}
        controller = daemon(ledger, drivers, pool, judge, crowd.policy(0, CLOUDS))  # type: ignore[arg-type]
        look_seldom()
        judge.begin()
        processor = time.process_time()
        first, cycle = timed(controller.cycle)
        cold = time.process_time() - processor
        taken, resident, parts, own = [], [], [], []
        for number in range(CYCLES):
            startds.call("the startds", DEADLINE, send, CLOUDS, number % PARTS, PARTS)
            processor = time.process_time()
            took, cycle = timed(controller.cycle)
            own.append(time.process_time() - processor)
            taken.append(took)
            resident.append(memory(os.getpid())["VmRSS"])
            parts.append((ledger.last_cycle() or {})["timings"])
        return {
            "world": world(cycle),
            "first_cycle_s": round(first, 3),
            "first_cycle_cpu_s": round(cold, 3),
            "cycle_s": spread(taken),
            "cycle_all_s": [round(each, 2) for each in taken],
            "cycle_cpu_s": spread(own),
            "last_saved_parts_s": parts[-1],
            "asking_s": _asked(controller),
            "resident_mib": spread(resident),
            "children_mib": children(),
            "advertising_all_s": round(sent, 3),
        }


def _asked(controller: Any) -> dict[str, float]:
    """How long collector and schedds took for their last answers."""
    look = controller._observer
    found = {"collector": look._collector.took}
    found |= {name: asker.took for name, asker in look._schedds._askers.items()}
    return {name: round(took, 3) for name, took in found.items()}


def world(cycle: Cycle) -> dict[str, int]:
    """How large what was decided about is, counted in what was seen."""
    snapshot = cycle.snapshot
    (view,) = (source.value for source in snapshot.schedds.values())  # type: ignore[union-attr]
    return {
        "joined": sum(one.phase is Phase.JOINED for one in cycle.plan.machines),
        "busy": len(cycle.plan.at_work or ()),
        "slots": len(snapshot.collector.value.slots),  # type: ignore[union-attr]
        "idle_jobs": view.idle_total,
        "groups": len(view.groups),
        "kinds": len(snapshot.kinds),
        "offers": len(snapshot.offers),
        "jobs_placed": sum(one.joined for one in cycle.plan.groups),
    }


if __name__ == "__main__":
    serving.start_log("json")
    with tempfile.TemporaryDirectory(prefix="updraft-cycle-") as place:
        print(json.dumps(measure(Path(place))))
