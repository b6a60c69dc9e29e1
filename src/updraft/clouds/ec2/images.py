"""Images, by id or by name."""

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from updraft.clouds.base import ImageInfo
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.settings import Settings
from updraft.errors import BadRequest

KEPT = 600.0
_ID = re.compile(r"(ami|emi|aki|ari)-[0-9a-f]{8,}", re.IGNORECASE)


class Images:
    """Looks images up, and remembers for ten minutes what a name meant."""

    def __init__(
        self,
        cloud: str,
        settings: Settings,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cloud = cloud
        self._settings = settings
        self._connection = connection
        self._clock = clock
        self._found: dict[str, tuple[float, Mapping[str, Any]]] = {}

    def resolve(self, image: str) -> str:
        """The id of an image given by id or name: of several, the newest. Raises BadRequest for none."""
        return image if is_id(image) else str(self._described(image)["ImageId"])

    def find(self, image: str) -> ImageInfo | None:
        """The image that this name or id means, None where there is none. Asks, and doesn't remember."""
        found = self._candidates(image)
        return info(_latest(found)) if found else None

    def root(self, image: str) -> tuple[str, int]:
        """The device of its root volume, and the volume's least size in GiB."""
        found = self._described(image)
        device = str(found.get("RootDeviceName") or "/dev/sda1")
        sizes = [
            mapping.get("Ebs", {}).get("VolumeSize", 0)
            for mapping in found.get("BlockDeviceMappings", ())
            if mapping.get("DeviceName") == device
        ]
        return device, max(sizes, default=0)

    def all(self) -> tuple[ImageInfo, ...]:
        """Every image that can be had without naming it by id, by name and the newest first."""
        with self._connection.translate("listing images"):
            found = self.listed()
        infos = [info(raw) for raw in found if _can_boot(raw)]
        return tuple(sorted(infos, key=lambda info: (info.name, -(info.created or 0.0), info.id)))

    def listed(self, *, anybodys: bool = False, **asked: Any) -> list[Mapping[str, Any]]:
        """Images as EC2 describes them, of the owners in the settings or of anybody; errors are the SDK's."""
        owners = {} if anybodys else self._owners()
        return list(self._connection.pages("describe_images", "Images", **owners, **asked))

    def _described(self, image: str) -> Mapping[str, Any]:
        known = self._found.get(image)
        if known is None or self._clock() - known[0] > KEPT:
            known = self._found[image] = (self._clock(), self._newest(image))
        return known[1]

    def _newest(self, image: str) -> Mapping[str, Any]:
        found = self._candidates(image)
        if not found:
            whose = "" if is_id(image) else f" of {', '.join(self._settings.image_owners)}"
            raise BadRequest(f"cloud {self._cloud}: there is no image {image}{whose}; see `updraft images`")
        return _latest(found)

    def _candidates(self, image: str) -> list[Mapping[str, Any]]:
        by_id = is_id(image)
        wanted = {"Name": "image-id" if by_id else "name", "Values": [image]}
        with self._connection.translate(f"looking for image {image}"):
            found = self.listed(anybodys=by_id, Filters=[wanted])
        # An endpoint may leave filters aside; an image without an id can't be launched from.
        return [
            raw
            for raw in found
            if raw.get("ImageId")
            and raw.get("ImageId" if by_id else "Name") == image
            and raw.get("State", "available") == "available"
        ]

    def _owners(self) -> dict[str, Any]:
        """Whose images names are looked for among; other clouds than Amazon's have no strangers' images."""
        if self._connection.amazon or "image_owners" in self._settings.model_fields_set:
            return {"Owners": list(self._settings.image_owners)}
        return {}


def is_id(image: str) -> bool:
    """Whether this is the form of an image's id."""
    return bool(_ID.fullmatch(image))


def info(raw: Mapping[str, Any]) -> ImageInfo:
    """An image as the catalogue shows it."""
    return ImageInfo(
        id=str(raw["ImageId"]),
        name=str(raw.get("Name") or ""),
        state=str(raw.get("State") or ""),
        arch=str(raw.get("Architecture") or ""),
        owner=str(raw.get("ImageOwnerAlias") or raw.get("OwnerId") or ""),
        created=_created(raw),
    )


def _can_boot(raw: Mapping[str, Any]) -> bool:
    """Not a kernel or a ramdisk; one that has no id can't be named in a launch."""
    return raw.get("ImageType", "machine") == "machine" and bool(raw.get("ImageId"))


def _latest(found: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    return max(found, key=lambda raw: (_created(raw) or 0.0, raw["ImageId"]))


def _created(raw: Mapping[str, Any]) -> float | None:
    text = str(raw.get("CreationDate", "") or "")
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
