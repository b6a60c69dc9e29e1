"""Images of the fake cloud: bytes in memory, made in no time or in as long as `image_takes` says."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import BinaryIO

from updraft.clouds.base import ImageInfo
from updraft.clouds.fake.site import Site
from updraft.clouds.imaging import PART, Imaging, MachineImage, check_form
from updraft.errors import BadRequest

FORMS = ("raw", "qcow2")
Calls = Callable[[str, int], AbstractContextManager[None]]


@dataclass(slots=True)
class Made:
    """An image that somebody made here, and its file."""

    image: MachineImage
    data: bytes = field(repr=False)
    ready_at: float = 0.0


class FakeImaging:
    """Keeps the contract of `Imaging` on a `Site`; `project` is whose credentials these are."""

    forms: tuple[str, ...] = FORMS

    def __init__(self, site: Site, calls: Calls, project: str = "ours") -> None:
        self._site = site
        self._call = calls
        self._project = project

    def all(self) -> tuple[MachineImage, ...]:
        """The images of the settings and those that were made."""
        with self._call("images", 0):
            stock = (self._stock(name) for name in self._site.settings.images)
            return (*stock, *(self._seen(made) for made in self._site.made.values()))

    def show(self, wanted: str) -> MachineImage | None:
        """By id, else the newest of that name."""
        found = [one for one in self.all() if wanted in (one.info.id, one.info.name)]
        return max(found, key=lambda one: one.info.created or 0.0, default=None)

    def create(self, machine: str, name: str, tags: Mapping[str, str]) -> str:
        """An image whose file says which machine it was."""
        with self._call("create_image", 1):
            if machine not in self._site.instances:
                raise BadRequest(f"{self._site.name}: there is no machine {machine}")
            return self._keep(name, "raw", f"disk of {machine}".encode(), tags)

    def halt(self, machine: str) -> bool:
        """Stopped at once."""
        with self._call("halt", 1):
            self._site.power_off(machine)
        return True

    def upload(self, name: str, form: str, file: BinaryIO, size: int, tags: Mapping[str, str]) -> str:
        """Kept in memory."""
        check_form(self._site.name, form, self.forms)
        with self._call("upload", 1):
            return self._keep(name, form, file.read(size), tags)

    def download(self, image: str, file: BinaryIO) -> None:
        """What was uploaded, or made."""
        with self._call("download", 1):
            data = self._made(image).data
        for at in range(0, len(data), PART):
            file.write(data[at : at + PART])

    def fetch(self, source: Imaging, image: MachineImage, name: str, tags: Mapping[str, str]) -> str | None:
        """Never: files go through here."""
        return None

    def account(self) -> str:
        """The project's name."""
        return self._project

    def share(self, image: str, account: str) -> None:
        """Written down."""
        with self._call("share", 1):
            made = self._made(image)
            made.image = replace(made.image, shared=tuple(sorted({*made.image.shared, account})))

    def accept(self, image: str) -> None:
        """Nothing needs to be taken up."""

    def delete(self, image: str) -> None:
        """Forgotten."""
        with self._call("delete_image", 1):
            self._site.made.pop(image, None)

    def _keep(self, name: str, form: str, data: bytes, tags: Mapping[str, str]) -> str:
        site, now = self._site, self._site.clock()
        one = f"{site.name}-image-{next(site.image_numbers):03d}"
        info = ImageInfo(one, name, "", "", self._project, now)
        checksum = f"sha256:{sha256(data).hexdigest()}"
        image = MachineImage(info, "ready", len(data), form, checksum, dict(tags))
        site.made[one] = Made(image, data, now + site.settings.image_takes)
        return one

    def _made(self, image: str) -> Made:
        if image not in self._site.made:
            raise BadRequest(f"{self._site.name}: there is no image {image}, or it has no file")
        made = self._site.made[image]
        assert isinstance(made, Made)  # noqa: S101  # nobody else puts anything there
        return made

    def _seen(self, made: "Made") -> MachineImage:
        ready = made.ready_at <= self._site.clock()
        info = replace(made.image.info, state="available" if ready else "pending")
        return replace(made.image, info=info, state="ready" if ready else "making")

    def _stock(self, name: str) -> MachineImage:
        return MachineImage(ImageInfo(name, name, "available", "", self._site.name), "ready")
