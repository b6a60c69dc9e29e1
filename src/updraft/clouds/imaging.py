"""What a cloud may do with machine images beyond launching from them: the contract of that part.

As everywhere in this room nothing waits, nothing is tried again, and only `CloudError`s are raised: whoever
makes an image looks with `show` until it is ready.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Literal, Protocol, runtime_checkable

from updraft.clouds.base import TAG_POOL, ImageInfo
from updraft.errors import BadRequest, CloudError

TAG_FROM = "updraft:from"
"""Of an image: what it was made from, an image's or a machine's name."""

ImageState = Literal["ready", "making", "failed"]
PART = 1 << 20  # bytes of an image file that are held at once


@dataclass(frozen=True, slots=True)
class MachineImage:
    """An image with all that the cloud says of it.

    `size` is in bytes, None where the cloud doesn't say; `form` is the form of its file ("qcow2", "raw",
    "tar"), "" where it has none; `checksum` is "ALGORITHM:HEX" of that file, "" where it isn't known. `tags`
    are the labels on the image, `shared` the accounts or projects that may use it besides its owner, as far
    as the cloud told them with the rest.
    """

    info: ImageInfo
    state: ImageState
    size: int | None = None
    form: str = ""
    checksum: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    shared: tuple[str, ...] = ()

    @property
    def pool(self) -> str:
        """The pool whose updraft made it; "" where it was made by somebody else."""
        return self.tags.get(TAG_POOL, "")


@runtime_checkable
class Imaging(Protocol):
    """The images of one cloud; `tests/clouds/imaging_conformance.py` holds every driver to it.

    Images are named by their ids except where it says otherwise. What isn't there is BadRequest, and success
    for `delete`.
    """

    forms: tuple[str, ...]
    """The forms of image files that can be uploaded and downloaded, the usual one first; empty for none."""

    def all(self) -> tuple[MachineImage, ...]:
        """The images that can be launched by name, and those that are being made."""

    def show(self, wanted: str) -> MachineImage | None:
        """The image with this id or name, the newest of several, in whatever state; None for none."""

    def create(self, machine: str, name: str, tags: Mapping[str, str]) -> str:
        """Begin to make an image of this machine's disk as it is now; returns the image's id.

        The machine is neither stopped nor started: what it hasn't written yet is not in the image.
        """

    def halt(self, machine: str) -> bool:
        """Ask the machine to stop and keep its disk; False where a disk is whole without that."""

    def upload(self, name: str, form: str, file: BinaryIO, size: int, tags: Mapping[str, str]) -> str:
        """An image made of this file, of `size` bytes from where it stands. Nothing is left when it fails."""

    def download(self, image: str, file: BinaryIO) -> None:
        """Write the image's file. CloudUnavailable where the cloud's answer ends too soon."""

    def fetch(self, source: "Imaging", image: MachineImage, name: str, tags: Mapping[str, str]) -> str | None:
        """Begin to copy an image from another place of the same cloud without the file passing through here.

        None where there is no such way between the two: then it is downloaded and uploaded.
        """

    def account(self) -> str:
        """The account or project of these credentials, as `share` names it; "" where it can't be told."""

    def share(self, image: str, account: str) -> None:
        """Let another account or project launch from this image."""

    def accept(self, image: str) -> None:
        """Take up an image that was shared with this account, where the cloud asks for that."""

    def delete(self, image: str) -> None:
        """Remove an image, and what it alone is made of."""


@contextmanager
def taken_back(images: Imaging, image: str) -> Iterator[None]:
    """An image that is not to be where this fails: it is removed, and the error says where it can't be."""
    try:
        yield
    except CloudError as error:
        try:
            images.delete(image)
        except CloudError as left:
            error.args = (f"{error}; and image {image} stays ({left}): see `updraft leftovers`",)
        raise
    except BaseException:
        with suppress(CloudError):
            images.delete(image)
        raise


def check_form(cloud: str, form: str, forms: tuple[str, ...]) -> None:
    """Raises BadRequest where this cloud takes no image files of this form."""
    if form not in forms:
        raise BadRequest(
            f"cloud {cloud}: it takes no image files of the form {form!r}, but {', '.join(forms)}"
        )
