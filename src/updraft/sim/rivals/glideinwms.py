"""glideinWMS: a third of what is missing is asked for, and pilots leave by themselves when they find nothing.

The frontend's rule of glideinWMS (https://glideinwms.fnal.gov) for one group and one entry, once a minute,
with the factory that keeps as many pilots on their way as the frontend asks for. It sees how many machines'
worth of cores the idle jobs ask for, since when they wait, and for each pilot whether it has room.

- Missing = idle jobs, in machines' worth, less pilots with room (a free core and `least_memory` MiB).
- Asked for = (the least of: missing, and what each ceiling on pilots leaves) / `attenuation`, plus a
  reserve of at most a third of what has waited long; at most `pressure`; halved for each threshold that is
  passed (pilots with room: `curb_idle`, `curb_idle_total`; all pilots: `curb_running_total`); at least 1.
- So many are kept on their way, while all pilots together stay below (missing + those that run) x
  `relative` + 1.
- After 5 rounds without an idle job, and 10 with no pilot in use, those on their way are called off.
- A pilot ends itself, between two jobs, `idle_limit` seconds after its start if it never had a job and
  `tail` seconds after its last one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from updraft.core.model import DrainMode, Instance, JobGroup, Offer, Plan, Slot, Snapshot
from updraft.core.settings import Policy
from updraft.sim.rivals.buying import OneFlavor, ceiling
from updraft.sim.rivals.common import (
    NOTHING_TO_DO,
    Departures,
    Hand,
    Key,
    busy,
    in_pool,
    key_of,
    listed,
    open_slots,
    queue,
)
from updraft.sim.workloads.workload import Arrival


@dataclass(frozen=True, slots=True)
class Thirds:
    """The frontend's and the pilots' settings; the defaults are their own. Times in seconds."""

    every: float = 60.0
    attenuation: float = 3.0
    pressure: int = 100
    reserve: int = 5
    old: float = 600.0
    max_running: int = 10_000
    max_running_total: int = 100_000
    curb_running_total: int = 90_000
    max_idle: int = 100
    curb_idle: int = 5
    max_idle_total: int = 1000
    curb_idle_total: int = 200
    relative: float = 1.15
    least_memory: int = 2500
    idle_limit: float = 1200.0
    tail: float = 400.0


DEFAULT = Thirds()


class GlideinWms:
    """The third, and pilots' own ends. `flavor` names the one flavor (see `OneFlavor`)."""

    def __init__(
        self, settings: Thirds = DEFAULT, workload: Sequence[Arrival] = (), *, flavor: str = ""
    ) -> None:
        self.settings = settings
        self._flavor = OneFlavor(flavor)
        self._flavor.see_workload(workload)
        self._hand = Hand("glideinwms")
        self._leaving = Departures()
        self._used: dict[Key, tuple[int | None, float, bool]] = {}
        self._next = float("-inf")
        self._no_jobs = self._no_use = 0

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        now = snapshot.now
        if now < self._next:
            return NOTHING_TO_DO
        self._next = now + self.settings.every
        groups, slots = queue(snapshot), in_pool(snapshot)
        self._flavor.see(groups or ())
        offer = self._flavor.offer(snapshot)
        if groups is None or slots is None or offer is None:
            return NOTHING_TO_DO
        machines = listed(snapshot)
        self._leaving.settle(self._hand, machines, slots, now)
        joined = [one for one in machines if key_of(one) in slots and key_of(one) not in self._leaving]
        pending = [one for one in machines if key_of(one) not in slots and key_of(one) not in self._leaving]
        coming = len(pending) + sum(count for count, _ in self._hand.unseen(snapshot, machines))
        self._ask(offer, groups, joined, coming, slots, snapshot, policy)
        self._call_off(groups, joined, pending, slots)
        self._tails(joined, slots, now)
        return self._hand.plan()

    # ------------------------------------------------------------------------------------------- growing

    def _ask(
        self,
        offer: Offer,
        groups: Sequence[JobGroup],
        joined: Sequence[Instance],
        coming: int,
        slots: Mapping[Key, Sequence[Slot]],
        snapshot: Snapshot,
        policy: Policy,
    ) -> None:
        cores, settings = max(1, offer.resources.cpus), self.settings
        idle = int(sum(group.idle * group.request.cpus for group in groups) / cores + 0.999999)
        before = snapshot.now - settings.old
        old = int(sum(g.idle * g.request.cpus for g in groups if g.oldest <= before) / cores + 0.999999)
        room = sum(self._has_room(slots[key_of(one)]) for one in joined)
        running = sum(busy(slots[key_of(one)]) for one in joined)
        most = ceiling(policy, offer)
        limit = settings.max_running if most is None else min(most, settings.max_running)
        total = len(joined) + coming
        wanted = self.pressure(max(0, idle - room), max(0, old - room), total, room, limit)
        top = int((max(0, idle - room) + running) * settings.relative + 1) if idle else running
        launch = min(wanted - coming, top - total, limit - total)
        if launch > 0:
            self._hand.launch(offer, launch, snapshot.now)

    def pressure(self, missing: int, old: int, total: int, room: int, limit: int) -> int:
        """How many pilots to keep on their way.

        `missing` and `old` are machines' worth of idle jobs (those that have waited long) for which there is
        no pilot with room; `total` are all pilots, `room` those with room, `limit` the ceiling on pilots.
        """
        settings = self.settings
        full = (
            total >= limit
            or room >= settings.max_idle
            or total >= settings.max_running_total
            or room >= settings.max_idle_total
        )
        if full or missing <= 0:
            return 0
        lefts = (limit - total, settings.max_running_total - total, settings.max_idle_total - room)
        wanted = float(int(min(missing, *lefts) / settings.attenuation))
        wanted = min(wanted + min(old // 3, settings.reserve), settings.pressure)
        curbs = (
            room >= settings.curb_idle,
            total >= settings.curb_running_total,
            room >= settings.curb_idle_total,
        )
        return max(1, int(wanted / 2 ** sum(curbs)))

    def _has_room(self, slots: Sequence[Slot]) -> bool:
        least = self.settings.least_memory
        return any(
            (slot.free.cpus > 0 and slot.free.memory >= least) if slot.partitionable else not slot.busy
            for slot in open_slots(slots)
        )

    # ----------------------------------------------------------------------------------------- shrinking

    def _call_off(
        self,
        groups: Sequence[JobGroup],
        joined: Sequence[Instance],
        pending: Sequence[Instance],
        slots: Mapping[Key, Sequence[Slot]],
    ) -> None:
        self._no_jobs = 0 if any(group.idle for group in groups) else self._no_jobs + 1
        self._no_use = 0 if any(busy(slots[key_of(one)]) for one in joined) else self._no_use + 1
        if self._no_jobs > 5 and self._no_use > 10:
            for one in pending:
                self._hand.end(one)

    def _tails(self, joined: Sequence[Instance], slots: Mapping[Key, Sequence[Slot]], now: float) -> None:
        """Pilots that have found nothing for too long leave; what they have begun they finish."""
        before, self._used = self._used, {}
        for one in joined:
            key = key_of(one)
            starts = _starts(slots[key])
            seen = before.get(key)
            worked = busy(slots[key]) or (seen is not None and starts != seen[0])
            since = now if worked or seen is None else seen[1]
            ever = worked or bool(starts) or (seen is not None and seen[2])
            self._used[key] = (starts, since, ever)
            if not worked and now - since >= (self.settings.tail if ever else self.settings.idle_limit):
                self._leaving.close(self._hand, one, DrainMode.EMPTY, now)


def _starts(slots: Sequence[Slot]) -> int | None:
    counters = [slot.job_starts for slot in slots if slot.job_starts is not None]
    return sum(counters) if counters else None
