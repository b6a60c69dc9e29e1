"""The security groups of the project in memory, as Neutron has them."""

from typing import Any
from uuid import uuid4

from tests.rigs.clouds.osfront import Call, Reply

PROJECT = "c038e06f0f9d402f86079e7c74e435ac"
FIELDS = ("direction", "ethertype", "protocol", "port_range_min", "port_range_max")
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
            same = [r for r in group["security_group_rules"] if _plain(r) == _plain(one)]
            if same:
                text = f"Security group rule already exists. Rule id is {same[0]['id']}."
                return refusal(409, "SecurityGroupRuleExists", text)
            if one["protocol"] is None and one.get("port_range_min") is not None:
                return refusal(400, "SecurityGroupProtocolRequiredWithPorts", "Must also specify protocol")
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
        made = {"id": str(uuid4()), "security_group_id": group["id"], **_plain(asked)}
        group["security_group_rules"].append(made)
        return made

    def _group(self, wanted: str) -> dict[str, Any] | None:
        groups = self.told["security-groups"]["security_groups"]
        return next((one for one in groups if one["id"] == wanted), None)


def _plain(rule: dict[str, Any]) -> dict[str, Any]:
    return {key: rule.get(key) for key in (*FIELDS, *REMOTE)}
