"""A controller of ten clouds with 500 machines each, every answer of theirs taking 200 ms.

`python -m tests.bench.daemon.tenclouds FOLDER` prints what it measured as JSON: a new controller's first
cycle, those that follow, and those while one of the clouds takes 30 s for each answer. Processor time is told
beside: it hardly depends on who else is at work on the machine.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.daemon.whole import CrowdPool, cloud, daemon, timed
from tests.bench.decision import crowd
from tests.bench.rows import Measured, Row, spread
from updraft.app import serving
from updraft.clouds.fake import FakeCloud
from updraft.condor.base import PoolSlots
from updraft.condor.process.judge import Judge
from updraft.daemon import Cycle, Daemon
from updraft.garbage import look_seldom
from updraft.ledger import Ledger

CLOUDS = tuple(f"c{number}" for number in range(10))
ANSWER = 0.2
SLOW = 30.0
CYCLES = 15
PAUSE = 2.0
WATCHED = 40.0


class Far:
    """A fake cloud that takes `answer` seconds for each answer."""

    def __init__(self, near: FakeCloud) -> None:
        self.name = near.name
        self.answer = ANSWER
        self._near = near

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._near, name)

        def slow(*arguments: Any) -> Any:
            time.sleep(self.answer)
            return call(*arguments)

        return slow


class TenPool(CrowdPool):
    """The crowd's pool, with the slots of all ten."""

    def slots(self, deadline: float) -> PoolSlots:
        return self._children.call("the collector", deadline, crowd.pool_slots, time.time(), CLOUDS)


def measure(folder: Path) -> dict[str, Any]:
    """The first cycle, the following ones, and those with one cloud slow."""
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(folder / "ledger.sqlite"))
        judge = stack.enter_context(Judge())
        pool = TenPool()
        stack.callback(pool.close)
        now = time.time()
        with ledger.together():
            drivers = {name: Far(cloud(name, ledger, now)) for name in CLOUDS}
        policy = crowd.policy(0, CLOUDS)
        pool.slots(30.0)  # the stand-in of the collector has made its world, as a real one has
        pool.demand(crowd.SCHEDD, running=False, deadline=30.0)
        ledger.keep_at_work(_busy(pool), now)  # as the controller before it has left the ledger
        controller = daemon(ledger, drivers, pool, judge, policy)  # type: ignore[arg-type]
        look_seldom()
        begun = time.process_time()
        cold, cycle = timed(_first, judge, controller)
        own = [time.process_time() - begun]
        warm, parts = _cycles(controller, ledger, lambda done: len(done) >= CYCLES)
        own.append((time.process_time() - begun - own[0]) / CYCLES)
        known = sum(len(view.machines.value) for view in cycle.snapshot.clouds.values())  # type: ignore[union-attr]
        found = {
            "machines": known,
            "first_cycle_s": round(cold, 3),
            "cycle_s": spread(warm),
            "first_cycle_cpu_s": round(own[0], 3),
            "cycle_cpu_s": round(own[1], 3),
            "parts_s": {name: spread([each[name] for each in parts]) for name in parts[0]},
        }
        drivers[CLOUDS[3]].answer = SLOW
        begun = time.monotonic()
        slow, _ = _cycles(controller, ledger, lambda _: time.monotonic() - begun > WATCHED, PAUSE)
        return {**found, "one_slow_s": spread(slow), "one_slow_all_s": [round(took, 2) for took in slow]}


def _busy(pool: TenPool) -> frozenset[tuple[str, str]]:
    return frozenset((s.cloud, s.instance_id) for s in pool.slots(30.0).view.slots if s.busy)


def _first(judge: Judge, controller: Daemon) -> Cycle:
    """What a daemon begins with: its judge's child, and a cycle."""
    judge.begin()
    return controller.cycle()


def _cycles(
    controller: Daemon, ledger: Ledger, over: Callable[[list[float]], bool], pause: float = 0.0
) -> tuple[list[float], list[dict[str, float]]]:
    """How long each cycle took, and its parts as far as they were written down."""
    taken: list[float] = []
    parts: list[dict[str, float]] = []
    while not over(taken):
        taken.append(timed(controller.cycle)[0])
        parts.append((ledger.last_cycle() or {})["timings"])
        time.sleep(pause)
    return taken, parts


def in_a_process() -> dict[str, Any]:
    """All of it, measured in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="updraft-ten-") as folder:
        command = [sys.executable, "-m", __name__, folder]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-1000:])
    return dict(json.loads(done.stdout))


def rows(seen: Callable[[], dict[str, Any]]) -> list[Row]:
    """The rows of ten clouds; `seen` is what was measured."""
    what = "one cycle with 10 clouds × 500 machines, answers in 200 ms each"

    def slow() -> Measured:
        return Measured(seen()["one_slow_s"]["max"], seen())

    return [
        Row("ten-clouds", f"{what}: p95", 2.0, "s", lambda: Measured(seen()["cycle_s"]["p95"], seen())),
        Row(
            "ten-clouds-cold",
            f"{what}: the first",
            2.0,
            "s",
            lambda: Measured(seen()["first_cycle_s"], seen()),
        ),
        Row("ten-clouds-slow", f"{what}, but 30 s on one of them: the slowest", 4.0, "s", slow),
    ]


if __name__ == "__main__":
    serving.start_log("json")
    print(json.dumps(measure(Path(sys.argv[1]))))
