"""A client of the local cloud's API, over its unix socket or over HTTP."""

import base64
import http.client
import json
import os
import socket
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from updraft.clouds.local.config import METADATA_ADDRESS, Quotas
from updraft.clouds.local.faults import Fault
from updraft.errors import (
    AuthFailed,
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
    UsageError,
)

_ERRORS: Mapping[str, type[CloudError]] = {
    "auth-failed": AuthFailed,
    "bad-request": BadRequest,
    "forbidden": AuthFailed,
    "no-capacity": NoCapacity,
    "no-such-call": BadRequest,
    "quota-exceeded": QuotaExceeded,
}


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        # By the folder's descriptor: a socket's own path may have 107 bytes at most.
        folder = os.open(self._path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            self.sock.connect(f"/proc/self/fd/{folder}/{self._path.name}")
        finally:
            os.close(folder)


class Client:
    """One user of one local cloud. Every method raises only CloudErrors."""

    def __init__(self, endpoint: str, token: str, *, timeout: float = 30.0) -> None:
        self._endpoint = endpoint
        self._token = token
        self._timeout = timeout
        scheme = endpoint.partition(":")[0]
        if scheme not in ("unix", "http"):
            raise UsageError(f"The local cloud's endpoint {endpoint!r} must begin with unix: or http:.")

    def run(self, *, user_data: bytes = b"", **order: Any) -> list[dict[str, Any]]:
        """Launch machines; see `cloud.Order` for what an order has."""
        body = {**order, "user_data": base64.b64encode(user_data).decode()}
        return list(self._call("run", body)["machines"])

    def machines(self, tags: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
        """All machines with these tags, all pages."""
        found: list[dict[str, Any]] = []
        following = ""
        while True:
            page = self._call("list", {"tags": dict(tags or {}), "next": following})
            found += page["machines"]
            following = page["next"]
            if not following:
                return found

    def terminate(self, ids: Iterable[str]) -> None:
        """End machines."""
        self._call("terminate", {"ids": list(ids)})

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Write tags; None removes one."""
        self._call("tag", {"ids": list(ids), "tags": dict(tags)})

    def offers(self) -> list[dict[str, Any]]:
        """What is sold."""
        return list(self._call("offers", {})["offers"])

    def images(self) -> list[str]:
        """The names of the images."""
        return list(self._call("images", {})["images"])

    def quota(self) -> dict[str, int | None]:
        """What is left."""
        return dict(self._call("quota", {})["quota"])

    def console(self, machine: str) -> str:
        """The end of a machine's console."""
        return str(self._call("console", {"id": machine})["console"])

    def crash(self, *ids: str) -> None:
        """Pull the plug of machines (administrator only)."""
        self._call("crash", {"ids": ids})

    def reboot(self, *ids: str) -> None:
        """Start machines anew, on their own disks (administrator only)."""
        self._call("reboot", {"ids": ids})

    def notice(self, *ids: str) -> None:
        """Give machines a spot notice (administrator only)."""
        self._call("notice", {"ids": ids})

    def set_faults(self, faults: Sequence[Fault]) -> None:
        """Replace the cloud's faults by these (administrator only)."""
        self._call("faults", {"faults": [asdict(fault) for fault in faults]})

    def set_quotas(self, quotas: Quotas) -> None:
        """Replace the project's quotas (administrator only)."""
        self._call("quotas", asdict(quotas))

    def _connection(self) -> http.client.HTTPConnection:
        scheme, _, rest = self._endpoint.partition(":")
        if scheme == "unix":
            return _UnixConnection(Path(rest), self._timeout)
        parts = urlsplit(self._endpoint)
        return http.client.HTTPConnection(parts.hostname or "", parts.port or 80, timeout=self._timeout)

    def _call(self, name: str, body: Mapping[str, Any]) -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        connection = self._connection()
        try:
            # A cloud that refuses a call may not wait for the whole of it: its answer is there all the same.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request("POST", f"/v1/{name}", json.dumps(body), headers)
            response = connection.getresponse()
            answer: dict[str, Any] = json.loads(response.read())
        except (OSError, http.client.HTTPException, ValueError) as error:
            what = str(error) or type(error).__name__
            raise CloudUnavailable(
                f"The local cloud at {self._endpoint} did not answer {name}: {what}."
            ) from error
        finally:
            connection.close()
        if response.status == 200:
            return answer
        raise _error(name, answer)


def _error(name: str, answer: Mapping[str, Any]) -> CloudError:
    code, message = answer.get("code", ""), f"The local cloud refused {name}: {answer.get('message', '')}."
    if code == "throttled":
        return Throttled(message, answer.get("retry_after"))
    return _ERRORS.get(code, CloudUnavailable)(message)


def role_credential(timeout: float = 5.0) -> str:
    """The credential that the metadata service gives a machine launched with the controller's role.

    Raises AuthFailed where this is no such machine.
    """
    connection = http.client.HTTPConnection(METADATA_ADDRESS, timeout=timeout)
    role = "/latest/meta-data/iam/security-credentials/"
    try:
        token = _fetch(connection, "PUT", "/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
        headers = {"X-aws-ec2-metadata-token": token}
        name = _fetch(connection, "GET", role, headers).splitlines()[0]
        return str(json.loads(_fetch(connection, "GET", role + name, headers))["Token"])
    except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
        raise AuthFailed(
            "There is no credential for the local cloud: name a file in the cloud's `credential_file`, set "
            "UPDRAFT_LOCAL_CLOUD_TOKEN, or run on a machine that was launched with the controller's role."
        ) from error
    finally:
        connection.close()


def _fetch(connection: http.client.HTTPConnection, method: str, path: str, headers: Mapping[str, str]) -> str:
    connection.request(method, path, headers=dict(headers))
    response = connection.getresponse()
    text = response.read().decode()
    if response.status != 200:
        raise LookupError(f"{path}: {response.status}")
    return text
