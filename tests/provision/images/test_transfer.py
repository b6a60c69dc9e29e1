"""Half an image stays nowhere: what doesn't come to be right is removed, and what can't be is named."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from updraft.clouds.base import TAG_POOL, ImageInfo
from updraft.clouds.fake import FakeCloud, Fault, Site, site_settings
from updraft.clouds.fake.imaging import FakeImaging
from updraft.clouds.imaging import Imaging, MachineImage
from updraft.errors import ImageError
from updraft.provision.images.transfer import Place, copy, upload
from updraft.provision.images.waiting import Watch


class Fetching(FakeImaging):
    """A cloud that copies from others by itself, and takes as long as its settings say."""

    def fetch(self, source: Imaging, image: MachineImage, name: str, tags: Mapping[str, str]) -> str | None:
        return self._keep(name, "raw", b"the same", tags)


class Failing(FakeImaging):
    """A cloud that takes a file and then can't make an image of it."""

    def show(self, wanted: str) -> MachineImage | None:
        found = super().show(wanted)
        return found and replace(found, state="failed")


class Changing(FakeImaging):
    """A cloud that keeps something else than what went up."""

    def show(self, wanted: str) -> MachineImage | None:
        found = super().show(wanted)
        return found and replace(found, checksum="sha256:" + "0" * 64)


@dataclass
class World:
    """A cloud in memory, and a time that passes when somebody waits."""

    images: type[FakeImaging] = FakeImaging
    settings: Mapping[str, Any] = field(default_factory=dict)
    now: float = 1e6
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.site = Site("c", site_settings("c", self.settings), lambda: self.now)
        self.place = Place(
            "c", self.images(self.site, FakeCloud(self.site, "demo")._call), {TAG_POOL: "demo"}
        )
        self.watch = Watch(lambda: self.now, self.sleep, 2.0, self.said.append)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "disk.raw"
    found.write_bytes(b"a disk" * 100)
    return found


SLOW: Mapping[str, Any] = {"image_takes": "1000s"}


@pytest.mark.parametrize(
    ("images", "settings", "why"),
    [(FakeImaging, SLOW, "not within"), (Failing, {}, "failed in the cloud"), (Changing, {}, "differs")],
)
def test_an_upload_that_comes_to_nothing_leaves_no_image(
    file: Path, images: type[FakeImaging], settings: Mapping[str, Any], why: str
) -> None:
    world = World(images, settings)
    with pytest.raises(ImageError, match=why):
        upload(world.place, file, "mine", "raw", 60.0, world.watch)
    assert not world.site.made
    assert any("deleted again" in line for line in world.said)


def test_an_interrupted_wait_leaves_no_image(file: Path) -> None:
    world = World(settings=SLOW)

    def interrupted(_seconds: float) -> None:
        raise KeyboardInterrupt

    watch = replace(world.watch, sleep=interrupted)
    with pytest.raises(KeyboardInterrupt):
        upload(world.place, file, "mine", "raw", 60.0, watch)
    assert not world.site.made


def test_a_copy_that_takes_too_long_leaves_no_image() -> None:
    here, there = World(), World(Fetching, SLOW)
    image = MachineImage(ImageInfo("img", "img", "available", "", "c"), "ready")
    with pytest.raises(ImageError, match="not within"):
        copy(here.place, image, there.place, "mine", 60.0, there.watch)
    assert not there.site.made


def test_an_image_that_cannot_be_removed_is_named_with_what_to_do(file: Path) -> None:
    world = World(settings=SLOW)
    world.site.faults.add(Fault("cloud-unavailable", call="delete_image"))
    with pytest.raises(ImageError, match="not within"):
        upload(world.place, file, "mine", "raw", 60.0, world.watch)
    (left,) = world.site.made
    assert any(left in line and "updraft leftovers" in line for line in world.said)


def test_a_cloud_that_is_away_for_a_moment_is_asked_again_to_remove_it(file: Path) -> None:
    world = World(settings=SLOW)
    world.site.faults.add(Fault("cloud-unavailable", call="delete_image", times=1))
    with pytest.raises(ImageError, match="not within"):
        upload(world.place, file, "mine", "raw", 60.0, world.watch)
    assert not world.site.made
