"""Images of the cloud on one machine, as a user of it makes and moves them."""

import hashlib
import platform
from collections.abc import Mapping
from typing import Any, BinaryIO

from updraft.clouds.base import ImageInfo
from updraft.clouds.imaging import PART, ImageState, Imaging, MachineImage, check_form
from updraft.clouds.local.client import Client
from updraft.errors import BadRequest

FORMS = ("tar",)
_STATES: Mapping[str, ImageState] = {"ready": "ready", "failed": "failed"}
_WORDS: Mapping[ImageState, str] = {"ready": "available", "failed": "failed", "making": "pending"}


class LocalImaging:
    """Keeps the contract of `updraft.clouds.imaging.Imaging` for one local cloud."""

    forms: tuple[str, ...] = FORMS

    def __init__(self, cloud: str, client: Client) -> None:
        self._cloud = cloud
        self._client = client

    def all(self) -> tuple[MachineImage, ...]:
        """The images that the cloud was started with, and those made since."""
        return tuple(_image(one) for one in self._client.images())

    def show(self, wanted: str) -> MachineImage | None:
        """By id, else the newest of that name."""
        found = [one for one in self.all() if wanted in (one.info.id, one.info.name)]
        return max(found, key=lambda one: (one.info.id == wanted, one.info.created or 0.0), default=None)

    def create(self, machine: str, name: str, tags: Mapping[str, str]) -> str:
        """What the machine has written, as one more layer; it stands still for a moment."""
        return self._client.make_image(machine, name, tags)

    def halt(self, machine: str) -> bool:
        """Not needed: a machine stands still while its image is made."""
        return False

    def upload(self, name: str, form: str, file: BinaryIO, size: int, tags: Mapping[str, str]) -> str:
        """A tar file of a root file system."""
        check_form(self._cloud, form, self.forms)
        digest, start = hashlib.sha256(), file.tell()
        for part in iter(lambda: file.read(PART), b""):
            digest.update(part)
        file.seek(start)
        return self._client.put_image(name, tags, file, size, f"sha256:{digest.hexdigest()}")

    def download(self, image: str, file: BinaryIO) -> None:
        """All layers as one tar file."""
        self._client.get_image(image, file)

    def fetch(self, source: Imaging, image: MachineImage, name: str, tags: Mapping[str, str]) -> str | None:
        """Never: two clouds know nothing of each other."""
        return None

    def account(self) -> str:
        """There are no accounts."""
        return ""

    def share(self, image: str, account: str) -> None:
        """Refused: everybody who may use the cloud is one."""
        raise BadRequest(f"cloud {self._cloud}: the local cloud has one project, and nobody to share with")

    def accept(self, image: str) -> None:
        """Nothing is ever shared."""

    def delete(self, image: str) -> None:
        """Forget it."""
        self._client.delete_image(image)


def _image(one: Mapping[str, Any]) -> MachineImage:
    state = _STATES.get(one["state"], "making")
    arch = platform.machine().upper()
    return MachineImage(
        info=ImageInfo(one["id"], one["name"], _WORDS[state], arch, "this machine", one["created"]),
        state=state,
        size=one["size"],
        form=FORMS[0],
        tags=one["tags"],
    )
