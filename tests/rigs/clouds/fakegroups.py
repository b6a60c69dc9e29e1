"""The security groups of the project in memory, as Neutron has them."""

from ipaddress import ip_network
from typing import Any
from uuid import uuid4

from tests.rigs.clouds.osfront import Call, Reply

PROJECT = "c038e06f0f9d402f86079e7c74e435ac"
FIELDS = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max")
NUMBERS = {"icmp": "1", "tcp": "6", "udp": "17", "icmpv6": "58", "ipv6-icmp": "58"}
REMOTE = ("remote_ip_prefix", "remote_group_id", "remote_address_group_id")


def refusal(status: int, kind: str, message: str) -> Reply:
    return Reply(status, {"NeutronError": {"type": kind, "message": message, "detail": ""}})


class FakeGroups:
    told: dict[str, Any]

    def group_make(self, call: Call) -> Reply:
        asked = call.body["security_group"]
        made = {
            "id": str(uuid4()),
            "project_id": PROJECT,
            "tenant_id": PROJECT,
            "stateful": True,
            "tags": [],
            **asked,
            "security_group_rules": [],
        }
        self.told["security-groups"]["security_groups"].append(made)
        for family in ("IPv4", "IPv6"):
            self._add(made, {"direction": "egress", "ethertype": family})
        return Reply(201, {"security_group": made})

    def group_delete(self, _call: Call, group: str) -> Reply:
        found = self._group(group)
        if found is None:
            return refusal(404, "SecurityGroupNotFound", f"Security group {group} does not exist")
        self.told["security-groups"]["security_groups"].remove(found)
        return Reply(204)

    def rules_make(self, call: Call) -> Reply:
        """All or none, as Neutron does it."""
        asked = call.body["security_group_rules"]
        for one in asked:
            group = self._group(one["security_group_id"])
            if group is None:
                return refusal(404, "SecurityGroupNotFound", "Security group does not exist")
            refused = _refused(_canonical(one))
            if refused is not None:
                return refused
            same = [r for r in group["security_group_rules"] if _key(r) == _key(one)]
            if same:
                text = f"Security group rule already exists. Rule id is {same[0]['id']}."
                return refusal(409, "SecurityGroupRuleExists", text)
        if len({_key(one) for one in asked}) < len(asked):
            return refusal(409, "DuplicateSecurityGroupRuleInPost", "Duplicate Security Group Rule in POST.")
        made = [self._add(self._group(one["security_group_id"]) or {}, one) for one in asked]
        return Reply(201, {"security_group_rules": made})

    def rule_delete(self, _call: Call, rule: str) -> Reply:
        for group in self.told["security-groups"]["security_groups"]:
            for one in group.get("security_group_rules", ()):
                if one["id"] == rule:
                    group["security_group_rules"].remove(one)
                    return Reply(204)
        return refusal(404, "SecurityGroupRuleNotFound", f"Security group rule {rule} does not exist")

    def _add(self, group: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
        made = {"id": str(uuid4()), "security_group_id": group["id"], **_canonical(asked)}
        group["security_group_rules"].append(made)
        return made

    def _group(self, wanted: str) -> dict[str, Any] | None:
        groups = self.told["security-groups"]["security_groups"]
        return next((one for one in groups if one["id"] == wanted), None)


def _canonical(rule: dict[str, Any]) -> dict[str, Any]:
    """As Neutron keeps it: IPv4 where nothing is said, and ICMP of IPv6 by its own name or number."""
    found = {key: rule.get(key) for key in (*FIELDS, *REMOTE)}
    found["ethertype"] = found["ethertype"] or "IPv4"
    if found["ethertype"] == "IPv6":
        found["protocol"] = {"icmp": "ipv6-icmp", "icmpv6": "ipv6-icmp", "1": "58"}.get(
            found["protocol"], found["protocol"]
        )
    return found


def _key(rule: dict[str, Any]) -> tuple[Any, ...]:
    """By what Neutron knows two rules for the same: a protocol by name or number, everywhere said or not."""
    plain = _canonical(rule)
    plain["protocol"] = NUMBERS.get(plain["protocol"], plain["protocol"])
    if plain["remote_ip_prefix"] in ("0.0.0.0/0", "::/0"):
        plain["remote_ip_prefix"] = None
    return tuple(plain.values())


def _refused(rule: dict[str, Any]) -> Reply | None:
    """What Neutron says to a rule that contradicts itself."""
    family, protocol, prefix = rule["ethertype"], rule["protocol"], rule["remote_ip_prefix"]
    if protocol is None and rule["port_range_min"] is not None:
        return refusal(400, "SecurityGroupProtocolRequiredWithPorts", "Must also specify protocol")
    if prefix and family != f"IPv{ip_network(prefix).version}":
        text = f"Conflicting value ethertype {family} for CIDR {prefix}"
        return refusal(400, "SecurityGroupRuleParameterConflict", text)
    if family == "IPv4" and NUMBERS.get(protocol, protocol) == "58":
        text = f"Invalid ethertype {family} for protocol {protocol}."
        return refusal(400, "SecurityGroupEthertypeConflictWithProtocol", text)
    return None
