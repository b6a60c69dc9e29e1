"""The EC2 driver makes, opens, closes and removes security groups."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.clouds.network_conformance import LOGIN, TAGS, NetworkConformance
from tests.rigs.clouds.ec2endpoint import Quirks, Served, Trouble
from tests.rigs.clouds.ec2harness import EC2Harness
from updraft.clouds.ec2.networking import _group
from updraft.clouds.networking import BOTH, Networking, Rule, group_source
from updraft.errors import CloudError


class AwayWhileMaking(EC2Harness):
    def failing(self, error: type[CloudError]):  # type: ignore[no-untyped-def]
        return self.endpoint.trouble(Trouble("CreateSecurityGroup", "InternalError", 500))


class TestEC2Networking(NetworkConformance):
    @pytest.fixture
    def harness(self, served: Served) -> Iterator[EC2Harness]:
        made = AwayWhileMaking(served)
        self.clear(made)
        yield made
        self.clear(made)

    def clear(self, harness: EC2Harness) -> None:
        own = harness.own
        groups = [
            one for one in own.describe_security_groups()["SecurityGroups"] if one["GroupName"] != "default"
        ]
        for one in groups:
            if one["IpPermissions"]:
                own.revoke_security_group_ingress(GroupId=one["GroupId"], IpPermissions=one["IpPermissions"])
        for one in groups:
            own.delete_security_group(GroupId=one["GroupId"])

    def test_many_rules_are_one_call(self, harness: EC2Harness, groups: Networking) -> None:
        made = groups.make("many", TAGS)
        groups.allow(made.id, [LOGIN, Rule("in", "tcp", (9618, 9618), "192.0.2.0/24")])
        assert len(harness.endpoint.calls("AuthorizeSecurityGroupIngress")) == 1

    def test_the_network_of_the_subnets_is_where_a_group_is_made(self, harness: EC2Harness) -> None:
        own = harness.own
        vpc = own.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
        subnet = own.create_subnet(VpcId=vpc, CidrBlock="10.9.1.0/24")["Subnet"]["SubnetId"]
        here = harness.driver(subnets={harness.zone: subnet}).networking
        made = here.make("twin", TAGS)
        usual = harness.driver().networking.make("twin", TAGS)
        (raw,) = own.describe_security_groups(GroupIds=[made.id])["SecurityGroups"]
        assert raw["VpcId"] == vpc
        shown = here.show("twin")
        assert shown is not None
        assert shown.id == made.id != usual.id
        for one in (made.id, usual.id):
            own.delete_security_group(GroupId=one)
        own.delete_subnet(SubnetId=subnet)
        own.delete_vpc(VpcId=vpc)

    def test_what_differs_in_its_family_alone_is_named_once(
        self, harness: EC2Harness, groups: Networking
    ) -> None:
        head, worker = groups.make("one-head", TAGS), groups.make("one-worker", TAGS)
        four, six = (Rule("in", "tcp", (9618, 9618), group_source(worker.id), family) for family in (4, 6))
        groups.allow(head.id, [four, six])
        (call,) = harness.endpoint.calls("AuthorizeSecurityGroupIngress")
        # Amazon refuses a call that names a permission twice.
        assert not [name for name in call.parameters if name.startswith("IpPermissions.2")]
        found = groups.show(head.id)
        assert found is not None
        assert {one for one in found.rules if one.direction == "in"} == {replace(four, family=BOTH)}

    @pytest.mark.parametrize("gives", [False, True])
    def test_machines_have_ipv6_where_their_subnet_gives_it(self, harness: EC2Harness, gives: bool) -> None:
        own = harness.own
        vpc = own.create_vpc(CidrBlock="10.9.0.0/16", AmazonProvidedIpv6CidrBlock=True)["Vpc"]
        block = own.describe_vpcs(VpcIds=[vpc["VpcId"]])["Vpcs"][0]["Ipv6CidrBlockAssociationSet"][0][
            "Ipv6CidrBlock"
        ]
        subnet = own.create_subnet(
            VpcId=vpc["VpcId"], CidrBlock="10.9.1.0/24", Ipv6CidrBlock=block.replace("/56", "/64")
        )["Subnet"]["SubnetId"]
        own.modify_subnet_attribute(SubnetId=subnet, AssignIpv6AddressOnCreation={"Value": gives})
        assert harness.driver(subnets={harness.zone: subnet}).networking.ipv6() is gives
        own.delete_subnet(SubnetId=subnet)
        own.delete_vpc(VpcId=vpc["VpcId"])

    def test_an_endpoint_without_tags_at_the_call(self, served: Served) -> None:
        harness = EC2Harness(served, Quirks(tag_on_create="ignore"))
        groups = harness.driver().networking
        assert groups.make("later-tagged", TAGS).pool == "conformance"


def test_an_endpoint_that_tells_nothing_of_what_goes_out_holds_nothing_back() -> None:
    assert _group({"GroupId": "sg-1", "GroupName": "x"}).rules == {Rule("out", "any", None, "0.0.0.0/0")}


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        ({"IpProtocol": "6", "FromPort": 22, "ToPort": 22}, Rule("in", "tcp", (22, 22), "pl-1")),
        ({"IpProtocol": "50"}, Rule("in", "50", None, "pl-1")),
        ({"IpProtocol": "tcp", "FromPort": 0, "ToPort": 65535}, Rule("in", "tcp", None, "pl-1")),
    ],
)
def test_rules_as_amazon_tells_them(told: dict[str, object], rule: Rule) -> None:
    permission = {**told, "PrefixListIds": [{"PrefixListId": "pl-1"}]}
    found = _group({"GroupId": "sg-1", "IpPermissions": [permission], "IpPermissionsEgress": []}).rules
    assert found == {Rule(rule.direction, rule.protocol, rule.ports, "list:pl-1")}
