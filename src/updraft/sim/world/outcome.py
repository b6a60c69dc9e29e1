"""What became of a simulation: columns of jobs, of machines and of the cycles, for whoever counts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class JobColumns:
    """One entry for each job, in the order of arrival. Times are seconds of the workload; NaN is never.

    `seconds` is how long it runs undisturbed, `ended` when it was completed; `owner` is an index into
    `owners`. `runs` counts its starts, `kills` the runs that an order of the controller ended. `ran` are the
    seconds that all its runs took together, those that came to nothing included.
    """

    submitted: Floats
    first_start: Floats
    ended: Floats
    seconds: Floats
    ran: Floats
    cpus: Integers
    owner: Integers
    runs: Integers
    kills: Integers
    owners: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.submitted)


@dataclass(frozen=True, slots=True)
class MachineColumns:
    """One entry for each machine that was ever made. Times are seconds of the workload; NaN is never.

    It is paid for from `asked_at` to `ended_at` (its order to end, or its own death), `paid` seconds as its
    cloud bills them, at `price` per hour (0 where no price is known). `worker_class`, `cloud`, `flavor` and
    `market` are names.
    """

    asked_at: Floats
    joined_at: Floats
    ended_at: Floats
    cpus: Integers
    price: Floats
    paid: Floats
    worker_class: tuple[str, ...]
    cloud: tuple[str, ...]
    flavor: tuple[str, ...]
    market: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.asked_at)


@dataclass(frozen=True, slots=True)
class SeriesColumns:
    """What was so at each cycle of the controller: `t` in seconds of the workload, the rest at that time.

    `waiting` jobs idle in the queue, `wanted` the cores that idle and running jobs ask for together,
    `running` the cores of claims, `booted` the cores of machines that have joined, `paid` those of all
    machines that are paid for, `machines` how many these are, `cost` what they cost per hour.
    """

    t: Floats
    waiting: Integers
    wanted: Integers
    running: Integers
    booted: Integers
    paid: Integers
    machines: Integers
    cost: Floats

    def __len__(self) -> int:
        return len(self.t)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a simulation, from second `begun` to second `ended` of the workload.

    `killed` counts runs of jobs that an order of the controller ended, `lost` those that ended with their
    machine's own death or interruption. `calls` are API calls to the clouds by name. `violations` counts the
    cycles in which a limit of the policy was exceeded, by "machines", "cores" and "cost". `refused_drains`
    are atomic drains that found a machine busy. `cycles` counts the looks, `decisions` those of them for
    which the policy was asked (it isn't where nothing has changed and nothing can be due).
    """

    jobs: JobColumns
    machines: MachineColumns
    series: SeriesColumns
    begun: float
    ended: float
    killed: int = 0
    lost: int = 0
    refused_drains: int = 0
    cycles: int = 0
    decisions: int = 0
    calls: Mapping[str, int] = field(default_factory=dict)
    violations: Mapping[str, int] = field(default_factory=dict)
