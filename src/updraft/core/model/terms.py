"""What a job says of the machine that it wants, beyond what HTCondor itself has words for.

The terms come from literal values in the job's ad: updraft's own names and those of Cloud Scheduler. An ad is
a stranger's text: nothing in it is evaluated, opened or fetched for its terms, and what is none of a plain
value of the right kind is a fault that is told to its owner.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.core.model.basics import Reason


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of one job; what is empty or None is asked of nobody.

    `images` and `flavors` are by cloud, "" for every cloud that isn't named. `clouds` are the only ones that
    will do. `networks` is as `images`. `layers` are names of layers that the site offers. `label` is the
    VMType that the job's requirements ask for. `max_price` is per hour; `spot` True or False where only that
    market will do. `keep_alive` is how many seconds its machine may idle. `cpus`, `memory` (MiB) and `disk`
    (KiB) are of the whole machine. `type_limit` is how many machines of this user and class there may be.
    `annex` is the only annex that will do; `annexes` False where none will, None where nothing is said.
    `high_priority` above 0 goes before all others, where the site allows it. `faults` say what in the ad is
    refused, and why: then no machine is bought for the job.
    """

    images: Mapping[str, str] = field(default_factory=dict)
    flavors: Mapping[str, str] = field(default_factory=dict)
    networks: Mapping[str, str] = field(default_factory=dict)
    clouds: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    label: str = ""
    name: str = ""
    max_price: float | None = None
    spot: bool | None = None
    keep_alive: float | None = None
    cpus: int = 0
    memory: int = 0
    disk: int = 0
    type_limit: int | None = None
    high_priority: int = 0
    annex: str = ""
    annexes: bool | None = None
    faults: tuple[Reason, ...] = ()


NO_TERMS = Terms()
