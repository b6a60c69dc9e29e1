"""What an OpenStack project keeps of ours beyond machines: volumes, addresses, ports, with who uses them."""

import json
from pathlib import Path

import pytest

from tests.rigs.clouds.harness import request
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from tests.rigs.clouds.osharness import BEGUN, OpenStackHarness
from updraft.app.wiring import make_cloud
from updraft.cli import main
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.config import load
from updraft.core.leftovers import HOUR, Belonging, Kind
from updraft.errors import BadRequest, CloudError, CloudUnavailable
from updraft.ledger.identity import Host, kept

OWN, OTHER = "0123456789ab", "ba9876543210"
MINE = {TAG_POOL: "conformance", TAG_IDENTITY: OWN}
VOLUME = "11111111-2222-4333-8444-555555555555"


@pytest.fixture
def harness(front: Front) -> OpenStackHarness:
    return OpenStackHarness(front)


def seen(harness: OpenStackHarness, kind: Kind) -> dict[str, Belonging]:
    return {one.id: one for one in harness.driver().leavings.of(kind)}


def test_the_volume_of_a_machine_is_labelled_as_its_machine_is_and_in_use(harness: OpenStackHarness) -> None:
    driver = harness.driver("conformance", identity=OWN, root_volume="10GiB")
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
    driver = harness.driver("conformance", identity=OWN, root_volume="10GiB")
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
    cloud, bare = harness.cloud, f"{TAG_POOL}=conformance"
    for one, description, port in (
        ("a", f"{bare} {TAG_IDENTITY}={OWN}", "p"),
        ("b", f"{bare} {TAG_IDENTITY}={OTHER}", None),
        ("c", bare, None),
        ("d", f"{TAG_POOL}=other {TAG_IDENTITY}={OWN}", None),
        ("e", f"{bare}2", None),
        ("f", f"see {bare} {TAG_IDENTITY}={OWN}, thanks", None),
    ):
        cloud.addresses[one] = cloud.as_address({"id": one, "description": description, "port_id": port})
    cloud.ports["p"] = cloud.as_port(
        {"id": "p", "description": f"{bare} {TAG_IDENTITY}={OWN}", "device_id": "s-1"}
    )
    addresses = seen(harness, Kind.ADDRESS)
    assert {one: (what.used_by, what.identity) for one, what in addresses.items()} == {
        "a": ("port p", OWN), "b": ("", OTHER), "c": ("", ""),
    }  # fmt: skip
    port = seen(harness, Kind.PORT)["p"]
    assert (port.used_by, port.pool, port.identity, port.made_at) == (
        "machine s-1", "conformance", OWN, BEGUN,
    )  # fmt: skip


def test_those_of_all_pages_are_told_of(harness: OpenStackHarness) -> None:
    mark = f"{TAG_POOL}=conformance {TAG_IDENTITY}={OWN}"
    every = {f"{n:03}": {"id": f"{n:03}", "description": mark if n % 2 else ""} for n in range(450)}
    harness.cloud.ports = {one: harness.cloud.as_port(port) for one, port in every.items()}
    assert len(seen(harness, Kind.PORT)) == 225


def test_what_is_made_carries_the_identity_of_its_pool(harness: OpenStackHarness) -> None:
    driver = harness.driver("conformance", identity=OWN, port={}, floating_network="public")
    (machine,) = driver.launch(request(harness, tags=MINE))
    harness.cloud.settled()
    driver.machines()
    ((port, told),) = seen(harness, Kind.PORT).items()
    assert (told.identity, told.used_by) == (OWN, f"machine {machine.id}")
    (address,) = seen(harness, Kind.ADDRESS).values()
    assert (address.identity, address.used_by) == (OWN, f"port {port}")


def test_neutron_gets_no_description_that_it_would_not_take(harness: OpenStackHarness) -> None:
    pool = "p" * 220
    harness.driver(pool, identity=OWN, port={}).launch(request(harness))
    (port,) = harness.cloud.ports.values()
    assert port["description"] == f"{TAG_POOL}={pool}"
    assert [one.identity for one in harness.driver(pool).leavings.of(Kind.PORT)] == [""]


@pytest.mark.parametrize(("kind", "user"), [(Kind.PORT, "device_id"), (Kind.ADDRESS, "port_id")])
def test_neutron_would_remove_what_is_in_use_and_is_not_asked_to(
    harness: OpenStackHarness, kind: Kind, user: str
) -> None:
    cloud, leavings = harness.cloud, harness.driver().leavings
    cloud.ports["x"] = cloud.as_port({"id": "x"})
    cloud.addresses["x"] = cloud.as_address({"id": "x"})
    there = cloud.ports if kind is Kind.PORT else cloud.addresses
    there["x"][user] = "s-1"
    with pytest.raises(BadRequest, match="s-1"):
        leavings.remove(kind, "x")
    there["x"][user] = ""
    for _ in range(2):
        leavings.remove(kind, "x")
    assert not there


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, harness: OpenStackHarness) -> str:
    """A configuration of pool "conformance" in this project; the identity that is kept beside its ledger."""
    file = tmp_path / "updraft.toml"
    file.write_text(
        '[pool]\nname = "conformance"\nstate_dir = "state"\n[clouds.lab]\ndriver = "openstack"\n'
        f'os_cloud = "test"\n[classes.default]\nimage = "{harness.image}"\n'
    )
    monkeypatch.setenv("UPDRAFT_CONFIG", str(file))
    monkeypatch.setattr("updraft.app.operating.leftovers.time.time", lambda: BEGUN + 2 * HOUR)
    return kept(tmp_path / "state", Host()).pool


def test_what_a_configuration_launches_carries_its_identity(
    harness: OpenStackHarness, configured: str, tmp_path: Path
) -> None:
    file = tmp_path / "updraft.toml"
    file.write_text(file.read_text().replace("[classes", "[clouds.lab.port]\n[classes"))
    settings = load(file)
    make_cloud(settings, "lab", settings.clouds["lab"]).machines.launch(request(harness))
    assert [one.identity for one in seen(harness, Kind.PORT).values()] == [configured]


def test_leftovers_removes_our_own_and_refuses_all_others(
    harness: OpenStackHarness, configured: str, capsys: pytest.CaptureFixture[str]
) -> None:
    cloud = harness.cloud
    whose = {"own": configured, "another": OTHER, "nobodys": "", "used": configured, "heads": configured}
    for one, identity in whose.items():
        pool = "conformance.heads" if one == "heads" else "conformance"
        mark = f"{TAG_POOL}={pool}" + (f" {TAG_IDENTITY}={identity}" if identity else "")
        user = "in-use" if one == "used" else ""
        cloud.ports[one] = cloud.as_port({"id": one, "description": mark, "device_id": user})
        cloud.addresses[one] = cloud.as_address({"id": one, "description": mark, "port_id": user})
    assert main.call(["leftovers", "--all", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["leftovers"]
    fates = {"own": "left", "another": "refused", "nobodys": "refused", "used": "kept", "heads": "left"}
    told = {kind: {row["id"]: row["fate"] for row in rows if row["kind"] == kind} for kind in Kind}
    assert told[Kind.PORT] == told[Kind.ADDRESS] == fates
    assert main.call(["leftovers", "--remove", "--yes"]) == 0
    assert set(cloud.ports) == set(cloud.addresses) == {"another", "nobodys", "used"}
    capsys.readouterr()
    assert main.call(["leftovers", "another", "nobodys", "--remove", "--yes"]) == 1
    assert "another pool's of this name" in capsys.readouterr().err
    assert set(cloud.ports) == set(cloud.addresses) == {"another", "nobodys", "used"}


def test_a_service_that_is_down_is_an_error(harness: OpenStackHarness) -> None:
    with (
        harness.front.trouble(Trouble(r"GET .*/volumes/detail", Reply(503, "down"))),
        pytest.raises(CloudUnavailable),
    ):
        harness.driver().leavings.of(Kind.VOLUME)
