"""Where updraft only watches, an endpoint is asked and nothing there is changed, at looks neither."""

import gzip
from dataclasses import replace

import pytest

from tests.rigs.clouds.ec2endpoint import Quirks, Served
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.harness import request
from updraft.clouds.watched import watched
from updraft.errors import CloudUnavailable

LINES = (
    'UpdraftPool = "conformance"\nUpdraftClass = "small"\nUpdraftGeneration = "g1"\nUpdraftLaunch = "{}"\n'
)


def test_an_endpoint_is_only_asked(served: Served) -> None:
    """Also one without tags at launch, where who acts tags at its looks what is proven its own."""
    harness = EC2Harness(served, Quirks(tag_on_create="ignore", client_token="ignore"))  # noqa: S106
    asked = request(harness)
    asked = replace(asked, user_data=gzip.compress(LINES.format(asked.key).encode()))
    with harness.mute_after_launch(), pytest.raises(CloudUnavailable):
        harness.driver("conformance").launch(asked)
    (made,) = harness.endpoint.standing()
    seen = watched(harness.driver("conformance").cloud).machines
    before = len(harness.endpoint.calls())
    for _ in range(2):
        assert [one.id for one in seen.machines()] == [made]
    seen.look_up([made])
    seen.offers()
    seen.quota()
    later = {call.action for call in harness.endpoint.calls()[before:]}
    assert later
    assert all(action.startswith(("Describe", "Get")) for action in later), later
    harness.driver("conformance").machines()
    assert "CreateTags" in {call.action for call in harness.endpoint.calls()[before:]}
