"""The fake cloud keeps the contract of images, also where one takes its time."""

import pytest
from imaging_conformance import ImagingConformance
from test_fake_conformance import FakeHarness


class TestFakeImaging(ImagingConformance):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness(image_takes="20s")
