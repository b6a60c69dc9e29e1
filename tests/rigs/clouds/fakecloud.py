"""An OpenStack project in memory, with the manners of a real one, for quick tests.

Its answers are those that real services gave, in data/; what was seen of them and is played here: a create
call's answer names the first server only, metadata can't be changed while a server is built, a quota makes
fewer of several servers, links of pages name an address that nobody can reach, an ended server is listed for
a while.
"""

import itertools
import json
import re
import time
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

from tests.rigs.clouds.fakegroups import FakeGroups
from tests.rigs.clouds.fakeimages import FakeImages
from tests.rigs.clouds.fakeports import FakePorts
from tests.rigs.clouds.osfront import Call, Reply

DATA = Path(__file__).parent / "data"
PROJECT = "c038e06f0f9d402f86079e7c74e435ac"
IMAGE = "00000000-0000-4000-8000-000000000002"
PRIVATE, PUBLIC = "e14605cd-20b8-4d3e-9ef1-e4a9f363d13e", "e9b6a735-4bef-4b8e-83f3-1fbbdaa03685"
ADDRESS = "10.20.0.5"
CHANGEABLE = ("active", "stopped", "paused", "suspended")
NO_HOST = "No valid host was found. There are not enough hosts available."


def data(name: str) -> Any:
    return json.loads((DATA / f"{name}.json").read_text())


def fault(kind: str, code: int, message: str) -> Reply:
    return Reply(code, {kind: {"code": code, "message": message}})


class FakeCloud(FakeImages, FakeGroups, FakePorts):
    def __init__(self, url: str = "", clock: Callable[[], float] = time.time) -> None:
        self.url = url
        self.clock = clock
        self.version = "2.93"
        self.boot_takes = 0.03
        self.ends_in = 0.03
        self.capacity: int | None = None
        self.fail_building = ""
        self.taken_up = False  # whether servers that are built are in a cell, and wait for one, at once
        self.silent: set[str] = set()  # servers in a cell that is down
        self.told = {name: data(name) for name in ANSWERS}
        self.servers: dict[str, dict[str, Any]] = {}
        self.inside: dict[str, dict[str, Any]] = {}  # what a server's description doesn't show
        self.ports: dict[str, dict[str, Any]] = {}
        self.addresses: dict[str, dict[str, Any]] = {}
        self.volumes: dict[str, str] = {}
        self.volume_labels: dict[str, dict[str, str]] = {}
        self.files: dict[str, bytes] = {}
        self.members: dict[str, dict[str, str]] = {}
        self.tokens = itertools.count(1)
        self.passwords = {"not-to-be-seen"}
        self.ends: dict[str, str] = {}  # when credentials end, by what they are, as Keystone writes it

    @property
    def absolute(self) -> dict[str, int]:
        found: dict[str, int] = self.told["limits"]["limits"]["absolute"]
        return found

    # ----------------------------------------------------------------------------------------- services

    def __call__(self, call: Call) -> Reply:
        self._move()
        for pattern, method in ROUTES:
            match = re.fullmatch(pattern, str(call))
            if match:
                if "/auth/" not in call.path and not self._known(call) and match.re.groups >= 0:
                    return self._bare(call) or fault("error", 401, "The request requires authentication.")
                found: Reply = getattr(self, method)(call, *match.groups())
                return found
        return fault("itemNotFound", 404, "The resource could not be found.")

    def _known(self, call: Call) -> bool:
        return any(n.lower() == "x-auth-token" and v.startswith("token-") for n, v in call.headers.items())

    def _bare(self, call: Call) -> Reply | None:
        return self.root(call) if re.fullmatch(r"/\w+/(v[\d.]+/?)?", call.path) else None

    def root(self, call: Call, *_: str) -> Reply:
        service = call.path.strip("/").split("/")[0]
        ids = {"compute": "v2.1", "network": "v2.0", "image": "v2.9", "volume": "v3.60", "identity": "v3.14"}
        path = {"image": "v2", "volume": "v3", "identity": "v3"}.get(service, ids[service])
        one: dict[str, Any] = {
            "id": ids[service],
            "status": "CURRENT",
            "links": [{"rel": "self", "href": f"{self.url}/{service}/{path}/"}],
        }
        if service == "compute":
            one |= {"version": self.version, "min_version": "2.1"}
        if call.path.rstrip("/").endswith(path):
            return Reply(200, {"version": one})
        return Reply(200, {"versions": {"values": [one]} if service == "identity" else [one]})

    def token(self, call: Call) -> Reply:
        who = call.body["auth"]["identity"]
        secrets = {who.get("application_credential", {}).get("secret")}
        secrets.add(who.get("password", {}).get("user", {}).get("password"))
        secrets.add(who.get("token", {}).get("id"))
        if not secrets & self.passwords:
            return fault("error", 401, "The request you have made requires authentication.")
        services = {"compute": "/v2.1", "network": "", "image": "", "volumev3": f"/v3/{PROJECT}"}
        catalog = [
            {
                "type": kind,
                "id": kind,
                "name": kind,
                "endpoints": [
                    {
                        "id": f"{kind}-{region}",
                        "interface": "public",
                        "region": region,
                        "region_id": region,
                        "url": f"{self.url}/{kind.removesuffix('v3')}{path}",
                    }
                    for region in ("RegionOne", "RegionTwo")
                ],
            }
            for kind, path in services.items()
        ]
        body = {
            "methods": ["password"],
            "expires_at": "2099-01-01T00:00:00.000000Z",
            "issued_at": "2026-01-01T00:00:00.000000Z",
            "project": {"id": PROJECT, "name": "demo", "domain": {"id": "default", "name": "Default"}},
            "user": {
                "id": "u",
                "name": "demo",
                "domain": {"id": "default", "name": "Default"},
                "password_expires_at": self.ends.get("password"),
            },
            "roles": [{"id": "m", "name": "member"}],
            "catalog": catalog,
        }
        if "application_credential" in who:
            body["methods"] = ["application_credential"]
            body["application_credential"] = {"id": "ac1", "name": "updraft", "restricted": True}
        if "trust" in self.ends:
            body["OS-TRUST:trust"] = {
                "id": "987fe8",
                "impersonation": True,
                "trustor_user": {"id": "u"},
                "trustee_user": {"id": "t"},
            }
        return Reply(201, {"token": body}, {"X-Subject-Token": f"token-{next(self.tokens)}"})

    def application_credential(self, call: Call, user: str, name: str) -> Reply:
        if (user, name) != ("u", "ac1"):
            return fault("error", 404, "Could not find Application Credential")
        told = {"id": name, "name": "updraft", "project_id": PROJECT, "unrestricted": False, "roles": []}
        told |= {"description": None, "expires_at": self.ends.get("application_credential")}
        return Reply(200, {"application_credential": told})

    def trust(self, call: Call, name: str) -> Reply:
        told = {"id": name, "impersonation": True, "expires_at": self.ends.get("trust")}
        return Reply(200, {"trust": told})

    def plain(self, call: Call, *_: str) -> Reply:
        name = next(name for name, path in ANSWERS.items() if call.path.endswith(path))
        if name == "limits":
            there = [one for one in self.servers.values() if one["status"] != "DELETED"]
            flavors = [one["flavor"] for one in there]
            self.absolute["totalInstancesUsed"] = len(there)
            self.absolute["totalCoresUsed"] = sum(one["vcpus"] for one in flavors)
            self.absolute["totalRAMUsed"] = sum(one["ram"] for one in flavors)
        return Reply(200, self.told[name])

    def images(self, call: Call) -> Reply:
        found = self.told["images"]["images"]
        if "name" in call.query:
            found = [one for one in found if one["name"] == call.query["name"][0]]
        return self._page(call, "images", found, lambda last: {"next": f"/v2/images?marker={last}"})

    def _page(self, call: Call, key: str, found: list[Any], link: Any) -> Reply:
        size = int(call.query.get("limit", ["1000"])[0])
        marker = call.query.get("marker", [""])[0]
        at = next((n + 1 for n, one in enumerate(found) if one["id"] == marker), 0)
        page = found[at : at + size]
        more = link(page[-1]["id"]) if at + size < len(found) else {}
        return Reply(200, {key: page, **more})

    # ------------------------------------------------------------------------------------------ servers

    def server_list(self, call: Call) -> Reply:
        labels = set(",".join(call.query.get("tags", [])).split(",")) - {""}
        # With filters or a limit, Nova leaves out what a cell has that is down; it shows the rest as a whole.
        found = [
            one
            for one in self.servers.values()
            if labels <= set(one["tags"]) and one["id"] not in self.silent
        ]
        link = {"rel": "next", "href": "http://10.0.0.1:8774/nobody-can-reach-this"}
        if not self.taken_up:
            return self._page(call, "servers", found, lambda _: {"servers_links": [link]})
        found.reverse()
        size, marker = int(call.query["limit"][0]), call.query.get("marker", [""])[0]
        waiting = [one for one in found if one["status"] == "BUILD"]
        at = next((n + 1 for n, one in enumerate(waiting) if one["id"] == marker), None)
        first = next((n + 1 for n, one in enumerate(found) if one["id"] == marker), 0)
        # As Nova does it: those that wait for a cell, then those that a cell has, which may be the same.
        both = (waiting[at:] if at or not marker else []) + (found if at or not marker else found[first:])
        page = list({one["id"]: one for one in both[:size]}.values())
        return Reply(200, {"servers": page, **({"servers_links": [link]} if len(page) == size else {})})

    def create(self, call: Call) -> Reply:
        wanted = call.body["server"]
        refusal = self._unknown(wanted)
        if refusal:
            return fault("badRequest", 400, refusal)
        flavor = next(one for one in self.told["flavors"]["flavors"] if one["id"] == wanted["flavorRef"])
        left = self.absolute["maxTotalInstances"] - len(self.standing())
        cores = self.absolute["maxTotalCores"] - sum(
            self.servers[one]["flavor"]["vcpus"] for one in self.standing()
        )
        count = min(int(wanted.get("max_count", 1)), left, cores // flavor["vcpus"])
        if count < int(wanted.get("min_count", 1)):
            used = self.absolute["maxTotalInstances"] - left
            return fault(
                "forbidden", 403, f"Quota exceeded for instances: Requested 1, but already used {used}"
            )
        ids = [self.make(wanted, flavor, n, count) for n in range(count)]
        return Reply(202, {"server": {"id": ids[0], "links": [], "adminPass": "not-to-be-seen"}})

    def _unknown(self, wanted: dict[str, Any]) -> str:
        images = {one["id"] for one in self.told["images"]["images"]}
        volumes = [one.get("uuid") for one in wanted.get("block_device_mapping_v2", ())]
        zones = {
            one["zoneName"]
            for one in self.told["zones"]["availabilityZoneInfo"]
            if one["zoneState"]["available"]
        }
        if wanted.get("imageRef", *volumes[:1]) not in images:
            return "Can not find requested image"
        if wanted.get("availability_zone", "nova") not in zones:
            return "The requested availability zone is not available"
        return ""

    def make(self, wanted: dict[str, Any], flavor: dict[str, Any], n: int, count: int) -> str:
        one, now = deepcopy(data("server")), self.clock()
        id_ = str(uuid4())
        one |= {
            "id": id_,
            "name": wanted["name"] if count == 1 else f"{wanted['name']}-{n + 1}",
            "metadata": dict(wanted.get("metadata", {})),
            "tags": list(wanted.get("tags", [])),
            "image": {"id": wanted["imageRef"], "links": []} if "imageRef" in wanted else "",
            "flavor": {"original_name": flavor["name"], **{k: flavor[k] for k in ("vcpus", "ram", "disk")}},
            "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now)),
            "OS-EXT-AZ:availability_zone": wanted.get("availability_zone", "nova"),
            "key_name": wanted.get("key_name"),
        }
        if "block_device_mapping_v2" in wanted:
            volume = str(uuid4())
            self.volumes[volume] = "in-use"
            one["os-extended-volumes:volumes_attached"] = [{"id": volume, "delete_on_termination": True}]
        self.servers[id_] = one
        self.inside[id_] = {"boots": now + self.boot_takes, "ends": None, "wanted": wanted, "ports": []}
        for network in wanted.get("networks", ()):
            self._connect(id_, network)
        if self.fail_building or (self.capacity is not None and len(self.standing()) > self.capacity):
            text = self.fail_building or NO_HOST
            one |= {"status": "ERROR", "OS-EXT-STS:vm_state": "error", "OS-EXT-STS:task_state": None}
            one["fault"] = {"code": 500, "created": one["created"], "message": text}
        return id_

    def _connect(self, server: str, network: dict[str, str]) -> None:
        port = network.get("port") or str(uuid4())
        if port not in self.ports:
            self.ports[port] = self.as_port({"id": port, "network_id": network.get("uuid")})
        first = not self.inside[server]["ports"]
        address = ADDRESS if first else "10.99.0.5"
        self.ports[port] |= {"device_id": server, "fixed_ips": [{"ip_address": address}]}
        self.inside[server]["ports"].append((port, "port" in network))

    def delete(self, _call: Call, id_: str) -> Reply:
        if id_ not in self.servers:
            return fault("itemNotFound", 404, f"Instance {id_} could not be found.")
        self.servers[id_]["OS-EXT-STS:task_state"] = "deleting"
        self.inside[id_]["ends"] = self.inside[id_]["ends"] or self.clock() + self.ends_in
        return Reply(204)

    def show(self, _call: Call, id_: str) -> Reply:
        if id_ not in self.servers:
            return fault("itemNotFound", 404, f"Instance {id_} could not be found.")
        if id_ in self.silent:
            if self.version < "2.69":
                return fault("computeFault", 500, "Unexpected API Error.")
            return Reply(200, {"server": {"id": id_, "status": "UNKNOWN", "links": []}})
        return Reply(200, {"server": self.servers[id_]})

    def metadata(self, call: Call, id_: str) -> Reply:
        refusal = self._fixed(id_)
        if refusal is None:
            self.servers[id_]["metadata"] |= call.body["metadata"]
        return refusal or Reply(200, {"metadata": self.servers[id_]["metadata"]})

    def metadatum(self, _call: Call, id_: str, key: str) -> Reply:
        refusal = self._fixed(id_)
        if refusal is None and self.servers[id_]["metadata"].pop(unquote(key), None) is None:
            return fault("itemNotFound", 404, "Metadata item was not found")
        return refusal or Reply(204)

    def labels(self, _call: Call, id_: str) -> Reply:
        if self.servers[id_]["status"] == "BUILD":  # no part of the cloud has it yet
            return fault("itemNotFound", 404, f"Instance {id_} could not be found.")
        return Reply(200, {"tags": self.servers[id_]["tags"]})

    def label(self, call: Call, id_: str, name: str) -> Reply:
        tags, plain = self.servers[id_]["tags"], unquote(name)
        refusal = self._fixed(id_)
        if refusal is None and call.method == "PUT" and plain not in tags:
            tags.append(plain)
        elif refusal is None and call.method == "DELETE":
            tags.remove(plain)
        return refusal or Reply(204)

    def _fixed(self, id_: str) -> Reply | None:
        if id_ not in self.servers:
            return fault("itemNotFound", 404, f"Instance {id_} could not be found.")
        state = self.servers[id_]["OS-EXT-STS:vm_state"]
        if state not in CHANGEABLE:
            return fault(
                "conflictingRequest",
                409,
                f"Cannot 'update metadata' instance {id_} while it is in vm_state {state}",
            )
        return None

    def action(self, call: Call, id_: str) -> Reply:
        if id_ not in self.servers:
            return fault("itemNotFound", 404, f"Instance {id_} could not be found.")
        if self.servers[id_]["status"] == "BUILD":
            return fault("conflictingRequest", 409, f"Instance {id_} is not ready")
        if "createImage" in call.body:
            return Reply(202, {"image_id": self.snapshot(id_, call.body["createImage"])})
        if "os-stop" in call.body:
            self.servers[id_] |= {"status": "SHUTOFF", "OS-EXT-STS:vm_state": "stopped"}
            return Reply(202)
        return Reply(200, {"output": self.inside[id_].get("console", "cloud-init finished\n")})

    def keypair(self, call: Call) -> Reply:
        name = call.body["keypair"]["name"]
        pairs = self.told["keypairs"]["keypairs"]
        if any(one["keypair"]["name"] == name for one in pairs):
            return fault("conflictingRequest", 409, f"Key pair '{name}' already exists.")
        pairs.append({"keypair": {"name": name}})
        return Reply(201, {"keypair": {"name": name, "private_key": "-----BEGIN KEY-----"}})

    def keypair_delete(self, _call: Call, name: str) -> Reply:
        pairs = self.told["keypairs"]["keypairs"]
        if not any(one["keypair"]["name"] == name for one in pairs):
            return fault("itemNotFound", 404, f"Keypair {name} not found for user")
        pairs[:] = [one for one in pairs if one["keypair"]["name"] != name]
        return Reply(202)

    # ------------------------------------------------------------------------------------------- volumes

    def volume(self, call: Call, one: str) -> Reply:
        if one not in self.volumes:
            return fault("itemNotFound", 404, f"Volume {one} could not be found.")
        if call.method == "DELETE":
            if self._volume(one)["attachments"]:
                return fault("badRequest", 400, "Invalid volume: Volume status must be available or error.")
            del self.volumes[one]
            return Reply(202)
        return Reply(200, {"volume": self._volume(one)})

    def _volume(self, one: str) -> dict[str, Any]:
        """As Cinder shows it: times without a zone, an attachment for each server that has it."""
        holders = [
            id_
            for id_, server in self.servers.items()
            if one in [volume["id"] for volume in server["os-extended-volumes:volumes_attached"]]
        ]
        return {
            "id": one,
            "name": "",
            "status": self.volumes[one],
            "created_at": "2026-01-01T00:00:00.000000",
            "attachments": [{"server_id": id_, "volume_id": one, "device": "/dev/vda"} for id_ in holders],
            "metadata": self.volume_labels.get(one, {}),
        }

    def volume_list(self, call: Call) -> Reply:
        found = [self._volume(one) for one in self.volumes]
        return self._page(call, "volumes", found, lambda _: {"volumes_links": [{"rel": "next", "href": "x"}]})

    def volume_metadata(self, call: Call, one: str) -> Reply:
        if one not in self.volumes:
            return fault("itemNotFound", 404, f"Volume {one} could not be found.")
        self.volume_labels.setdefault(one, {}).update(call.body["metadata"])
        return Reply(200, {"metadata": self.volume_labels[one]})

    def volume_limits(self, _call: Call) -> Reply:
        told = {"maxTotalVolumes": 10, "totalVolumesUsed": 4}
        told |= {"maxTotalVolumeGigabytes": 100, "totalGigabytesUsed": 20}
        return Reply(200, {"limits": {"rate": [], "absolute": told}})

    # ------------------------------------------------------------------------------------------- time

    def standing(self) -> list[str]:
        return [id_ for id_, inner in self.inside.items() if id_ in self.servers and not inner["ends"]]

    def settled(self) -> None:
        """All that is on its way has arrived."""
        for inner in self.inside.values():
            inner["boots"] = 0.0
            inner["ends"] = inner["ends"] and 1.0
        self._move()

    def _move(self) -> None:
        now = self.clock()
        for id_, inner in list(self.inside.items()):
            one = self.servers.get(id_)
            if one is None:
                continue
            if inner["ends"] is not None and inner["ends"] <= now:
                self._end(id_)
            elif one["status"] == "BUILD" and inner["boots"] <= now:
                one |= {"status": "ACTIVE", "OS-EXT-STS:vm_state": "active", "OS-EXT-STS:task_state": None}
                one["addresses"] = {
                    "private": [
                        {"version": 6, "addr": "fd00::5", "OS-EXT-IPS:type": "fixed"},
                        {"version": 4, "addr": ADDRESS, "OS-EXT-IPS:type": "fixed"},
                    ]
                }

    def _end(self, id_: str) -> None:
        for port, given in self.inside[id_]["ports"]:
            if given and port in self.ports:
                self.ports[port]["device_id"] = ""
            else:
                self.ports.pop(port, None)
            for address in self.addresses.values():
                if address.get("port_id") == port and port not in self.ports:
                    address["port_id"] = None
        for volume in self.servers[id_]["os-extended-volumes:volumes_attached"]:
            if self.servers[id_]["status"] == "ERROR":  # as Nova does when it broke half-way
                self.volumes[volume["id"]] = "available"
            else:
                self.volumes.pop(volume["id"], None)
        del self.servers[id_]


ANSWERS = {
    "flavors": "/flavors/detail",
    "zones": "/os-availability-zone",
    "limits": "/v2.1/limits",
    "keypairs": "/os-keypairs",
    "server-groups": "/os-server-groups",
    "networks": "/networks",
    "subnets": "/subnets",
    "security-groups": "/security-groups",
    "quota-details": "/details.json",
    "images": "/v2/images",
}
_ID = r"([^/]+)"
ROUTES: tuple[tuple[str, str], ...] = (
    (r"POST /identity/v3/auth/tokens", "token"),
    (rf"GET /identity/v3/users/{_ID}/application_credentials/{_ID}", "application_credential"),
    (rf"GET /identity/v3/OS-TRUST/trusts/{_ID}", "trust"),
    (r"GET /\w+/(?:v[\d.]+/?)?", "root"),
    (r"GET /compute/v2.1/servers/detail", "server_list"),
    (r"POST /compute/v2.1/servers", "create"),
    (rf"DELETE /compute/v2.1/servers/{_ID}", "delete"),
    (rf"GET /compute/v2.1/servers/{_ID}", "show"),
    (rf"POST /compute/v2.1/servers/{_ID}/metadata", "metadata"),
    (rf"DELETE /compute/v2.1/servers/{_ID}/metadata/{_ID}", "metadatum"),
    (rf"GET /compute/v2.1/servers/{_ID}/tags", "labels"),
    (rf"(?:PUT|DELETE) /compute/v2.1/servers/{_ID}/tags/{_ID}", "label"),
    (rf"POST /compute/v2.1/servers/{_ID}/action", "action"),
    (r"POST /compute/v2.1/os-keypairs", "keypair"),
    (rf"DELETE /compute/v2.1/os-keypairs/{_ID}", "keypair_delete"),
    (r"GET /image/v2/images", "images"),
    (r"POST /image/v2/images", "image_make"),
    (rf"GET /image/v2/images/{_ID}", "image"),
    (rf"DELETE /image/v2/images/{_ID}", "image_delete"),
    (rf"(?:GET|PUT) /image/v2/images/{_ID}/file", "image_file"),
    (rf"(?:GET|POST) /image/v2/images/{_ID}/members", "image_members"),
    (rf"PUT /image/v2/images/{_ID}/members/{_ID}", "image_member"),
    (r"POST /network/v2.0/security-groups", "group_make"),
    (rf"DELETE /network/v2.0/security-groups/{_ID}", "group_delete"),
    (r"POST /network/v2.0/security-group-rules", "rules_make"),
    (rf"DELETE /network/v2.0/security-group-rules/{_ID}", "rule_delete"),
    (r"GET /network/v2.0/ports", "port_list"),
    (r"POST /network/v2.0/ports", "port_make"),
    (rf"GET /network/v2.0/ports/{_ID}", "port_show"),
    (rf"DELETE /network/v2.0/ports/{_ID}", "port_delete"),
    (r"GET /network/v2.0/floatingips", "address_list"),
    (r"POST /network/v2.0/floatingips", "address_make"),
    (rf"GET /network/v2.0/floatingips/{_ID}", "address_show"),
    (rf"DELETE /network/v2.0/floatingips/{_ID}", "address_delete"),
    (rf"GET /volume/v3/{PROJECT}/volumes/detail", "volume_list"),
    (rf"POST /volume/v3/{PROJECT}/volumes/{_ID}/metadata", "volume_metadata"),
    (rf"(?:GET|DELETE) /volume/v3/{PROJECT}/volumes/{_ID}", "volume"),
    (rf"GET /volume/v3/{PROJECT}/limits", "volume_limits"),
    (
        r"GET /(?:compute/v2.1|network/v2.0)/(?:flavors/detail|os-availability-zone|limits|os-keypairs"
        r"|os-server-groups|networks|subnets|security-groups|quotas/\w+/details.json)",
        "plain",
    ),
)
