"""The fake cloud keeps the contract of security groups."""

import pytest

from tests.clouds.fake.test_fake_conformance import FakeHarness
from tests.clouds.network_conformance import TAGS, NetworkConformance
from updraft.clouds.networking import Networking, Rule, group_source
from updraft.errors import BadRequest


class TestFakeNetworking(NetworkConformance):
    @pytest.fixture
    def harness(self) -> FakeHarness:
        return FakeHarness()

    def test_a_group_in_use_stays(self, groups: Networking) -> None:
        used, using = groups.make("used", TAGS), groups.make("using", TAGS)
        groups.allow(using.id, [Rule("in", "tcp", (22, 22), group_source(used.id))])
        with pytest.raises(BadRequest):
            groups.remove(used.id)
