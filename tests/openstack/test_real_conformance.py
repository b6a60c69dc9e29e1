"""The OpenStack driver keeps the contract on a real OpenStack."""

import pytest

from tests.clouds.conformance import MachinesConformance
from tests.rigs.clouds.realcloud import RealHarness
from updraft.clouds.base import Machines

pytestmark = pytest.mark.openstack


class TestRealOpenStack(MachinesConformance):
    @pytest.fixture
    def harness(self, harness: RealHarness) -> RealHarness:
        return harness

    def test_offers_are_sane(self, harness: RealHarness, driver: Machines) -> None:
        assert driver.offers()
        super().test_offers_are_sane(harness, driver)
