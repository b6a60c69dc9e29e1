"""The cloud's API: JSON over HTTP, on a unix socket for the host and on the bridge for machines.

Every call is `POST /v1/CALL` with a JSON object and a bearer token. A refusal is a JSON object with `code`,
`message` and, where there is one, `retry_after`.
"""

import base64
import binascii
import hmac
import json
import os
import shutil
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from updraft.clouds.local.client import ABOUT, CHECKSUM, IMAGE_FILE, SPARED
from updraft.clouds.local.config import API_PORT, Quotas
from updraft.clouds.local.faults import Fault, FaultKind, What
from updraft.clouds.local.service.cloud import Cloud
from updraft.clouds.local.service.instance import Order
from updraft.clouds.local.service.refusals import RefusedError

_STATUS = {
    "auth-failed": 401,
    "bad-request": 400,
    "forbidden": 403,
    "internal-error": 500,
    "no-capacity": 503,
    "no-such-call": 404,
    "quota-exceeded": 403,
    "throttled": 429,
}
_BODY_LIMIT = 4 * 1024 * 1024
_PART = 64 * 1024
Call = Callable[[Cloud, dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Tokens:
    """The API's two credentials: `admin` may do everything, `controller` what a cloud's user may."""

    admin: str
    controller: str


def _run(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
    order = Order(**{**body, "user_data": base64.b64decode(body.get("user_data", ""), validate=True)})
    return {"machines": cloud.run(order)}


def _list(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
    ids = body.get("ids")
    only = None if ids is None else frozenset(ids)
    machines, following = cloud.page(body.get("tags", {}), body.get("next", ""), only)
    return {"machines": machines, "next": following}


def _forget(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
    cloud.shelf.delete(body["id"])
    return {}


def _set_faults(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
    cloud.set_faults([Fault.read(fault) for fault in body["faults"]])
    return {}


def _add_faults(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
    cloud.add_faults([Fault.read(fault) for fault in body["faults"]])
    return {}


def _notice(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
    cloud.notice(body["ids"], body.get("seconds"))
    return {}


def _set_quotas(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
    cloud.set_quotas(Quotas(**body))
    return {}


def _done(method: Callable[..., None], *names: str) -> Call:
    def call(cloud: Cloud, body: dict[str, Any]) -> dict[str, Any]:
        method(cloud, *(body[name] for name in names))
        return {}

    return call


_USER_CALLS: Mapping[str, Call] = {
    "run": _run,
    "list": _list,
    "terminate": _done(Cloud.terminate, "ids"),
    "tag": _done(Cloud.tag, "ids", "tags"),
    "offers": lambda cloud, _body: {"offers": cloud.offers()},
    "images": lambda cloud, _body: {"images": cloud.shelf.show()},
    "make-image": lambda cloud, body: {"id": cloud.make_image(body["machine"], body["name"], body["tags"])},
    "delete-image": _forget,
    "quota": lambda cloud, _body: {"quota": cloud.quota()},
    "console": lambda cloud, body: {"console": cloud.console(body["id"])},
}
# Calls that no real cloud offers, or none that updraft makes: for tests and demonstrations on the host.
_ADMIN_CALLS: Mapping[str, Call] = {
    "crash": _done(Cloud.crash, "ids"),
    "notice": _notice,
    "reboot": _done(Cloud.reboot, "ids"),
    "faults": _set_faults,
    "more-faults": _add_faults,
    "quotas": _set_quotas,
}


class ApiServer(ThreadingHTTPServer):
    """The API on the bridge's address."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: Any, cloud: Cloud, tokens: Tokens) -> None:
        super().__init__(address, _Handler)
        self.cloud = cloud
        self.tokens = tokens


class UnixApiServer(ApiServer):
    """The same API on a unix socket that only root can open."""

    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        path = Path(str(self.server_address))  # a path, for this family
        path.unlink(missing_ok=True)
        # A socket's path has at most 107 bytes; by the folder's descriptor any path is short enough.
        folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self.socket.bind(f"/proc/self/fd/{folder}/{path.name}")
        finally:
            os.close(folder)
        path.chmod(0o600)

    def get_request(self) -> tuple[socket.socket, Any]:
        request, _ = self.socket.accept()
        return request, ("host", 0)


def servers(cloud: Cloud, tokens: Tokens, socket_path: Path) -> tuple[ApiServer, ApiServer]:
    """The API on the bridge and on the socket, listening and not yet serving."""
    return ApiServer((cloud.config.gateway, API_PORT), cloud, tokens), UnixApiServer(
        str(socket_path), cloud, tokens
    )


class _Handler(BaseHTTPRequestHandler):
    server: ApiServer
    timeout = 60
    _who = ""

    def do_POST(self) -> None:
        self._answer(lambda calls: self._call(calls, self._body()))

    def do_PUT(self) -> None:
        """`PUT /v1/image-file` with the tar file of an image; its name and tags are JSON in a header."""
        self._answer(lambda _calls: self._upload())

    def do_GET(self) -> None:
        """`GET /v1/image-file/IMAGE`: the image's tar file, with its checksum in a header."""
        self._answer(lambda _calls: self._download())

    def _answer(self, act: Callable[[Mapping[str, Call]], dict[str, Any] | None]) -> None:
        """Do it for whoever may, and send the answer; None has been sent already."""
        self._unread = 0
        try:
            self._unread = self._length()
            answer, status = act(self._authorised()), 200
            if answer is None:
                return
        except _SilenceError:
            self.close_connection = True
            return
        except RefusedError as refusal:
            status = _STATUS.get(refusal.code, 500)
            answer = {"code": refusal.code, "message": refusal.message, "retry_after": refusal.retry_after}
        except (KeyError, TypeError, ValueError, binascii.Error) as error:
            status, answer = 400, {"code": "bad-request", "message": f"the call is malformed: {error!r}"}
        self._read_the_rest()
        data = json.dumps(answer).encode()
        with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked has gone
            self._begin_answer(status, "application/json", len(data))
            self.wfile.write(data)

    def _begin_answer(self, status: int, kind: str, size: int, checksum: str = "") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if checksum:
            self.send_header(CHECKSUM, checksum)
        self.end_headers()

    def _upload(self) -> dict[str, Any]:
        if self.path != f"/v1/{IMAGE_FILE}":
            raise RefusedError("no-such-call", f"nothing can be put to {self.path!r}")
        _suffer(self.server.cloud.faults_before(IMAGE_FILE))
        about = json.loads(base64.b64decode(self.headers.get(ABOUT, ""), validate=True))
        size, self._unread = self._unread, 0
        keep, read = self.server.cloud.shelf.upload, self.rfile.read
        return {"id": keep(about["name"], about["tags"], read, size, about["checksum"])}

    def _download(self) -> None:
        image = unquote(self.path.removeprefix(f"/v1/{IMAGE_FILE}/"))
        _suffer(self.server.cloud.faults_before(IMAGE_FILE))
        with self.server.cloud.shelf.packed(image) as (file, size, checksum):
            self._begin_answer(200, "application/x-tar", size, checksum)
            shutil.copyfileobj(file, self.wfile, _PART)

    def _authorised(self) -> Mapping[str, Call]:
        token = self.headers.get("Authorization", "").removeprefix("Bearer ").encode()
        if hmac.compare_digest(token, self.server.tokens.admin.encode()):
            self._who = "admin"
            return {**_USER_CALLS, **_ADMIN_CALLS}
        if hmac.compare_digest(token, self.server.tokens.controller.encode()):
            self._who = "controller"
            return _USER_CALLS
        raise RefusedError("auth-failed", "the API's credential is missing or wrong")

    def _length(self) -> int:
        length = int(self.headers.get("Content-Length", "0"))
        if length < 0:
            raise ValueError(f"Content-Length: {length}")
        return length

    def _body(self) -> dict[str, Any]:
        if self._unread > _BODY_LIMIT:
            raise RefusedError("bad-request", f"the call is larger than {_BODY_LIMIT} bytes")
        length, self._unread = self._unread, 0
        body = json.loads(self.rfile.read(length) or b"{}")
        if not isinstance(body, dict):
            raise RefusedError("bad-request", "the call is not a JSON object")
        return body

    def _read_the_rest(self) -> None:
        # A connection that is closed over an unread call takes the refusal with it: the caller sees a reset.
        with suppress(OSError):
            left = min(self._unread, 2 * _BODY_LIMIT)
            while left > 0 and (part := self.rfile.read(min(left, _PART))):
                left -= len(part)

    def _call(self, calls: Mapping[str, Call], body: dict[str, Any]) -> dict[str, Any]:
        name = self.path.removeprefix("/v1/")
        if name not in calls:
            known = name in _ADMIN_CALLS
            raise RefusedError(
                "forbidden" if known else "no-such-call", f"{name!r} can't be called with this credential"
            )
        if name in _ADMIN_CALLS:
            return calls[name](self.server.cloud, body)
        return self._suffered(name, calls[name], body)

    def _suffered(self, name: str, call: Call, body: dict[str, Any]) -> dict[str, Any]:
        """The call's answer, with the faults that it suffers; it is written down whatever comes of it."""
        cloud, begun = self.server.cloud, time.time()
        what = What(*(str(body.get(word, "")) for word in What.__slots__)) if name == "run" else None
        spared = self._who == "admin" and SPARED in self.headers
        answer: dict[str, Any] = {}
        code = "internal-error"
        try:
            _suffer([] if spared else cloud.faults_before(name, what))
            answer = call(cloud, body)
            _suffer([] if spared else cloud.faults_after(name, what))
            code = ""
        except RefusedError as refusal:
            code = refusal.code
            raise
        except _SilenceError:
            code = "no-answer"
            raise
        finally:
            made = answer.get("machines", ()) if name == "run" else ()
            cloud.log.call(name, self._who, body, begun, code, made)
        return answer

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  # the base class's name
        """Say nothing: what was asked for is in the answers."""


class _SilenceError(Exception):
    """The caller gets no answer."""


def _suffer(faults: list[Fault]) -> None:
    for fault in faults:
        if fault.kind in (FaultKind.API_SLOW, FaultKind.LATE_ANSWER):
            time.sleep(fault.seconds)
        elif fault.kind is FaultKind.NO_ANSWER:
            time.sleep(fault.seconds)
            raise _SilenceError
        elif fault.kind is FaultKind.LOST_ANSWER:
            raise RefusedError("internal-error", "the answer to this call is lost, on request")
        elif fault.kind is FaultKind.API_DOWN:
            raise RefusedError("internal-error", "the API is down, on request")
        elif fault.kind is FaultKind.AUTH_FAILED:
            raise RefusedError("auth-failed", "the credential is not accepted, on request")
        else:
            raise RefusedError("throttled", "too many calls, on request", fault.seconds or None)
