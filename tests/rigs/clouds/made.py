"""Clouds as their drivers make them of settings."""

from collections.abc import Mapping
from typing import Any

import pytest

from updraft.clouds.base import ImageInfo
from updraft.clouds.cloud import Cloud, Owner, cloud_of
from updraft.clouds.fake import FakeCloud


def made(driver: str, name: str, pool: str, settings: Mapping[str, Any], identity: str = "") -> Any:
    """Its machines, known by the driver's own class."""
    return cloud_of(name, driver, Owner(pool, identity), settings).machines


def finding(monkeypatch: pytest.MonkeyPatch, *images: ImageInfo) -> None:
    """From now on fake clouds look for images, also these that they don't list."""
    by_id = {one.id: one for one in images}

    class Finder:
        def image(self, wanted: str) -> ImageInfo | None:
            return by_id.get(wanted)

    def cloud(self: FakeCloud) -> Cloud:
        return Cloud(self.name, self, catalogue=self, finder=Finder())

    monkeypatch.setattr(FakeCloud, "cloud", property(cloud))
