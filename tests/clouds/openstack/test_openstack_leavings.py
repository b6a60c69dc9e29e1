"""What an OpenStack project keeps of ours beyond machines: volumes, addresses, ports, with who uses them."""

import pytest

from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from tests.rigs.clouds.osharness import OpenStackHarness
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.core.leftovers import Belonging, Kind
from updraft.errors import CloudError, CloudUnavailable

MINE = {TAG_POOL: "conformance", TAG_IDENTITY: "0123456789ab"}
VOLUME = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def harness(front: Front) -> OpenStackHarness:
    return OpenStackHarness(front)


def seen(harness: OpenStackHarness, kind: Kind) -> dict[str, Belonging]:
    return {one.id: one for one in harness.driver().leavings.of(kind)}


def test_the_volume_of_a_machine_is_labelled_as_its_machine_is_and_in_use(harness: OpenStackHarness) -> None:
    driver = harness.driver("conformance", root_volume="10GiB")
    (machine,) = driver.launch(request(harness, tags=MINE))
    driver.machines()
    (volume,) = seen(harness, Kind.VOLUME).values()
    assert (volume.pool, volume.identity, volume.used_by) == (*MINE.values(), f"machine {machine.id}")
    with pytest.raises(CloudError):
        driver.leavings.remove(Kind.VOLUME, volume.id)
    before = len(harness.front.calls("POST .*/metadata"))
    driver.machines()
    assert len(harness.front.calls("POST .*/metadata")) == before, "once is enough"


def test_a_label_that_cannot_be_written_is_written_at_a_later_look(harness: OpenStackHarness) -> None:
    driver = harness.driver("conformance", root_volume="10GiB")
    driver.launch(request(harness, tags=MINE))
    with harness.front.trouble(Trouble(r"POST .*/volumes/.*/metadata", Reply(503, "down"))):
        assert len(driver.machines()) == 1
    assert seen(harness, Kind.VOLUME) == {}
    driver.machines()
    assert len(seen(harness, Kind.VOLUME)) == 1


def test_a_volume_that_nova_lost_is_found_and_removed_twice(harness: OpenStackHarness) -> None:
    cloud = harness.cloud
    cloud.volumes |= {VOLUME: "available", "66666666-2222-4333-8444-555555555555": "available"}
    cloud.volume_labels[VOLUME] = dict(MINE)  # the other is somebody else's
    (found,) = seen(harness, Kind.VOLUME).values()
    assert (found.id, found.used_by, found.identity) == (VOLUME, "", MINE[TAG_IDENTITY])
    assert found.made_at is not None
    for _ in range(2):
        harness.driver().leavings.remove(Kind.VOLUME, VOLUME)
    assert seen(harness, Kind.VOLUME) == {}
    assert len(cloud.volumes) == 1


def test_a_volume_on_its_way_is_in_use(harness: OpenStackHarness) -> None:
    harness.cloud.volumes[VOLUME] = "detaching"
    harness.cloud.volume_labels[VOLUME] = dict(MINE)
    assert "detaching" in seen(harness, Kind.VOLUME)[VOLUME].used_by


def test_addresses_and_ports_are_told_of_by_their_description(harness: OpenStackHarness) -> None:
    mark = f"{TAG_POOL}=conformance"
    harness.cloud.addresses["a"] = {"id": "a", "description": mark, "port_id": "p"}
    harness.cloud.addresses["b"] = {"id": "b", "description": mark, "port_id": None}
    harness.cloud.addresses["c"] = {"id": "c", "description": f"{TAG_POOL}=other", "port_id": None}
    harness.cloud.ports["p"] = {"id": "p", "description": mark, "device_id": "s-1"}
    addresses = seen(harness, Kind.ADDRESS)
    assert {one: what.used_by for one, what in addresses.items()} == {"a": "port p", "b": ""}
    assert all(what.identity == "" for what in addresses.values())
    assert seen(harness, Kind.PORT)["p"].used_by == "machine s-1"


def test_a_service_that_is_down_is_an_error(harness: OpenStackHarness) -> None:
    with (
        harness.front.trouble(Trouble(r"GET .*/volumes/detail", Reply(503, "down"))),
        pytest.raises(CloudUnavailable),
    ):
        harness.driver().leavings.of(Kind.VOLUME)
