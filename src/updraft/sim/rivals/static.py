"""A static pool: as many machines of one flavor as was decided beforehand, from the start to the last job.

What sites without elasticity have. Its size is given, or comes from the workload: the peak or the mean of
the machines that its jobs would fill if none had to wait. A machine that is lost is replaced. When
everything that was to come has come and is done, the pool is given back.
"""

import math
from collections.abc import Iterable, Sequence

from updraft.core.model import Offer, Plan, Resources, Snapshot
from updraft.core.settings import Policy
from updraft.errors import UsageError
from updraft.sim.rivals.buying import OneFlavor, ceiling, slot_of
from updraft.sim.rivals.common import NOTHING_TO_DO, Finish, Hand, in_pool, listed, queue
from updraft.sim.workloads.workload import Arrival

PEAK, MEAN = "peak", "mean"


class Static:
    """A pool of `machines`, or as large as `size` ("peak" or "mean") says for the workload.

    `flavor` names the one flavor (see `OneFlavor`). The site's limits hold for it too. Without a number and
    without a workload it is as large as the limits allow; raises UsageError where there are none.
    """

    def __init__(
        self,
        size: str = PEAK,
        workload: Sequence[Arrival] = (),
        *,
        machines: int | None = None,
        flavor: str = "",
    ) -> None:
        self._size = size
        self._workload = tuple(workload)
        self._machines = machines
        self._flavor = OneFlavor(flavor)
        self._flavor.see_workload(workload)
        self._hand = Hand("static")
        self._finish = Finish(workload)

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        now = snapshot.now
        groups, slots = queue(snapshot), in_pool(snapshot)
        if groups is None or slots is None:
            return NOTHING_TO_DO
        over = self._finish.over(groups, slots, now)
        self._flavor.see(groups)
        machines, offer = listed(snapshot), self._flavor.offer(snapshot)
        if over:
            for one in machines:
                self._hand.end(one)
        elif offer is not None:
            missing = self._wanted(offer, snapshot, policy) - len(machines)
            missing -= sum(count for count, _ in self._hand.unseen(snapshot, machines))
            if missing > 0:
                self._hand.launch(offer, missing, now)
        return self._hand.plan()

    def _wanted(self, offer: Offer, snapshot: Snapshot, policy: Policy) -> int:
        most = ceiling(policy, offer)
        if self._machines is None and self._workload:
            whole = slot_of(offer, snapshot)
            self._machines = pool_size(self._workload, whole, self._size)
        numbers = [number for number in (self._machines, most) if number is not None]
        if not numbers:
            raise UsageError("a static pool needs a number of machines, a workload, or limits on its size")
        return min(numbers)


def pool_size(workload: Iterable[Arrival], machine: Resources, size: str = PEAK) -> int:
    """How many such machines the jobs would fill if none waited: at the peak, or in the mean over their time.

    Jobs count by the largest share of a machine that they take. At least 1; raises UsageError for another
    `size`.
    """
    if size not in (PEAK, MEAN):
        raise UsageError(f'a static pool is sized by "{PEAK}" or "{MEAN}", not by "{size}"')
    changes: list[tuple[float, float]] = []
    for job in workload:
        share = 1 / max(1, machine.holds(job.request))
        changes += [(job.at, share), (job.at + job.seconds, -share)]
    changes.sort()
    level = peak = area = 0.0
    for (at, change), (later, _) in zip(changes, [*changes[1:], (math.inf, 0.0)], strict=True):
        level += change
        peak = max(peak, level)
        area += level * (later - at) if later < math.inf else 0.0
    span = changes[-1][0] - changes[0][0] if changes else 0.0
    exact = peak if size == PEAK else (area / span if span > 0 else 0.0)
    return max(1, math.ceil(exact - 1e-6))
