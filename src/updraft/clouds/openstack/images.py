"""Images, by id, by name, or the newest whose name matches a pattern."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any
from uuid import UUID

from updraft.clouds.base import ImageInfo
from updraft.clouds.openstack.client import IMAGE, Connection, found_or_none
from updraft.clouds.openstack.reading import moment
from updraft.clouds.openstack.settings import GIB
from updraft.errors import BadRequest

KEPT = 600.0
PAGE = 200
_PATTERN = re.compile(r"[*?\[]")

Raw = Mapping[str, Any]


class Images:
    """Looks images up, and remembers for ten minutes what a name or pattern meant.

    Those of the project, public ones and those that others share with it and it has accepted: an image that
    anybody publishes for all (a "community" one) can be had by its id only.
    """

    def __init__(
        self, cloud: str, connection: Connection, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._cloud = cloud
        self._connection = connection
        self._clock = clock
        self._lock = threading.Lock()
        self._found: dict[str, tuple[float, Raw]] = {}

    def resolve(self, image: str) -> str:
        """The id of the image: of several, the newest. Raises BadRequest for none; else as the SDK."""
        return str(self._described(image)["id"])

    def least_volume(self, image: str) -> int:
        """GiB that a volume must have to hold the image."""
        found = self._described(image)
        held = int(found.get("virtual_size") or found.get("size") or 0)
        return max(int(found.get("min_disk") or 0), -(-held // GIB))

    def find(self, image: str) -> ImageInfo | None:
        """The image that this id, name or pattern means, None where there is none. Doesn't remember."""
        with self._connection.translate(f"looking for image {image}"):
            found = self._newest(image)
        return None if found is None else info(found)

    def all(self) -> tuple[ImageInfo, ...]:
        """Every image that can be had by name, by name and the newest first."""
        with self._connection.translate("listing images"):
            found = [info(raw) for raw in self._listed({}) if is_machine(raw)]
        return tuple(sorted(found, key=lambda info: (info.name, -(info.created or 0.0), info.id)))

    def _described(self, image: str) -> Raw:
        with self._lock:
            known = self._found.get(image)
        if known is not None and self._clock() - known[0] < KEPT:
            return known[1]
        found = self._newest(image)
        if found is None:
            raise BadRequest(f"cloud {self._cloud}: there is no image {image}; see `updraft images`")
        with self._lock:
            self._found[image] = (self._clock(), found)
        return found

    def _newest(self, image: str) -> Raw | None:
        if is_id(image):
            found = described(self._connection, image)
            if found is not None and found.get("status") == "active":
                return found
        # Services read "in:…" before a name as a list of names; what they find is looked through here.
        by_name = {} if _PATTERN.search(image) or ":" in image else {"name": image}
        fitting = [
            raw
            for raw in self._listed(by_name)
            if raw.get("status") == "active"
            and (raw.get("name") == image or (not by_name and fnmatchcase(str(raw.get("name")), image)))
        ]
        return max(fitting, key=lambda raw: (moment(raw.get("created_at")) or 0.0, raw["id"]), default=None)

    def _listed(self, query: Mapping[str, str]) -> list[Raw]:
        return list(self._connection.pages(IMAGE, "/images", "images", query, PAGE))


def described(connection: Connection, image: str) -> Raw | None:
    """The image of this id, None where there is none."""
    return found_or_none(lambda: connection.get(IMAGE, f"/images/{image}"))


def is_id(text: str) -> bool:
    """Whether this is the form of an image's id."""
    try:
        return str(UUID(text)) == text.lower()
    except ValueError:
        return False


def is_machine(raw: Raw) -> bool:
    """Whether it can boot by itself, and be named: not one half of a kernel and a ramdisk."""
    return bool(raw.get("id")) and raw.get("container_format") not in ("aki", "ari")


def info(raw: Raw) -> ImageInfo:
    """An image as the catalogue shows it."""
    return ImageInfo(
        id=str(raw["id"]),
        name=str(raw.get("name") or ""),
        state=str(raw.get("status", "")),
        arch=str(raw.get("architecture") or raw.get("hw_architecture") or ""),
        owner=str(raw.get("owner") or ""),
        created=moment(raw.get("created_at")),
    )
