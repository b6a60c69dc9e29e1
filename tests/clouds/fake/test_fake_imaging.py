"""The fake cloud keeps the contract of images, also where one takes its time."""

import pytest

from tests.clouds.fake.test_fake_conformance import FakeHarness
from tests.clouds.imaging_conformance import ImagingConformance


class TestFakeImaging(ImagingConformance):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(image_takes="20s")
