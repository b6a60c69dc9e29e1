"""What OpenStack's old ec2-api does otherwise than EC2, as seen on a real one."""

import pytest

from tests.rigs.clouds.ec2endpoint import Quirks, Served, Trouble
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.harness import request
from updraft.clouds.base import TAG_CLASS
from updraft.errors import AuthFailed, CloudUnavailable, NoCapacity, QuotaExceeded


@pytest.mark.slow
def test_a_parameter_that_is_refused_without_its_name_is_a_newer_one(served: Served) -> None:
    harness = EC2Harness(
        served, Quirks(tag_on_create="TypeError", metadata_options="TypeError"), flavors=["t3.small"]
    )
    driver = harness.driver()
    (made,) = driver.launch(request(harness))
    assert harness.tags(made.id)[TAG_CLASS] == "small"
    assert driver.known.has("tag-on-create") is False
    assert driver.known.has("metadata-options") is False
    assert driver.known.has("client-token")
    calls = [call for call in harness.endpoint.log if call.action == "RunInstances"]
    assert len(calls) == 2, "what it doesn't know is found out once"


def test_an_error_that_nothing_newer_explains_is_no_answer(served: Served) -> None:
    harness = EC2Harness(served)
    with (
        harness.endpoint.trouble(Trouble("RunInstances", "TypeError", 500)),
        pytest.raises(CloudUnavailable),
    ):
        harness.driver().launch(request(harness))
    assert len([call for call in harness.endpoint.log if call.action == "RunInstances"]) == 2


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("Quota exceeded for instances: Requested 1, but already used 25 of 25 instances", QuotaExceeded),
        ("Policy doesn't allow os_compute_api:servers:create to be performed.", AuthFailed),
    ],
)
def test_forbidden_is_a_quota_where_it_says_so(served: Served, message: str, error: type[Exception]) -> None:
    harness = EC2Harness(served)
    no = Trouble("RunInstances", "Forbidden", 403, message)
    with harness.endpoint.trouble(no), pytest.raises(error) as raised:
        harness.driver().launch(request(harness))
    assert type(raised.value) is error


@pytest.mark.parametrize("code", ["InstanceLimitExceeded", "InsufficientInstanceCapacity"])
def test_a_launch_that_is_stopped_in_the_middle_returns_what_it_made(served: Served, code: str) -> None:
    harness = EC2Harness(served, Quirks(tag_on_create="ignore"))
    driver = harness.driver()
    with harness.endpoint.trouble(Trouble("RunInstances", code, 400, after=True)):
        made = driver.launch(request(harness, 2))
    assert {one.id for one in made} == set(harness.endpoint.standing())
    assert all(harness.tags(one.id)[TAG_CLASS] == "small" for one in made)


def test_a_refused_launch_that_made_nothing_is_refused(served: Served) -> None:
    harness = EC2Harness(served)
    harness.endpoint.quirks.capacity = {f"{harness.zone}/{harness.flavor}": 0}
    with pytest.raises(NoCapacity):
        harness.driver().launch(request(harness, 2))
