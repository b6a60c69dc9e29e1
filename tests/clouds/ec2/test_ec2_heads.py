"""A head on EC2 is launched with its own group and role, a public address, and a stop that is no end."""

import pytest

from tests.clouds.network_conformance import TAGS
from tests.rigs.clouds.ec2endpoint import Served
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.harness import request
from updraft.clouds.ec2 import DRIVER
from updraft.clouds.heads import HeadPlace


@pytest.fixture
def harness(served: Served) -> EC2Harness:
    return EC2Harness(served, security_groups=["workers"], instance_profile="workers-role")


def test_a_heads_launch_asks_for_what_is_a_heads(harness: EC2Harness) -> None:
    groups = harness.driver(security_groups=[], instance_profile=None).networking
    group = groups.make("h-head", TAGS).id
    own = DRIVER.heads.settings(harness.settings, HeadPlace(group=group))
    harness.settings = dict(own)
    (made,) = harness.driver("conformance.heads").launch(request(harness))
    (call,) = harness.endpoint.calls("RunInstances")
    told = call.parameters
    assert told["NetworkInterface.1.SecurityGroupId.1"] == group
    assert told["NetworkInterface.1.AssociatePublicIpAddress"] == "true"
    assert told["InstanceInitiatedShutdownBehavior"] == "stop"
    assert "IamInstanceProfile.Name" not in told
    driver = harness.driver("conformance.heads")
    harness.wait(lambda: any(one.state == "running" for one in driver.machines()), "it runs")
    public = harness.own.describe_instances(InstanceIds=[made.id])["Reservations"][0]["Instances"][0]
    assert driver.networking.address(made.id) == public["PublicIpAddress"]
    harness.own.terminate_instances(InstanceIds=[made.id])
    groups.remove(group)


def test_a_workers_launch_ends_with_its_shutdown(harness: EC2Harness) -> None:
    harness.settings |= {"security_groups": [], "instance_profile": None}
    harness.driver().launch(request(harness))
    (call,) = harness.endpoint.calls("RunInstances")
    assert call.parameters["InstanceInitiatedShutdownBehavior"] == "terminate"


def test_the_role_is_asked_for_by_its_name_or_arn(harness: EC2Harness) -> None:
    for role, key in (("head-role", "Name"), ("arn:aws:iam::1:instance-profile/head-role", "Arn")):
        own = DRIVER.heads.settings(harness.settings, HeadPlace(role=role, private=True))
        driver = EC2Harness.driver(harness, **{**own, "security_groups": []})
        assert driver._launcher._site("ami-00000000000000001")["IamInstanceProfile"] == {key: role}
