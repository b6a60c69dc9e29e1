"""One cycle of the daemon on a real head: 5,000 machines in its collector, 50,000 idle jobs in its schedd.

The machines are ads, advertised by HTCondor's bindings as startds advertise theirs, and instances of ten
clouds in memory. All else is real: the daemon with its ledger, its children that ask collector and schedd,
and the judge. No job is matched, since nobody is behind the ads.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.bench.pool import queue
from tests.bench.rows import Measured, Row
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool, Wishes, bring_up

GROUPS = 100
HERE = Path(__file__).parents[1]
PROGRAM = "tests.bench.pool.cycle_on_head"
# What the head needs of the benchmarks: it has updraft itself, and none of its tests.
FILES = (
    *("__init__", "rows", "daemon/__init__", "daemon/quiet", "daemon/whole", "decision/__init__"),
    *("decision/crowd", "pool/__init__", "pool/cycle_ads", "pool/cycle_on_head"),
)
SETTINGS = {
    "MAX_JOBS_PER_OWNER": "200000",
    "MAX_JOBS_SUBMITTED": "200000",
    "NEGOTIATOR_JOB_CONSTRAINT": "false",
    "NEGOTIATOR_SLOT_CONSTRAINT": "false",
}


def measure(image: Image, folder: Path, say: Callable[[str], None]) -> dict[str, Any]:
    """A pool without a controller; a program on its head is the controller."""
    folder.mkdir(parents=True, exist_ok=True)
    pool = bring_up(image, folder, say, Wishes(controller=False, head_settings=SETTINGS))
    try:
        say(f"Submitting {GROUPS * queue.EACH:,} jobs.")
        queue.submit(pool, GROUPS)
        say("A controller at work on the head: 5,000 machines.")
        seen = _run(pool)
    finally:
        pool.cloud.stop()
    world = seen["world"]
    if (world["joined"], world["idle_jobs"], world["groups"]) != (5_000, GROUPS * queue.EACH, GROUPS):
        raise AssertionError(f"the daemon saw something else: {json.dumps(world)}")
    return seen


def _run(pool: RealPool) -> dict[str, Any]:
    home = "/root/bench"
    _put(pool, f"{home}/tests/__init__.py", "")
    for name in FILES:
        _put(pool, f"{home}/tests/bench/{name}.py", (HERE / f"{name}.py").read_text())
    path = f"PYTHONPATH=/opt/updraft/src:/opt/updraft/lib:{home}"
    done = pool.on_head("env", path, "python3", "-P", "-m", PROGRAM, timeout=400)
    if done.returncode != 0:
        raise RuntimeError(f"the program on the head failed: {done.stderr.strip()[-1500:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _put(pool: RealPool, file: str, text: str) -> None:
    done = pool.on_head("sh", "-c", f"mkdir -p {Path(file).parent} && cat > {file}", stdin=text)
    if done.returncode != 0:
        raise RuntimeError(f"{file} can't be written on the head: {done.stderr.strip()}")


def rows(seen: Callable[[], dict[str, Any]]) -> list[Row]:
    """The rows of such a cycle; `seen` is what was measured."""
    what = "one updraft cycle at 5,000 joined machines and 50,000 idle jobs in a real schedd"
    return [
        Row("cycle-5000", f"{what}: p95", 3.0, "s", lambda: Measured(seen()["cycle_s"]["p95"], seen())),
        Row(
            "cycle-5000-memory",
            f"{what}: the daemon's resident memory",
            300.0,
            "MiB",
            lambda: Measured(seen()["resident_mib"]["max"], {"children_mib": seen()["children_mib"]}),
        ),
    ]
