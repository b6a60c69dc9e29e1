"""A client of the local cloud's API, over its unix socket or over HTTP."""

import base64
import hashlib
import http.client
import json
import os
import socket
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import quote, urlsplit

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

IMAGE_FILE, ABOUT, CHECKSUM = "image-file", "X-Updraft-Image", "X-Updraft-Checksum"
SPARED = "X-Updraft-Spared"
_PART = 1 << 20
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
    """One user of one local cloud. Every method raises only CloudErrors.

    The calls of one that is `spared` suffer none of the faults that are in force, where it is the
    administrator's: who makes the faults has to see and to mend.
    """

    def __init__(self, endpoint: str, token: str, *, timeout: float = 30.0, spared: bool = False) -> None:
        self._endpoint = endpoint
        self._token = token
        self._timeout = timeout
        self._own = {SPARED: "1"} if spared else {}
        scheme = endpoint.partition(":")[0]
        if scheme not in ("unix", "http"):
            raise UsageError(f"The local cloud's endpoint {endpoint!r} must begin with unix: or http:.")

    def run(self, *, user_data: bytes = b"", **order: Any) -> list[dict[str, Any]]:
        """Launch machines; see `cloud.Order` for what an order has."""
        body = {**order, "user_data": base64.b64encode(user_data).decode()}
        return list(self._call("run", body)["machines"])

    def machines(
        self, tags: Mapping[str, str] | None = None, ids: Sequence[str] | None = None
    ) -> list[dict[str, Any]]:
        """All machines with these tags, all pages; with `ids` those of them that have one of these."""
        asked = {"tags": dict(tags or {}), **({} if ids is None else {"ids": list(ids)})}
        found: list[dict[str, Any]] = []
        following = ""
        while True:
            page = self._call("list", {**asked, "next": following})
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

    def images(self) -> list[dict[str, Any]]:
        """The images, those that can't be launched yet included."""
        return list(self._call("images", {})["images"])

    def make_image(self, machine: str, name: str, tags: Mapping[str, str]) -> str:
        """Begin to make an image of a running machine; its id."""
        return str(self._call("make-image", {"machine": machine, "name": name, "tags": dict(tags)})["id"])

    def delete_image(self, image: str) -> None:
        """Forget an image; one that isn't there is success."""
        self._call("delete-image", {"id": image})

    def put_image(self, name: str, tags: Mapping[str, str], file: BinaryIO, size: int, checksum: str) -> str:
        """An image of the tar file of a root file system; its id."""
        said = {"name": name, "tags": dict(tags), "checksum": checksum}
        about = base64.b64encode(json.dumps(said).encode()).decode()
        headers = {ABOUT: about, "Content-Length": str(size), "Content-Type": "application/x-tar"}
        with self._asked("PUT", IMAGE_FILE, file, headers) as response:
            return str(_answer(IMAGE_FILE, response)["id"])

    def get_image(self, image: str, file: BinaryIO) -> None:
        """Write an image's tar file; CloudUnavailable where it doesn't arrive as it was sent."""
        with self._asked("GET", f"{IMAGE_FILE}/{quote(image, safe='')}", None, {}) as response:
            if response.status != 200:
                _answer(IMAGE_FILE, response)
            digest = hashlib.sha256()
            while part := response.read(_PART):
                digest.update(part)
                file.write(part)
            if response.headers.get(CHECKSUM) != f"sha256:{digest.hexdigest()}":
                raise OSError("the file isn't whole")

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

    def notice(self, *ids: str, seconds: float | None = None) -> None:
        """Give machines a spot notice of so many seconds, None the cloud's own (administrator only)."""
        self._call("notice", {"ids": ids, "seconds": seconds})

    def set_faults(self, faults: Sequence[Fault]) -> None:
        """Replace the cloud's faults by these (administrator only)."""
        self._call("faults", {"faults": [asdict(fault) for fault in faults]})

    def add_faults(self, *faults: Fault) -> None:
        """Have these faults besides (administrator only)."""
        self._call("more-faults", {"faults": [asdict(fault) for fault in faults]})

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
        headers = {"Content-Type": "application/json"}
        with self._asked("POST", name, json.dumps(body).encode(), headers) as response:
            return _answer(name, response)

    @contextmanager
    def _asked(
        self, method: str, name: str, body: bytes | BinaryIO | None, headers: Mapping[str, str]
    ) -> Iterator[http.client.HTTPResponse]:
        """The cloud's answer, to be read; whatever goes wrong meanwhile is CloudUnavailable."""
        connection = self._connection()
        sent = {"Authorization": f"Bearer {self._token}", **self._own, **headers}
        try:
            # A cloud that refuses a call may not wait for the whole of it: its answer is there all the same.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.request(method, f"/v1/{name}", body, sent)
            yield connection.getresponse()
        except (OSError, http.client.HTTPException, ValueError) as error:
            what = str(error) or type(error).__name__
            raise CloudUnavailable(
                f"The local cloud at {self._endpoint} did not answer {name}: {what}."
            ) from error
        finally:
            connection.close()


def _answer(name: str, response: http.client.HTTPResponse) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(response.read())
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
