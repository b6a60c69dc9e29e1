"""The driver of EC2-compatible clouds."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import get_args

from botocore.exceptions import ClientError

from updraft.clouds.base import TAG_POOL, Finding, Found, ImageInfo, LaunchRequest, Leases, Pace
from updraft.clouds.cloud import Cloud, Traits
from updraft.clouds.ec2.capabilities import Capabilities
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.editing import terminate, write_tags
from updraft.clouds.ec2.errors import is_missing, is_unknown_call
from updraft.clouds.ec2.groups import about_groups
from updraft.clouds.ec2.images import Images
from updraft.clouds.ec2.imaging import EC2Imaging
from updraft.clouds.ec2.launching import Launcher, shows_tags
from updraft.clouds.ec2.leavings import EC2Leavings
from updraft.clouds.ec2.listing import TAG_DISOWNED, Listing
from updraft.clouds.ec2.networking import EC2Networking
from updraft.clouds.ec2.offers import Offers
from updraft.clouds.ec2.prices import Prices
from updraft.clouds.ec2.settings import Feature, Settings
from updraft.clouds.odd import Odd
from updraft.core.model import CloudOffer, Instance, Quota

CONSOLE_BYTES = 64 * 1024
_SHELLS_OWN = Finding(
    "credentials of the service",
    "warning",
    "these come from the environment of this shell, which a service doesn't have",
    "put them into /root/.aws/credentials (mode 0600) for the service; `updraft run` in this "
    "shell works without",
)


class EC2Driver:
    """Keeps the contracts of `Machines`, `Catalogue`, `ImageFinder` and `Tending`."""

    def __init__(
        self,
        name: str,
        pool: str,
        settings: Settings,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self.known = Capabilities(settings.lacks)
        self._settings = settings
        self._connection = connection
        self._listing = Listing(name, pool, connection, self.known, settings, clock)
        self._prices = Prices(name, settings, connection)
        self._images = Images(name, settings, connection, clock)
        self.imaging = EC2Imaging(name, connection, self.known, self._images)
        self.networking = EC2Networking(name, connection, settings)
        self.leavings = EC2Leavings(name, pool, connection)
        self._offers = Offers(name, settings, connection, self.known, self._prices, clock)
        self._launcher = Launcher(
            name, pool, settings, connection, self.known, self._listing, self._images, self._prices
        )

    @property
    def cloud(self) -> Cloud:
        """The same by its parts."""
        return Cloud(
            self.name,
            self,
            catalogue=self,
            finder=self,
            images=self.imaging,
            network=self.networking,
            leavings=self.leavings,
            tending=self,
            traits=Traits(Pace(machines=self._settings.listing_every), self._leases),
        )

    def _leases(self) -> Leases:
        """As far as the endpoint has shown that it has what is needed."""
        told = (
            self.known.may("metadata-options")
            and self.known.may("metadata-tags")
            and shows_tags(self._settings.tags)
        )
        return Leases(told=told, ended=self.known.may("shutdown-behavior"))

    @property
    def odd(self) -> Odd:
        """What was left out of the last listing, and why."""
        return self._listing.odd

    @property
    def odd_offers(self) -> Odd:
        """What was left out of what the cloud sells, and why."""
        return self._offers.odd

    # --------------------------------------------------------------------------------------- the contract

    @property
    def tends(self) -> bool:
        """See `Tending`: whether a look tags what couldn't be tagged before."""
        return self._listing.tends

    @tends.setter
    def tends(self, tends: bool) -> None:
        self._listing.tends = tends

    def machines(self) -> tuple[Instance, ...]:
        """Every instance of the pool, those terminated lately included; all pages."""
        self._learn_amazon()
        return self._listing.machines()

    def look_up(self, ids: Iterable[str]) -> Found:
        """These by their ids, five hundred with a call; one without the pool's tag is shown too."""
        self._learn_amazon()
        return self._listing.by_id(ids)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """One RunInstances for all of them; see the contract."""
        self._learn_amazon()
        try:
            return self._launcher.launch(request)
        finally:  # also one without an answer may have made machines
            self._listing.changed()

    def terminate(self, ids: Iterable[str]) -> None:
        """End these instances, five hundred with a call."""
        try:
            missing = terminate(self._connection, ids)
        finally:
            self._listing.changed()
        self._listing.end_when_seen(missing)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Write or remove tags, five hundred instances with a call."""
        written = dict(tags)
        if TAG_POOL in tags:
            # Where user-data may prove whose a machine is, one that was let go of must say so.
            let_go = tags[TAG_POOL] is None and not self.known.has("tag-on-create")
            if let_go or not self.known.has("tag-on-create"):
                written[TAG_DISOWNED] = "yes" if let_go else None
        write_tags(self._connection, ids, written)

    def offers(self) -> tuple[CloudOffer, ...]:
        """Types × zones × markets; spot only where the endpoint has it and within the site's cap."""
        self._learn_amazon()
        return self._offers.all()

    def quota(self) -> Quota:
        """How many machines are left of `max-instances`, everybody's counted.

        On Amazon's own service nothing is known: its quotas count virtual CPUs and are not in this API.
        """
        if self._connection.amazon:
            return Quota()
        most = self._most_machines()
        if most is None:
            return Quota()
        if most < 0:
            return Quota(unlimited=frozenset({"machines"}))
        used = self._listing.counted()
        return Quota(machines=max(0, most - used), used_machines=used)

    def console(self, machine: str) -> str:
        """The end of what the instance has printed, the latest where the endpoint has it."""
        with self._connection.translate(f"reading the console of {machine}"):
            try:
                answer = self._connection.ask("get_console_output", InstanceId=machine)
            except ClientError as error:
                if is_missing(error):
                    return ""
                raise
        text = str(answer.get("Output", "") or "")
        return text.encode()[-CONSOLE_BYTES:].decode("utf-8", "ignore")

    # -------------------------------------------------------------------------------------- the catalogue

    def images(self) -> tuple[ImageInfo, ...]:
        """The images of the owners in the settings; on other clouds than Amazon's all that can be seen."""
        return self._images.all()

    def image(self, wanted: str) -> ImageInfo | None:
        """The image that a launch boots for this name or id (an id may be anybody's); None for none."""
        return self._images.find(wanted)

    def key_pairs(self) -> tuple[str, ...]:
        """The names of the account's key pairs."""
        answer = self._connection.call("describe_key_pairs", "listing key pairs")
        return tuple(sorted(pair["KeyName"] for pair in answer.get("KeyPairs", ())))

    def create_key_pair(self, name: str) -> str:
        """Make a key pair and return its private key; there is no second chance to read it."""
        answer = self._connection.call("create_key_pair", f"making the key pair {name}", KeyName=name)
        return str(answer["KeyMaterial"])

    def delete_key_pair(self, name: str) -> None:
        """Delete a key pair; EC2 itself says nothing of one that isn't there."""
        self._connection.call("delete_key_pair", f"deleting the key pair {name}", KeyName=name)

    def findings(self) -> tuple[Finding, ...]:
        """Whose credentials these are, the security groups, and what the endpoint lacks.

        Asks for zones and types if need be.
        """
        self._learn_amazon()
        self._offers.all()
        groups = about_groups(self._settings, self._connection)
        mine = (_SHELLS_OWN,) if self._connection.from_environment else ()
        return (groups, *self.known.findings(), *mine)

    # ------------------------------------------------------------------------------------------- inside

    def _learn_amazon(self) -> None:
        """Of Amazon's own service it is known what it has; nothing need be found out."""
        if self._connection.amazon:
            for feature in get_args(Feature):
                self.known.seen(feature)

    def _most_machines(self) -> int | None:
        with self._connection.translate("asking for quotas"):
            try:
                answer = self._connection.ask("describe_account_attributes", AttributeNames=["max-instances"])
            except ClientError as error:
                if is_unknown_call(error):
                    return None
                raise
        for attribute in answer.get("AccountAttributes", ()):
            if attribute.get("AttributeName") == "max-instances":
                values = [value.get("AttributeValue", "") for value in attribute.get("AttributeValues", ())]
                text = values[0] if values else ""
                return int(text) if text.lstrip("-").isdigit() else None
        return None
