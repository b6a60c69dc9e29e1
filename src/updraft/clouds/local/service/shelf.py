"""The images of a local cloud: those that it was started with, and those that were made or uploaded since.

An image of a machine is one more layer: what the machine wrote, over the layers that it was made of. An image
that was uploaded is a whole file system in one layer. All of it is in the cloud's own memory, as the disks of
its machines are, and goes with the cloud.
"""

import hashlib
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, BinaryIO

from updraft.clouds.local.service.refusals import RefusedError

PART = 1 << 20
_TAR = ("--xattrs", "--xattrs-include=*", "--numeric-owner")
_FINISH = 60.0


@dataclass(slots=True)
class Shelved:
    """An image made here: `state` is making, ready or failed."""

    id: str
    name: str
    layers: tuple[str, ...]
    tags: Mapping[str, str]
    created: float = field(default_factory=time.time)
    state: str = "making"
    size: int | None = None

    def show(self) -> dict[str, Any]:
        """The image as an answer of the API."""
        names = ("id", "name", "state", "created", "size")
        return {**{name: getattr(self, name) for name in names}, "tags": dict(self.tags)}


class Shelf:
    """The images of one cloud; may be called by any thread. `stock` are those that it was started with."""

    def __init__(self, stock: Mapping[str, tuple[str, ...]], folder: Path) -> None:
        self._stock = stock
        self._folder = folder
        self._lock = threading.Lock()
        self._made: dict[str, Shelved] = {}

    def names(self) -> tuple[str, ...]:
        """What an order may name: names of the stock, ids and names of ready images."""
        with self._lock:
            ready = [one for one in self._made.values() if one.state == "ready"]
        return (*self._stock, *(name for one in ready for name in (one.id, one.name)))

    def layers(self, image: str) -> tuple[str, ...]:
        """The layers of an image, the lowest first. Raises RefusedError where there is none such."""
        with self._lock:
            ready = [
                one for one in self._made.values() if one.state == "ready" and image in (one.id, one.name)
            ]
        if ready:
            return max(ready, key=lambda one: (one.id == image, one.created)).layers
        if image not in self._stock:
            raise RefusedError("bad-request", f"there is no image {image!r}")
        return self._stock[image]

    def show(self) -> list[dict[str, Any]]:
        """All images, the stock first."""
        with self._lock:
            made = [one.show() for one in self._made.values()]
        blank: dict[str, Any] = {"created": None, "size": None, "tags": {}}
        return [*({"id": name, "name": name, "state": "ready", **blank} for name in self._stock), *made]

    def create(
        self, name: str, tags: Mapping[str, str], layers: tuple[str, ...], disk: Path, pid: int
    ) -> str:
        """Begin an image of a machine of these layers that has written `disk`; `pid` is its first process."""
        image = self._begin(name, tags, layers)

        def fill() -> None:
            with self._filling(image, Path(image.layers[-1])) as layer, _frozen(pid):
                subprocess.run(["cp", "-a", f"{disk}/.", str(layer)], check=True, capture_output=True)

        threading.Thread(target=fill, name=image.id, daemon=True).start()
        return image.id

    def upload(
        self, name: str, tags: Mapping[str, str], read: Callable[[int], bytes], size: int, checksum: str
    ) -> str:
        """An image of the tar file of a root file system, read in parts.

        Raises RefusedError where it is none, or not the one of this checksum.
        """
        image = self._begin(name, tags, ())
        with self._filling(image, Path(image.layers[0])) as layer:
            if _unpack(read, size, layer) != checksum:
                raise RefusedError("bad-request", "the file was changed on its way")
        with self._lock:
            image.size = size
        return image.id

    @contextmanager
    def packed(self, image: str) -> Iterator[tuple[BinaryIO, int, str]]:
        """The tar file of a whole image: open at its start, its size, its checksum."""
        with _merged(self.layers(image), self._folder) as root, tempfile.TemporaryFile() as file:
            command = ["tar", "-C", str(root), "-cf", "-", *_TAR, "."]
            digest = hashlib.sha256()
            with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as tar:
                assert tar.stdout is not None  # noqa: S101  # a pipe
                while part := tar.stdout.read(PART):
                    digest.update(part)
                    file.write(part)
            if tar.returncode:
                raise RefusedError("internal-error", f"image {image} can't be packed")
            size = file.tell()
            file.seek(0)
            yield file, size, f"sha256:{digest.hexdigest()}"

    def delete(self, image: str) -> None:
        """Forget an image. Its layer stays for as long as the cloud: machines and images may stand on it."""
        if image in self._stock:
            raise RefusedError("bad-request", f"{image} is of the cloud itself")
        with self._lock:
            self._made.pop(image, None)

    def _begin(self, name: str, tags: Mapping[str, str], under: tuple[str, ...]) -> Shelved:
        if not name or name in self._stock:
            raise RefusedError("bad-request", f"an image of a machine can't be called {name!r}")
        one = f"img-{secrets.token_hex(6)}"
        image = Shelved(one, name, (*under, str(self._folder / one)), dict(tags))
        with self._lock:
            self._made[one] = image
        return image

    @contextmanager
    def _filling(self, image: Shelved, layer: Path) -> Iterator[Path]:
        """The image is ready once this is over; with an error it has failed, and its layer is removed."""
        try:
            layer.mkdir(mode=0o755, parents=True)
            yield layer
        except BaseException as error:
            with self._lock:
                image.state = "failed"
                if isinstance(error, RefusedError):  # whoever uploaded it is told
                    self._made.pop(image.id, None)
            shutil.rmtree(layer, ignore_errors=True)
            if not isinstance(error, OSError | subprocess.SubprocessError):
                raise
        else:
            with self._lock:
                image.state = "ready"


def _unpack(read: Callable[[int], bytes], size: int, layer: Path) -> str:
    """The checksum of what was unpacked."""
    digest, left = hashlib.sha256(), size
    command = ["tar", "-C", str(layer), "-xpf", "-", *_TAR]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as tar:
        with suppress(BrokenPipeError):
            left = _pour(read, size, tar.stdin, digest.update)
        with suppress(BrokenPipeError):
            tar.stdin.close()  # type: ignore[union-attr]
        tar.wait(_FINISH)
    while left > 0 and (part := read(min(left, PART))):  # what tar didn't want is read: it has been sent
        left -= len(part)
    if tar.returncode or left or not (layer / "etc").is_dir():
        raise RefusedError("bad-request", "the file is no tar of a root file system, or not all of it came")
    return f"sha256:{digest.hexdigest()}"


def _pour(
    read: Callable[[int], bytes], size: int, target: IO[bytes] | None, note: Callable[[bytes], None]
) -> int:
    """Hand on what is read; returns how much of it didn't come."""
    assert target is not None  # noqa: S101  # a pipe
    left = size
    while left > 0 and (part := read(min(left, PART))):
        left -= len(part)
        note(part)
        target.write(part)
    return left


@contextmanager
def _frozen(pid: int) -> Iterator[None]:
    """All of a machine's processes but its init stand still, so that its disk is of one moment."""
    inside = ["nsenter", "--target", str(pid), "--pid", "--", "sh", "-c"]
    subprocess.run([*inside, "kill -STOP -1"], check=True, capture_output=True)
    try:
        yield
    finally:
        subprocess.run([*inside, "kill -CONT -1"], check=False, capture_output=True)


@contextmanager
def _merged(layers: tuple[str, ...], scratch: Path) -> Iterator[Path]:
    """The layers as one folder, to be read."""
    if len(layers) == 1:
        yield Path(layers[0])
        return
    root = scratch / f"view-{secrets.token_hex(6)}"
    root.mkdir(parents=True)
    lower = ":".join(reversed(layers))
    options = ["-t", "overlay", "-o", f"ro,lowerdir={lower}", "view", str(root)]
    subprocess.run(["mount", *options], check=True, capture_output=True)
    try:
        yield root
    finally:
        subprocess.run(["umount", "-l", str(root)], check=False, capture_output=True)
        with suppress(OSError):
            root.rmdir()
