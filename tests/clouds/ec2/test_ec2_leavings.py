"""What EC2 keeps of ours beyond machines: snapshots and volumes, with who uses them."""

from unittest.mock import PropertyMock, patch

import pytest

from tests.clouds.imaging_conformance import TAGS
from tests.rigs.clouds.ec2endpoint import Served
from tests.rigs.clouds.ec2harness import EC2Harness
from tests.rigs.clouds.harness import request
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.ec2.client import Connection
from updraft.core.leftovers import Belonging, Kind
from updraft.errors import CloudError

MINE = {TAG_POOL: "conformance", TAG_IDENTITY: "0123456789ab"}


@pytest.fixture
def harness(served: Served) -> EC2Harness:
    return EC2Harness(served)


def label(harness: EC2Harness, one: str, tags: dict[str, str]) -> None:
    listed = [{"Key": key, "Value": text} for key, text in tags.items()]
    harness.own.create_tags(Resources=[one], Tags=listed)


def volume(harness: EC2Harness, tags: dict[str, str]) -> str:
    made = str(harness.own.create_volume(Size=1, AvailabilityZone=harness.zone)["VolumeId"])
    label(harness, made, tags)
    return made


def snapshot(harness: EC2Harness, tags: dict[str, str]) -> str:
    made = str(harness.own.create_snapshot(VolumeId=volume(harness, {}))["SnapshotId"])
    label(harness, made, tags)
    return made


def seen(harness: EC2Harness, kind: Kind) -> dict[str, Belonging]:
    leavings = harness.driver().leavings
    return {one.id: one for one in leavings.of(kind)}


def test_snapshots_with_the_pools_tag_and_the_images_that_use_them(harness: EC2Harness) -> None:
    mine, _theirs = snapshot(harness, MINE), snapshot(harness, {TAG_POOL: "other"})
    driver = harness.driver()
    (machine,) = driver.launch(request(harness))
    image = driver.imaging.create(machine.id, "mine", TAGS)
    used = harness.endpoint.backend.amis[image].ebs_snapshot.id
    label(harness, used, MINE)
    found = seen(harness, Kind.SNAPSHOT)
    assert found.keys() == {mine, used}
    assert (found[mine].pool, found[mine].identity, found[mine].used_by) == (*MINE.values(), "")
    assert found[used].used_by == f"image {image}"
    assert found[mine].made_at is not None


def test_volumes_with_the_pools_tag_and_the_machines_that_use_them(harness: EC2Harness) -> None:
    free, busy = volume(harness, MINE), volume(harness, MINE)
    volume(harness, {TAG_POOL: "other"})
    (machine,) = harness.driver().launch(request(harness))
    harness.own.attach_volume(VolumeId=busy, InstanceId=machine.id, Device="/dev/sdh")
    found = seen(harness, Kind.VOLUME)
    assert {one: what.used_by for one, what in found.items()} == {free: "", busy: f"machine {machine.id}"}


def test_what_is_removed_is_gone_and_twice_is_success(harness: EC2Harness) -> None:
    things = {Kind.SNAPSHOT: snapshot(harness, MINE), Kind.VOLUME: volume(harness, MINE)}
    leavings = harness.driver().leavings
    for kind, one in things.items():
        leavings.remove(kind, one)
        leavings.remove(kind, one)
        assert seen(harness, kind) == {}


def test_a_volume_that_a_machine_has_is_not_removed(harness: EC2Harness) -> None:
    busy = volume(harness, MINE)
    (machine,) = harness.driver().launch(request(harness))
    harness.own.attach_volume(VolumeId=busy, InstanceId=machine.id, Device="/dev/sdh")
    leavings = harness.driver().leavings
    with pytest.raises(CloudError):
        leavings.remove(Kind.VOLUME, busy)
    assert busy in seen(harness, Kind.VOLUME)


def test_on_amazon_volumes_get_the_tags_of_their_machine(harness: EC2Harness) -> None:
    with patch.object(Connection, "amazon", new_callable=PropertyMock, return_value=True):
        harness.driver().launch(request(harness, tags=MINE))
    call = harness.endpoint.calls("RunInstances")[-1].parameters
    kinds = {text for key, text in call.items() if key.endswith("ResourceType")}
    assert kinds == {"instance", "volume"}
    assert all(one.identity == MINE[TAG_IDENTITY] for one in seen(harness, Kind.VOLUME).values())


def test_elsewhere_a_launch_tags_machines_alone(harness: EC2Harness) -> None:
    harness.driver().launch(request(harness))
    call = harness.endpoint.calls("RunInstances")[-1].parameters
    assert {text for key, text in call.items() if key.endswith("ResourceType")} == {"instance"}


def test_a_copy_of_an_image_is_asked_for_with_the_tags_of_it_and_its_snapshots(harness: EC2Harness) -> None:
    driver = harness.driver()
    (machine,) = driver.launch(request(harness))
    made = driver.imaging.show(driver.imaging.create(machine.id, "mine", TAGS))
    assert made is not None
    driver.imaging.fetch(driver.imaging, made, "copied", MINE)
    call = harness.endpoint.calls("CopyImage")[0].parameters
    assert {text for key, text in call.items() if key.endswith("ResourceType")} == {"image", "snapshot"}
