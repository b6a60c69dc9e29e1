"""What the OpenStack driver does beyond the contract: looking, tagging, ending, offers, images, quotas."""

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.clouds.fakecloud import FakeCloud
from tests.rigs.clouds.harness import request
from tests.rigs.clouds.made import made
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from tests.rigs.clouds.osharness import OpenStackHarness, refused
from updraft.clouds.base import TAG_GENERATION, TAG_LAUNCH, TAG_POOL, TAG_RETIRING, Catalogue, ImageFinder
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.openstack.reading import STATES, instance_of, label, state_of
from updraft.clouds.openstack.selling.quota import left
from updraft.clouds.openstack.settings import Settings
from updraft.config.drivers import checked_settings
from updraft.core.model import CloudState, Quota
from updraft.errors import AuthFailed, BadRequest, CloudUnavailable, ConfigError, QuotaExceeded

LIST = "GET .*/servers/detail"


@pytest.fixture
def driver(harness: OpenStackHarness) -> OpenStackDriver:
    return harness.driver()


@pytest.fixture
def cloud(harness: OpenStackHarness) -> FakeCloud:
    return harness.cloud


# ------------------------------------------------------------------------------------------------- looking


def test_a_listing_asks_for_the_pools_machines_only_page_after_page(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front
) -> None:
    driver.launch(request(harness, 9))
    front.log.clear()
    assert len(driver.machines()) == 9
    calls = front.calls(LIST)
    assert [call.query["limit"] for call in calls] == [["4"]] * 3
    assert {call.query["tags"][0] for call in calls} == {"updraft:pool=conformance"}
    assert {call.headers["X-OpenStack-Nova-API-Version"] for call in calls} == {"2.69"}


@pytest.mark.parametrize("machines", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("built", [0, 3])
def test_no_machine_is_missed_while_it_is_taken_up_by_a_cell(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud, machines: int, built: int
) -> None:
    if built:
        driver.launch(request(harness, built))
        cloud.settled()
        driver.machines()
    cloud.boot_takes = 60
    driver.launch(request(harness, machines))
    cloud.taken_up = True
    assert len(driver.machines()) == machines + built


@pytest.mark.parametrize("version", ["2.93", "2.60"])
def test_a_server_in_a_cell_that_is_down_is_left_out_and_not_denied(
    harness: OpenStackHarness, cloud: FakeCloud, version: str
) -> None:
    """With a filter Nova leaves it out of the list; asked by its id it shows a stump, or fails."""
    cloud.version = version
    driver = harness.driver()
    lost, other = driver.launch(request(harness, 2))
    cloud.silent = {lost.id}
    assert [one.id for one in driver.machines()] == [other.id]
    assert set(driver.look_up([lost.id, other.id])) == {other.id}
    cloud.silent = set()
    found = driver.look_up([lost.id])[lost.id]
    assert found is not None
    assert found.tagged


def test_only_nova_s_own_word_denies_a_server(driver: OpenStackDriver, front: Front) -> None:
    """A proxy's 404 says nothing of the server, nor does a list whose label was removed."""
    with (
        front.trouble(Trouble("GET .*/servers/[^/]+$", refused(404, "Not Found"))),
        pytest.raises(BadRequest),
    ):
        driver.look_up(["00000000-0000-4000-8000-00000000abcd"])


def test_a_read_is_tried_again_where_its_connection_broke_and_only_there(
    driver: OpenStackDriver, front: Front
) -> None:
    driver.machines()
    front.log.clear()
    with front.trouble(Trouble(LIST, times=1, lose=True)):
        assert driver.machines() == ()
    assert len(front.calls(LIST)) == 2
    for trouble in (Trouble(LIST, refused(503, "no")), Trouble(LIST, lose=True)):
        front.log.clear()
        with front.trouble(trouble), pytest.raises(CloudUnavailable):
            driver.machines()
        assert len(front.calls(LIST)) == (2 if trouble.lose else 1)


def test_a_read_that_takes_too_long_is_not_tried_again(harness: OpenStackHarness, front: Front) -> None:
    driver = harness.driver(timeout="200ms")
    driver.machines()
    front.log.clear()
    with front.trouble(Trouble(LIST, delay=0.5)), pytest.raises(CloudUnavailable, match="timed out"):
        driver.machines()
    assert len(front.calls(LIST)) == 1


@pytest.mark.parametrize("body", ["<html>log in</html>", {}, {"servers": None}, [], "{"])
def test_what_is_no_listing_is_not_an_empty_one(driver: OpenStackDriver, front: Front, body: Any) -> None:
    driver.machines()
    with front.trouble(Trouble(LIST, Reply(200, body))), pytest.raises(CloudUnavailable):
        driver.machines()


def test_a_silent_part_of_the_cloud_makes_the_listing_unknown(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    (made,) = driver.launch(request(harness))
    silent = {"id": made.id, "status": "UNKNOWN", "tags": cloud.servers[made.id]["tags"]}
    cloud.servers[made.id] = silent | {"os-extended-volumes:volumes_attached": []}
    with pytest.raises(CloudUnavailable, match="a part of the cloud"):
        driver.machines()


@pytest.mark.parametrize(
    ("status", "task", "state"),
    [
        ("ACTIVE", None, CloudState.RUNNING),
        ("ACTIVE", "deleting", CloudState.STOPPING),
        ("BUILD", "spawning", CloudState.PENDING),
        ("SHUTOFF", None, CloudState.STOPPED),
        ("SOFT_DELETED", None, CloudState.TERMINATED),
        ("UNKNOWN", None, CloudState.RUNNING),
        ("SOMETHING_NEW", None, CloudState.RUNNING),
        ("ERROR", None, CloudState.ERROR),
    ],
)
def test_states(status: str, task: str | None, state: CloudState) -> None:
    assert state_of({"status": status, "OS-EXT-STS:task_state": task}) is state
    assert set(STATES.values()) >= {CloudState.PENDING, CloudState.RUNNING, CloudState.STOPPED}
    found = instance_of({"id": "i-1", "status": status, "OS-EXT-STS:task_state": task}, {}, "c")
    assert found.unknown_state == ("" if status in STATES else status)


# ------------------------------------------------------------------------------------------------- tagging


def test_tags_of_a_machine_that_is_still_built_are_shown_at_once_and_written_later(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    cloud.boot_takes = 60
    (made,) = driver.launch(request(harness))
    driver.tag([made.id], {TAG_RETIRING: "yes", TAG_GENERATION: None})
    (seen,) = driver.machines()
    assert (seen.retiring, seen.generation, seen.state) == (True, "", CloudState.PENDING)
    assert TAG_RETIRING not in cloud.servers[made.id]["metadata"]
    cloud.settled()
    (seen,) = driver.machines()  # is written in this look, and shown by it too
    assert (seen.retiring, seen.generation, seen.state) == (True, "", CloudState.RUNNING)
    assert TAG_RETIRING in cloud.servers[made.id]["metadata"]
    assert [one.retiring for one in harness.driver().machines()] == [True]


def test_a_later_tag_comes_before_one_that_is_owed(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    cloud.boot_takes = 60
    (made,) = driver.launch(request(harness))
    driver.tag([made.id], {TAG_RETIRING: "yes"})
    cloud.settled()
    driver.tag([made.id], {TAG_RETIRING: None})
    assert [one.retiring for one in driver.machines()] == [False]
    assert TAG_RETIRING not in cloud.servers[made.id]["metadata"]


def test_a_machine_that_is_adopted_is_listed_and_one_let_go_is_not(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    theirs = harness.foreign({})
    cloud.settled()
    driver.tag([theirs], {TAG_POOL: "conformance", TAG_LAUNCH: "k"})
    assert [one.id for one in driver.machines()] == [theirs]
    driver.tag([theirs], {TAG_LAUNCH: None, TAG_POOL: None})
    assert driver.machines() == ()
    assert cloud.servers[theirs]["tags"] == []
    assert harness.exists(theirs)


def test_a_machine_is_let_go_of_while_it_is_still_built(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    cloud.boot_takes = 60
    (made,) = driver.launch(request(harness))
    driver.tag([made.id], {TAG_POOL: None})
    assert driver.machines() == ()
    cloud.settled()
    assert driver.machines() == ()
    assert harness.driver().machines() == ()
    assert harness.exists(made.id)


TEXTS = st.text("ab/,-é☃\n ", max_size=80)


@given(TEXTS, TEXTS)
def test_a_label_is_one_that_nova_takes_and_of_one_value(one: str, other: str) -> None:
    found = label("updraft:launch", one)
    assert 0 < len(found) <= 60
    assert not set(found) & {"/", ","}
    assert (found == label("updraft:launch", other)) is (one == other)


# -------------------------------------------------------------------------------------------------- ending


def test_one_that_may_not_be_ended_does_not_keep_the_others(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front, cloud: FakeCloud
) -> None:
    made = driver.launch(request(harness, 6))
    locked = made[2].id
    trouble = Trouble(f"DELETE .*{locked}", refused(409, f"Instance {locked} is locked"))
    with front.trouble(trouble), pytest.raises(BadRequest, match="locked"):
        driver.terminate(one.id for one in made)
    assert cloud.standing() == [locked]


def test_a_cloud_that_is_ill_is_not_asked_for_all_the_rest(
    harness: OpenStackHarness, driver: OpenStackDriver, front: Front
) -> None:
    made = driver.launch(request(harness, 20))
    with front.trouble(Trouble("DELETE", refused(503, "no"))), pytest.raises(CloudUnavailable):
        driver.terminate(one.id for one in made)
    assert len(front.calls("DELETE")) <= 4


def test_the_console_is_its_end(harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud) -> None:
    (made,) = driver.launch(request(harness))
    cloud.settled()
    cloud.inside[made.id]["console"] = "ä" * 50_000 + "end"
    text = driver.console(made.id)
    assert text.endswith("end")
    assert len(text.encode()) <= 64 * 1024


# ------------------------------------------------------------------------------------------ flavors, zones


def resources(driver: OpenStackDriver) -> dict[str, Any]:
    return {one.flavor: one.resources for one in driver.offers()}


@pytest.mark.parametrize(
    ("settings", "gpus"),
    [
        ({}, {"g1.large": 3, "vgpu.small": 1, "m1.small": 0}),
        ({"gpu_aliases": ["a100"]}, {"g1.large": 2}),
        ({"gpus": {"g1.*": 8}}, {"g1.large": 8, "vgpu.small": 1}),
        ({"gpus": {"*": 0, "g1.large": 4}}, {"g1.large": 4, "vgpu.small": 0}),
    ],
)
def test_gpus_are_what_extra_specs_tell_or_the_site_says(
    harness: OpenStackHarness, settings: dict[str, Any], gpus: dict[str, int]
) -> None:
    found = resources(harness.driver(**settings))
    assert {name: found[name].gpus for name in gpus} == gpus


def test_offers_are_of_flavors_and_zones_that_can_be_had(harness: OpenStackHarness) -> None:
    offers = harness.driver().offers()
    assert {one.zone for one in offers} == {"nova"}
    assert "old.small" not in {one.flavor for one in offers}
    assert {one.flavor for one in offers if one.arch == "aarch64"} == {"arm.small"}
    assert {one.resources.disk for one in offers if one.flavor == "v1.small"} == {8 * 2**20}
    left = {one.flavor for one in harness.driver(flavors=["*", "!m1.*"]).offers()}
    assert left
    assert not [name for name in left if name.startswith("m1.")]
    assert {one.flavor for one in harness.driver(flavors=["m1.*"], zones=["nova"]).offers()} == {
        "m1.small",
        "m1.medium",
        "m1.large",
        "m1.xlarge",
    }
    assert harness.driver(zones=["elsewhere"]).offers() == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"vcpus": "many"},
        {"vcpus": None},
        {"vcpus": -2},
        {"ram": float("nan")},
        {"ram": [4096]},
        {"disk": -1},
        {"extra_specs": ["x"]},
    ],
)
def test_a_flavor_of_which_nothing_can_be_made_is_left_out_and_named(
    driver: OpenStackDriver, cloud: FakeCloud, changes: dict[str, Any]
) -> None:
    flavors = cloud.told["flavors"]["flavors"]
    flavors.insert(0, {**flavors[0], "id": "99", "name": "odd", **changes})
    nameless = {key: value for key, value in flavors[1].items() if key != "name"}
    flavors.insert(0, {**nameless, "id": "98"})
    for _ in range(2):
        found = {one.flavor for one in driver.offers()}
        assert "m1.small" in found
        assert "odd" not in found
        assert set(driver.odd_offers) == {"odd", "98"}


def test_a_zone_without_a_name_is_left_out_and_named(driver: OpenStackDriver, cloud: FakeCloud) -> None:
    cloud.told["zones"]["availabilityZoneInfo"].insert(0, {"zoneState": {"available": True}})
    assert {one.zone for one in driver.offers()} == {"nova"}
    assert list(driver.odd_offers) == ["one without an id"]


def test_a_flavor_that_came_lately_can_be_launched(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    driver.offers()
    flavors = cloud.told["flavors"]["flavors"]
    flavors.append({**flavors[0], "id": "99", "name": "new.small"})
    assert driver.launch(request(harness, flavor="new.small"))[0].flavor == "new.small"


# -------------------------------------------------------------------------------------------------- images


@pytest.mark.parametrize(
    ("wanted", "number"),
    [
        ("worker-2024.1", 1),
        ("worker-2024.*", 2),  # the newest that can be booted
        ("worker-202[34].?", 2),
        ("00000000-0000-4000-8000-000000000001", 1),
    ],
)
def test_an_image_is_found_by_id_name_or_pattern(driver: OpenStackDriver, wanted: str, number: int) -> None:
    assert isinstance(driver, ImageFinder)
    found = driver.image(wanted)
    assert found is not None
    assert found.id == f"00000000-0000-4000-8000-{number:012}"


def test_of_several_images_of_a_name_it_is_the_newest(driver: OpenStackDriver) -> None:
    found = driver.image("alma9-htcondor")
    assert found is not None
    assert found.created is not None
    assert found.created > 1.7e9


@pytest.mark.parametrize("wanted", ["none", "none*", "in:worker-2024.1", "worker-2024.3", "a/../b", ""])
def test_there_is_no_such_image(driver: OpenStackDriver, wanted: str) -> None:
    assert driver.image(wanted) is None


def test_listed_images_can_be_booted(driver: OpenStackDriver) -> None:
    assert "x86 kernel" not in {one.name for one in driver.images()}
    assert len(driver.images()) == 6


def test_an_image_that_nobody_can_name_costs_itself(cloud: FakeCloud, driver: OpenStackDriver) -> None:
    cloud.told["images"]["images"].insert(0, {"id": None, "name": "no id"})
    assert len(driver.images()) == 6


# -------------------------------------------------------------------------------------------------- quotas


@pytest.mark.parametrize(
    ("most", "used", "found"),
    [
        (10, 3, 7),
        (10, 12, 0),
        (-1, 3, -1),
        (None, 3, None),
        (10, None, None),
        (True, 0, None),
        ("10", 1, None),
    ],
)
def test_what_is_left(most: object, used: object, found: int | None) -> None:
    assert left(most, used) == found


def test_quotas_count_everybody_and_the_scarcest_of_what_a_machine_needs(
    harness: OpenStackHarness, cloud: FakeCloud
) -> None:
    harness.foreign({})
    assert harness.driver().quota() == Quota(machines=24, cores=79, memory=409600 - 2048)
    network = cloud.told["quota-details"]["quota"]
    network["port"] = {"limit": 20, "used": 9, "reserved": 2}
    assert harness.driver().quota().machines == 9
    assert harness.driver(networks=["private", "public"]).quota().machines == 4
    network["floatingip"] = {"limit": 5, "used": 2, "reserved": 0}
    assert harness.driver(floating_network="public").quota().machines == 3
    assert harness.driver(root_volume="39GiB").quota().machines == 2


def test_what_has_no_end_is_said_to_have_none_and_what_is_not_told_is_not_known(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    cloud.absolute.update(maxTotalInstances=-1, maxTotalCores=-1)
    del cloud.absolute["maxTotalRAMSize"]
    with front.trouble(Trouble("/details.json", refused(403, "disallowed by policy"))):
        assert harness.driver().quota() == Quota(unlimited=frozenset({"machines", "cores"}))
    assert harness.driver().quota().machines == 999, "of ports there is an end"


# -------------------------------------------------------------------------------------------- connecting


def test_a_cloud_that_is_in_no_file_is_told_beside_those_that_are(
    harness: OpenStackHarness, clouds_file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AuthFailed, match=f"no cloud tset in {clouds_file}: it has test, wrong"):
        harness.driver(os_cloud="tset").machines()
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(tmp_path / "clouds.yaml"))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AuthFailed, match=r"no clouds\.yaml was found"):
        harness.driver(os_cloud="tset").machines()


def test_an_older_compute_service_is_spoken_to_as_it_can(
    harness: OpenStackHarness, front: Front, cloud: FakeCloud
) -> None:
    cloud.version = "2.60"
    driver = harness.driver()
    assert driver.machines() == ()
    assert {call.headers["X-OpenStack-Nova-API-Version"] for call in front.calls(LIST)} == {"2.60"}
    assert [one.state for one in driver.findings() if one.what == "endpoint"] == ["warning"]
    cloud.version = "2.51"
    with pytest.raises(BadRequest, match=r"speaks version 2\.51 at most"):
        harness.driver().machines()
    cloud.version = "2.60"
    with pytest.raises(BadRequest, match="too old for volume_type"):
        harness.driver(root_volume="20GiB", volume_type="ssd").launch(request(harness))


def test_a_compute_service_that_is_down_at_first_is_asked_again(
    driver: OpenStackDriver, front: Front
) -> None:
    with front.trouble(Trouble("/compute/", refused(503, "down"))), pytest.raises(CloudUnavailable):
        driver.machines()
    assert driver.machines() == ()


def test_the_regions_services_are_called(harness: OpenStackHarness) -> None:
    assert harness.driver(region="RegionTwo").machines() == ()
    with pytest.raises(BadRequest, match="region"):
        harness.driver(region="RegionThree").machines()


def test_no_secret_is_told(harness: OpenStackHarness, front: Front) -> None:
    with pytest.raises(AuthFailed, match=r"check the credentials in clouds\.yaml") as raised:
        harness.driver(os_cloud="wrong").machines()
    assert "a-wrong-one" not in str(raised.value)
    echo = refused(400, "what is not-to-be-seen doing here?")
    with front.trouble(Trouble(LIST, echo)), pytest.raises(BadRequest) as told:
        harness.driver().machines()
    assert "not-to-be-seen" not in str(told.value)


def test_without_credentials_they_are_refused_until_they_are_there(
    harness: OpenStackHarness, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = Path(os.environ["OS_CLIENT_CONFIG_FILE"]).read_text()
    file = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(file))
    driver = harness.driver()
    with pytest.raises(AuthFailed, match="test"):
        driver.machines()
    file.write_text(good.replace("not-to-be-seen", "an-old-secret"))
    with pytest.raises(AuthFailed):
        driver.machines()
    file.write_text(good)
    harness.now += 31
    with pytest.raises(AuthFailed):
        driver.machines()
    assert driver.machines() == ()


# ------------------------------------------------------------------------------------ catalogue, findings


def test_the_catalogue_tells_of_key_pairs_and_makes_one(driver: OpenStackDriver) -> None:
    assert isinstance(driver, Catalogue)
    assert driver.key_pairs() == ("demo-key",)
    assert driver.create_key_pair("new").startswith("-----BEGIN")
    assert driver.key_pairs() == ("demo-key", "new")
    with pytest.raises(BadRequest, match="already exists"):
        driver.create_key_pair("new")
    driver.delete_key_pair("new")
    driver.delete_key_pair("new")
    assert driver.key_pairs() == ("demo-key",)


def test_findings_name_what_is_missing(harness: OpenStackHarness) -> None:
    assert {one.state for one in harness.driver(security_groups=["condor"]).findings()} == {"ok"}
    driver = harness.driver(
        networks=["private", "nowhere"],
        security_groups=["none"],
        server_group="alone",
        floating_network="private",
        gpus={"g1.*": 1},
    )
    found = {one.what: one.state for one in driver.findings()}
    assert found == {
        "endpoint": "ok",
        "networks": "problem",
        "security groups": "problem",
        "server group": "problem",
        "floating addresses": "problem",
    }


def test_two_networks_of_a_name_are_told_apart_by_id_only(
    harness: OpenStackHarness, cloud: FakeCloud
) -> None:
    networks = cloud.told["networks"]["networks"]
    inner = next(one for one in networks if not one["router:external"])
    networks.append({**inner, "id": "second"})
    with pytest.raises(BadRequest, match="say in networks which"):
        harness.driver().launch(request(harness))
    with pytest.raises(BadRequest, match="give its id"):
        harness.driver(networks=["private"]).launch(request(harness))
    assert harness.driver(networks=["second"]).launch(request(harness))


def test_credentials_of_the_environment_are_a_warning(
    harness: OpenStackHarness, front: Front, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AUTH_URL": f"{front.url}/identity/v3",
        "AUTH_TYPE": "v3applicationcredential",
        "APPLICATION_CREDENTIAL_ID": "x",
        "APPLICATION_CREDENTIAL_SECRET": "not-to-be-seen",
        "REGION_NAME": "RegionOne",
    }.items():
        monkeypatch.setenv(f"OS_{name}", value)
    driver = harness.driver(os_cloud=None)
    assert [one.state for one in driver.findings() if one.what.startswith("credentials")] == ["warning"]


# ------------------------------------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("settings", "key"),
    [
        ({"password": "hush"}, "password"),
        ({"auth": {"password": "hush"}}, "auth"),
        ({"tags": {"updraft:pool": "x"}}, "tags"),
        ({"tags": {"x": "hush" * 70}}, "tags"),
        ({"gpus": {"g1": -1}}, "gpus.g1"),
        ({"flavors": []}, "flavors"),
        ({"timeout": "2m"}, "timeout"),
        ({"port": {"vnic_type": "magic"}}, "port.vnic_type"),
        ({"root_volume": "much"}, "root_volume"),
    ],
)
def test_a_wrong_setting_is_named_and_never_repeated(settings: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=rf"clouds\.here\.{key}") as raised:
        checked_settings(Settings, "here", settings)
    assert "hush" not in str(raised.value)


def test_settings_as_they_are_written() -> None:
    found = checked_settings(
        Settings, "here", {"networks": "private", "root_volume": "20.5GiB", "zones": ["a"]}
    )
    assert (found.networks, found.volume_gib(4)) == (("private",), 21)
    assert found.wants("a")
    assert not found.wants("b")


def test_nothing_is_asked_before_the_first_call(front: Front) -> None:
    front.log.clear()
    made("openstack", "cloud", "pool", {"os_cloud": "test"})
    assert front.log == []


def test_the_pool_of_others_is_never_touched(
    harness: OpenStackHarness, driver: OpenStackDriver, cloud: FakeCloud
) -> None:
    other = harness.driver("another")
    (theirs,) = other.launch(request(harness))
    harness.set_quota(1)
    with pytest.raises(QuotaExceeded):
        driver.launch(request(harness))
    assert driver.machines() == ()
    assert cloud.standing() == [theirs.id]
