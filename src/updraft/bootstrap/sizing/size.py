"""How large a pool is, and the quantities that follow from it alone. Pure arithmetic."""

import hashlib
import math
from dataclasses import dataclass
from typing import Literal

from updraft.errors import BootstrapError

MACHINES_PER_COLLECTOR = 1000
"""How many machines report to one collector before a tree is made. An estimate, not measured."""

JOBS_PER_SCHEDD = 10_000
"""Where HTCondor's own MAX_JOBS_RUNNING stops, whatever memory there is."""

SMALL = 200
"""Machines up to which looking often costs nothing."""

UNEVEN = 1.25
"""How much more than its share one child of a tree may get: machines choose by a hash."""

ADS_PER_SECOND = 100
"""Slot ads that all collectors of a small pool together are to take. An estimate, far below what they can."""

SHORTEST_UPDATE, LONGEST_UPDATE = 5, 300
"""Seconds between two ads of a startd: what updraft's scaling in likes best, and HTCondor's own."""

Reach = Literal["direct", "ccb", "forwarded"]


@dataclass(frozen=True, slots=True)
class PoolSize:
    """How large a pool is to be at most.

    `slots` jobs run on a machine at once; `jobs` in the whole pool (None: all slots are taken). `schedds`
    None
    is as many as that takes. `reach` is how machines are connected to, as a worker class has it. `job_lease`
    (seconds) is how long a job waits for its vanished machine. Raises BootstrapError for what is no size.
    """

    machines: int
    slots: int = 8
    jobs: int | None = None
    schedds: int | None = None
    reach: Reach = "direct"
    job_lease: int = 1200

    def __post_init__(self) -> None:
        for what in ("machines", "slots", "jobs", "schedds", "job_lease"):
            value = getattr(self, what)
            if value is not None and value < 1:
                raise BootstrapError(f"a pool of {value} {what.replace('_', ' ')} is none: 1 or more")

    @property
    def running(self) -> int:
        """Jobs that run at once."""
        return self.machines * self.slots if self.jobs is None else self.jobs

    @property
    def submit_nodes(self) -> int:
        """Schedds that share the jobs."""
        return self.schedds or math.ceil(self.running / JOBS_PER_SCHEDD)

    @property
    def jobs_each(self) -> int:
        """Running jobs of one schedd."""
        return math.ceil(self.running / self.submit_nodes)

    @property
    def head_submits(self) -> bool:
        """Whether the central manager is the submit node, too: only where one schedd is enough."""
        return self.submit_nodes == 1

    @property
    def sockets(self) -> int:
        """Connections of a machine to its collector: of master and startd; with a broker, of each job too."""
        return 4 + self.slots if self.reach == "ccb" else 2


def child_collectors(machines: int) -> int:
    """How many children the tree of collectors has; 0 where one collector does it alone."""
    return 0 if machines <= MACHINES_PER_COLLECTOR else math.ceil(machines / MACHINES_PER_COLLECTOR)


def child_of(machine: str, children: int) -> int:
    """The child (from 1) that a machine of this id reports to, for all its life. `child.sh` says the same."""
    return int(hashlib.sha256(machine.encode()).hexdigest()[:7], 16) % children + 1


def update_interval(machines: int | None, slots: int = 8) -> int:
    """Seconds between two ads of a startd. None is a pool whose size nobody has limited: as a small one.

    A startd sends an ad for itself and one for each slot. How long an emptied machine takes to leave by
    itself grows with it; updraft then ends it after `end_patience`, when it is drained.
    """
    wanted = math.ceil((machines or 0) * (1 + slots) / ADS_PER_SECOND)
    return min(max(wanted, SHORTEST_UPDATE), LONGEST_UPDATE)


def collector_descriptors(size: PoolSize) -> int:
    """Descriptors of one collector: twice what its machines keep open (as the manual does), and some."""
    tree = child_collectors(size.machines)
    carried = math.ceil(MACHINES_PER_COLLECTOR * UNEVEN) if tree else size.machines
    return 2 * carried * size.sockets + 1000


def broker_descriptors(machines: int, slots: int = 8) -> int:
    """Descriptors of the one broker (CCB) that all these machines keep connections to."""
    return 2 * machines * (2 + slots) + 1000


def schedd_descriptors(size: PoolSize) -> int:
    """Descriptors of one schedd: three for each job that runs, and some for those who ask."""
    return 3 * size.jobs_each + 2000
