"""The metadata service at 169.254.169.254: a machine asks about itself, known by the address it asks from."""

import hashlib
import hmac
import json
import time
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from updraft.clouds.base import TAG_LEASE
from updraft.clouds.local.config import DOMAIN, METADATA_ADDRESS, host_name
from updraft.clouds.local.service.cloud import Cloud
from updraft.clouds.local.service.instance import Machine
from updraft.clouds.local.service.network import mac_of

ROLE_NAME = "updraft-controller"
_TOKEN_HEADER = "X-aws-ec2-metadata-token"  # noqa: S105  # the name of a header
_TTL_HEADER = "X-aws-ec2-metadata-token-ttl-seconds"
_LONGEST = 21600
Leaf = bytes
Tree = dict[str, "Tree | Leaf"]


class MetadataServer(ThreadingHTTPServer):
    """Serves the machines of one cloud. `credential` is what a machine with the controller's role gets."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, cloud: Cloud, credential: str, secret: bytes) -> None:
        super().__init__((METADATA_ADDRESS, 80), _Handler)
        self.cloud = cloud
        self.credential = credential
        self.secret = secret

    def token(self, address: str, until: int) -> str:
        """A session token that only this address can use, until this time."""
        proof = hmac.new(self.secret, f"{address} {until}".encode(), hashlib.sha256).hexdigest()
        return f"{until}-{proof}"

    def valid(self, address: str, token: str) -> bool:
        """True where `token` is this address's and hasn't ended."""
        until, _, _ = token.partition("-")
        if not until.isdigit() or int(until) < time.time():
            return False
        return hmac.compare_digest(self.token(address, int(until)), token)


class _Handler(BaseHTTPRequestHandler):
    server: MetadataServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 20

    def do_PUT(self) -> None:
        ttl = self.headers.get(_TTL_HEADER, "")
        if not self.path.startswith("/latest/api/token"):
            self._answer(404, b"")
        elif not ttl.isdigit() or not 1 <= int(ttl) <= _LONGEST:
            self._answer(400, b"")
        else:
            token = self.server.token(self.client_address[0], int(time.time()) + int(ttl))
            self._answer(200, token.encode(), {_TTL_HEADER: ttl})

    def do_GET(self) -> None:
        machine = self.server.cloud.at(self.client_address[0])
        token = self.headers.get(_TOKEN_HEADER)
        if machine is None:
            self._answer(404, b"")
        elif token is not None and not self.server.valid(self.client_address[0], token):
            self._answer(401, b"")
        elif token is None and (machine.wants_token or "/security-credentials/" in self.path):
            # What could be tricked into fetching an address for somebody can't set a header.
            self._answer(401, b"")
        else:
            self._serve(machine)

    def _serve(self, machine: Machine) -> None:
        parts = [part for part in self.path.split("?")[0].split("/") if part]
        if not parts:
            return self._answer(200, b"latest")
        tree = _tree(machine, self.server.credential)
        node: Tree | Leaf | None = tree
        for part in parts[1:]:  # the first is the version: all are alike
            node = node.get(part) if isinstance(node, dict) else None
        if isinstance(node, dict):
            names = [f"{name}/" if isinstance(value, dict) else name for name, value in node.items()]
            return self._answer(200, "\n".join(names).encode())
        return self._answer(404, b"") if node is None else self._answer(200, node)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if status == 200 else "text/html")
        self.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Say nothing: a boot asks for dozens of paths."""


def _tree(machine: Machine, credential: str) -> Tree:
    order = machine.order
    name = f"{host_name(machine.address)}.{DOMAIN}".encode()
    meta: Tree = {
        "ami-id": order.image.encode(),
        "hostname": name,
        "instance-id": machine.id.encode(),
        "instance-life-cycle": order.market.encode(),
        "instance-type": order.flavor.encode(),
        "local-hostname": name,
        "local-ipv4": machine.address.encode(),
        "mac": mac_of(machine.address).encode(),
        "network": {"interfaces": {"macs": {mac_of(machine.address): _interface(machine.address)}}},
        "placement": {"availability-zone": order.zone.encode(), "region": b"local"},
    }
    tags = dict(machine.tags)
    if (
        TAG_LEASE in tags
    ):  # other clouds show tags where the launch asks for it: a boot reads all that is shown
        meta["tags"] = {"instance": {key: value.encode() for key, value in tags.items()}}
    if machine.notice_at is not None:
        end = datetime.fromtimestamp(machine.notice_at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        meta["spot"] = {"instance-action": json.dumps({"action": "terminate", "time": end}).encode()}
    if order.role == "controller":
        meta["iam"] = {"security-credentials": {ROLE_NAME: _json({"Code": "Success", "Token": credential})}}
    document = {
        "accountId": "000000000000",
        "architecture": "x86_64",
        "availabilityZone": order.zone,
        "imageId": order.image,
        "instanceId": machine.id,
        "instanceType": order.flavor,
        "pendingTime": datetime.fromtimestamp(machine.times["pending"], UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "privateIp": machine.address,
        "region": "local",
    }
    tree: Tree = {"meta-data": meta, "dynamic": {"instance-identity": {"document": _json(document)}}}
    if order.user_data and machine.has_user_data:
        tree["user-data"] = order.user_data
    return tree


def _interface(address: str) -> Tree:
    return {"device-number": b"0", "local-ipv4s": address.encode(), "mac": mac_of(address).encode()}


def _json(value: object) -> bytes:
    return json.dumps(value, indent=1).encode()
