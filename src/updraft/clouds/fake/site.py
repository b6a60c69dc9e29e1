"""The fake cloud as its owner sees it: the instances of all tenants, quotas, faults, the record of calls."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from updraft.clouds.base import TAG_POOL, LaunchRequest
from updraft.clouds.fake.faults import Faults
from updraft.clouds.fake.instance import FakeInstance, draw_life
from updraft.clouds.fake.settings import Settings
from updraft.clouds.networking import Group
from updraft.core.model import CloudState, Quota, Resources
from updraft.errors import BadRequest, NoCapacity, QuotaExceeded

MARKETS = ("on-demand", "spot")


@dataclass(frozen=True, slots=True)
class Call:
    """One call to the cloud's API, as a bill or a rate limit would count it."""

    at: float
    name: str
    count: int
    error: str = ""


@dataclass(frozen=True, slots=True)
class Bill:
    """What one pool's machines cost so far: how many there were, their seconds, and the price of these."""

    machines: int
    seconds: float
    cost: float


class Site:
    """A cloud in memory. `clock` tells the time in POSIX seconds; nothing here waits.

    `watchers` are called with each instance right after it was made or told to end.
    """

    def __init__(self, name: str, settings: Settings, clock: Callable[[], float]) -> None:
        self.name = name
        self.settings = settings
        self.clock = clock
        self.faults = Faults(settings.faults)
        self.calls: list[Call] = []
        self.instances: dict[str, FakeInstance] = {}
        self.out_of_reach: set[str] = set()  # in a part of the cloud that is down: listings leave them out
        self.watchers: list[Callable[[FakeInstance], None]] = []
        self.key_pairs: set[str] = set()
        self.made: dict[str, Any] = {}  # images, by id: see `imaging`
        self.image_numbers = itertools.count(1)
        self.ipv6 = False  # whether its machines have such addresses
        self.groups: dict[str, Group] = {}  # security groups, by id: see `networking`
        self.group_numbers = itertools.count(1)
        self._by_key: dict[str, tuple[str, ...]] = {}
        self._current: dict[str, FakeInstance] = {}

    # ------------------------------------------------------------------------------ what a driver may ask

    def launch(self, request: LaunchRequest) -> tuple[FakeInstance, ...]:
        """Make machines; the same key again answers with those of the first time."""
        if request.key in self._by_key:
            return tuple(self.instances[machine] for machine in self._by_key[request.key])
        self._check(request)
        room = min(request.count, self._within_quota(request), self._within_capacity(request))
        made = tuple(self._make(request) for _ in range(room))
        self._by_key[request.key] = tuple(instance.id for instance in made)
        return made

    def terminate(self, machine: str) -> None:
        """Order an instance to end; it is gone `stop_takes` later. One already gone is left so."""
        instance, now = self.instances.get(machine), self.clock()
        if instance is None or instance.stop_asked_at <= now or not instance.occupies(now):
            return
        instance.stop_asked_at, instance.ended_at = now, now + self.settings.stop_takes
        self._tell(instance)

    def listed(self, pool: str) -> Iterator[tuple[FakeInstance, CloudState]]:
        """The instances with this pool's tag as the listing shows them, which may lag behind."""
        for instance in self.current():
            if instance.tags.get(TAG_POOL) == pool and instance.id not in self.out_of_reach:
                state = self._state_shown(instance)
                if state is not None:
                    yield instance, state

    def shown(self, machine: str) -> tuple[FakeInstance, CloudState] | None:
        """One instance by its id, whatever its tags say; None where the cloud shows none."""
        instance = self._current.get(machine) if self.current() else None
        state = None if instance is None else self._state_shown(instance)
        return None if instance is None or state is None else (instance, state)

    def _state_shown(self, instance: FakeInstance) -> CloudState | None:
        """Its state as the cloud shows it, which may lag behind; None before and after it is shown."""
        now, settings = self.clock(), self.settings
        if instance.launched_at + settings.shows_after > now:
            return None
        if instance.end() + settings.hides_after > now:
            ended_lately = min(instance.end(), instance.stop_asked_at) <= now
            shown_at = now - settings.hides_after if ended_lately else now
            return instance.state(max(shown_at, instance.launched_at))
        if instance.end() + settings.hides_after + settings.keeps_terminated > now:
            return CloudState.TERMINATED
        return None

    def quota(self) -> Quota:
        """What is left, everybody's machines counted."""
        used, settings = self.used(), self.settings
        ceilings = {
            "machines": (settings.quota_machines, self.occupied()),
            "cores": (settings.quota_cores, used.cpus),
            "memory": (settings.quota_memory and int(settings.quota_memory) // 2**20, used.memory),
        }
        left = {
            name: None if ceiling is None else max(0, ceiling - taken)
            for name, (ceiling, taken) in ceilings.items()
        }
        endless = frozenset(name for name, value in left.items() if value is None)
        return Quota(**left, unlimited=endless, used_machines=self.occupied(), used_cores=used.cpus)

    def record(self, name: str, count: int, error: str = "") -> None:
        """Write down one call."""
        self.calls.append(Call(self.clock(), name, count, error))

    # ------------------------------------------------------------------ what only the cloud's owner can do

    def add_foreign(
        self, flavor: str | None = None, zone: str | None = None, tags: Mapping[str, str] | None = None
    ) -> str:
        """A running machine of somebody else; it counts against the quota. Returns its id."""
        name = flavor or next(iter(self.settings.flavors))
        request = LaunchRequest(
            key="", count=1, image="foreign", flavor=name, zone=zone or self.settings.zones[0],
            market="on-demand", user_data=b"", tags=tags or {},
        )  # fmt: skip
        instance = self._make(request)
        instance.runs_at, instance.breaks_at, instance.dies_at = instance.launched_at, math.inf, math.inf
        return instance.id

    def kill(self, machine: str) -> None:
        """Sudden death: the instance is gone now, without a word to what runs on it."""
        instance = self.instances[machine]
        instance.dies_at = min(instance.dies_at, self.clock())
        self._tell(instance)

    def power_off(self, machine: str) -> None:
        """It shuts itself down from inside: stopped, not terminated, and perhaps still paid for."""
        instance = self.instances[machine]
        instance.stopped_at = min(instance.stopped_at, self.clock())
        self._tell(instance)

    def change(self, **settings: object) -> None:
        """Other settings from now on; a machine that exists keeps the life it was given."""
        checked = Settings.model_validate(settings)
        self.settings = self.settings.model_copy(update={name: getattr(checked, name) for name in settings})

    def occupied(self) -> int:
        """How many machines of anybody count against the quota now."""
        return sum(instance.occupies(self.clock()) for instance in self.current())

    def used(self) -> Resources:
        """What these machines take together."""
        now, used = self.clock(), Resources()
        for instance in self.current():
            if instance.occupies(now):
                used += instance.flavor.resources
        return used

    def current(self) -> tuple[FakeInstance, ...]:
        """Every instance that the cloud still remembers: it forgets those that ended long enough ago."""
        remembered = self.settings.hides_after + self.settings.keeps_terminated
        horizon = self.clock() - remembered
        forgotten = [one.id for one in self._current.values() if one.end() <= horizon]
        for machine in forgotten:
            del self._current[machine]
        return tuple(self._current.values())

    def of_pool(self, pool: str) -> tuple[FakeInstance, ...]:
        """Every instance that this pool ever had, gone ones included."""
        return tuple(one for one in self.instances.values() if one.tags.get(TAG_POOL) == pool)

    def alive(self, pool: str) -> tuple[FakeInstance, ...]:
        """Those of this pool that are there now, whatever the listing shows."""
        now = self.clock()
        return tuple(one for one in self.current() if one.tags.get(TAG_POOL) == pool and one.occupies(now))

    def bill(self, pool: str) -> Bill:
        """What this pool has had so far. A price that isn't known costs nothing here."""
        now, owned = self.clock(), self.of_pool(pool)
        cost = sum(one.paid(now) / 3600 * (self.price(one.flavor_name, one.market) or 0.0) for one in owned)
        return Bill(len(owned), sum(one.paid(now) for one in owned), cost)

    def price(self, flavor: str, market: str) -> float | None:
        """The price of an hour, None where it isn't known."""
        found = self.settings.flavors[flavor]
        return found.price if market == "on-demand" else found.spot_price

    def calls_by_name(self) -> dict[str, int]:
        """How many calls there were of each kind."""
        return dict(Counter(call.name for call in self.calls))

    # ------------------------------------------------------------------------------------------- inside

    def _check(self, request: LaunchRequest) -> None:
        settings = self.settings
        wrongs = (
            (request.count < 1, f"{request.count} machines cannot be launched"),
            (bool(settings.images) and request.image not in self.bootable(), f"no image {request.image!r}"),
            (request.flavor not in settings.flavors, f"no flavor {request.flavor!r}"),
            (request.zone not in settings.zones, f"no zone {request.zone!r}"),
            (request.market not in MARKETS, f"no market {request.market!r}"),
            (
                len(request.user_data) > settings.user_data_limit,
                f"user-data of {len(request.user_data)} bytes is above {int(settings.user_data_limit)}",
            ),
        )
        for wrong, text in wrongs:
            if wrong:
                raise BadRequest(f"{self.name}: {text}")

    def bootable(self) -> set[str]:
        """The images that machines can be launched from, by name and by id."""
        made = {name for one in self.made.values() for name in (one.image.info.id, one.image.info.name)}
        return {*self.settings.images, *made}

    def _within_quota(self, request: LaunchRequest) -> int:
        wanted, left = self.settings.flavors[request.flavor].resources, self.quota()
        rooms = (
            left.machines,
            None if left.cores is None else left.cores // wanted.cpus,
            None if left.memory is None else left.memory // wanted.memory,
        )
        room = min((room for room in rooms if room is not None), default=request.count)
        if room < (1 if self.settings.partial else request.count):
            raise QuotaExceeded(f"{self.name}: quota exceeded: {request.count} asked for, {room} left")
        return room

    def _within_capacity(self, request: LaunchRequest) -> int:
        room = self.left(request.zone, request.flavor)
        if room is None:
            return request.count
        if room < (1 if self.settings.partial else request.count):
            raise NoCapacity(f"{self.name}: no room for {request.flavor} in {request.zone}")
        return room

    def left(self, zone: str, flavor: str) -> int | None:
        """How many more machines of this flavor the zone has, None where there is no end."""
        capacity = self.settings.capacity.get(f"{zone}/{flavor}")
        if capacity is None:
            return None
        now = self.clock()
        taken = sum(
            one.zone == zone and one.flavor_name == flavor and one.occupies(now) for one in self.current()
        )
        return max(0, capacity - taken)

    def _make(self, request: LaunchRequest) -> FakeInstance:
        serial = len(self.instances) + 1
        instance = FakeInstance(
            id=f"{self.name}-{serial:05d}",
            zone=request.zone,
            flavor_name=request.flavor,
            flavor=self.settings.flavors[request.flavor],
            market=request.market,
            image=request.image,
            address=f"10.{serial >> 16 & 255}.{serial >> 8 & 255}.{serial & 255}",
            launched_at=self.clock(),
            key=request.key,
            user_data=request.user_data,
            tags=dict(request.tags),
        )
        boot = self.settings.boot(request.zone, request.flavor, request.image)
        draw_life(instance, boot, self.settings.seed, serial)
        self.instances[instance.id] = self._current[instance.id] = instance
        self._tell(instance)
        return instance

    def _tell(self, instance: FakeInstance) -> None:
        for watcher in self.watchers:
            watcher(instance)


def batches(ids: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """These ids in portions of at most `size`, each id once."""
    unique = tuple(dict.fromkeys(ids))
    for start in range(0, len(unique), size):
        yield unique[start : start + size]
