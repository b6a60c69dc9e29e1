"""A whole trace through the fast simulator. As a program: prints what came of it as JSON.

The traces are not part of the project: they are looked for in the folder that UPDRAFT_TRACES names, else in
`traces` or `shared/traces` beside the folder that the project is in.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.bench.rows import Measured, SkippedError
from updraft.garbage import look_seldom
from updraft.sim.conditions import example_clouds, example_policy
from updraft.sim.reports.metrics import clairvoyant, metrics
from updraft.sim.workloads.swf import read_swf
from updraft.sim.world.simulation import simulate

LCG = "LCG-2005.swf.gz"
SIZES = (4, 8, 16, 32)  # cores: what a site buys for a thousand of them
LONGEST = 1800  # seconds


def traces() -> Path:
    """The folder of the traces."""
    named = os.environ.get("UPDRAFT_TRACES")
    beside = Path(__file__).resolve().parents[4]
    if named:
        return Path(named)
    return next(
        (one for one in (beside / "traces", beside / "shared/traces") if one.is_dir()), beside / "traces"
    )


def whole() -> Measured:
    """LCG-2005 from its first line to its figures, in a process of its own: the time of its one core."""
    if not (traces() / LCG).is_file():
        raise SkippedError(f"there is no {traces() / LCG}: name its folder in UPDRAFT_TRACES")
    done = subprocess.run(
        [sys.executable, "-m", __name__, LCG], capture_output=True, text=True, check=False, timeout=LONGEST
    )
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-1000:])
    seen = json.loads(done.stdout)
    return Measured(seen["cpu_s"], seen)


def play(name: str) -> dict[str, Any]:
    """Simulate a trace with the example's policy and machines."""
    begun, cpu = time.perf_counter(), time.process_time()
    work = read_swf(traces() / name).arrivals
    look_seldom()
    clouds = example_clouds(SIZES)
    outcome = simulate(work, example_policy(), clouds)
    found = metrics(
        outcome, clairvoyant(work, [offer for cloud in clouds.values() for offer in cloud.offers])
    )
    names = ("jobs", "completed", "killed", "machines", "wait_mean", "wait_p95", "cost", "over_bound")
    return {
        "cpu_s": round(time.process_time() - cpu, 1),
        "wall_s": round(time.perf_counter() - begun, 1),
        "cycles": outcome.cycles,
        **{name: getattr(found, name) for name in names},
    }


if __name__ == "__main__":
    print(json.dumps(play(sys.argv[1])))
