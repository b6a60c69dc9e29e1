"""The OpenStack driver makes, opens, closes and removes security groups, in a project in memory."""

from contextlib import AbstractContextManager
from typing import Any

import pytest

from tests.clouds.network_conformance import LOGIN, TAGS, NetworkConformance
from tests.rigs.clouds.fakecloud import PROJECT
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from tests.rigs.clouds.osharness import OpenStackHarness
from updraft.clouds.networking import Group, Networking, Rule, group_source
from updraft.errors import BadRequest, CloudError


def shown(groups: Networking, one: Group) -> set[Rule]:
    found = groups.show(one.id)
    assert found is not None
    return {rule for rule in found.rules if rule.direction == "in"}


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

    def test_the_machines_of_a_group_are_let_in_by_each_family_with_a_rule_of_its_own(
        self, harness: OpenStackHarness, groups: Networking
    ) -> None:
        head, worker = groups.make("own-head", TAGS), groups.make("own-worker", TAGS)
        four, six = (Rule("in", "tcp", (9618, 9618), group_source(worker.id), family) for family in (4, 6))
        groups.allow(head.id, [four])
        assert shown(groups, head) == {four}
        groups.allow(head.id, [four, six])
        assert shown(groups, head) == {four, six}
        (raw,) = (
            one for one in harness.cloud.told["security-groups"]["security_groups"] if one["id"] == head.id
        )
        assert [one["ethertype"] for one in raw["security_group_rules"] if one["direction"] == "ingress"] == [
            "IPv4",
            "IPv6",
        ]
        groups.revoke(head.id, [four])
        assert shown(groups, head) == {six}

    @pytest.mark.parametrize("protocol", ["icmp", "icmpv6", "1", "58"])
    def test_icmp_of_ipv6_goes_by_many_names(
        self, harness: OpenStackHarness, groups: Networking, protocol: str
    ) -> None:
        made = groups.make("icmp", TAGS)
        (raw,) = (
            one for one in harness.cloud.told["security-groups"]["security_groups"] if one["id"] == made.id
        )
        of_old = {
            "direction": "ingress",
            "ethertype": "IPv6",
            "protocol": protocol,
            "port_range_min": 2,
            "port_range_max": 0,
        }
        raw["security_group_rules"].append({"id": "of-old", "remote_ip_prefix": "::/0", **of_old})
        assert shown(groups, made) == {Rule("in", "icmpv6", (2, 0), "::/0")}

    @pytest.mark.parametrize(
        ("networks", "subnet", "port", "has"),
        [
            ([], {"ip_version": 6}, {}, True),
            (["private"], {"ip_version": 6}, {}, True),
            (["private"], {"ip_version": 6, "id": "v6"}, {"subnet": "private-v4"}, False),
            (["private"], {"ip_version": 6, "id": "v6"}, {"subnet": "v6"}, True),
            ([], {"ip_version": 6, "network_id": "e9b6a735-4bef-4b8e-83f3-1fbbdaa03685"}, {}, False),
            (["private"], {"ip_version": 6, "network_id": "another"}, {}, False),
            ([], {"ip_version": 4}, {}, False),
        ],
    )  # fmt: skip
    def test_machines_have_ipv6_where_a_subnet_of_theirs_has_it(
        self,
        harness: OpenStackHarness,
        networks: list[str],
        subnet: dict[str, Any],
        port: dict[str, str],
        has: bool,
    ) -> None:
        subnets = harness.cloud.told["subnets"]["subnets"]
        subnets.append({**subnets[0], "id": "further", "name": "further", **subnet})
        settings = {"networks": networks, **({"port": port} if port else {})}
        assert harness.driver(**settings).networking.ipv6() is has

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
