"""The driver of the local cloud: a client of its API that speaks the words of the house."""

import os
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

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
from updraft.clouds.local.client import Client, role_credential
from updraft.clouds.local.config import CONTROLLER_TOKEN, Quotas, default_flavors, default_zones
from updraft.clouds.local.imaging import LocalImaging
from updraft.clouds.local.settings import ENDPOINT_VARIABLE, TOKEN_VARIABLE, LocalHeads, Settings
from updraft.clouds.odd import NAMELESS, NOTHING, Odd, price, quantity, readable
from updraft.core.model import CloudOffer, CloudState, Instance, Quota, Resources, of_amounts, variant
from updraft.errors import AuthFailed, BadRequest

USUAL_BOOT = 5.0  # seconds from a launch to the slot in the collector, as seen on a machine of two cores
_BATCH = 100
_NO_NETWORK = (
    "its machines are namespaces of one host behind one bridge: there are no security groups, and nobody "
    "outside that host reaches them"
)
_STATES = frozenset(CloudState)


def _make(name: str, owner: Owner, settings: Settings) -> Cloud:
    """The cloud called `name`, for machines of this pool. Raises AuthFailed where there is no credential."""
    return local_driver(name, owner.pool, settings).cloud


def local_driver(name: str, pool: str, settings: Settings) -> "LocalDriver":
    """What makes its machines. Raises AuthFailed where there is no credential."""
    # Where it is reached differs in and beside its machines, and the file is the same in both places.
    endpoint = os.environ.get(ENDPOINT_VARIABLE) or settings.endpoint
    client = Client(endpoint, _credential(name, endpoint, settings.credential_file), timeout=settings.timeout)
    return LocalDriver(name, pool, client, settings.role)


def _sold(name: str, _settings: Settings) -> Sold:
    """What a local cloud sells unless it was started with flavors of its own, which only its API knows."""
    flavors, zones, quotas = default_flavors(), default_zones(), Quotas()
    offers = tuple(
        CloudOffer(
            name, zone.name, flavor.name, market,
            Resources(flavor.cpus, flavor.memory, flavor.disk, flavor.gpus),
            price, None if zone.cores is None else zone.cores // flavor.cpus,
        )
        for zone in zones
        for flavor in flavors
        for market, price in flavor.prices.items()
    )  # fmt: skip
    return Sold(offers, quotas.machines, quotas.cores, USUAL_BOOT)


DRIVER = Driver(Settings, _make, heads=LocalHeads(), sold=_sold)


class LocalDriver:
    """The contracts of `Machines` and `Catalogue`, kept by the local cloud."""

    def __init__(self, name: str, pool: str, client: Client, role: str = "") -> None:
        self.name = name
        self._role = {"role": role} if role else {}
        self._pool = pool
        self._client = client
        self.imaging = LocalImaging(name, client)
        self.odd: Odd = NOTHING
        self.odd_offers: Odd = NOTHING

    @property
    def cloud(self) -> Cloud:
        """The same by its parts."""
        traits = Traits(leases=partial(Leases, told=True, ended=True), no_network=_NO_NETWORK)
        return Cloud(self.name, self, catalogue=self, images=self.imaging, traits=traits)

    def machines(self) -> tuple[Instance, ...]:
        """Every instance of this pool, those terminated lately included."""
        listed = self._client.machines({TAG_POOL: self._pool})
        found, self.odd = readable(listed, self._instance, _id)
        return tuple(found)

    def look_up(self, ids: Iterable[str]) -> Found:
        """By their ids, whatever their tags."""
        ids = tuple(ids)
        if not ids:
            return {}
        shown, odd = readable(self._client.machines(ids=ids), self._instance, _id)
        everything: dict[str, Instance | None] = {one.id: one for one in shown}
        if NAMELESS not in odd:  # else it may be any of those that are missing
            everything = {**dict.fromkeys(one for one in ids if one not in odd), **everything}
        return {one: everything[one] for one in dict.fromkeys(ids) if one in everything}

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """One call for all of them; the launch key is the cloud's own idempotency key."""
        if request.network:
            raise BadRequest(f"Cloud {self.name}: it has one network, and none is called {request.network}.")
        if request.security_groups:
            raise BadRequest(f"Cloud {self.name}: it has no security groups.")
        made = self._client.run(
            key=request.key,
            count=request.count,
            image=request.image,
            flavor=request.flavor,
            zone=request.zone,
            market=request.market,
            tags={**request.tags, TAG_POOL: self._pool, TAG_LAUNCH: request.key},
            user_data=request.user_data,
            **self._role,
        )
        return tuple(self._instance(machine) for machine in made)

    def terminate(self, ids: Iterable[str]) -> None:
        """In batches of a hundred."""
        for batch in _batches(ids):
            self._client.terminate(batch)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """In batches of a hundred."""
        for batch in _batches(ids):
            self._client.tag(batch, tags)

    def offers(self) -> tuple[CloudOffer, ...]:
        """Every flavor, zone and market of the cloud."""
        found, self.odd_offers = readable(self._client.offers(), self._offer, _what)
        return tuple(found)

    def quota(self) -> Quota:
        """Machines and cores; the cloud has no quota of memory and says so by leaving it out."""
        quota = self._client.quota()
        endless = frozenset(name for name in ("machines", "cores") if quota[name] is None) | {"memory"}
        return Quota(
            machines=quota["machines"],
            cores=quota["cores"],
            unlimited=endless,
            # A cloud that was started by an older updraft doesn't say it.
            used_machines=quota.get("used_machines"),
            used_cores=quota.get("used_cores"),
        )

    def console(self, machine: str) -> str:
        """The end of its console."""
        return self._client.console(machine)

    def images(self) -> tuple[ImageInfo, ...]:
        """The images that can be launched; all are of this machine's own architecture."""
        return tuple(one.info for one in self.imaging.all() if one.state == "ready")

    def key_pairs(self) -> tuple[str, ...]:
        """None: nobody logs in to these machines by SSH."""
        return ()

    def create_key_pair(self, name: str) -> str:
        """Refused: see `key_pairs`."""
        raise BadRequest(
            f"Cloud {self.name}: the local cloud has no key pairs; `updraft local shell` opens a shell."
        )

    def delete_key_pair(self, name: str) -> None:
        """Nothing to delete: see `key_pairs`."""

    def findings(self) -> tuple[Finding, ...]:
        """Nothing: the local cloud has all that the contract asks for."""
        return ()

    def _offer(self, row: Mapping[str, Any]) -> CloudOffer:
        return CloudOffer(
            cloud=self.name,
            zone=row["zone"],
            flavor=row["flavor"],
            market=row["market"],
            resources=of_amounts([quantity(row[name]) for name in ("cpus", "memory", "disk", "gpus")]),
            price=None if row["price"] is None else price(row["price"]),
            left=None if row["left"] is None else quantity(row["left"]),
        )

    def _instance(self, machine: Mapping[str, Any]) -> Instance:
        tags: Mapping[str, str] = machine["tags"]
        said = str(machine["state"])
        known = said in _STATES
        return Instance(
            id=machine["id"],
            cloud=self.name,
            state=CloudState(said) if known else CloudState.RUNNING,
            launched_at=machine["times"]["pending"],
            worker_class=tags.get(TAG_CLASS, ""),
            launch_key=tags.get(TAG_LAUNCH, ""),
            generation=tags.get(TAG_GENERATION, ""),
            retiring=TAG_RETIRING in tags,
            zone=machine["zone"],
            flavor=machine["flavor"],
            market=machine["market"],
            image=machine["image"],
            address=machine["address"],
            fault=machine["why_ended"],
            variant=variant(tags.get(TAG_VARIANT, "")),
            identity=tags.get(TAG_IDENTITY, ""),
            tagged=tags.get(TAG_POOL) == self._pool,
            unknown_state="" if known else said,
        )


def _id(machine: Mapping[str, Any]) -> str:
    return str(machine["id"])


def _what(row: Mapping[str, Any]) -> str:
    return f"{row['zone']}/{row['flavor']}/{row['market']}"


def _batches(ids: Iterable[str]) -> Iterable[list[str]]:
    all_ids = list(ids)
    return (all_ids[at : at + _BATCH] for at in range(0, len(all_ids), _BATCH))


def _credential(name: str, endpoint: str, file: Path | None) -> str:
    if file is None and not os.environ.get(TOKEN_VARIABLE):
        file = _beside(endpoint)
    if file is not None:
        try:
            return file.read_text().strip()
        except OSError as error:
            raise AuthFailed(
                f"Cloud {name}: the credential file {file} can't be read: {error.strerror}."
            ) from error
    return os.environ.get(TOKEN_VARIABLE) or role_credential()


def _beside(endpoint: str) -> Path | None:
    """The credential that the cloud keeps beside its socket; None where it is reached otherwise."""
    kind, _, path = endpoint.partition(":")
    return Path(path).with_name(CONTROLLER_TOKEN) if kind == "unix" else None
