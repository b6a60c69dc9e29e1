"""The OpenStack driver makes, opens, closes and removes security groups, in a project in memory."""

from contextlib import AbstractContextManager

import pytest

from tests.clouds.network_conformance import LOGIN, TAGS, NetworkConformance
from tests.rigs.clouds.fakecloud import PROJECT
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from tests.rigs.clouds.osharness import OpenStackHarness
from updraft.clouds.networking import Networking, Rule
from updraft.errors import BadRequest, CloudError


class AwayWhileMaking(OpenStackHarness):
    def failing(self, error: type[CloudError]) -> AbstractContextManager[None]:
        return self.front.trouble(Trouble(r"POST .*/security-groups$", Reply(503, "away")))


class TestOpenStackNetworking(NetworkConformance):
    @pytest.fixture
    def harness(self, front: Front) -> OpenStackHarness:
        return AwayWhileMaking(front)

    def test_many_rules_are_one_call(self, harness: OpenStackHarness, groups: Networking) -> None:
        made = groups.make("many", TAGS)
        groups.allow(made.id, [LOGIN, Rule("in", "tcp", (9618, 9618), "192.0.2.0/24")])
        assert len(harness.front.calls(r"POST .*/security-group-rules")) == 1

    def test_of_many_projects_groups_those_of_ours_are_meant(
        self, harness: OpenStackHarness, groups: Networking
    ) -> None:
        made = groups.make("same-name", TAGS)
        theirs = {"id": "theirs", "name": "same-name", "project_id": "theirs", "security_group_rules": []}
        listed = harness.cloud.told["security-groups"]["security_groups"]
        listed.append(theirs)
        assert groups.show("same-name") == made
        listed.append({**theirs, "id": "twin", "project_id": PROJECT})
        with pytest.raises(BadRequest, match="give its id"):
            groups.show("same-name")

    def test_a_group_that_a_port_uses_stays(self, harness: OpenStackHarness, groups: Networking) -> None:
        made = groups.make("used", TAGS)
        refusal = {"NeutronError": {"type": "SecurityGroupInUse", "message": "in use", "detail": ""}}
        used = Trouble(r"DELETE .*/security-groups/", Reply(409, refusal))
        with harness.front.trouble(used), pytest.raises(BadRequest, match="in use"):
            groups.remove(made.id)

    def test_a_floating_address_comes_first(self, harness: OpenStackHarness, groups: Networking) -> None:
        driver = harness.driver()
        machine = harness.foreign({})
        harness.wait(lambda: groups.address(machine) != "", "it has an address")
        own = groups.address(machine)
        floating = {"version": 4, "addr": "198.51.100.9", "OS-EXT-IPS:type": "floating"}
        harness.cloud.servers[machine]["addresses"]["private"].append(floating)
        assert driver.networking.address(machine) == "198.51.100.9" != own

    def test_a_floating_address_that_is_to_come_is_not_the_machines_own(
        self, harness: OpenStackHarness, groups: Networking
    ) -> None:
        machine = harness.foreign({})
        harness.wait(lambda: groups.address(machine) != "", "it has an address")
        harness.cloud.servers[machine]["metadata"]["updraft:floating"] = "public-id"
        assert groups.address(machine) == ""
