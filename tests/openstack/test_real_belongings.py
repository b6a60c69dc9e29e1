"""What belongs to a machine goes with it, on a real OpenStack; and what breaks says why."""

import os
from collections.abc import Mapping
from typing import Any

import pytest
from keystoneauth1.adapter import Adapter

from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Trouble
from tests.rigs.clouds.osharness import CREATE, refused
from tests.rigs.clouds.realcloud import Project, RealHarness
from updraft.clouds.openstack.client import Connection
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.openstack.settings import checked_settings
from updraft.core.model import CloudState
from updraft.errors import BadRequest, CloudError, CloudUnavailable

pytestmark = pytest.mark.openstack


class Network:
    """The network service, past any driver."""

    def __init__(self, project: Project, harness: RealHarness) -> None:
        region = project.region
        self._harness = harness
        self._adapter = Adapter(
            region.get_session(),
            service_type="network",
            region_name=region.get_region_name(),
            interface=region.get_interface(),
            min_version="2.0",
            max_version="2.latest",
        )

    def ours(self, what: str) -> list[Mapping[str, Any]]:
        mark = f"updraft:pool={self._harness.pool('conformance')}"
        found: list[Mapping[str, Any]] = self._adapter.get(f"/{what}?description={mark}").json()[what]
        return found


def ended(harness: RealHarness, driver: Any) -> None:
    driver.terminate([one.id for one in driver.machines()])
    harness.wait(lambda: driver.machines() == (), "all machines are gone")


def test_ports_and_addresses_go_with_their_machines(project: Project, harness: RealHarness) -> None:
    network = Network(project, harness)
    floating = harness.settings.get("floating_network")
    harness.settings["port"] = {}
    driver = harness.driver("conformance")
    made = driver.launch(request(harness, 2))
    assert {one["device_id"] for one in network.ours("ports")} <= {one.id for one in made} | {""}
    assert len(network.ours("ports")) == 2
    if floating:
        harness.wait(
            lambda: bool(driver.machines()) and len(network.ours("floatingips")) == 2,
            "each machine has a floating address",
        )
    ended(harness, driver)
    harness.wait(
        lambda: not driver.machines() and not network.ours("ports") and not network.ours("floatingips"),
        "neither ports nor addresses are left",
    )


def test_a_launch_that_fails_half_way_leaves_no_ports(project: Project, harness: RealHarness) -> None:
    network = Network(project, harness)
    harness.settings["port"] = {}
    driver = harness.driver("conformance")
    no = Trouble(CREATE, refused(400, "Invalid input for field/attribute name."))
    with project.front.trouble(no), pytest.raises(BadRequest):
        driver.launch(request(harness, 2))
    assert network.ours("ports") == []


def test_ports_of_a_launch_that_never_arrived_are_swept_up_by_a_successor(
    project: Project, harness: RealHarness
) -> None:
    network = Network(project, harness)
    harness.settings["port"] = {}
    with project.front.trouble(Trouble(CREATE, lose=True)), pytest.raises(CloudUnavailable):
        harness.driver("conformance").launch(request(harness))
    assert len(network.ours("ports")) == 1, "nobody knows whether a machine has it"
    moment = [1000.0]
    settings = checked_settings("cloud", harness.settings)
    pool, connection = harness.pool("conformance"), Connection("cloud", settings)
    later = OpenStackDriver("cloud", pool, settings, connection, lambda: moment[0])
    later.machines()
    assert len(network.ours("ports")) == 1, "its launch may be under way still"
    moment[0] += 301
    later.machines()
    assert network.ours("ports") == []


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
