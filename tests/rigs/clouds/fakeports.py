"""The ports and floating addresses of the project in memory, as Neutron has them.

A description is kept as it was sent, up to 255 characters, and found by the whole of it; several values of
one filter are alternatives. Neutron removes what a machine uses without a word: it is asked to, so it does.
"""

import time
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tests.rigs.clouds.fakegroups import PROJECT, refusal
from tests.rigs.clouds.osfront import Call, Reply

LONGEST = 255
BY_MAC = {"slaac", "dhcpv6-stateless"}
NO_FILTERS = ("fields", "limit", "marker")


class FakePorts:
    told: dict[str, Any]
    ports: dict[str, dict[str, Any]]
    addresses: dict[str, dict[str, Any]]
    clock: Callable[[], float]
    most_ports = 1000

    def port_list(self, call: Call) -> Reply:
        return listed(call, "ports", self.ports)

    def port_show(self, _call: Call, port: str) -> Reply:
        found = self.ports.get(port)
        return Reply(200, {"port": found}) if found else missing("Port", port)

    def port_make(self, call: Call) -> Reply:
        """Several are given their addresses before their MACs, which those of some subnets are made of."""
        asked = call.body.get("ports") or [call.body["port"]]
        if any(len(one.get("description", "")) > LONGEST for one in asked):
            return too_long()
        if "ports" in call.body and any(self._by_mac(one["network_id"]) for one in asked):
            return refusal(500, "HTTPInternalServerError", "Request Failed: internal server error")
        if len(self.ports) + len(asked) > self.most_ports:
            return refusal(409, "OverQuota", "Quota exceeded for resources: ['port'].")
        made = [self.as_port({"id": str(uuid4()), **one}) for one in asked]
        self.ports |= {one["id"]: one for one in made}
        return Reply(201, {"ports": made} if "ports" in call.body else {"port": made[0]})

    def port_delete(self, _call: Call, port: str) -> Reply:
        if self.ports.pop(port, None) is None:
            return missing("Port", port)
        for one in self.addresses.values():
            if one.get("port_id") == port:
                one["port_id"] = None
        return Reply(204)

    def address_list(self, call: Call) -> Reply:
        return listed(call, "floatingips", self.addresses)

    def address_show(self, _call: Call, one: str) -> Reply:
        found = self.addresses.get(one)
        return Reply(200, {"floatingip": found}) if found else missing("Floating IP", one)

    def address_make(self, call: Call) -> Reply:
        asked = call.body["floatingip"]
        if len(asked.get("description", "")) > LONGEST:
            return too_long()
        most = self.told["quota-details"]["quota"]["floatingip"]["limit"]
        if len(self.addresses) >= most:
            return refusal(409, "OverQuota", "Quota exceeded")
        if any(one.get("port_id") == asked["port_id"] for one in self.addresses.values()):
            return refusal(409, "FloatingIPPortAlreadyAssociated", "Cannot associate floating IP")
        made = self.as_address({"id": str(uuid4()), **asked})
        self.addresses[made["id"]] = made
        return Reply(201, {"floatingip": made})

    def address_delete(self, _call: Call, one: str) -> Reply:
        return Reply(204) if self.addresses.pop(one, None) else missing("Floating IP", one)

    # ------------------------------------------------------------------------------------------- inside

    def _by_mac(self, network: str) -> bool:
        return any(
            one["network_id"] == network and {one["ipv6_ra_mode"], one["ipv6_address_mode"]} & BY_MAC
            for one in self.told["subnets"]["subnets"]
        )

    def as_port(self, known: dict[str, Any]) -> dict[str, Any]:
        """With what Neutron adds."""
        return {"device_id": "", "device_owner": "", "name": "", "fixed_ips": [], **self._plain(), **known}

    def as_address(self, known: dict[str, Any]) -> dict[str, Any]:
        """With what Neutron adds."""
        return {"port_id": None, "floating_ip_address": "203.0.113.7", **self._plain(), **known}

    def _plain(self) -> dict[str, Any]:
        made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.clock()))
        return {"description": "", "project_id": PROJECT, "created_at": made, "updated_at": made}


def listed(call: Call, key: str, there: dict[str, dict[str, Any]]) -> Reply:
    """Those that fit, by their ids; a page, and the link to the next, only where a limit is asked for."""
    filters = {name: values for name, values in call.query.items() if name not in NO_FILTERS}
    found = [there[one] for one in sorted(there) if all(there[one].get(k) in v for k, v in filters.items())]
    marker = call.query.get("marker", [""])[0]
    at = next((n + 1 for n, one in enumerate(found) if one["id"] == marker), 0)
    size = int(call.query.get("limit", [len(found) or 1])[0])
    page, fields = found[at : at + size], call.query.get("fields")
    shown = [{k: v for k, v in one.items() if k in fields} if fields else one for one in page]
    link = {f"{key}_links": [{"rel": "next", "href": "http://10.0.0.1:9696/nobody-can-reach-this"}]}
    return Reply(200, {key: shown, **(link if at + size < len(found) else {})})


def missing(what: str, one: str) -> Reply:
    return refusal(404, f"{what.replace(' ', '')}NotFound", f"{what} {one} could not be found.")


def too_long() -> Reply:
    text = f"Invalid input for description. Reason: '…' exceeds maximum length of {LONGEST}."
    return refusal(400, "HTTPBadRequest", text)
