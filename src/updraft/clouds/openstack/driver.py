"""The driver of OpenStack clouds."""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from urllib.parse import quote

from updraft.clouds.base import Finding, Found, ImageInfo, LaunchRequest, Leases, Pace
from updraft.clouds.cloud import Cloud, Traits
from updraft.clouds.odd import Odd
from updraft.clouds.openstack.belongings import Belongings
from updraft.clouds.openstack.client import COMPUTE, Connection, found_or_none
from updraft.clouds.openstack.counting import Uncounted
from updraft.clouds.openstack.credentials import Credentials
from updraft.clouds.openstack.editing import terminate, write_tags
from updraft.clouds.openstack.errors import Garbled, Refused
from updraft.clouds.openstack.findings import findings, key_pairs
from updraft.clouds.openstack.images import Images
from updraft.clouds.openstack.imaging import OpenStackImaging
from updraft.clouds.openstack.launching import Launcher
from updraft.clouds.openstack.leavings import OpenStackLeavings
from updraft.clouds.openstack.listing import Listing
from updraft.clouds.openstack.networking import OpenStackNetworking
from updraft.clouds.openstack.selling.offers import Offers
from updraft.clouds.openstack.selling.places import Places
from updraft.clouds.openstack.selling.quota import Quotas
from updraft.clouds.openstack.settings import Settings
from updraft.core.model import CloudOffer, Instance, Quota
from updraft.errors import CloudError

CONSOLE_BYTES = 64 * 1024
_CONSOLE_LINES = 2000


class OpenStackDriver:
    """Keeps the contracts of `Machines`, `Catalogue`, `ImageFinder` and `Tending`."""

    def __init__(
        self,
        name: str,
        pool: str,
        settings: Settings,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
        *,
        identity: str = "",
    ) -> None:
        self.name = name
        self.tends = True
        self._settings = settings
        self._connection = connection
        self._listing = Listing(name, pool, connection, settings)
        self._quotas = Quotas(connection, settings, clock)
        self._uncounted = Uncounted(clock)
        self._credentials = Credentials(connection, clock)
        self._images = Images(name, connection, clock)
        self.imaging = OpenStackImaging(name, connection)
        self.leavings = OpenStackLeavings(name, pool, connection)
        self._offers = Offers(name, settings, connection, clock)
        self._places = Places(name, settings, connection, clock)
        self.networking = OpenStackNetworking(name, connection, self._places)
        self._belongings = Belongings(pool, settings, connection, self._places, clock)
        self._belongings.identity = identity
        self._launcher = Launcher(
            name,
            pool,
            settings,
            connection,
            self._listing,
            self._images,
            self._offers,
            self._places,
            self._belongings,
        )

    @property
    def cloud(self) -> Cloud:
        """The same by its parts."""
        settings = self._settings
        # A drive shows what was there at the launch. Nova leaves a machine that powers itself off as it is.
        leases = partial(Leases, told=settings.config_drive is not True, ended=False)
        return Cloud(
            self.name,
            self,
            catalogue=self,
            finder=self,
            images=self.imaging,
            network=self.networking,
            leavings=self.leavings,
            tending=self,
            traits=Traits(
                Pace(machines=settings.listing_every, page=settings.page_size),
                leases,
                credentials_end=lambda: self._credentials.end,
            ),
        )

    @property
    def odd(self) -> Odd:
        """What was left out of the last listing, and why."""
        return self._listing.odd

    @property
    def odd_offers(self) -> Odd:
        """What was left out of what the cloud sells, and why."""
        return self._offers.odd

    # --------------------------------------------------------------------------------------- the contract

    def machines(self) -> tuple[Instance, ...]:
        """Every server with the pool's label and metadata, all pages; floating addresses are looked after."""
        found = self._uncounted.look(self._listing.look)
        if self.tends:
            self._belongings.settle(found)
        return self._listing.machines(found)

    def look_up(self, ids: Iterable[str]) -> Found:
        """These by their ids, a call for each; one without the pool's metadata is shown too."""
        return self._listing.by_id(ids)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """One POST for all of them, unless they need ports of their own; see the contract."""
        with self._uncounted.launching(request.count, self._offers.size(request.flavor)):
            return self._launcher.launch(request)

    def terminate(self, ids: Iterable[str]) -> None:
        """End these servers and what belongs to them."""
        named = list(dict.fromkeys(ids))
        # A network service that is down is no reason to let machines run on.
        with suppress(CloudError), self._connection.translate("releasing the addresses of machines"):
            self._belongings.release(named)
        terminate(self._connection, named)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Write or remove metadata; of a server that is still being built, as soon as Nova lets it."""
        named = list(dict.fromkeys(ids))
        later = write_tags(self._connection, named, tags)
        self._listing.owe(later, tags)
        self._listing.written(set(named) - set(later), tags)

    def offers(self) -> tuple[CloudOffer, ...]:
        """Flavors × availability zones. There is no spot, and a price only where the site says it."""
        return self._offers.all()

    def quota(self) -> Quota:
        """What is left of the project's quotas, everybody's machines counted, those just asked for too."""
        self._credentials.look()
        return self._uncounted.less(self._listing.building, self._quotas.left)

    def console(self, machine: str) -> str:
        """The end of what the machine has printed; empty while it has no console, and where none is given."""
        with self._connection.translate(f"reading the console of {machine}"):
            try:
                answer = self._connection.act(
                    COMPUTE,
                    "POST",
                    f"/servers/{quote(machine, safe='')}/action",
                    {"os-getConsoleOutput": {"length": _CONSOLE_LINES}},
                )
            except Refused as error:
                if error.status in (404, 409, 501):
                    return ""
                raise
        text = str(answer.get("output") or "")
        return text.encode()[-CONSOLE_BYTES:].decode("utf-8", "ignore")

    # -------------------------------------------------------------------------------------- the catalogue

    def images(self) -> tuple[ImageInfo, ...]:
        """The images of the project, public ones, and those shared with it that it has accepted."""
        return self._images.all()

    def image(self, wanted: str) -> ImageInfo | None:
        """The image that a launch boots for this id, name or pattern; None for none."""
        return self._images.find(wanted)

    def key_pairs(self) -> tuple[str, ...]:
        """The names of the user's key pairs."""
        with self._connection.translate("listing key pairs"):
            return key_pairs(self._connection)

    def create_key_pair(self, name: str) -> str:
        """Make a key pair and return its private key; there is no second chance to read it."""
        with self._connection.translate(f"making the key pair {name}"):
            answer = self._connection.act(COMPUTE, "POST", "/os-keypairs", {"keypair": {"name": name}})
            private = (answer.get("keypair") or {}).get("private_key")
            if not private:
                raise Garbled("the answer holds no private key")
        return str(private)

    def delete_key_pair(self, name: str) -> None:
        """Delete a key pair of the user's."""
        with self._connection.translate(f"deleting the key pair {name}"):
            path = f"/os-keypairs/{quote(name, safe='')}"
            found_or_none(lambda: self._connection.act(COMPUTE, "DELETE", path))

    def findings(self) -> tuple[Finding, ...]:
        """The endpoint's version, what machines are launched with, what was taken for GPUs, and whose
        credentials these are.
        """
        return tuple(findings(self._settings, self._connection, self._places, self._offers))
