"""One pool's driver for a fake cloud."""

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from updraft.clouds.base import (
    TAG_CLASS,
    TAG_GENERATION,
    TAG_IDENTITY,
    TAG_LAUNCH,
    TAG_POOL,
    TAG_RETIRING,
    TAG_VARIANT,
    Finding,
    Found,
    ImageInfo,
    LaunchRequest,
    Leases,
    Sold,
)
from updraft.clouds.cloud import Cloud, Driver, Owner, Traits
from updraft.clouds.fake.imaging import FakeImaging
from updraft.clouds.fake.instance import FakeInstance
from updraft.clouds.fake.networking import FakeNetworking
from updraft.clouds.fake.settings import Settings
from updraft.clouds.fake.site import Site, batches
from updraft.clouds.odd import NOTHING, Odd, price, quantity, readable
from updraft.core.model import CloudOffer, CloudState, Instance, Quota, variant
from updraft.errors import BadRequest, CloudError

BATCH = 100
CONSOLE_BYTES = 64 * 1024


class FakeCloud:
    """Keeps the contracts of `Machines` and `Catalogue` for one pool on a `Site`."""

    def __init__(self, site: Site, pool: str) -> None:
        self.name = site.name
        self.pool = pool
        self.site = site
        self.imaging = FakeImaging(site, self._call)
        self.networking = FakeNetworking(site, self._call)
        self.odd: Odd = NOTHING
        self.odd_offers: Odd = NOTHING
        self._listing: tuple[Instance, ...] = ()
        self._mark: tuple[int, frozenset[str]] | None = None
        self._sold: tuple[tuple[CloudOffer, ...], int | None, tuple[CloudOffer, ...]] | None = None

    @property
    def cloud(self) -> Cloud:
        """The same by its parts."""
        traits = Traits(leases=partial(Leases, told=True, ended=True))
        return Cloud(
            self.name, self, catalogue=self, images=self.imaging, network=self.networking, traits=traits
        )

    def machines(self) -> tuple[Instance, ...]:
        """Every instance with this pool's tag that the listing shows; a call for each page."""
        with self._call("machines", 0):
            found = self._listed()
        for _ in range(self.site.settings.page_size, len(found), self.site.settings.page_size):
            self.site.record("machines", 0)
        return found

    def _listed(self) -> tuple[Instance, ...]:
        """The last listing, made anew where it would be another now."""
        mark = (self.site.changes, frozenset(self.site.out_of_reach))
        if mark != self._mark:
            listed = self.site.listed(self.pool)
            found, self.odd = readable(listed, lambda one: self._shown(*one), _id)
            self._listing, self._mark = tuple(found), mark
        return self._listing

    def look_up(self, ids: Iterable[str]) -> Found:
        """These by their ids, a hundred with each call; nothing of those that are out of reach."""
        found: dict[str, Instance | None] = {}
        for batch in batches(ids, BATCH):
            with self._call("look_up", len(batch)):
                for machine in batch:
                    if machine not in self.site.out_of_reach:
                        known = self.site.shown(machine)
                        shown, odd = readable([known] if known else (), lambda one: self._shown(*one), _id)
                        if not odd:
                            found[machine] = shown[0] if shown else None
        return found

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """Make machines of this request, once; see the contract."""
        tagged = replace(request, tags={**request.tags, TAG_POOL: self.pool, TAG_LAUNCH: request.key})
        with self._call("launch", request.count, request.zone, request.flavor):
            if request.network:
                raise BadRequest(f"{self.name}: there are no networks, and none is called {request.network}")
            here = {group.name for group in self.site.groups.values()} | set(self.site.groups)
            if missing := sorted(set(request.security_groups) - here):
                raise BadRequest(f"{self.name}: there is no security group {missing[0]}")
            made = self.site.launch(tagged)
        return tuple(self._shown(instance, instance.state(self.site.clock())) for instance in made)

    def terminate(self, ids: Iterable[str]) -> None:
        """End these instances, a hundred with each call."""
        for batch in batches(ids, BATCH):
            with self._call("terminate", len(batch)):
                for machine in batch:
                    self.site.terminate(machine)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Write or (None) remove tags, on a hundred instances with each call."""
        for batch in batches(ids, BATCH):
            with self._call("tag", len(batch)):
                for machine in batch:
                    self.site.tag(machine, tags)

    def offers(self) -> tuple[CloudOffer, ...]:
        """All that the cloud sells, with what is left of it where it tells."""
        with self._call("offers", 0):
            sold, stock = self.site.offers, self.site.changes if self.site.settings.tells_left else None
            if self._sold is None or self._sold[0] is not sold or self._sold[1] != stock:
                found, self.odd_offers = readable(sold, self._offer, _name)
                self._sold = (sold, stock, tuple(found))
            return self._sold[2]

    def quota(self) -> Quota:
        """What is left, with everybody's machines counted."""
        with self._call("quota", 0):
            return self.site.quota()

    def console(self, machine: str) -> str:
        """The end of what the instance has printed."""
        with self._call("console", 1):
            instance = self.site.instances.get(machine)
            return instance.console(self.site.clock())[-CONSOLE_BYTES:] if instance else ""

    # ------------------------------------------------------------------------------ what people may ask

    def images(self) -> tuple[ImageInfo, ...]:
        """The images of the settings; one called `*` where the cloud takes any."""
        with self._call("images", 0):
            return tuple(
                ImageInfo(id=name, name=name, state="available", arch="", owner=self.name)
                for name in self.site.settings.images or ("*",)
            )

    def key_pairs(self) -> tuple[str, ...]:
        """The names of the key pairs that were made here, and of the one in the settings."""
        with self._call("key_pairs", 0):
            named = self.site.settings.key_name
            return tuple(sorted(self.site.key_pairs | ({named} if named else set())))

    def create_key_pair(self, name: str) -> str:
        """A made-up key pair: a text that opens nothing."""
        with self._call("create_key_pair", 1):
            if name in self.site.key_pairs:
                raise BadRequest(f"{self.name}: there is a key pair {name!r} already")
            self.site.key_pairs.add(name)
        return f"made-up private key of {name}\n"

    def delete_key_pair(self, name: str) -> None:
        """As if it had never been made."""
        with self._call("delete_key_pair", 1):
            self.site.key_pairs.discard(name)

    def findings(self) -> tuple[Finding, ...]:
        """Nothing: a fake cloud lacks nothing."""
        with self._call("findings", 0):
            return ()

    def _offer(self, sold: CloudOffer) -> CloudOffer:
        for amount in sold.resources.amounts():
            quantity(amount)
        if sold.price is not None:
            price(sold.price)
        left = self.site.left(sold) if self.site.settings.tells_left else None
        return sold if left == sold.left else replace(sold, left=left)

    @contextmanager
    def _call(self, name: str, count: int, zone: str = "", flavor: str = "") -> Iterator[None]:
        try:
            self.site.faults.raise_for(name, self.site.clock(), zone=zone, flavor=flavor, after=False)
            yield
            self.site.faults.raise_for(name, self.site.clock(), zone=zone, flavor=flavor, after=True)
        except CloudError as error:
            self.site.record(name, count, error.code)
            raise
        self.site.record(name, count)

    def _shown(self, instance: FakeInstance, state: CloudState) -> Instance:
        tags, known = instance.tags, instance.seen
        if known is not None and known.state is state and tags.get(TAG_POOL) == self.pool:
            return known
        made = Instance(
            id=instance.id,
            cloud=self.name,
            state=state,
            launched_at=instance.launched_at,
            worker_class=tags.get(TAG_CLASS, ""),
            launch_key=tags.get(TAG_LAUNCH, ""),
            generation=tags.get(TAG_GENERATION, ""),
            retiring=TAG_RETIRING in tags,
            zone=instance.zone,
            flavor=instance.flavor,
            market=instance.market,
            image=instance.image,
            address=instance.address if state is CloudState.RUNNING else "",
            fault=instance.fault if state is CloudState.ERROR else "",
            variant=variant(tags.get(TAG_VARIANT, "")),
            identity=tags.get(TAG_IDENTITY, ""),
            tagged=tags.get(TAG_POOL) == self.pool,
        )
        if made.tagged:
            instance.seen = made
        return made


def _id(shown: tuple[FakeInstance, CloudState]) -> str:
    return shown[0].id


def _name(sold: CloudOffer) -> str:
    return "/".join((sold.zone, sold.flavor, sold.market))


def _make(name: str, owner: Owner, settings: Settings) -> Cloud:
    """A fake cloud of its own for this pool."""
    return FakeCloud(Site(name, settings, time.time), owner.pool).cloud


def _sold(name: str, settings: Settings) -> Sold:
    """What such a cloud sells, as its settings say it."""
    checked = settings.model_copy(update={"faults": (), "tells_left": True})
    offers = FakeCloud(Site(name, checked, lambda: 0.0), "").offers()
    boots = [checked.boot(one.zone, one.flavor, "") for one in offers[:1]]
    boot = boots[0].start + boots[0].join if boots else None
    return Sold(offers, checked.quota_machines, checked.quota_cores, boot)


DRIVER = Driver(Settings, _make, sold=_sold)
