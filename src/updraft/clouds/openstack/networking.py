"""Security groups of an OpenStack project, as Neutron keeps them. Whose they are is in their descriptions."""

from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import quote

from updraft.clouds.networking import ANY, EVERYWHERE, Family, Group, Rule
from updraft.clouds.openstack.client import COMPUTE, NETWORK, Connection, found_or_none, items
from updraft.clouds.openstack.editing import if_there
from updraft.clouds.openstack.errors import Garbled, Refused
from updraft.clouds.openstack.reading import TAG_FLOATING, Raw, described_of
from updraft.clouds.openstack.selling.places import Places
from updraft.errors import BadRequest

_PROTOCOLS = {"6": "tcp", "17": "udp", "1": "icmp", "58": "icmpv6", "ipv6-icmp": "icmpv6", "0": ANY}
_ASKED = {ANY: None, "icmpv6": "ipv6-icmp"}
_DIRECTIONS: Mapping[str, Any] = {"ingress": "in", "egress": "out"}
_ALL_PORTS = (1, 65535)
_TAKEN = 409


class OpenStackNetworking:
    """Keeps the contract of `updraft.clouds.networking.Networking` for one project."""

    def __init__(self, cloud: str, connection: Connection, places: Places) -> None:
        self._cloud = cloud
        self._connection = connection
        self._places = places

    def show(self, wanted: str) -> Group | None:
        """By id before name; BadRequest where several have the name."""
        with self._connection.translate(f"looking for the security group {wanted}"):
            raw = self._raw(wanted)
        return None if raw is None else _group(raw)

    def make(self, name: str, tags: Mapping[str, str]) -> Group:
        """Neutron gives it the rules by which everything goes out."""
        with self._connection.translate(f"making the security group {name}"):
            if self._raw(name) is not None:
                raise BadRequest(f"cloud {self._cloud}: there is a security group {name} already")
            about = {"name": name, "description": " ".join(f"{key}={text}" for key, text in tags.items())}
            answer = self._connection.act(NETWORK, "POST", "/security-groups", {"security_group": about})
            made = answer.get("security_group")
            if not isinstance(made, dict) or not made.get("id"):
                raise Garbled("the answer names no security group")
        return _group(made)

    def allow(self, group: str, rules: Iterable[Rule]) -> None:
        """One call for all; where one of them stands already, each by itself."""
        halves = dict.fromkeys(half for rule in rules for half in rule.halves)
        some = [{"security_group_id": group, **_asked(one)} for one in halves]
        if some:
            with self._connection.translate(f"opening the security group {group}"):
                self._post(some)

    def revoke(self, group: str, rules: Iterable[Rule]) -> None:
        """Each by the id that it has now."""
        gone = {half for rule in rules for half in rule.halves}
        with self._connection.translate(f"closing the security group {group}"):
            raw = self._raw(group) or {}
            for one in raw.get("security_group_rules") or ():
                if _rule(one) in gone:
                    self._drop(f"/security-group-rules/{one['id']}")

    def remove(self, group: str) -> None:
        """Refused by Neutron while a port uses it."""
        with self._connection.translate(f"removing the security group {group}"):
            self._drop(f"/security-groups/{quote(group, safe='')}")

    def ipv6(self) -> bool:
        """Neutron gives a port an address of each family that its network's subnets have."""
        with self._connection.translate("looking at the machines' subnets"):
            return self._places.ipv6()

    def address(self, machine: str) -> str:
        """A floating address, "" while the one it was launched for is to come; else its own, IPv4 first."""
        with self._connection.translate(f"looking at {machine}"):
            path = f"/servers/{quote(machine, safe='')}"
            answer = found_or_none(lambda: self._connection.get(COMPUTE, path)) or {}
        server = answer.get("server") or {}
        networks = (server.get("addresses") or {}).values()
        told = [one for network in networks for one in network if one.get("addr")]
        floating = [one for one in told if one.get("OS-EXT-IPS:type") == "floating"]
        to_come = (server.get("metadata") or {}).get(TAG_FLOATING)
        found = floating if floating or to_come else told
        best: Mapping[str, Any] = min(found, key=lambda one: int(one.get("version", 4)), default={})
        return str(best.get("addr", ""))

    # ------------------------------------------------------------------------------------------- inside

    def _raw(self, wanted: str) -> Raw | None:
        """Those of the project itself come first: an administrator is shown everybody's."""
        found = items(self._connection.get(NETWORK, "/security-groups"), "security_groups")
        here = [one for one in found if wanted in (one.get("id"), one.get("name"))]
        mine = [one for one in here if one.get("project_id") == self._connection.project] or here
        exact = [one for one in here if one.get("id") == wanted] or mine
        if len(exact) > 1:
            raise BadRequest(
                f"cloud {self._cloud}: there are {len(exact)} security groups {wanted}: give its id"
            )
        return exact[0] if exact else None

    def _drop(self, path: str) -> None:
        if_there(lambda: self._connection.act(NETWORK, "DELETE", path))

    def _post(self, some: list[dict[str, Any]]) -> None:
        try:
            self._connection.act(NETWORK, "POST", "/security-group-rules", {"security_group_rules": some})
        except Refused as error:
            if error.status != _TAKEN or "Exists" not in error.message:
                raise
            for one in some if len(some) > 1 else ():
                self._post([one])


def _group(raw: Raw) -> Group:
    rules = frozenset(_rule(one) for one in raw.get("security_group_rules") or ())
    return Group(str(raw["id"]), str(raw.get("name") or ""), rules, described_of(raw))


def _rule(raw: Raw) -> Rule:
    told = str(raw.get("protocol") or ANY).lower()
    protocol = _PROTOCOLS.get(told, told)
    if protocol == "icmp" and raw.get("ethertype") == "IPv6":
        protocol = "icmpv6"  # rules of old may have it so
    first, last = raw.get("port_range_min"), raw.get("port_range_max")
    ports = None if protocol == ANY or first is None else (int(first), -1 if last is None else int(last))
    direction, source = _DIRECTIONS[str(raw["direction"])], _source(raw)
    return Rule(direction, protocol, None if ports == _ALL_PORTS else ports, source, _family(raw))


def _source(raw: Raw) -> str:
    if raw.get("remote_group_id"):
        return f"group:{raw['remote_group_id']}"
    if raw.get("remote_address_group_id"):
        return f"list:{raw['remote_address_group_id']}"
    return str(raw.get("remote_ip_prefix") or EVERYWHERE[raw.get("ethertype") == "IPv6"])


def _family(raw: Raw) -> Family:
    named = raw.get("remote_group_id") or raw.get("remote_address_group_id")
    return 6 if named and raw.get("ethertype") == "IPv6" else 4


def _asked(rule: Rule) -> dict[str, Any]:
    """The rule, which is for one family, as Neutron takes it."""
    way = next(name for name, direction in _DIRECTIONS.items() if direction == rule.direction)
    kind, _, name = rule.source.partition(":")
    remote = {"group": "remote_group_id", "list": "remote_address_group_id"}.get(kind)
    found: dict[str, Any] = {
        "direction": way,
        "ethertype": f"IPv{rule.families[0]}",
        "protocol": _ASKED.get(rule.protocol, rule.protocol),
        **({remote: name} if remote else {"remote_ip_prefix": rule.source}),
    }
    if rule.ports is not None:
        found["port_range_min"] = rule.ports[0]
        if rule.ports[1] >= 0:
            found["port_range_max"] = rule.ports[1]
    return found
