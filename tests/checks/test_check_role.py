"""`check` on a machine with a role in a cloud: who else may use it is said."""

import os
import pwd
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from updraft.checks import role
from updraft.checks.asking import Answer
from updraft.checks.role import Held, held, judge, people, role_of_machine
from updraft.errors import ProblemFound

TOKEN = "a-session"  # noqa: S105


class Metadata(BaseHTTPRequestHandler):
    """Answers as Amazon's service does to those who have a token."""

    role = "pool-head"

    def do_PUT(self) -> None:
        self.say(200, TOKEN)

    def do_GET(self) -> None:
        known = self.headers.get("X-aws-ec2-metadata-token") == TOKEN
        there = self.path == "/latest/meta-data/iam/security-credentials/" and self.role
        self.say(401 if not known else 200 if there else 404, self.role if known and there else "no")

    def say(self, status: int, text: str) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Metadata)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()


def account(name: str, uid: int, shell: str = "/bin/bash") -> pwd.struct_passwd:
    return pwd.struct_passwd((name, "x", uid, uid, "", f"/home/{name}", shell))


def test_a_role_that_others_may_use_is_warned_of() -> None:
    (found,) = judge(Answer(Held("pool-head", ("ada", "grace"))), ("ada", "grace"))
    assert (found.state, found.what) == ("warning", "role")
    assert "role pool-head may be used" in found.text
    assert "ada, grace" in found.text
    assert found.remedy


def test_many_people_are_named_in_part() -> None:
    (found,) = judge(Answer(Held("r", tuple(f"u{n}" for n in range(9)))), ())
    assert "u4, …" in found.text
    assert "u5" not in found.text


def test_a_role_of_a_machine_that_is_roots_alone_is_as_it_should_be() -> None:
    (found,) = judge(Answer(Held("pool-head")), ())
    assert found.state == "ok"
    (closed,) = judge(Answer(Held("pool-head")), ("ada",))
    assert (closed.state, "closed to those who may log in (ada)" in closed.text) == ("ok", True)


@pytest.mark.parametrize("answer", [Answer(Held("")), Answer(error=ProblemFound("no answer"))])
def test_without_a_role_nothing_is_said(answer: Answer) -> None:
    assert list(judge(answer, ("ada",))) == []


def test_people_are_those_with_a_shell() -> None:
    accounts = [
        account("root", 0),
        account("condor", 64, "/bin/bash"),
        account("ada", 1000),
        account("grace", 1001, "/bin/zsh"),
        account("ftp", 1002, "/usr/sbin/nologin"),
        account("backup", 1003, "/bin/false"),
        account("nobody", 65534, "/usr/sbin/nologin"),
    ]
    assert people(accounts) == ("ada", "grace")


def test_the_metadata_service_is_asked_with_a_token(port: int) -> None:
    assert role_of_machine("127.0.0.1", port) == "pool-head"


def test_a_machine_without_a_role(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Metadata, "role", "")
    assert role_of_machine("127.0.0.1", port) == ""


def test_what_the_service_says_is_not_trusted(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Metadata, "role", "\x1b[31m" + "x" * 500)
    found = role_of_machine("127.0.0.1", port)
    assert len(found) <= 80
    assert "\x1b" not in found


def test_no_service_is_no_role(port: int) -> None:
    assert role_of_machine("127.0.0.1", 1) == ""


@pytest.mark.parametrize("reaches", [True, False])
def test_root_tries_it_as_one_of_them(port: int, monkeypatch: pytest.MonkeyPatch, *, reaches: bool) -> None:
    monkeypatch.setattr(role, "people", lambda: ("ada",))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    monkeypatch.setattr("pwd.getpwnam", lambda name: account(name, 1000))
    monkeypatch.setattr(role, "_reaches", lambda *_: reaches)
    assert held("127.0.0.1", port) == Held("pool-head", ("ada",) if reaches else ())


def test_anybody_else_speaks_for_all(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "people", lambda: ("ada",))
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    assert held("127.0.0.1", port) == Held("pool-head", ("ada",))


def test_a_machine_of_roots_alone_is_not_tried(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(role, "people", lambda: ())
    assert held("127.0.0.1", port) == Held("pool-head")


PROHIBITS = "ip rule add pref 60 to 10.9.9.1 prohibit"
DROPS = "nft 'add table ip t; add chain ip t o { type filter hook output priority 0; policy drop; }'"


@pytest.mark.integration
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
@pytest.mark.parametrize(("rule", "reached"), [(DROPS, False), (PROHIBITS, True)])
def test_a_way_by_a_device_that_the_route_does_not_show_is_found(
    tmp_path: Path, rule: str, reached: bool
) -> None:
    """Two namespaces, a service in the other one; without the rule it's nftables that closes it."""
    asked = tmp_path / "asked.py"
    asked.write_text(
        "import pwd\nfrom updraft.checks import role\nprint(role._reaches(pwd.getpwuid(0), '10.9.9.1', 80))\n"
    )
    script = f"""set -e
ip link set lo up
unshare --net sleep 60 </dev/null >/dev/null 2>&1 &
other=$!
trap 'kill $other $server' EXIT
until [ "$(readlink /proc/$other/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do sleep 0.05; done
ip link add eth0 type veth peer name peer0
ip link set peer0 netns $other
nsenter --target $other --net ip addr add 10.9.9.1/24 dev peer0
nsenter --target $other --net ip link set peer0 up
nsenter --target $other --net {sys.executable} -m http.server 80 >/dev/null 2>&1 &
server=$!
until nsenter --target $other --net ss -tln | grep -q :80; do sleep 0.1; done
ip addr add 10.9.9.2/24 dev eth0
ip link set eth0 up
{rule}
{sys.executable} {asked}
"""
    done = subprocess.run(
        ["unshare", "--net", "sh", "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout.split() == [str(reached)], done.stderr


def test_a_connection_is_really_tried(port: int) -> None:
    me = pwd.getpwuid(os.geteuid())
    assert role._reaches(me, "127.0.0.1", port)
    assert not role._reaches(me, "127.0.0.1", 1)
