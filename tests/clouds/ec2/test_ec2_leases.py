"""Machines with a lease read their own tags, where the endpoint shows them; others are launched as ever."""

import pytest

from tests.rigs.clouds.ec2endpoint import Quirks, Served
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.harness import request
from updraft.clouds.base import TAG_LEASE, LaunchRequest, Leases

OPTION = "MetadataOptions.InstanceMetadataTags"


@pytest.fixture
def harness(served: Served) -> EC2Harness:
    return EC2Harness(served)


def leased(harness: EC2Harness) -> LaunchRequest:
    plain = request(harness)
    return request(harness, key=plain.key, tags={**plain.tags, TAG_LEASE: "1800000000"})


def sent(harness: EC2Harness) -> dict[str, str]:
    """What the last launch was asked for with."""
    return harness.endpoint.calls("RunInstances")[-1].parameters


def test_only_a_launch_with_a_lease_asks_that_tags_be_shown(harness: EC2Harness) -> None:
    driver = harness.driver()
    driver.launch(request(harness))
    assert OPTION not in sent(harness)
    driver.launch(leased(harness))
    assert sent(harness)[OPTION] == "enabled"
    assert sent(harness)["MetadataOptions.HttpTokens"] == "optional"


def test_tags_that_the_metadata_service_cannot_show_are_not_asked_to_be_shown(harness: EC2Harness) -> None:
    driver = harness.driver(tags={"cost center": "17"})
    driver.launch(leased(harness))
    assert OPTION not in sent(harness)
    assert not driver.cloud.traits.leases().told


def test_an_endpoint_that_shows_it_in_its_answer_is_believed(harness: EC2Harness) -> None:
    driver = harness.driver()
    assert driver.cloud.traits.leases() == Leases(told=True, ended=True)
    driver.launch(leased(harness))
    assert driver.known.has("metadata-tags") is True
    assert driver.cloud.traits.leases() == Leases(told=True, ended=True)


@pytest.mark.parametrize("how", ["refuse", "ignore"])
def test_an_endpoint_without_metadata_options_launches_all_the_same(served: Served, how: str) -> None:
    harness = EC2Harness(served, Quirks(metadata_options=how))
    driver = harness.driver()
    assert len(driver.launch(leased(harness))) == 1
    assert not driver.cloud.traits.leases().told


def test_without_shutdown_behaviour_powering_off_ends_no_machine(harness: EC2Harness) -> None:
    assert not harness.driver(lacks=["shutdown-behavior"]).cloud.traits.leases().ended
