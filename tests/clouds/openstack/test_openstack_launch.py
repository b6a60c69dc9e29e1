"""Launches on OpenStack: what is asked for, what comes of it, and what is left when it fails half-way."""

import json
import re
from typing import Any

import pytest

from tests.rigs.clouds.fakecloud import ADDRESS, IMAGE, NO_HOST, PRIVATE, PUBLIC, FakeCloud, data
from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from tests.rigs.clouds.osharness import CREATE, OpenStackHarness, refused
from updraft.clouds.base import TAG_CLASS, TAG_GENERATION, TAG_IDENTITY, TAG_LAUNCH, TAG_POOL
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.core.model import CloudState
from updraft.errors import (
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
)

GROUP = "616fb98f-46ca-475e-917e-2563e5a8cd19"
OWN, OTHER = "0123456789ab", "ba9876543210"


@pytest.fixture
def driver(harness: OpenStackHarness) -> OpenStackDriver:
    return harness.driver()


@pytest.fixture
def cloud(harness: OpenStackHarness) -> FakeCloud:
    return harness.cloud


def sent(front: Front) -> dict[str, Any]:
    (call,) = front.calls(CREATE)
    body: dict[str, Any] = call.body
    return body


# ------------------------------------------------------------------------------------------------ one call


def test_a_launch_is_one_call_with_all_that_a_machine_needs(harness: OpenStackHarness, front: Front) -> None:
    driver = harness.driver(
        key_name="demo-key",
        security_groups=["condor"],
        server_group="spread",
        config_drive=True,
        tags={"project": "p1"},
    )
    asked = request(harness, 20, image="worker-2024.2", user_data=b"\x00\xff")
    assert len(driver.launch(asked)) == 20
    body = sent(front)
    server = body["server"]
    groups = data("security-groups")["security_groups"]
    assert body["os:scheduler_hints"] == {"group": GROUP}
    assert (server["min_count"], server["max_count"]) == (1, 20)
    assert (server["imageRef"], server["flavorRef"]) == (IMAGE, "1")
    assert (server["availability_zone"], server["key_name"]) == ("nova", "demo-key")
    assert server["networks"] == [{"uuid": PRIVATE}]
    assert server["security_groups"] == [{"name": one["id"]} for one in groups if one["name"] == "condor"]
    assert server["config_drive"] is True
    assert server["user_data"] == "AP8="
    assert server["metadata"] == {
        "project": "p1",
        TAG_POOL: "conformance",
        TAG_CLASS: "small",
        TAG_LAUNCH: asked.key,
        TAG_GENERATION: "g1",
    }
    assert server["tags"] == ["updraft:pool=conformance", f"updraft:launch={asked.key}"]


def test_a_network_of_the_request_comes_before_that_of_the_settings(
    harness: OpenStackHarness, front: Front
) -> None:
    harness.driver(networks=["private"]).launch(request(harness, network="public"))
    assert sent(front)["server"]["networks"] == [{"uuid": PUBLIC}]


def test_security_groups_of_the_request_come_before_those_of_the_settings(
    harness: OpenStackHarness, front: Front
) -> None:
    ids = {one["name"]: one["id"] for one in data("security-groups")["security_groups"]}
    asked = ("default",)
    harness.driver(security_groups=["condor"]).launch(request(harness, security_groups=asked))
    assert sent(front)["server"]["security_groups"] == [{"name": ids["default"]}]
    harness.driver(port={}).launch(request(harness, security_groups=asked))
    (call,) = front.calls("POST .*/ports$")
    assert [one["security_groups"] for one in call.body["ports"]] == [[ids["default"]]]


def test_ports_are_made_in_the_network_of_the_request(harness: OpenStackHarness, cloud: FakeCloud) -> None:
    harness.driver(networks=["private"], port={}).launch(request(harness, network="public"))
    assert [one["network_id"] for one in cloud.ports.values()] == [PUBLIC]


def test_a_long_key_is_a_label_by_its_hash_and_metadata_as_it_is(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front
) -> None:
    key = "a-class-with-a-long-name/and,with-signs-" * 4
    (made,) = driver.launch(request(harness, key=key))
    assert made.launch_key == key
    assert all(len(one) <= 60 and "/" not in one and "," not in one for one in sent(front)["server"]["tags"])
    assert {one.id for one in driver.launch(request(harness, key=key))} == {made.id}


def test_a_name_is_a_host_name_and_of_its_launch(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    tags = {TAG_CLASS: "big_one.x"}
    driver.launch(request(harness, 2, tags=tags))
    driver.launch(request(harness, 2, tags=tags))
    names = [one["name"] for one in cloud.servers.values()]
    assert len(set(names)) == 4
    assert all(name.startswith("conformance-big-one-x-") for name in names)


def test_what_nova_will_not_take_is_not_sent(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front
) -> None:
    for changes in ({"user_data": b"x" * 49150}, {"market": "spot"}, {"tags": {"long": "x" * 256}}):
        with pytest.raises(BadRequest):
            driver.launch(request(harness, **changes))
    assert not front.calls(CREATE)
    assert driver.launch(request(harness, user_data=b"x" * 49149))


def test_the_private_key_of_no_answer_is_kept(harness: OpenStackHarness, driver: OpenStackDriver) -> None:
    (made,) = driver.launch(request(harness))
    assert "not-to-be-seen" not in repr(made)


# ----------------------------------------------------------------------------------------------- refusals

ERRORS = data("errors")
KINDS = {kind.code: kind for kind in CloudError.__subclasses__()}


@pytest.mark.parametrize("error", ERRORS, ids=[one["what"] for one in ERRORS])
def test_each_refusal_is_called_what_it_is(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front, error: dict[str, Any]
) -> None:
    reply = Reply(error["status"], error["body"], error.get("headers", {}))
    with front.trouble(Trouble(CREATE, reply)), pytest.raises(CloudError) as raised:
        driver.launch(request(harness))
    assert type(raised.value) is KINDS[error["means"]]
    assert raised.value.__cause__ is not None
    assert not re.search("<html|<h1", str(raised.value))
    if isinstance(raised.value, Throttled):
        assert raised.value.retry_after == error["retry_after"]
    if error["status"] != 401:  # where a token may have ended, the SDK shows a new one: nothing was made
        assert len(front.calls(CREATE)) == 1, "never tried again"


def test_a_launch_whose_connection_breaks_is_not_tried_again(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front
) -> None:
    with front.trouble(Trouble(CREATE, lose=True)), pytest.raises(CloudUnavailable):
        driver.launch(request(harness))
    assert len(front.calls(CREATE)) == 1


def test_a_launch_that_is_not_answered_in_time_is_unknown(harness: OpenStackHarness, front: Front) -> None:
    driver = harness.driver(timeout="200ms")
    driver.offers()
    with front.trouble(Trouble(CREATE, delay=0.5)), pytest.raises(CloudUnavailable, match="timed out"):
        driver.launch(request(harness))
    assert len(front.calls(CREATE)) == 1


def test_a_part_is_better_than_nothing(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front
) -> None:
    harness.set_quota(3)
    assert len(driver.launch(request(harness, 8))) == 3
    with pytest.raises(QuotaExceeded, match=r"launching 8 × m1\.small in nova"):
        driver.launch(request(harness, 8))
    assert len(front.calls(CREATE)) == 2


def test_no_room_that_nova_finds_out_at_once_is_no_capacity(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    cloud.capacity = 0
    with pytest.raises(NoCapacity, match="No valid host"):
        driver.launch(request(harness, 2))
    assert cloud.standing() == []


def test_those_with_room_are_kept(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    cloud.capacity = 2
    made = driver.launch(request(harness, 3))
    assert {one.id for one in made} == set(cloud.standing())
    assert len(made) == 2


def test_a_machine_that_breaks_later_says_why(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    (made,) = driver.launch(request(harness))
    cloud.servers[made.id] |= {
        "status": "ERROR",
        "OS-EXT-STS:vm_state": "error",
        "OS-EXT-STS:task_state": None,
        "fault": {"code": 500, "message": NO_HOST},
    }
    (seen,) = driver.machines()
    assert (seen.state, seen.fault) == (CloudState.ERROR, NO_HOST)


# ------------------------------------------------------------------------------------- boot from a volume


def test_a_root_volume_is_made_for_the_machine_and_ends_with_it(
    harness: OpenStackHarness, front: Front
) -> None:
    driver = harness.driver(root_volume="20GiB", volume_type="ssd")
    (made,) = driver.launch(request(harness))
    server = sent(front)["server"]
    assert "imageRef" not in server
    assert server["block_device_mapping_v2"] == [
        {
            "boot_index": 0,
            "source_type": "image",
            "destination_type": "volume",
            "uuid": IMAGE,
            "volume_size": 30,  # the image needs as much
            "volume_type": "ssd",
            "delete_on_termination": True,
        }
    ]
    assert made.image == IMAGE
    assert driver.offers()[0].resources.disk == 20 * 2**20


def test_a_root_volume_grows_with_the_cores_of_the_flavor(harness: OpenStackHarness, front: Front) -> None:
    driver = harness.driver(root_volume="40GiB", root_volume_per_core="5GiB")
    asked = request(harness)
    (cores,) = {one.resources.cpus for one in driver.offers() if one.flavor == asked.flavor}
    (disk,) = {one.resources.disk for one in driver.offers() if one.flavor == asked.flavor}
    driver.launch(asked)
    (volume,) = sent(front)["server"]["block_device_mapping_v2"]
    assert volume["volume_size"] == 40 + 5 * cores
    assert disk == volume["volume_size"] * 2**20, "jobs are matched against it"


def test_a_volume_may_be_for_cores_alone(harness: OpenStackHarness, front: Front) -> None:
    driver = harness.driver(root_volume_per_core="50GiB")
    driver.launch(request(harness))
    assert sent(front)["server"]["block_device_mapping_v2"][0]["volume_size"] % 50 == 0


@pytest.mark.parametrize("breaks", [False, True])
def test_no_volume_stays_also_where_the_machine_broke(
    harness: OpenStackHarness, cloud: FakeCloud, breaks: bool
) -> None:
    driver = harness.driver(root_volume="20GiB")
    cloud.volumes["somebody-elses"] = "available"
    cloud.fail_building = "Build of instance aborted" if breaks else ""
    (made,) = driver.launch(request(harness))
    driver.machines()
    driver.terminate([made.id])
    cloud.settled()
    assert len(cloud.volumes) == 1 + breaks
    for volume in set(cloud.volumes) - {"somebody-elses"}:
        cloud.volumes[volume] = "detaching"
        driver.machines()
        assert volume in cloud.volumes
        cloud.volumes[volume] = "available"
    assert driver.machines() == ()
    driver.machines()
    assert set(cloud.volumes) == {"somebody-elses"}


# ---------------------------------------------------------------------------------------- ports of its own


def test_ports_are_made_at_once_and_go_with_their_machines(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    settings = {"port": {"vnic_type": "direct", "subnet": "private-v4"}, "security_groups": ["condor"]}
    driver = harness.driver(**settings)
    made = driver.launch(request(harness, 3))
    (call,) = front.calls("POST .*/ports$")
    assert len(call.body["ports"]) == 3
    subnet = data("subnets")["subnets"][0]["id"]
    for one in call.body["ports"]:
        assert (one["network_id"], one["binding:vnic_type"]) == (PRIVATE, "direct")
        assert one["fixed_ips"] == [{"subnet_id": subnet}]
        assert len(one["security_groups"]) == 1
    assert {one["device_id"] for one in cloud.ports.values()} == {one.id for one in made}
    cloud.ports["foreign"] = {"id": "foreign", "device_id": made[0].id, "description": ""}
    driver.terminate([one.id for one in made])
    cloud.settled()
    assert driver.machines() == ()
    assert set(cloud.ports) == {"foreign"}


@pytest.mark.parametrize("mode", [{"ipv6_address_mode": "slaac"}, {"ipv6_ra_mode": "dhcpv6-stateless"}])
def test_ports_whose_addresses_are_made_of_their_macs_are_made_one_by_one(
    harness: OpenStackHarness, cloud: FakeCloud, mode: dict[str, str]
) -> None:
    """Neutron answers a call for several with an error of its own."""
    subnets = cloud.told["subnets"]["subnets"]
    subnets.append({**subnets[0], "id": "six", "name": "six", "ip_version": 6, **mode})
    driver = harness.driver(port={})
    assert len(driver.launch(request(harness, 2))) == len(cloud.ports) == 2
    cloud.most_ports = 3
    with pytest.raises(QuotaExceeded):
        driver.launch(request(harness, 2))
    assert len(cloud.ports) == 2, "all or none"


def test_a_launch_that_fails_half_way_leaves_no_ports(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    driver = harness.driver(port={})
    harness.set_quota(2)
    made = driver.launch(request(harness, 5))
    assert len(made) == 2
    assert {one["device_id"] for one in cloud.ports.values()} == {one.id for one in made}
    with pytest.raises(QuotaExceeded):
        driver.launch(request(harness, 2))
    assert len(cloud.ports) == 2
    assert len(front.calls(CREATE)) == 4, "nothing is asked for after a refusal"


def test_ports_of_a_launch_that_was_not_answered_are_swept_up_in_time(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    driver = harness.driver(port={})
    theirs = {"id": "theirs", "device_id": "", "description": "updraft:pool=another"}
    cloud.ports["theirs"] = theirs
    with front.trouble(Trouble(CREATE, lose=True)), pytest.raises(CloudUnavailable):
        driver.launch(request(harness, 3))
    assert len(cloud.ports) == 2, (
        "those of the calls that weren't made are gone, theirs and the unknown one stay"
    )
    driver.machines()
    assert len(cloud.ports) == 2, "its launch may still be under way"
    harness.now += 301
    driver.machines()
    assert set(cloud.ports) == {"theirs"}


def test_a_machine_that_was_let_go_of_keeps_its_port(harness: OpenStackHarness, cloud: FakeCloud) -> None:
    driver = harness.driver(port={})
    (made,) = driver.launch(request(harness))
    cloud.settled()
    driver.tag([made.id], {TAG_POOL: None})
    for _ in range(3):
        assert driver.machines() == ()
        harness.now += 400
    assert len(cloud.ports) == 1
    harness.own_end(made.id)
    driver.machines()
    assert len(cloud.ports) == 0


# --------------------------------------------------------------------------------------- floating addresses


def test_an_address_is_given_once_and_goes_with_the_machine(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    driver = harness.driver(floating_network="public")
    cloud.addresses["theirs"] = {"id": "theirs", "port_id": None, "description": ""}
    made = driver.launch(request(harness, 2))
    cloud.settled()
    for _ in range(3):
        driver.machines()
    harness.driver(floating_network="public").machines()  # another process knows it too
    given = [one for one in cloud.addresses.values() if one["id"] != "theirs"]
    assert len(given) == len(front.calls("POST .*/floatingips")) == 2
    assert {one["floating_network_id"] for one in given} == {PUBLIC}
    driver.terminate([made[0].id])
    assert len(cloud.addresses) == 2
    driver.terminate([made[1].id])
    assert set(cloud.addresses) == {"theirs"}


def test_of_several_ports_the_machines_own_has_the_address(
    harness: OpenStackHarness, cloud: FakeCloud
) -> None:
    driver = harness.driver(floating_network="public", networks=["private", "public"])
    (made,) = driver.launch(request(harness))
    cloud.settled()
    cloud.ports = dict(reversed(cloud.ports.items()))
    driver.machines()
    (given,) = cloud.addresses.values()
    assert cloud.ports[given["port_id"]]["fixed_ips"] == [{"ip_address": made.address or ADDRESS}]


def test_machines_end_also_while_the_network_service_is_down(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    driver = harness.driver(floating_network="public")
    (made,) = driver.launch(request(harness))
    cloud.settled()
    driver.machines()
    with front.trouble(Trouble("/network/", refused(503, "down"))):
        driver.terminate([made.id])
        cloud.settled()
        assert driver.machines() == ()
    assert cloud.standing() == []
    driver.terminate(["another"])
    driver.machines()
    assert cloud.addresses == {}


def test_addresses_that_a_dead_process_left_are_removed(harness: OpenStackHarness, cloud: FakeCloud) -> None:
    mark = {"description": "updraft:pool=conformance"}
    cloud.addresses |= {
        "lost": {"id": "lost", "port_id": None, **mark},
        "theirs": {"id": "theirs", "port_id": None, "description": "updraft:pool=another"},
    }
    harness.driver(floating_network="public").machines()
    assert set(cloud.addresses) == {"theirs"}


def test_what_a_dead_process_of_another_identity_left_is_let_be(
    harness: OpenStackHarness, cloud: FakeCloud
) -> None:
    """Of this identity and of none, as what was made before there was one: it goes."""
    bare = "updraft:pool=conformance"
    own, other = f"{bare} updraft:identity={OWN}", f"{bare} updraft:identity={OTHER}"
    for one, mark in (("own", own), ("bare", bare), ("other", other)):
        cloud.addresses[one] = cloud.as_address({"id": one, "description": mark})
        cloud.ports[one] = cloud.as_port({"id": one, "description": mark})
    driver = harness.driver(identity=OWN, port={}, floating_network="public")
    driver.machines()
    assert set(cloud.addresses) == {"other"}
    harness.now += 301
    driver.machines()
    assert set(cloud.ports) == {"other"}
    harness.driver(port={}, floating_network="public").machines()
    assert set(cloud.addresses) == {"other"}, "who has no identity yet has nothing to say of it either"


def test_machines_of_another_identity_are_given_no_address(
    harness: OpenStackHarness, cloud: FakeCloud
) -> None:
    theirs = harness.driver(identity=OTHER, floating_network="public")
    theirs.launch(request(harness, tags={TAG_IDENTITY: OTHER}))
    mine = harness.driver(identity=OWN, floating_network="public")
    mine.launch(request(harness, key="another", tags={TAG_IDENTITY: OWN}))
    cloud.settled()
    for _ in range(2):
        mine.machines()
    (given,) = cloud.addresses.values()
    assert given["description"].endswith(OWN)
    theirs.machines()
    assert len(cloud.addresses) == 2


def test_addresses_go_also_where_the_settings_ask_for_none_any_more(
    harness: OpenStackHarness, cloud: FakeCloud
) -> None:
    driver = harness.driver(floating_network="public")
    (made,) = driver.launch(request(harness))
    cloud.settled()
    driver.machines()
    assert len(cloud.addresses) == 1
    later = harness.driver()
    later.machines()
    later.terminate([made.id])
    assert cloud.addresses == {}


def test_without_ports_and_addresses_no_look_asks_the_network(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front
) -> None:
    (made,) = driver.launch(request(harness))
    front.log.clear()
    for _ in range(5):
        driver.machines()
    driver.terminate([made.id])
    assert not front.calls("/network/")


def test_a_refused_address_is_not_asked_for_at_each_look(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    driver = harness.driver(floating_network="public")
    driver.launch(request(harness))
    cloud.settled()
    with front.trouble(Trouble("POST .*/floatingips", refused(409, "OverQuota: Quota exceeded"))):
        for _ in range(5):
            assert len(driver.machines()) == 1, "the machine is there all the same"
    assert len(front.calls("POST .*/floatingips")) == 1


def test_recorded_refusals_are_as_services_wrote_them() -> None:
    assert all(one["means"] in KINDS for one in ERRORS)
    assert set(KINDS) == {one["means"] for one in ERRORS}
    assert json.dumps(ERRORS)
