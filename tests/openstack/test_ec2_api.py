"""The EC2 driver keeps the contract on a real `ec2-api`, as far as that goes."""

import os
from collections.abc import Iterator

import pytest
from keystoneauth1.adapter import Adapter

from tests.clouds.conformance import MachinesConformance
from tests.rigs.clouds.ec2api import EC2ApiHarness, Wire, watched
from tests.rigs.clouds.harness import request
from tests.rigs.clouds.realcloud import Project
from tests.rigs.clouds.untagged import Untagged
from updraft.errors import QuotaExceeded

pytestmark = pytest.mark.openstack


@pytest.fixture(scope="module")
def url() -> str:
    found = os.environ.get("UPDRAFT_TEST_EC2_URL", "")
    if not found:
        pytest.skip("no EC2 endpoint: set UPDRAFT_TEST_EC2_URL, and AWS_ACCESS_KEY_ID and its secret")
    return found


@pytest.fixture(scope="module")
def wire() -> Iterator[Wire]:
    with watched() as found:
        yield found


@pytest.fixture
def harness(url: str, wire: Wire, project: Project, admin: Adapter | None) -> Iterator[EC2ApiHarness]:
    made = EC2ApiHarness(url, project, admin, wire)
    yield made
    made.clean()


class TestEC2Api(Untagged, MachinesConformance):
    @pytest.fixture
    def harness(self, harness: EC2ApiHarness) -> EC2ApiHarness:
        return harness


def test_a_quota_that_stops_a_launch_part_way_loses_no_machine(harness: EC2ApiHarness) -> None:
    """It makes machines one by one, and says no without a word of those that it made before."""
    if not harness.set_quota(2):
        pytest.skip("this cloud's quota can't be set")
    driver = harness.driver("conformance")
    made = driver.launch(request(harness, 3))
    assert len(made) == 2
    assert {one.id for one in driver.machines()} == {one.id for one in made}
    with pytest.raises(QuotaExceeded):
        driver.launch(request(harness))
