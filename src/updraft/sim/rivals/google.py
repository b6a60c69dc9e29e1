"""Google's autoscaler for HTCondor: the cores of idle jobs, divided by the cores of a machine, rounded up.

The autoscaler of the Google Cloud Cluster Toolkit, run once a minute for each group of equal machines. It
sees how many cores the idle jobs ask for together, the group's machines and which of them are idle; no
memory, no GPUs.

- Only jobs count that had a chance to match: older than the negotiator's last cycle. (A job group here
  counts whole or not, by its oldest job.)
- New size = size + `min_idle` - idle machines + ceil(cores asked for / cores of a machine), at most the
  limit. Idle are machines without a claim, and those that are still being made.
- Too many: as many idle machines are deleted at once and without a drain, first those that are being made.
"""

import math
from collections.abc import Sequence

from updraft.core.model import Instance, Known, Plan, Snapshot
from updraft.core.settings import Policy
from updraft.sim.rivals.buying import OneFlavor, ceiling
from updraft.sim.rivals.common import NOTHING_TO_DO, Hand, busy, in_pool, key_of, listed, queue
from updraft.sim.workloads.workload import Arrival

EVERY = 60.0


class Google:
    """The ceil-sum rule. `min_idle` machines are kept idle; `flavor` names the one flavor (`OneFlavor`)."""

    def __init__(
        self, workload: Sequence[Arrival] = (), *, min_idle: int = 0, flavor: str = "", every: float = EVERY
    ) -> None:
        self._min_idle = min_idle
        self._flavor = OneFlavor(flavor)
        self._flavor.see_workload(workload)
        self._hand = Hand("google")
        self._every = every
        self._next = float("-inf")

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        if snapshot.now < self._next:
            return NOTHING_TO_DO
        self._next = snapshot.now + self._every
        groups, slots, collector = queue(snapshot), in_pool(snapshot), snapshot.collector
        if groups is None or slots is None or not isinstance(collector, Known):
            return NOTHING_TO_DO
        cycle = collector.value.cycle_ended
        self._flavor.see(groups)
        offer = self._flavor.offer(snapshot)
        if cycle is None or offer is None:
            return NOTHING_TO_DO
        cores = sum(group.idle * group.request.cpus for group in groups if group.oldest < cycle)
        needed = math.ceil(cores / max(1, offer.resources.cpus))
        machines = listed(snapshot)
        coming = sum(count for count, _ in self._hand.unseen(snapshot, machines))
        made = [one for one in machines if key_of(one) not in slots]
        idle = [one for one in machines if key_of(one) in slots and not busy(slots[key_of(one)])]
        size = len(machines) + coming
        target = size + self._min_idle - len(idle) - len(made) - coming + needed
        most = ceiling(policy, offer)
        target = target if most is None else min(target, most)
        if target > size:
            self._hand.launch(offer, target - size, snapshot.now)
        for one in _first(made, idle)[: max(0, size - target)]:
            self._hand.end(one)
        return self._hand.plan()


def _first(made: Sequence[Instance], idle: Sequence[Instance]) -> list[Instance]:
    """In which order they go: the youngest of those that are being made first."""
    return [*sorted(made, key=lambda one: (-one.launched_at, one.id)), *idle]
