"""What belongs to a machine goes with it, on a real OpenStack; and what breaks says why."""

import os
from typing import Any

import pytest

from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Trouble
from tests.rigs.clouds.osharness import CREATE, refused
from tests.rigs.clouds.realcloud import Project, RealHarness
from tests.rigs.clouds.realneutron import Neutron
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.openstack.client import Connection
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.openstack.selling.places import Places
from updraft.clouds.openstack.settings import Settings
from updraft.config.drivers import checked_settings
from updraft.core.leftovers import Kind
from updraft.core.model import CloudState
from updraft.errors import BadRequest, CloudError, CloudUnavailable

pytestmark = pytest.mark.openstack
OWN, OTHER = "0123456789ab", "ba9876543210"


def at(harness: RealHarness) -> Connection:
    return Connection("cloud", checked_settings(Settings, "cloud", harness.settings))


def ended(harness: RealHarness, driver: Any) -> None:
    driver.terminate([one.id for one in driver.machines()])
    harness.wait(lambda: driver.machines() == (), "all machines are gone")


@pytest.fixture
def neutron(project: Project) -> Neutron:
    return Neutron(project)


def test_ports_and_addresses_are_their_pools_and_go_with_their_machines(
    neutron: Neutron, harness: RealHarness
) -> None:
    floating = harness.settings.get("floating_network")
    harness.settings["port"] = {}
    pool, driver = harness.pool("conformance"), harness.driver("conformance", OWN)
    made = driver.launch(request(harness, 2))
    ports = neutron.of_pool("ports", pool)
    assert {one["device_id"] for one in ports} <= {one.id for one in made} | {""}
    assert [one["description"] for one in ports] == 2 * [f"{TAG_POOL}={pool} {TAG_IDENTITY}={OWN}"]
    harness.wait(lambda: {one.state for one in driver.machines()} == {CloudState.RUNNING}, "both of them run")
    told = driver.leavings.of(Kind.PORT)
    assert {(one.identity, one.used_by) for one in told} == {(OWN, f"machine {one.id}") for one in made}
    assert all(one.made_at for one in told)
    with pytest.raises(BadRequest, match="uses the port"):
        driver.leavings.remove(Kind.PORT, told[0].id)
    if floating:
        harness.wait(
            lambda: bool(driver.machines()) and len(neutron.of_pool("floatingips", pool)) == 2,
            "each machine has a floating address",
        )
        addresses = driver.leavings.of(Kind.ADDRESS)
        assert {(one.identity, one.used_by) for one in addresses} == {(OWN, f"port {one.id}") for one in told}
        with pytest.raises(BadRequest, match="uses the address"):
            driver.leavings.remove(Kind.ADDRESS, addresses[0].id)
    ended(harness, driver)
    harness.wait(
        lambda: (
            not driver.machines()
            and not neutron.of_pool("ports", pool)
            and not neutron.of_pool("floatingips", pool)
        ),
        "neither ports nor addresses are left",
    )


def test_what_another_identity_left_is_told_of_and_let_be(
    project: Project, neutron: Neutron, harness: RealHarness
) -> None:
    pool, bare = harness.pool("conformance"), f"{TAG_POOL}={harness.pool('conformance')}"
    harness.settings["port"] = {}
    (network,) = Places(
        "cloud", checked_settings(Settings, "cloud", harness.settings), at(harness)
    ).networks()
    marks = {bare: "", f"{bare} {TAG_IDENTITY}={OWN}": OWN, f"{bare} {TAG_IDENTITY}={OTHER}": OTHER}
    made = {
        neutron.made("ports", network_id=network, description=mark)["id"]: identity
        for mark, identity in marks.items()
    }
    try:
        told = harness.driver("conformance", OWN).leavings.of(Kind.PORT)
        assert {one.id: (one.identity, one.used_by) for one in told} == {
            one: (identity, "") for one, identity in made.items()
        }
        moment = [1000.0]
        driver = OpenStackDriver(
            "cloud", pool, checked_settings(Settings, "cloud", harness.settings), at(harness),
            lambda: moment[0], identity=OWN,
        )  # fmt: skip
        driver.machines()
        moment[0] += 301
        driver.machines()
        left = [one["id"] for one in neutron.of_pool("ports", pool)]
        assert [made[one] for one in left] == [OTHER]
        for _ in range(2):
            driver.leavings.remove(Kind.PORT, left[0])
        assert neutron.of_pool("ports", pool) == []
    finally:
        for one in neutron.of_pool("ports", pool):
            neutron.gone("ports", one["id"])


def test_a_launch_that_fails_half_way_leaves_no_ports(
    project: Project, neutron: Neutron, harness: RealHarness
) -> None:
    harness.settings["port"] = {}
    driver = harness.driver("conformance")
    no = Trouble(CREATE, refused(400, "Invalid input for field/attribute name."))
    with project.front.trouble(no), pytest.raises(BadRequest):
        driver.launch(request(harness, 2))
    assert neutron.of_pool("ports", harness.pool("conformance")) == []


def test_ports_of_a_launch_that_never_arrived_are_swept_up_by_a_successor(
    project: Project, neutron: Neutron, harness: RealHarness
) -> None:
    harness.settings["port"] = {}
    pool = harness.pool("conformance")
    with project.front.trouble(Trouble(CREATE, lose=True)), pytest.raises(CloudUnavailable):
        harness.driver("conformance", OWN).launch(request(harness))
    assert len(neutron.of_pool("ports", pool)) == 1, "nobody knows whether a machine has it"
    moment = [1000.0]
    settings = checked_settings(Settings, "cloud", harness.settings)
    later = OpenStackDriver("cloud", pool, settings, at(harness), lambda: moment[0], identity=OWN)
    later.machines()
    assert len(neutron.of_pool("ports", pool)) == 1, "its launch may be under way still"
    moment[0] += 301
    later.machines()
    assert neutron.of_pool("ports", pool) == []


def test_machines_are_members_of_their_server_group(project: Project, harness: RealHarness) -> None:
    name = harness.pool("together")
    wanted = {"server_group": {"name": name, "policies": ["affinity"]}}
    group = project.compute.post("/os-server-groups", json=wanted).json()["server_group"]["id"]
    try:
        harness.settings["server_group"] = name
        driver = harness.driver("conformance")
        made = {one.id for one in driver.launch(request(harness, 2))}
        harness.wait(
            lambda: {one.state for one in driver.machines()} == {CloudState.RUNNING}, "both of them run"
        )
        told = project.compute.get(f"/os-server-groups/{group}").json()["server_group"]
        assert set(told["members"]) == made
        hosts = {project.compute.get(f"/servers/{one}").json()["server"]["hostId"] for one in made}
        assert len(hosts) == 1, "affinity is one host for all"
    finally:
        project.compute.delete(f"/os-server-groups/{group}")


def test_a_machine_that_breaks_says_why_and_goes(harness: RealHarness) -> None:
    breaks = os.environ.get("UPDRAFT_TEST_OS_BREAKS", "")
    if not breaks:
        pytest.skip("UPDRAFT_TEST_OS_BREAKS names no metadata (KEY=VALUE) by which machines break here")
    key, _, value = breaks.partition("=")
    harness.settings["tags"] |= {key: value}
    driver = harness.driver("conformance")
    try:
        driver.launch(request(harness))
    except CloudError:
        return  # it broke before the launch had its answer
    harness.wait(
        lambda: [one.state for one in driver.machines()] == [CloudState.ERROR], "the machine is broken"
    )
    assert driver.machines()[0].fault
    ended(harness, driver)


def test_what_check_is_told_of_the_project(harness: RealHarness) -> None:
    driver = harness.driver("conformance")
    found = driver.findings()
    assert {one.what for one in found} >= {"endpoint", "networks", "security groups"}
    assert [one for one in found if one.state == "problem"] == []
    assert driver.images()
    assert isinstance(driver.key_pairs(), tuple)
