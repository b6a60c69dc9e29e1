"""The fake cloud as its owner sees it: the instances of all tenants, quotas, faults, the record of calls."""

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from updraft.clouds.base import TAG_POOL, LaunchRequest
from updraft.clouds.fake.census import Census, Sale, Taken
from updraft.clouds.fake.faults import Faults
from updraft.clouds.fake.instance import FakeInstance, draw_life
from updraft.clouds.fake.settings import Settings
from updraft.clouds.networking import Group
from updraft.core.model import CloudOffer, CloudState, Quota
from updraft.errors import BadRequest, NoCapacity, QuotaExceeded


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

    `offers` are what it sells: what its settings say, unless they are given; of one that has a `left` there
    are so many at a time. `draw` gives each new machine its life, by its serial number: as the settings say,
    unless it is given. `watchers` are called with each instance right after it was made or told to end.
    """

    def __init__(
        self,
        name: str,
        settings: Settings,
        clock: Callable[[], float],
        *,
        offers: tuple[CloudOffer, ...] | None = None,
        draw: Callable[[FakeInstance, int], None] | None = None,
    ) -> None:
        self.name = name
        self.clock = clock
        self._draw = draw or self._as_settings_say
        self._given = offers
        self._census = Census(clock, settings)
        self.settings = settings
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

    @property
    def settings(self) -> Settings:
        """How it is now; a machine that exists keeps the life it was given."""
        return self._settings

    @settings.setter
    def settings(self, settings: Settings) -> None:
        self._settings = settings
        self.offers = settings.offers(self.name) if self._given is None else self._given
        self._sold: dict[Sale, CloudOffer] = {(one.zone, one.flavor, one.market): one for one in self.offers}
        self._census.resettle(settings)

    # ------------------------------------------------------------------------------ what a driver may ask

    def launch(self, request: LaunchRequest) -> tuple[FakeInstance, ...]:
        """Make machines; the same key again answers with those of the first time."""
        if request.key in self._by_key:
            return tuple(self.instances[machine] for machine in self._by_key[request.key])
        sold = self._check(request)
        room = min(request.count, self._within_quota(request, sold), self._within_capacity(request, sold))
        made = tuple(self._make(request, sold) for _ in range(room))
        self._by_key[request.key] = tuple(instance.id for instance in made)
        return made

    def terminate(self, machine: str) -> None:
        """Order an instance to end; it is gone `stop_takes` later. One already gone is left so."""
        instance, now = self.instances.get(machine), self.clock()
        if instance is None or instance.stop_asked_at <= now or not instance.occupies(now):
            return
        instance.stop_asked_at, instance.ended_at = now, now + self.settings.stop_takes
        self._census.touched(instance)
        self._tell(instance)

    def tag(self, machine: str, tags: Mapping[str, str | None]) -> None:
        """Write these tags of an instance, or (None) remove them."""
        instance = self.instances.get(machine)
        if instance is not None:
            told = {**instance.tags, **tags}
            self.set_tags(machine, {tag: value for tag, value in told.items() if value is not None})

    def listed(self, pool: str) -> Iterator[tuple[FakeInstance, CloudState]]:
        """The instances with this pool's tag as the listing shows them, which may lag behind."""
        for instance in self.current():
            shown = instance.shown
            if shown and instance.tags.get(TAG_POOL) == pool and instance.id not in self.out_of_reach:
                yield instance, shown

    def shown(self, machine: str) -> tuple[FakeInstance, CloudState] | None:
        """One instance by its id, whatever its tags say; None where the cloud shows none."""
        instance = self.census.current.get(machine)
        return None if instance is None or instance.shown is None else (instance, instance.shown)

    @property
    def changes(self) -> int:
        """Grows with everything that is different for anybody who asks."""
        return self.census.changes

    @property
    def changed_at(self) -> float:
        """When that last was."""
        return self.census.changed_at

    def quota(self) -> Quota:
        """What is left, everybody's machines counted."""
        used, settings = self.census.occupied, self.settings
        ceilings = {
            "machines": (settings.quota_machines, used.machines),
            "cores": (settings.quota_cores, used.cores),
            "memory": (settings.quota_memory and int(settings.quota_memory) // 2**20, used.memory),
        }
        left = {
            name: None if ceiling is None else max(0, ceiling - taken)
            for name, (ceiling, taken) in ceilings.items()
        }
        endless = frozenset(name for name, value in left.items() if value is None)
        return Quota(**left, unlimited=endless, used_machines=used.machines, used_cores=used.cores)

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
        instance = self._make(request, self._sale(request))
        instance.runs_at, instance.breaks_at, instance.dies_at = instance.launched_at, math.inf, math.inf
        self._census.touched(instance)
        return instance.id

    def set_tags(self, machine: str, tags: Mapping[str, str]) -> None:
        """An instance has these tags from now on, and no others."""
        instance = self.instances[machine]
        instance.tags = tags
        self._census.touched(instance)

    def kill(self, machine: str) -> None:
        """Sudden death: the instance is gone now, without a word to what runs on it."""
        instance = self.instances[machine]
        instance.dies_at = min(instance.dies_at, self.clock())
        self._census.touched(instance)
        self._tell(instance)

    def power_off(self, machine: str) -> None:
        """It shuts itself down from inside: stopped, not terminated, and perhaps still paid for."""
        instance = self.instances[machine]
        instance.stopped_at = min(instance.stopped_at, self.clock())
        self._census.touched(instance)
        self._tell(instance)

    def change(self, **settings: object) -> None:
        """Other settings from now on; a machine that exists keeps the life it was given."""
        checked = Settings.model_validate(settings)
        self.settings = self.settings.model_copy(update={name: getattr(checked, name) for name in settings})

    @property
    def census(self) -> Census:
        """What it has, as it is now."""
        self._census.settle()
        return self._census

    @property
    def paid(self) -> Taken:
        """What is paid for now, everybody's machines counted."""
        return self.census.paid

    def occupied(self) -> int:
        """How many machines of anybody count against the quota now."""
        return self.census.occupied.machines

    def current(self) -> tuple[FakeInstance, ...]:
        """Every instance that the cloud still remembers: it forgets those that ended long enough ago."""
        return tuple(self.census.current.values())

    def of_pool(self, pool: str) -> tuple[FakeInstance, ...]:
        """Every instance that this pool ever had, gone ones included."""
        return tuple(one for one in self.instances.values() if one.tags.get(TAG_POOL) == pool)

    def alive(self, pool: str) -> tuple[FakeInstance, ...]:
        """Those of this pool that are there now, whatever the listing shows."""
        return tuple(one for one in self.current() if one.occupying and one.tags.get(TAG_POOL) == pool)

    def bill(self, pool: str) -> Bill:
        """What this pool has had so far. A price that isn't known costs nothing here."""
        now, owned = self.clock(), self.of_pool(pool)
        cost = sum(one.paid(now) / 3600 * (one.sold.price or 0.0) for one in owned)
        return Bill(len(owned), sum(one.paid(now) for one in owned), cost)

    def calls_by_name(self) -> dict[str, int]:
        """How many calls there were of each kind."""
        return dict(Counter(call.name for call in self.calls))

    # ------------------------------------------------------------------------------------------- inside

    def _check(self, request: LaunchRequest) -> CloudOffer:
        settings, size = self.settings, len(request.user_data)
        wrongs = (
            (request.count < 1, f"{request.count} machines cannot be launched"),
            (bool(settings.images) and request.image not in self.bootable(), f"no image {request.image!r}"),
            (
                size > settings.user_data_limit,
                f"user-data of {size} bytes is above {int(settings.user_data_limit)}",
            ),
        )
        for wrong, text in wrongs:
            if wrong:
                raise BadRequest(f"{self.name}: {text}")
        return self._sale(request)

    def _sale(self, request: LaunchRequest) -> CloudOffer:
        found = self._sold.get((request.zone, request.flavor, request.market))
        if found is not None:
            return found
        for what in ("flavor", "zone", "market"):
            name = getattr(request, what)
            if name not in {getattr(one, what) for one in self.offers}:
                raise BadRequest(f"{self.name}: no {what} {name!r}")
        raise NoCapacity(f"{self.name}: {request.flavor} isn't sold in {request.zone} as {request.market}")

    def bootable(self) -> set[str]:
        """The images that machines can be launched from, by name and by id."""
        made = {name for one in self.made.values() for name in (one.image.info.id, one.image.info.name)}
        return {*self.settings.images, *made}

    def _within_quota(self, request: LaunchRequest, sold: CloudOffer) -> int:
        wanted, left = sold.resources, self.quota()
        rooms = (
            left.machines,
            None if left.cores is None else left.cores // wanted.cpus,
            None if left.memory is None else left.memory // wanted.memory,
        )
        room = min((room for room in rooms if room is not None), default=request.count)
        if room < (1 if self.settings.partial else request.count):
            raise QuotaExceeded(f"{self.name}: quota exceeded: {request.count} asked for, {room} left")
        return room

    def _within_capacity(self, request: LaunchRequest, sold: CloudOffer) -> int:
        room = self.left(sold)
        if room is None:
            return request.count
        if room < (1 if self.settings.partial else request.count):
            raise NoCapacity(f"{self.name}: no room for {request.flavor} in {request.zone}")
        return room

    def left(self, sold: CloudOffer) -> int | None:
        """How many more machines of this offer there are, None where there is no end."""
        zone, flavor = sold.zone, sold.flavor
        capacity, taken = self.settings.capacity.get(f"{zone}/{flavor}"), self.census.occupied.sales
        rooms = []
        if sold.left is not None:
            rooms.append(sold.left - taken[zone, flavor, sold.market])
        if capacity is not None:
            here = sum(count for (where, size, _), count in taken.items() if (where, size) == (zone, flavor))
            rooms.append(capacity - here)
        return max(0, min(rooms)) if rooms else None

    def _make(self, request: LaunchRequest, sold: CloudOffer) -> FakeInstance:
        serial = len(self.instances) + 1
        instance = FakeInstance(
            id=f"{self.name}-{serial:05d}",
            sold=sold,
            image=request.image,
            address=f"10.{serial >> 16 & 255}.{serial >> 8 & 255}.{serial & 255}",
            launched_at=self.clock(),
            key=request.key,
            user_data=request.user_data,
            tags=dict(request.tags),
        )
        self._draw(instance, serial)
        self.instances[instance.id] = instance
        self._census.add(instance)
        self._tell(instance)
        return instance

    def _as_settings_say(self, instance: FakeInstance, serial: int) -> None:
        boot = self.settings.boot(instance.zone, instance.flavor, instance.image)
        draw_life(instance, boot, self.settings.seed, serial)

    def _tell(self, instance: FakeInstance) -> None:
        for watcher in self.watchers:
            watcher(instance)


def batches(ids: Iterable[str], size: int) -> Iterator[tuple[str, ...]]:
    """These ids in portions of at most `size`, each id once."""
    unique = tuple(dict.fromkeys(ids))
    for start in range(0, len(unique), size):
        yield unique[start : start + size]
