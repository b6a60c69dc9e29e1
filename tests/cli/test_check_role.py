"""`updraft check` on a machine that holds a role of its cloud."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from updraft.checks.role import RoleFacts, closed_to_others, judge, role_of

ROLES = "/latest/meta-data/iam/security-credentials/"


class Handler(BaseHTTPRequestHandler):
    """A metadata service that wants a session token, and knows one role."""

    said = "updraft-head\n"
    asked: tuple[str, ...] = ()

    def do_PUT(self) -> None:
        self._answer(200, "t0k3n")

    def do_GET(self) -> None:
        right = self.path == ROLES and self.headers.get("X-aws-ec2-metadata-token") == "t0k3n"
        self._answer(200 if right else 401, type(self).said if right else "no")

    def _answer(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_words: object) -> None:
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


def test_the_role_is_asked_of_the_metadata(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert role_of("127.0.0.1", port) == "updraft-head"
    monkeypatch.setattr(Handler, "said", "<html>not here</html>")
    assert role_of("127.0.0.1", port) == ""


def test_no_service_is_no_role(port: int) -> None:
    assert role_of("127.0.0.1", 1) == ""


def test_a_role_that_others_could_use_is_a_warning() -> None:
    [found] = judge(RoleFacts("updraft-head", ("alice", "bob", "carol", "dan"), closed=False))
    assert found.state == "warning"
    assert "alice, bob, carol and others may log in" in found.text
    assert found.remedy
    [found] = judge(RoleFacts("updraft-head", (), closed=False))
    assert (found.state, "any process" in found.text) == ("warning", True)


def test_a_role_that_only_root_can_ask_for_is_well() -> None:
    [found] = judge(RoleFacts("updraft-head", ("alice",), closed=True))
    assert found.state == "ok"
    assert list(judge(RoleFacts("", ("alice",), closed=False))) == []


@pytest.mark.parametrize(
    ("says", "code", "closed"),
    [
        ("RTNETLINK answers: Permission denied", 2, True),
        ("RTNETLINK answers: Network is unreachable", 2, False),
        ("", 0, False),
    ],
)
def test_closed_is_what_the_routing_says(tmp_path: Path, says: str, code: int, closed: bool) -> None:
    tool = tmp_path / "ip"
    tool.write_text(f'#!/bin/sh\necho "{says}" >&2\nexit {code}\n')
    tool.chmod(0o755)
    assert closed_to_others([str(tool)]) is closed
    assert not closed_to_others([str(tmp_path / "none")])
