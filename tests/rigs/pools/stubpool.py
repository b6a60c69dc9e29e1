"""A pool of one schedd with waiting jobs and no machine, for verbs that look once."""

import time

from updraft.condor.base import PoolSlots
from updraft.core.model import CollectorView, JobGroup, Resources, ScheddView

STARTED = time.time()
JOB_AD = (
    '[ MyType = "Job"; Owner = "alice"; JobStatus = 1; RequestCpus = 1; RequestMemory = 512; '
    "RequestDisk = 1024; Requirements = %s ]"
)


class StubPool:
    """Stands where `HTCondorPool` does. Its jobs are alike, and have waited for long."""

    def __init__(self, requirements: str = "TARGET.Cpus >= 1", idle: int = 8) -> None:
        self.group = JobGroup(
            "g1",
            "head",
            "alice",
            "alice@demo",
            JOB_AD % requirements,
            Resources(1, 512, 1024),
            idle=idle,
            oldest=STARTED - 3600,
            first_id="12.0",
        )

    def schedds(self, deadline: float) -> tuple[str, ...]:
        return ("head",)

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        return ScheddView((self.group,), (), self.group.idle, 0)

    def slots(self, deadline: float) -> PoolSlots:
        return PoolSlots(CollectorView((), started=STARTED - 86400, cycle_ended=STARTED), {})

    def close(self) -> None:
        pass
