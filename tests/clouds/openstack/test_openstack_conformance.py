"""The OpenStack driver keeps the contract in a project in memory, with ports of Nova's and of its own."""

import pytest

from tests.clouds.conformance import MachinesConformance
from tests.clouds.parts_conformance import PartsConformance
from tests.rigs.clouds.osfront import Front
from tests.rigs.clouds.osharness import OpenStackHarness


class TestOpenStack(MachinesConformance):
    @pytest.fixture
    def harness(self, front: Front) -> OpenStackHarness:
        return OpenStackHarness(front)


class TestOwnPorts(MachinesConformance):
    """Ports and addresses made for each machine: a call for each, and the same contract."""

    test_errors_are_mapped = None
    test_a_look_that_fails_is_never_empty = None
    test_offers_are_sane = None
    test_what_the_cloud_does_not_know_is_a_bad_request = None
    # Of calls one by one, only the first that isn't answered is unknown: the others are not made.
    test_a_launch_without_an_answer_is_settled_by_its_tags = None

    @pytest.fixture
    def harness(self, front: Front) -> OpenStackHarness:
        return OpenStackHarness(front, port={"port_security": False}, floating_network="public")


class TestOpenStackParts(PartsConformance):
    @pytest.fixture
    def harness(self, front: Front) -> OpenStackHarness:
        return OpenStackHarness(front)
