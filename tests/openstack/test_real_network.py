"""Security groups of a real Neutron come back as they were asked for, and go."""

import contextlib
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from tests.clouds.network_conformance import KINDS
from tests.rigs.clouds.harness import request
from tests.rigs.clouds.realcloud import Project, RealHarness
from tests.rigs.clouds.realneutron import Neutron
from updraft.cli import main
from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.networking import TAG_ROLE, Group, Networking, Rule, group_source
from updraft.clouds.openstack.reading import described_of
from updraft.clouds.rules import Parties, change, difference, for_head, for_workers
from updraft.core.leftovers import Kind
from updraft.core.model import CloudState
from updraft.errors import BadRequest, CloudError
from updraft.ledger.identity import Host, kept

pytestmark = pytest.mark.openstack
OWN = "0123456789ab"


@pytest.fixture
def groups(harness: RealHarness) -> Networking:
    return harness.driver("conformance").networking


@pytest.fixture
def made(harness: RealHarness, groups: Networking) -> Iterator[dict[str, Group]]:
    """A head's group and its workers', of this run alone."""
    pool = harness.pool("conformance")
    found = {
        role: groups.make(f"{pool}-{role}", {TAG_POOL: pool, TAG_ROLE: role}) for role in ("head", "worker")
    }
    yield found
    for one in found.values():
        shown = groups.show(one.id)
        groups.revoke(one.id, [] if shown is None else [r for r in shown.rules if r.direction == "in"])
    for one in found.values():
        groups.remove(one.id)
        groups.remove(one.id)
        assert groups.show(one.id) is None


def test_rules_of_every_kind_come_back_as_they_were(groups: Networking, made: dict[str, Group]) -> None:
    head = made["head"]
    assert {rule.direction for rule in head.rules} == {"out"}
    workers = group_source(made["worker"].id)
    asked = {*KINDS, *(Rule("in", "tcp", (9618, 9618), workers, family) for family in (4, 6))}
    groups.allow(head.id, asked)
    groups.allow(head.id, asked)
    found = groups.show(head.name)
    assert found is not None
    assert found.rules - head.rules == asked
    assert found.tags == head.tags
    groups.revoke(head.id, asked)
    assert groups.show(head.id) == head


def test_what_is_missing_is_added_and_what_is_too_open_closed(
    groups: Networking, made: dict[str, Group]
) -> None:
    parties = Parties(
        ("203.0.113.0/24",), (group_source(made["worker"].id),), (group_source(made["head"].id),), ipv6=True
    )
    groups.allow(made["head"].id, [Rule("in", "tcp", (1, 65000), "0.0.0.0/0")])
    for role, wanted in (("head", for_head(parties)), ("worker", for_workers(parties, entered=True))):
        seen = groups.show(made[role].id)
        assert seen is not None
        what = change(wanted, seen.rules, close=True)
        groups.allow(seen.id, what.add)
        groups.revoke(seen.id, what.remove)
        after = groups.show(seen.id)
        assert after is not None
        assert not difference(wanted, after.rules)


@pytest.fixture
def neutron(project: Project) -> Neutron:
    return Neutron(project)


@pytest.fixture
def dual(neutron: Neutron, harness: RealHarness) -> Iterator[str]:
    """A network of IPv4 and IPv6, of this run alone; machines that use it are gone when it goes."""
    name = harness.pool("dual")
    with neutron.network(name, "10.66.0.0/24", "2001:db8:66::/64"):
        yield name
        harness.wait(harness.gone, "the machines of the network are gone")


@pytest.mark.parametrize("mode", ["slaac", "dhcpv6-stateful"])
def test_ports_of_a_network_with_ipv6_have_both_kinds_of_address_and_are_the_pools(
    neutron: Neutron, harness: RealHarness, mode: str
) -> None:
    name = harness.pool(mode)
    harness.settings |= {"networks": name, "port": {}}
    harness.settings.pop("floating_network", None)
    with neutron.network(name, "10.67.0.0/24", "2001:db8:67::/64", mode=mode):
        driver = harness.driver("conformance", OWN)
        assert driver.networking.ipv6()
        made = driver.launch(request(harness, 2))
        ports = neutron.of_pool("ports", harness.pool("conformance"))
        told = [sorted(ip_address(one["ip_address"]).version for one in port["fixed_ips"]) for port in ports]
        assert told == [[4, 6], [4, 6]]
        assert {one.identity for one in driver.leavings.of(Kind.PORT)} == {OWN}
        # The port of a machine that ends before Nova has taken it up is known as its own later only.
        harness.wait(
            lambda: {one.state for one in driver.machines()} == {CloudState.RUNNING}, "both of them run"
        )
        driver.terminate([one.id for one in made])
        harness.wait(
            lambda: not driver.machines() and not driver.leavings.of(Kind.PORT), "nothing is left of it"
        )


def test_groups_for_a_network_with_ipv6_are_made_by_neutron_as_the_pool_needs_them(
    neutron: Neutron,
    harness: RealHarness,
    dual: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    pool, file = harness.pool("conformance"), tmp_path / "updraft.toml"
    file.write_text(
        f'[pool]\nname = "{pool}"\nstate_dir = "state"\n[network]\nadmins = ["192.0.2.0/24"]\n'
        f'[clouds.lab]\ndriver = "openstack"\nos_cloud = "project"\nnetworks = "{dual}"\n'
        f'[classes.default]\nimage = "{harness.image}"\n'
    )
    monkeypatch.setenv("UPDRAFT_CONFIG", str(file))
    identity = kept(tmp_path / "state", Host()).pool
    made = {role: f"{pool}-{role}" for role in ("head", "worker")}
    try:
        roles = ("--role", "head", "--role", "worker")
        assert main.call(["network", "ensure", "lab", *roles, "--yes"]) == 0, capsys.readouterr().err
        raw = {role: neutron.listed("security-groups", name=name)[0] for role, name in made.items()}
        ids = {role: one["id"] for role, one in raw.items()}
        for role, one in raw.items():
            assert described_of(one) == {TAG_POOL: pool, TAG_IDENTITY: identity, TAG_ROLE: role}
        both = [
            ("ingress", "IPv4", "icmp", 3, 4, "0.0.0.0/0"),
            ("ingress", "IPv6", "ipv6-icmp", 2, 0, "::/0"),
            ("egress", "IPv4", None, None, None, None),
            ("egress", "IPv6", None, None, None, None),
        ]
        pool_port = {
            role: [("ingress", family, "tcp", 9618, 9618, ids[other]) for family in ("IPv4", "IPv6")]
            for role, other in (("head", "worker"), ("worker", "head"))
        }
        login = ("ingress", "IPv4", "tcp", 22, 22, "192.0.2.0/24")
        assert rules_of(raw["worker"]) == sorted([*both, *pool_port["worker"]], key=str)
        assert rules_of(raw["head"]) == sorted([*both, *pool_port["head"], login], key=str)
        capsys.readouterr()
        # Nothing is missing; that one is told what to write into the configuration is no difference.
        assert main.call(["network", "ensure", "lab", *roles, "--yes"]) == 0
        assert "nothing to add" in capsys.readouterr().out
    finally:
        found = [neutron.listed("security-groups", name=name) for name in made.values()]
        some = [one for each in found for one in each]
        for one in some:
            for rule in one["security_group_rules"]:
                neutron.gone("security-group-rules", rule["id"])
        for one in some:
            neutron.gone("security-groups", one["id"])


def rules_of(group: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """The rules as Neutron tells them."""
    fields = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max")
    found = [
        (*(one[field] for field in fields), one["remote_group_id"] or one["remote_ip_prefix"])
        for one in group["security_group_rules"]
    ]
    return sorted(found, key=str)


def test_a_group_that_is_not_there(groups: Networking) -> None:
    assert groups.show("nothing-of-this-name") is None
    with contextlib.suppress(CloudError):  # whatever it says, it is one of the house's errors
        groups.revoke("nothing-of-this-name", KINDS)
    with pytest.raises(BadRequest):
        groups.allow("00000000-0000-4000-8000-000000000000", KINDS[:1])
