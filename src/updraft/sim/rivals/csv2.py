"""Cloud Scheduler, version 2: what is asked for in all less what there is in all, a few machines at a time.

https://github.com/hep-gc/cloudscheduler. It sees the idle jobs in groups of equal ones, the running jobs,
its machines with the number of their dynamic slots, and what quotas leave. All jobs here are of one of its
groups.

- Every 10 s, at most one call: shortfall = what idle and running jobs ask for, less the sizes of all
  machines, for cores, memory and disk each by itself. If any is above 0: the next job group in turn, on
  each cloud in order its smallest flavor that holds one job. Nothing is started while as many machines are
  idle as `idle_throttle` and a tenth of the busy ones, nor on a cloud where `new_throttle` machines are on
  their way; else as many as the shortfall, the quota and `max_start` allow.
- Every 10 s machines are retired: without a job for `keep_alive`, in error for `error_delay`, never in the
  pool `come_alive` after their launch, in the pool and never with a job for `job_alive`. What is retired
  takes no new job, never comes back, and is ended when it is empty.

How stale its views are (16 s of jobs and slots, up to 112 s of what has ended, 60 s of the cloud) is left
out, and so is that a machine serves only the user that it was started for: both favour it. A look that
comes later than after 10 s does what the rounds between would have done.
"""

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from updraft.core.model import (
    CloudState,
    DrainMode,
    Instance,
    JobGroup,
    Offer,
    Plan,
    Resources,
    Slot,
    Snapshot,
)
from updraft.core.settings import Policy
from updraft.sim.rivals.buying import Headroom, on_demand, slot_of
from updraft.sim.rivals.common import (
    NOTHING_TO_DO,
    Departures,
    Hand,
    Key,
    in_pool,
    key_of,
    listed,
    queue,
)
from updraft.sim.workloads.workload import Arrival


@dataclass(frozen=True, slots=True)
class Settings:
    """The defaults are its own. Times in seconds; a `keep_alive` below 120 is 120."""

    every: float = 10.0
    max_start: int = 5
    new_throttle: int = 5
    idle_throttle: int = 10
    keep_alive: float = 300.0
    come_alive: float = 7200.0
    job_alive: float = 1800.0
    error_delay: float = 300.0
    again: float = 1024.0


DEFAULT = Settings()


@dataclass(slots=True)
class _Fleet:
    """Its machines at one look, those apart that are retiring."""

    sizes: Resources
    new: dict[str, int]
    idle: int
    running: int


@dataclass(slots=True)
class _Past:
    """What it remembers of a machine: its dynamic slots, since when, and whether it ever had one.

    `shown` is the slot as it was last seen.
    """

    shown: Slot
    count: int
    since: float
    worked: bool


class Csv2:
    """The shortfall rule."""

    def __init__(self, settings: Settings = DEFAULT, workload: Sequence[Arrival] = ()) -> None:
        self.settings = settings
        self._hand = Hand("csv2")
        self._leaving = Departures()
        self._retired: dict[Key, float] = {}
        self._past: dict[Key, _Past] = {}
        self._turn = 0
        self._groups: tuple[JobGroup, ...] = ()
        self._looked: float | None = None

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        now = snapshot.now
        rounds = 1 if self._looked is None else int((now - self._looked) / self.settings.every + 1e-9)
        slots = in_pool(snapshot)
        if rounds < 1 or slots is None:
            return NOTHING_TO_DO
        self._looked = now
        groups = queue(snapshot)
        self._groups = self._groups if groups is None else groups
        machines = listed(snapshot)
        self._retire(machines, slots, now)
        coming = self._hand.unseen(snapshot, machines)
        fleet = self._fleet(machines, coming, slots, snapshot)
        head = Headroom(snapshot, policy, machines, coming)
        asked = _asked(self._groups, slots)
        for _ in range(rounds):
            self._turn += 1
            if not self._boot(asked, fleet, head, snapshot):
                break
        return self._hand.plan()

    # ------------------------------------------------------------------------------------------- growing

    def _fleet(
        self,
        machines: Iterable[Instance],
        coming: Iterable[tuple[int, Offer]],
        slots: Mapping[Key, Sequence[Slot]],
        snapshot: Snapshot,
    ) -> _Fleet:
        sold = {(o.cloud, o.flavor): o.resources for o in snapshot.offers}
        fleet = _Fleet(Resources(), {}, 0, 0)
        alike: Counter[tuple[str, str]] = Counter()
        for one in machines:
            key = key_of(one)
            if key in self._retired or one.state is CloudState.ERROR:
                continue
            alike[one.cloud, one.flavor] += 1
            if key not in slots:
                fleet.new[one.cloud] = fleet.new.get(one.cloud, 0) + 1
            elif self._past[key].count:
                fleet.running += 1
            else:
                fleet.idle += 1
        for kind, count in alike.items():
            fleet.sizes += sold.get(kind, Resources()).times(count)
        for count, offer in coming:
            _add(fleet, offer, count)
        return fleet

    def _boot(self, asked: Resources, fleet: _Fleet, head: Headroom, snapshot: Snapshot) -> bool:
        """One round of the scheduler: at most one call. Returns whether there was one."""
        short = asked - fleet.sizes
        waiting = [group for group in self._groups if group.idle]
        idle_enough = fleet.idle >= max(self.settings.idle_throttle, fleet.running / 10)
        if not waiting or idle_enough or max(short.cpus, short.memory, short.disk) <= 0:
            return False
        turn = self._turn % len(waiting)
        for group in itertools.islice(itertools.chain(waiting[turn:], waiting[:turn]), len(waiting)):
            for offer in self._flavors(group, snapshot):
                count = self._count(offer, short, fleet, head)
                if count > 0:
                    head.take(offer, count)
                    _add(fleet, offer, count)
                    self._hand.launch(offer, count, snapshot.now)
                    return True
        return False

    def _flavors(self, group: JobGroup, snapshot: Snapshot) -> list[Offer]:
        """The smallest flavor of each cloud that holds one job, clouds in their order."""
        smallest: dict[str, Offer] = {}
        for offer in on_demand(snapshot.offers):
            if slot_of(offer, snapshot).holds(group.request) < 1:
                continue
            known = smallest.get(offer.cloud)
            if known is None or (offer.resources, offer.key) < (known.resources, known.key):
                smallest[offer.cloud] = offer
        return [smallest[name] for name in snapshot.clouds if name in smallest]

    def _count(self, offer: Offer, short: Resources, fleet: _Fleet, head: Headroom) -> int:
        if fleet.new.get(offer.cloud, 0) >= self.settings.new_throttle:
            return 0
        size = offer.resources
        needed = max(
            -(-lack // have)
            for lack, have in ((short.cpus, size.cpus), (short.memory, size.memory), (short.disk, size.disk))
            if have > 0
        )
        return min(self.settings.max_start, needed, head.room(offer))

    # ----------------------------------------------------------------------------------------- shrinking

    def _retire(self, machines: Iterable[Instance], slots: Mapping[Key, Sequence[Slot]], now: float) -> None:
        there = {key_of(one): one for one in machines}
        self._leaving.settle(self._hand, there.values(), slots, now)
        past, self._past = self._past, {}
        self._retired = {key: at for key, at in self._retired.items() if key in there}
        for key, one in there.items():
            shown = slots.get(key)
            if key in self._retired:
                self._off(one, shown, now)
                continue
            if shown is not None:
                self._past[key] = _look(past.get(key), shown, now)
            if self._over(one, shown is not None, now):
                self._retired[key] = now
                if shown is None:
                    self._hand.end(one)
                else:
                    self._leaving.close(self._hand, one, DrainMode.BUSY, now)

    def _off(self, one: Instance, shown: Sequence[Slot] | None, now: float) -> None:
        """The order to retire is given again while it has not been followed."""
        key = key_of(one)
        if (
            shown
            and not any(slot.draining for slot in shown)
            and now - self._retired[key] >= self.settings.again
        ):
            self._retired[key] = now
            self._leaving.close(self._hand, one, DrainMode.BUSY, now)
        elif shown is None:
            self._hand.end(one)

    def _over(self, one: Instance, joined: bool, now: float) -> bool:
        settings = self.settings
        if one.state is CloudState.ERROR:
            return now - one.launched_at > settings.error_delay
        if not joined:
            return now - one.launched_at > settings.come_alive
        past = self._past[key_of(one)]
        if past.count:
            return False
        limit = max(120.0, settings.keep_alive) if past.worked else settings.job_alive
        return now - past.since > limit


def _look(past: _Past | None, shown: Sequence[Slot], now: float) -> _Past:
    if past is not None and past.shown is shown[0] and len(shown) == 1:
        return past
    count = sum(len(slot.children) if slot.partitionable else int(slot.busy) for slot in shown)
    worked = count > 0 or any(slot.job_starts for slot in shown)
    if past is None:
        return _Past(shown[0], count, now, worked)
    past.since = past.since if past.count == count else now
    past.shown, past.count, past.worked = shown[0], count, past.worked or worked
    return past


def _asked(groups: Iterable[JobGroup], slots: Mapping[Key, Sequence[Slot]]) -> Resources:
    """What idle and running jobs ask for together."""
    cpus = memory = disk = 0
    for group in groups:
        request = group.request
        cpus, memory = cpus + request.cpus * group.idle, memory + request.memory * group.idle
        disk += request.disk * group.idle
    for several in slots.values():
        for slot in several:
            if slot.children:
                cpus += slot.total.cpus - slot.free.cpus
                memory += slot.total.memory - slot.free.memory
                disk += slot.total.disk - slot.free.disk
            elif slot.busy:
                cpus, memory, disk = (
                    cpus + slot.total.cpus,
                    memory + slot.total.memory,
                    disk + slot.total.disk,
                )
    return Resources(cpus, memory, disk)


def _add(fleet: _Fleet, offer: Offer, count: int) -> None:
    fleet.sizes += offer.resources.times(count)
    fleet.new[offer.cloud] = fleet.new.get(offer.cloud, 0) + count
