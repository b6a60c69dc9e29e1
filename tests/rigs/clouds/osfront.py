"""What stands before a cloud's services in tests: it notes every call, and can refuse, break or mute them.

Behind it are either the services that `fakecloud` plays, or real ones.
"""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import requests


@dataclass(frozen=True)
class Call:
    method: str
    path: str
    query: dict[str, list[str]] = field(default_factory=dict)
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Reply:
    status: int = 200
    body: Any = None  # JSON, or text as it is
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Trouble:
    """The next `times` calls that fit (all, where None) get this reply instead of the cloud's.

    `after`: the cloud does what it is asked all the same; `lose`: the connection breaks without an answer;
    `delay`: seconds before anything is answered.
    """

    calls: str  # of "METHOD /path", a regular expression
    reply: Reply = field(default_factory=lambda: Reply(500))
    times: int | None = None
    after: bool = False
    lose: bool = False
    delay: float = 0.0


Backend = Callable[[Call], Reply]


class Front:
    """An HTTP server on loopback before a backend."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.log: list[Call] = []
        self.troubles: list[Trouble] = []
        self.odd: set[str] = set()  # servers that are shown with addresses that are none
        self._lock = threading.Lock()
        front = self

        class Handler(_Handler):
            def answer(self, call: Call) -> Reply | None:
                return front.answer(call)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, call: Call) -> Reply | None:
        """The reply; None breaks the connection."""
        with self._lock:
            self.log.append(call)
            trouble = next((one for one in self.troubles if re.search(one.calls, str(call))), None)
            if trouble is not None and trouble.times is not None:
                trouble.times -= 1
                if trouble.times <= 0:
                    self.troubles.remove(trouble)
        if trouble is None or trouble.after:
            reply = self._with_odd(self.backend(call))
            if trouble is None:
                return reply
        time.sleep(trouble.delay)
        return None if trouble.lose else trouble.reply

    def _with_odd(self, reply: Reply) -> Reply:
        if not self.odd or not isinstance(reply.body, dict):
            return reply
        body = deepcopy(reply.body)  # what the cloud itself has stays as it is
        for server in (*(body.get("servers") or ()), body.get("server") or {}):
            if server.get("id") in self.odd:
                server["addresses"] = {"net": ["none"]}
        return replace(reply, body=body)

    def calls(self, pattern: str = "") -> list[Call]:
        with self._lock:
            return [call for call in self.log if re.search(pattern, str(call))]

    @contextmanager
    def trouble(self, trouble: Trouble) -> Iterator[None]:
        self.troubles.append(trouble)
        try:
            yield
        finally:
            if trouble in self.troubles:
                self.troubles.remove(trouble)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def answer(self, call: Call) -> Reply | None:
        raise NotImplementedError

    def _serve(self) -> None:
        parts = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(size)
        call = Call(
            self.command,
            parts.path,
            parse_qs(parts.query),
            _content(raw, self.headers.get("Content-Type", "")),
            dict(self.headers.items()),
        )
        reply = self.answer(call)
        if reply is None:
            self.close_connection = True
            return
        body = _bytes(reply.body)
        self.send_response(reply.status)
        for name, value in reply.headers.items():
            self.send_header(name, value)
        if "Content-Type" not in reply.headers:
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PUT = do_DELETE = _serve  # noqa: N815

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass


def _content(raw: bytes, kind: str) -> Any:
    """A call's body: JSON, or a file as it is."""
    if "octet-stream" in kind:
        return raw
    return json.loads(raw) if raw else None


def _bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    plain = body if isinstance(body, str) else json.dumps(body)
    return b"" if body is None else plain.encode()


def forwarded_to(address: str) -> Backend:
    """The backend that asks a real service; `address` is what stands before a call's path."""

    def ask(call: Call) -> Reply:
        passed = {name: value for name, value in call.headers.items() if name.lower() not in _OF_THIS_HOP}
        got = requests.request(
            call.method,
            address + call.path,
            params=call.query,
            json=call.body,
            headers=passed,
            timeout=60,
            allow_redirects=False,
        )
        return Reply(got.status_code, got.text, {n: v for n, v in got.headers.items() if n in _KEPT})

    return ask


_OF_THIS_HOP = ("host", "connection", "content-length", "accept-encoding", "content-type")
_KEPT = ("Retry-After", "OpenStack-API-Version", "X-OpenStack-Nova-API-Version", "Location")
