"""From nothing to 1,000 machines that have joined: updraft beside csv2's rule, on the same demand and boots.

Both are simulated. Jobs run for longer than it takes, each on a machine of its own, so that whoever asks for
the machines sooner has them sooner: how many are asked for at a time is all that differs.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from tests.bench.rows import Measured
from updraft.core.model import Resources
from updraft.core.plan import plan as core_plan
from updraft.sim.conditions import Boots, Conditions, example_clouds, example_policy
from updraft.sim.rivals import RIVALS
from updraft.sim.workloads.workload import DISK, GIB, Arrival
from updraft.sim.world.simulation import Decide, simulate

MACHINES = 1000
CORES = 4
LONG = 40 * 3600.0  # seconds: nobody's job ends before the last machine is there
MEDIANS = (90.0, 300.0)  # seconds from the request to the join
UPDRAFTS_CYCLE = 2.0  # seconds, as the daemon's


@dataclass(frozen=True, slots=True)
class Ramp:
    """How many seconds after the jobs the machine of that number had joined; None where none had in time."""

    first: float | None
    half: float | None
    last: float | None


def ramp(decide: Decide, cycle: float, boots: Boots) -> Ramp:
    """Let a thousand jobs arrive at once, and note when their machines join."""
    jobs = [Arrival(0.0, "user", Resources(CORES, GIB, DISK), LONG)] * MACHINES
    conditions = Conditions(cycle=cycle, boots=boots, horizon=LONG)
    found = simulate(jobs, example_policy(), example_clouds((CORES,)), decide=decide, conditions=conditions)
    joined = np.sort(found.machines.joined_at[~np.isnan(found.machines.joined_at)])

    def at(number: int) -> float | None:
        return round(float(joined[number - 1]), 1) if len(joined) >= number else None

    return Ramp(at(1), at(MACHINES // 2), at(MACHINES))


def sooner() -> Measured:
    """How many times sooner updraft has its last machine: the smaller ratio of those for two boot times."""
    csv2 = RIVALS["csv2"]
    seen: dict[str, Mapping[str, Any]] = {}
    ratios = []
    for median in MEDIANS:
        boots = Boots(median)
        mine = ramp(core_plan, UPDRAFTS_CYCLE, boots)
        theirs = ramp(csv2.factory(()), csv2.cycle, boots)
        seen[f"boots of {median:g} s"] = {"updraft": asdict(mine), "csv2": asdict(theirs)}
        if mine.last is None:
            raise RuntimeError(f"updraft had no {MACHINES} machines after {LONG:g} s")
        # Where csv2 has not got there in all that time, its time is longer still.
        ratios.append((theirs.last or LONG) / mine.last)
    return Measured(min(ratios), seen)
