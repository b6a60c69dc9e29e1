"""The OpenStack driver keeps the contract on a real OpenStack."""

import pytest

from tests.clouds.conformance import DriverConformance
from tests.rigs.clouds.realcloud import RealHarness
from updraft.clouds.base import Driver

pytestmark = pytest.mark.openstack


class TestRealOpenStack(DriverConformance):
    @pytest.fixture
    def harness(self, harness: RealHarness) -> RealHarness:
        return harness

    def test_offers_are_sane(self, harness: RealHarness, driver: Driver) -> None:
        assert driver.offers()
        super().test_offers_are_sane(harness, driver)
