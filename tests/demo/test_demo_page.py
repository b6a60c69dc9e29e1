"""The page of a demo's pool: a port of this machine leads to it, and a demo goes on where it stays away."""

import http.server
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any, cast
from urllib.request import ProxyHandler, build_opener

import pytest

from updraft.demo import page
from updraft.demo.page import CARRY, ShownPage, carry, listening, show
from updraft.demo.pool import RealPool
from updraft.errors import ProblemFound


class StubPool:
    """A pool whose head says links after so many questions."""

    head = "i-1"
    cloud = None

    def __init__(self, silent: int = 0) -> None:
        self.silent = silent
        self.started: list[tuple[str, ...]] = []

    def on_head(self, *argv: str) -> None:
        self.started.append(argv)

    def updraft(self, *argv: str) -> "subprocess.CompletedProcess[str]":
        assert argv == ("web", "open")
        self.silent -= 1
        if self.silent >= 0:
            return subprocess.CompletedProcess(argv, 1, "", "there is no web.key yet")
        return subprocess.CompletedProcess(argv, 0, "http://127.0.0.1:8642/open?key=abc.def\n", "")


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """What a head's page would be: a server on loopback, at the port that is handed on to."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"page " * 50_000)

        def log_message(self, *_: Any) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setattr(page, "PORT", server.server_address[1])
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


def fetch(port: int) -> bytes:
    with build_opener(ProxyHandler({})).open(f"http://127.0.0.1:{port}/", timeout=60) as answer:
        return bytes(answer.read())


def test_what_comes_in_at_an_open_socket_is_handed_on(served: int) -> None:
    with listening() as made:
        port = made.getsockname()[1]
        assert port != served  # it is taken
        process = carry([sys.executable, "-c", CARRY], made)
    try:
        assert fetch(port) == b"page " * 50_000
        assert fetch(port)  # again
    finally:
        process.kill()
        process.wait()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", port), 5)


def test_a_link_names_the_port_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page.process, "enter_command", lambda *_: ["true"])
    stub = StubPool(silent=2)
    slept: list[float] = []
    shown, link = show(cast(RealPool, stub), clock=lambda: 0.0, sleep=slept.append)
    assert link == f"http://127.0.0.1:{shown.port}/open?key=abc.def"
    assert len(slept) == 2
    assert "updraft web" in stub.started[0][-1]
    shown.carrier.wait(60)


def test_a_page_that_stays_away_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "carry", lambda *_: None)
    monkeypatch.setattr(page.process, "enter_command", lambda *_: ["true"])
    times = iter(range(0, 1000, 10))
    with pytest.raises(ProblemFound, match=r"no web\.key"):
        show(cast(RealPool, StubPool(silent=999)), clock=lambda: float(next(times)), sleep=lambda _: None)


def test_its_address_is_that_of_this_machine() -> None:
    shown = ShownPage(cast(RealPool, StubPool()), 4711, cast("subprocess.Popen[bytes]", None))
    assert shown.address == "http://127.0.0.1:4711/"
