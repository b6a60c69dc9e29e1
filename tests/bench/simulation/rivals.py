"""updraft beside its rivals on a whole trace: who pays no more and waits no longer?

All get the same jobs, offers, limits, boots and seed; each looks at its own period. updraft is simulated with
several idle limits, which are its front. Every simulation is a process of its own, two at a time, and nothing
is kept from one call to the next.

As a program: `python -m tests.bench.simulation.rivals lcg` shows the comparison as a table, with `--jobs N`
on the trace's first jobs alone; `--only NAME` prints the figures of one simulation as JSON.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from tests.bench.rows import Measured, Row, SkippedError
from tests.bench.simulation.simulated import LCG, traces
from updraft.core.plan import plan as core_plan
from updraft.core.settings import Policy
from updraft.garbage import look_seldom
from updraft.sim.conditions import Conditions, example_clouds, example_policy
from updraft.sim.reports.metrics import clairvoyant, metrics
from updraft.sim.rivals import RIVALS
from updraft.sim.sweep import front
from updraft.sim.workloads.sources import Workload, first_of, fitted
from updraft.sim.workloads.swf import read_swf
from updraft.sim.world.simulation import simulate
from updraft.sim.world.stock import bought, slots_of

FILES = {"lcg": LCG, "nasa": "NASA-iPSC-1993-3.1-cln.swf.gz"}
TITLES = {"lcg": "LCG-2005", "nasa": "NASA-iPSC"}
SIZES = (2, 4, 8, 16, 32)  # cores
CYCLE = 30.0  # seconds between two of updraft's looks: the daemon's are 2 s apart, so this is unkind to it
IDLE_LIMITS = {"updraft 30s": 30.0, "updraft 1m": 60.0, "updraft 2m": 120.0, "updraft 5m": 300.0,
               "updraft 10m": 600.0}  # fmt: skip
JUDGED = "updraft 1m"
NAMES = (*IDLE_LIMITS, *RIVALS)
AT_ONCE = 2
LONGEST = 4 * 3600.0  # seconds that one simulation may take
P95_AT_MOST = 600.0  # seconds


@dataclass(frozen=True, slots=True)
class Point:
    """What came of one simulation: `cost` as a multiple of the least possible one, waits in seconds.

    `unfinished` jobs had not ended when the simulation did; then cost and wait can't be compared.
    """

    name: str
    rival: bool
    cycle: float
    cost: float
    wait: float
    wait_p95: float
    killed: int = 0
    unfinished: int = 0
    machines: int = 0
    cpu_s: float = 0.0
    jobs: int = 0
    bound: float = 0.0


# ------------------------------------------------------------------------------------------- arithmetic


def not_worse(one: Point, other: Point) -> bool:
    """Does one pay no more and wait no longer than the other? Equals are, and who left jobs undone isn't."""
    return not one.unfinished and one.cost <= other.cost and one.wait <= other.wait


def not_worse_than(mine: Point, points: Sequence[Point]) -> list[str]:
    """The rivals that pay no more and wait no longer than this setting of updraft: there must be none."""
    return [one.name for one in points if one.rival and not_worse(one, mine)]


def beaten_by(points: Sequence[Point]) -> dict[str, list[str]]:
    """For each rival, the settings of updraft that are better than it in cost and in wait.

    One that left jobs undone is beaten by all that didn't.
    """
    ours = [one for one in points if not one.rival and not one.unfinished]
    return {
        rival.name: [
            one.name for one in ours if rival.unfinished or (one.cost < rival.cost and one.wait < rival.wait)
        ]
        for rival in points
        if rival.rival
    }


def own_front(points: Sequence[Point]) -> list[Point]:
    """The settings of updraft that no other of its settings beats, by cost."""
    ours = [one for one in points if not one.rival and not one.unfinished]
    return [ours[index] for index in front([(one.cost, one.wait) for one in ours])]


# ------------------------------------------------------------------------------------------- simulations


def read(trace: str, jobs: int | None = None) -> Workload:
    """The trace's jobs (the first so many), those that no machine holds as jobs of one core.

    Raises SkippedError where the trace isn't there.
    """
    path = traces() / FILES[trace]
    if not path.is_file():
        raise SkippedError(f"there is no {path}: name its folder in UPDRAFT_TRACES")
    whole = read_swf(path)
    some = whole if jobs is None else first_of(whole, jobs)
    return fitted(some, slots_of(example_policy(), example_clouds(SIZES)))


def play(name: str, work: Workload) -> Point:
    """Simulate one rival, or updraft with one idle limit."""
    begun = time.process_time()
    look_seldom()
    jobs, clouds, policy = work.arrivals, example_clouds(SIZES), example_policy()
    if name in RIVALS:
        cycle, decide = RIVALS[name].cycle, RIVALS[name].factory(jobs)
    else:
        cycle, decide, policy = CYCLE, core_plan, _with_idle_limit(policy, IDLE_LIMITS[name])
    conditions = (
        Conditions(cycle=cycle) if work.begins is None else Conditions(cycle=cycle, begins=work.begins)
    )
    bound = clairvoyant(jobs, bought(policy, clouds))
    found = metrics(simulate(jobs, policy, clouds, decide=decide, conditions=conditions), bound)
    return Point(
        name=name,
        rival=name in RIVALS,
        cycle=cycle,
        cost=found.cost / bound,
        wait=found.wait_mean,
        wait_p95=found.wait_p95,
        killed=found.killed,
        unfinished=found.jobs - found.completed,
        machines=found.machines,
        cpu_s=round(time.process_time() - begun, 1),
        jobs=found.jobs,
        bound=round(bound, 2),
    )


def _with_idle_limit(policy: Policy, limit: float) -> Policy:
    classes = {name: replace(worker, idle_limit=limit) for name, worker in policy.classes.items()}
    return replace(policy, classes=classes)


class Field:
    """All of them on both traces, each simulated when it is first asked for.

    Pictures go beside `beside`, the file of the figures; `jobs` keeps to the first jobs of a trace.
    """

    def __init__(self, beside: Path, say: Callable[[str], None], jobs: int | None = None) -> None:
        self._beside = beside
        self._say = say
        self._jobs = jobs
        self._known: dict[tuple[str, str], Point] = {}

    def rows(self) -> list[Row]:
        """The rows of `make bench`. Whole traces take long: they come by name."""
        none = "rivals of all that pay no more and wait no longer than updraft"
        bound = "LCG-2005, whole: cost ÷ the least possible cost, p95 of the waits ≤ 10 min"
        compared = [
            Row(
                f"rivals-{key}",
                f"{title}, whole: {none}",
                0,
                "rivals",
                partial(self.compared, key),
                by_name=True,
            )
            for key, title in TITLES.items()
        ]
        return [*compared, Row("bound-lcg", bound, 1.15, "×", partial(self.over_bound, "lcg"), by_name=True)]

    def points(self, trace: str, names: Sequence[str] = NAMES) -> list[Point]:
        """What came of these. Raises SkippedError without the trace, RuntimeError where one fails."""
        read(trace, 1)
        with ThreadPoolExecutor(AT_ONCE) as some:
            return list(some.map(lambda name: self._point(trace, name), names))

    def _point(self, trace: str, name: str) -> Point:
        if (trace, name) not in self._known:
            me = __name__ if __name__ != "__main__" else "tests.bench.simulation.rivals"
            command = [sys.executable, "-m", me, trace, "--only", name]
            command += [] if self._jobs is None else ["--jobs", str(self._jobs)]
            done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LONGEST)
            if done.returncode != 0:
                raise RuntimeError(f"{name} on {trace}: {done.stderr.strip()[-1000:]}")
            point = self._known[trace, name] = Point(**json.loads(done.stdout))
            self._say(line(point))
        return self._known[trace, name]

    def compared(self, trace: str) -> Measured:
        """How many rivals pay no more and wait no longer than updraft. Draws all of them."""
        found = self.points(trace)
        mine = next(one for one in found if one.name == JUDGED)
        path = self._beside.with_name(f"{self._beside.stem}-rivals-{trace}.svg")
        draw(found, f"{TITLES[trace]}, {found[0].jobs:,} jobs", path)
        beaten = beaten_by(found)
        detail: Mapping[str, Any] = {
            "judged": JUDGED,
            "not_worse_than": {one.name: not_worse_than(one, found) for one in found if not one.rival},
            "beaten_by": beaten,
            "not_beaten": [name for name, settings in beaten.items() if not settings],
            "front": [one.name for one in own_front(found)],
            "points": [asdict(one) for one in found],
            "picture": str(path),
            "sizes": SIZES,
        }
        return Measured(len(not_worse_than(mine, found)) if not mine.unfinished else len(RIVALS), detail)

    def over_bound(self, trace: str) -> Measured:
        """Cost ÷ the least possible cost. Raises RuntimeError where the p95 wait is above ten minutes."""
        (mine,) = self.points(trace, [JUDGED])
        if mine.wait_p95 > P95_AT_MOST or mine.unfinished:
            raise RuntimeError(
                f"p95 of the waits is {mine.wait_p95:.0f} s, {mine.unfinished} jobs are undone"
            )
        return Measured(mine.cost, asdict(mine))


# ------------------------------------------------------------------------------------------------ to see


def line(point: Point) -> str:
    """One simulation in one line."""
    undone = f", {point.unfinished} jobs undone" if point.unfinished else ""
    killed = f", {point.killed} killed" if point.killed else ""
    waits = f"wait {point.wait:8.1f} s in the mean, {point.wait_p95:8.1f} s p95"
    others = f"{point.machines:6} machines, {point.cpu_s:6.1f} s of a core{killed}{undone}"
    return f"{point.name:16} cost {point.cost:6.3f} × the bound, {waits}, {others}"


def draw(points: Sequence[Point], title: str, path: Path) -> None:
    """All that finished by cost and mean wait, and updraft's front."""
    from updraft.sim.reports.charts import Dot, landscape, save

    def dot(one: Point) -> Dot:
        return Dot(one.name, one.cost, one.wait, one.rival, one.killed > 0)

    done = [one for one in points if not one.unfinished]
    save(landscape([dot(one) for one in done], [dot(one) for one in own_front(done)], title), path)


def main() -> int:
    """A comparison, or one simulation of it."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.simulation.rivals", description=__doc__)
    parser.add_argument("trace", choices=list(FILES))
    parser.add_argument("--only", choices=NAMES, help="simulate this one and print its figures as JSON")
    parser.add_argument("--jobs", type=int, help="only the first so many jobs of the trace")
    parser.add_argument(
        "--json", type=Path, default=Path("bench.json"), help="the picture is written beside it"
    )
    asked = parser.parse_args()
    try:
        work = read(asked.trace, asked.jobs)
    except SkippedError as why:
        parser.error(str(why))
    if asked.only:
        print(json.dumps(asdict(play(asked.only, work))))
        return 0
    field = Field(asked.json, lambda text: print(text, flush=True), asked.jobs)
    found = field.compared(asked.trace)
    print(json.dumps({name: value for name, value in found.detail.items() if name != "points"}, indent=1))
    return 0 if found.value == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
