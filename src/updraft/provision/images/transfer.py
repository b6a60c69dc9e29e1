"""Image files: up, down, and from cloud to cloud, compared with what the cloud says that it has."""

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from updraft.clouds.imaging import PART, TAG_FROM, Imaging, MachineImage
from updraft.errors import ImageError, UsageError
from updraft.provision.images.waiting import Watch, or_removed, ready

_MAGIC = (
    (0, b"QFI\xfb", "qcow2"),
    (0, b"KDMV", "vmdk"),
    (0x40, b"\x7f\x10\xda\xbe", "vdi"),
    (257, b"ustar", "tar"),
)
_SUFFIXES = {"raw": "raw", "img": "raw", "vhd": "vhd"}
_HEAD = 512
DEADLINE = 3600.0
"""Seconds for an image to be ready: some clouds store hundreds of gigabytes."""


@dataclass(frozen=True, slots=True)
class Place:
    """The images of one cloud: its name in the configuration, and what they are labelled with here."""

    cloud: str
    images: Imaging
    tags: Mapping[str, str]

    def found(self, wanted: str) -> MachineImage:
        """The image of this id or name. Raises UsageError where there is none."""
        image = self.images.show(wanted)
        if image is None:
            raise UsageError(f"cloud {self.cloud} has no image {wanted}; `updraft image list` shows them")
        return image

    def free(self, name: str) -> None:
        """Raises UsageError where an image has this name already: a class that names it would boot either."""
        there = self.images.show(name)
        if there is not None:
            raise UsageError(
                f"cloud {self.cloud} has an image called {name} already ({there.info.id}); choose another "
                "name, or delete it first"
            )


def form_of(file: Path) -> str:
    """The form of an image file, by how it begins, else by its suffix; "" where neither says."""
    with file.open("rb") as opened:
        head = opened.read(_HEAD)
    for at, magic, form in _MAGIC:
        if head[at : at + len(magic)] == magic:
            return form
    return _SUFFIXES.get(file.suffix.lower().lstrip("."), "")


def upload(to: Place, file: Path, name: str, form: str, deadline: float, watch: Watch) -> MachineImage:
    """The image made of this file, once it can be launched and its checksum is the file's.

    Raises UsageError for a file that the cloud doesn't take, ImageError where it came to be another, or isn't
    ready within `deadline` seconds; such an image is removed.
    """
    to.free(name)
    known = form or form_of(file)
    if not known:
        raise UsageError(f"{file} doesn't say what it is; say --form {' or '.join(to.images.forms)}")
    with file.open("rb") as opened:
        return _put(to, opened, (name, known, file.name), deadline, watch)


def download(source: Place, image: MachineImage, file: Path, watch: Watch) -> None:
    """Write the image's file; it has its name once it is whole. Raises ImageError where it isn't."""
    part = file.with_name(f".{file.name}.part")
    try:
        with part.open("w+b") as opened:
            source.images.download(image.info.id, opened)
            _compare(opened, image, "what came down")
        part.replace(file)
    except OSError as error:
        raise ImageError(f"{file} can't be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    watch.say(f"{file}: {file.stat().st_size} bytes")


def copy(
    source: Place, image: MachineImage, to: Place, name: str, deadline: float, watch: Watch
) -> MachineImage:
    """The same image in another cloud: by the cloud's own way where it has one, else through a file here."""
    to.free(name)
    said = f"{source.cloud}:{image.info.name or image.info.id}"
    one = to.images.fetch(source.images, image, name, {**to.tags, TAG_FROM: said})
    if one is not None:
        watch.say(f"{to.cloud} copies it by itself as {one}")
        with or_removed(to.images, one, watch):
            return ready(to.images, one, deadline, watch)
    _movable(source, image, to)
    with tempfile.TemporaryFile() as file:
        watch.say(f"downloading from {source.cloud}")
        source.images.download(image.info.id, file)
        _compare(file, image, "what came down")
        file.seek(0)
        watch.say(f"uploading to {to.cloud}")
        return _put(to, file, (name, image.form, said), deadline, watch)


def _movable(source: Place, image: MachineImage, to: Place) -> None:
    for place in (source, to):
        if not place.images.forms:
            raise UsageError(f"cloud {place.cloud} neither gives nor takes image files")
    if image.form not in to.images.forms:
        has = f"of the form {image.form}" if image.form else "without a file"
        raise UsageError(
            f"image {image.info.name or image.info.id} is {has}, and cloud {to.cloud} takes "
            f"{', '.join(to.images.forms)}"
        )


def _put(
    to: Place, file: BinaryIO, what: tuple[str, str, str], deadline: float, watch: Watch
) -> MachineImage:
    name, form, origin = what
    file.seek(0, 2)
    size = file.tell()
    file.seek(0)
    one = to.images.upload(name, form, file, size, {**to.tags, TAG_FROM: origin})
    with or_removed(to.images, one, watch):
        found = ready(to.images, one, deadline, watch)
        _compare(file, found, "what went up")
    return found


def _compare(file: BinaryIO, image: MachineImage, what: str) -> None:
    """Raises ImageError where the file isn't what the cloud says of the image."""
    algorithm, _, expected = image.checksum.partition(":")
    if algorithm not in hashlib.algorithms_available:
        return
    digest = hashlib.new(algorithm, usedforsecurity=False)
    file.seek(0)
    for part in iter(lambda: file.read(PART), b""):
        digest.update(part)
    if digest.hexdigest() != expected:
        raise ImageError(f"{what} is not the image: its {algorithm} differs from what the cloud says")
