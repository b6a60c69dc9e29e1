"""One launch, once: a single POST for all machines, looked for first by its key's label.

Nova has no client token: what keeps a launch from being made twice is the look before it. Its answer names
the first of several servers only; the others are found by the label too.
"""

import base64
import contextlib
import hashlib
import re
from collections.abc import Iterable, Sequence
from typing import Any

from updraft.clouds.base import TAG_CLASS, TAG_LAUNCH, TAG_POOL, LaunchRequest
from updraft.clouds.openstack.belongings import Belongings
from updraft.clouds.openstack.client import COMPUTE, Connection
from updraft.clouds.openstack.editing import terminate
from updraft.clouds.openstack.errors import Refused, is_full
from updraft.clouds.openstack.images import Images
from updraft.clouds.openstack.listing import Listing
from updraft.clouds.openstack.reading import TAG_FLOATING, TAG_IMAGE, Raw, label, state_of
from updraft.clouds.openstack.selling.offers import Offers
from updraft.clouds.openstack.selling.places import Places
from updraft.clouds.openstack.settings import TEXT_LIMIT, Settings
from updraft.core.model import CloudState, Instance
from updraft.errors import BadRequest, CloudError, CloudUnavailable, NoCapacity

USER_DATA_LIMIT = 65535  # of base64
VOLUME_TYPE_SINCE = (2, 67)


class Launcher:
    """Makes machines of one pool."""

    def __init__(
        self,
        cloud: str,
        pool: str,
        settings: Settings,
        connection: Connection,
        listing: Listing,
        images: Images,
        offers: Offers,
        places: Places,
        belongings: Belongings,
    ) -> None:
        self._cloud = cloud
        self._pool = pool
        self._settings = settings
        self._connection = connection
        self._listing = listing
        self._images = images
        self._offers = offers
        self._places = places
        self._belongings = belongings

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """See the driver's contract."""
        self._check(request)
        with self._connection.translate(f"launching {request.count} × {request.flavor} in {request.zone}"):
            earlier = self._listing.of_launch(request.key)
            if earlier:
                return self._listing.machines(earlier)
            server, hints = self.body(request)
            if self._settings.port is None:
                server["networks"] = [{"uuid": network} for network in self._places.networks(request.network)]
                self._post(server, hints, request.count)
            else:
                ports = self._belongings.make_ports(self._settings.port, request)
                self._one_by_one(server, hints, ports)
            made = self._listing.of_launch(request.key)
        if not made:
            raise CloudUnavailable(
                f"cloud {self._cloud}: launch {request.key} was accepted, and its machines aren't listed yet"
            )
        return self._listing.machines(self._with_room(made))

    def tags(self, request: LaunchRequest) -> dict[str, str]:
        """The metadata of the machines: the site's, and updraft's own."""
        own = {**request.tags, TAG_POOL: self._pool, TAG_LAUNCH: request.key}
        return {**self._settings.tags, **own}

    def body(self, request: LaunchRequest) -> tuple[dict[str, Any], dict[str, Any]]:
        """The server that is asked for, without its networks, and the scheduler's hints."""
        settings, metadata = self._settings, self.tags(request)
        server: dict[str, Any] = {
            "name": name_of(self._pool, request),
            "flavorRef": self._offers.flavor_id(request.flavor),
            "user_data": base64.b64encode(request.user_data).decode(),
            "tags": [label(TAG_POOL, self._pool), label(TAG_LAUNCH, request.key)],
            "metadata": metadata,
            **self._disk(request, metadata),
        }
        if request.zone:
            server["availability_zone"] = request.zone
        if settings.key_name is not None:
            server["key_name"] = settings.key_name
        if settings.config_drive is not None:
            server["config_drive"] = settings.config_drive
        if settings.port is None and (groups := self._places.security_groups(request.security_groups)):
            server["security_groups"] = [{"name": one} for one in groups]
        if settings.floating_network is not None:
            metadata[TAG_FLOATING] = self._places.floating_network()
        group = self._places.server_group()
        return server, {"group": group} if group else {}

    # ------------------------------------------------------------------------------------------- inside

    def _disk(self, request: LaunchRequest, metadata: dict[str, str]) -> dict[str, Any]:
        """What it boots from: the flavor's own disk, or a volume that is made for it and ends with it."""
        settings, found = self._settings, self._images.resolve(request.image)
        if not settings.from_volume:
            return {"imageRef": found}
        metadata[TAG_IMAGE] = found
        cores = self._offers.flavors()[request.flavor].resources.cpus
        volume: dict[str, Any] = {
            "boot_index": 0,
            "source_type": "image",
            "destination_type": "volume",
            "uuid": found,
            "volume_size": max(settings.volume_gib(cores), self._images.least_volume(request.image)),
            "delete_on_termination": True,
        }
        if settings.volume_type is not None:
            if self._connection.microversion < VOLUME_TYPE_SINCE:
                raise BadRequest(
                    f"cloud {self._cloud}: its compute service is too old for volume_type; leave it out"
                )
            volume["volume_type"] = settings.volume_type
        return {"block_device_mapping_v2": [volume]}

    def _post(self, server: dict[str, Any], hints: dict[str, Any], count: int) -> None:
        several = {"min_count": 1, "max_count": count} if count > 1 else {}
        body: dict[str, Any] = {"server": {**server, **several}}
        if hints:
            body["os:scheduler_hints"] = hints
        self._connection.act(COMPUTE, "POST", "/servers", body)

    def _one_by_one(
        self, server: dict[str, Any], hints: dict[str, Any], ports: Sequence[Sequence[str]]
    ) -> None:
        """A call for each machine with its own ports; those of a machine that wasn't made are removed.

        Of a call that wasn't answered nobody knows whether it took its ports: they are swept up if not.
        """
        for at, mine in enumerate(ports):
            one = {
                **server,
                "name": f"{server['name']}-{at + 1}",
                "networks": [{"port": one_port} for one_port in mine],
            }
            try:
                self._post(one, hints, 1)
            except Exception as error:
                unused = ports[at if isinstance(error, Refused) and error.status < 500 else at + 1 :]
                self._belongings.drop_ports(one for group in unused for one in group)
                if at == 0:
                    raise
                return

    def _with_room(self, made: Iterable[Raw]) -> list[Raw]:
        """Those for which there was room; Nova accepts all, and may find out at once that there is none."""
        found = list(made)
        full = [raw for raw in found if _is_without_room(raw)]
        if full:
            with contextlib.suppress(CloudError):  # then they are listed as broken, and are ended so
                terminate(self._connection, (str(raw["id"]) for raw in full))
            if len(full) == len(found):
                raise NoCapacity(f"cloud {self._cloud}: {full[0]['fault']['message'][:300]}")
        return [raw for raw in found if raw not in full]

    def _check(self, request: LaunchRequest) -> None:
        size = -(-len(request.user_data) // 3) * 4
        if size > USER_DATA_LIMIT:
            raise BadRequest(
                f"cloud {self._cloud}: the user-data has {len(request.user_data)} bytes, and Nova takes "
                f"{USER_DATA_LIMIT // 4 * 3}: make the class's layers smaller"
            )
        if request.market != "on-demand":
            raise BadRequest(f"cloud {self._cloud} has no spot market; take spot out of the class's markets")
        for name, text in self.tags(request).items():
            if len(text) > TEXT_LIMIT:
                raise BadRequest(f"cloud {self._cloud}: {name} has more than {TEXT_LIMIT} characters")


def name_of(pool: str, request: LaunchRequest) -> str:
    """A name that is a host's and of this launch alone; Nova adds a number where it makes several."""
    words = f"{pool}-{request.tags.get(TAG_CLASS, '') or 'worker'}"
    plain = re.sub(r"[^A-Za-z0-9-]+", "-", words).strip("-")[:45]
    return f"{plain}-{hashlib.sha256(request.key.encode()).hexdigest()[:8]}"


def _is_without_room(raw: Raw) -> bool:
    fault = raw.get("fault") or {}
    return state_of(raw) is CloudState.ERROR and is_full(str(fault.get("message", "")))
