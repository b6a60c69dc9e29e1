"""COBalD's linear controller over TARDIS' drones: demand follows how well the pool is used, never the queue.

COBalD (https://github.com/MatterMiners/cobald) regulates, TARDIS brings the machines. It sees, of its own
machines, how much of each is used.

- Every second: below `low` utilisation, demand falls by `rate` cores; else above `high` allocation, it
  rises by `rate`. Both are means over the machines that have joined (a machine's allocation is the largest,
  its utilisation the smallest of the used shares of its resources); a pool without any counts as used up,
  so it is always tried out.
- Every 30 s: where supply is above demand, machines go whose cores the excess covers, those least used
  first; else machines are started until what all of them are worth reaches demand.
- A machine that goes is drained gracefully (its jobs run on) and ended when it is empty; one that hasn't
  joined is ended at once.
- A limiter keeps demand between a minimum and what the site's limits allow; a launch beyond them, while
  others drain, is refused as by a quota.
- It never comes to rest by itself: an empty pool is tried out again. When the workload that it was made with
  is over, its machines are given back.

Its readings of machines are a minute old at most.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from updraft.core.model import DrainMode, Instance, Offer, Plan, Slot, Snapshot
from updraft.core.settings import Policy
from updraft.sim.rivals.buying import Headroom, OneFlavor, ceiling
from updraft.sim.rivals.common import (
    NOTHING_TO_DO,
    Departures,
    Finish,
    Hand,
    Key,
    in_pool,
    key_of,
    listed,
    queue,
)
from updraft.sim.workloads.workload import Arrival


@dataclass(frozen=True, slots=True)
class Linear:
    """Its settings; the defaults are its own. `rate` in cores per second, times in seconds.

    `shares` are the resources of which the used shares are looked at. A site lists those that its jobs use
    up: cores are always among them, and memory that nobody asks for would keep utilisation low for ever.
    """

    low: float = 0.5
    high: float = 0.5
    rate: float = 1.0
    adjust: float = 30.0
    heartbeat: float = 60.0
    minimum: float = 0.0
    shares: tuple[str, ...] = ("cpus",)


DEFAULT = Linear()
SLOW = Linear(rate=0.1)


@dataclass(slots=True)
class _Reading:
    supply: float = 0.0
    utilisation: float = 1.0
    allocation: float = 1.0


class Cobald:
    """The feedback loop. `flavor` names the one flavor (see `OneFlavor`)."""

    def __init__(
        self, settings: Linear = DEFAULT, workload: Sequence[Arrival] = (), *, flavor: str = ""
    ) -> None:
        self.settings = settings
        self.demand = settings.minimum
        self._flavor = OneFlavor(flavor)
        self._flavor.see_workload(workload)
        self._hand = Hand("cobald")
        self._leaving = Departures()
        self._finish = Finish(workload, patience=None)
        self._looked: float | None = None
        self._read_at = float("-inf")
        self._reading = _Reading()

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        now, settings = snapshot.now, self.settings
        since = settings.adjust if self._looked is None else now - self._looked
        if since < settings.adjust:
            return NOTHING_TO_DO
        slots, groups = in_pool(snapshot), queue(snapshot) or ()
        self._flavor.see(groups)  # what the site has built its machines for
        offer = self._flavor.offer(snapshot)
        if slots is None or offer is None:
            return NOTHING_TO_DO
        self._looked = now
        machines = listed(snapshot)
        if self._finish.over(groups, slots, now):  # the site has no more use for it
            for one in machines:
                self._hand.end(one)
            return self._hand.plan()
        self._leaving.settle(self._hand, machines, slots, now)
        active = [one for one in machines if key_of(one) not in self._leaving]
        if now - self._read_at >= settings.heartbeat:
            self._reading, self._read_at = self._read(active, slots), now
        self.regulate(since, self._reading, _most(policy, offer))
        coming = self._hand.unseen(snapshot, machines)
        head = Headroom(snapshot, policy, machines, coming)  # those that drain are in the quota too
        self._adjust(offer, active, sum(count for count, _ in coming), head.room(offer), slots, now)
        return self._hand.plan()

    def regulate(self, seconds: float, reading: _Reading, most: float) -> None:
        """So many seconds of the linear controller at one reading."""
        if reading.utilisation < self.settings.low:
            self.demand -= seconds * self.settings.rate
        elif reading.allocation > self.settings.high:
            self.demand += seconds * self.settings.rate
        self.demand = min(max(self.demand, self.settings.minimum), most)

    def _read(self, active: Sequence[Instance], slots: Mapping[Key, Sequence[Slot]]) -> _Reading:
        shares = [self.used(slots[key_of(one)]) for one in active if key_of(one) in slots]
        supply = sum(
            sum(slot.total.cpus for slot in slots[key_of(one)]) for one in active if key_of(one) in slots
        )
        if not shares:
            return _Reading()
        count = len(shares)
        return _Reading(
            supply, sum(min(one) for one in shares) / count, sum(max(one) for one in shares) / count
        )

    def used(self, slots: Sequence[Slot]) -> tuple[float, ...]:
        """The used share of each resource of a machine that is looked at."""
        found = []
        for name in self.settings.shares:
            total = sum(getattr(slot.total, name) for slot in slots)
            free = sum(getattr(slot.free, name) for slot in slots if slot.partitionable or not slot.busy)
            found.append((total - free) / total if total else 0.0)
        return tuple(found)

    def _adjust(
        self,
        offer: Offer,
        active: Sequence[Instance],
        coming: int,
        room: int,
        slots: Mapping[Key, Sequence[Slot]],
        now: float,
    ) -> None:
        cores = max(1, offer.resources.cpus)
        worth = {key_of(one): _cores(slots.get(key_of(one), ()), cores) for one in active}
        supply = sum(worth[key_of(one)] for one in active if key_of(one) in slots)
        if supply <= self.demand:
            missing = self.demand - sum(worth.values()) - coming * cores
            count = min(math.ceil(missing / cores), room)
            if count > 0:
                self._hand.launch(offer, count, now)
            return
        excess = sum(worth.values()) + coming * cores - self.demand
        for one in sorted(active, key=lambda one: (self._useful(slots.get(key_of(one), ())), one.id)):
            if excess <= 0:
                break
            if worth[key_of(one)] <= excess:
                excess -= worth[key_of(one)]
                self._release(one, key_of(one) in slots, now)

    def _useful(self, slots: Sequence[Slot]) -> float:
        """Cores that are used: those that have not joined are of least use."""
        return min(self.used(slots)) * _cores(slots, 0) if slots else 0.0

    def _release(self, one: Instance, joined: bool, now: float) -> None:
        if joined:
            self._leaving.close(self._hand, one, DrainMode.BUSY, now)
        else:
            self._hand.end(one)


def _cores(slots: Sequence[Slot], otherwise: int) -> int:
    return sum(slot.total.cpus for slot in slots) if slots else otherwise


def _most(policy: Policy, offer: Offer) -> float:
    most = ceiling(policy, offer)
    return math.inf if most is None else float(most * max(1, offer.resources.cpus))
