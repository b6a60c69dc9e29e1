"""The sockets: who may connect, slow clients, too many of them; and the daemon is not slowed down."""

import http.client
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from email.message import Message
from pathlib import Path

import pytest

from tests.rigs import ledgers
from tests.rigs.pages import page_over
from updraft.core.model import Reason
from updraft.errors import UsageError
from updraft.ledger import Ledger
from updraft.web import server
from updraft.web.visitors import known_key, link

SCRIPT = """
import sys, time
from pathlib import Path
from updraft.config.tables.usage import Usage
from updraft.web import server, site, visitors
from updraft.web.pictures import Pictures
folder, path, seconds = Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3])
who = visitors.Visitors(visitors.kept_key(folder), ("root",), 60.0, time.time())
pictures = Pictures(folder / "ledger.sqlite", "demo", Usage())
tcp = server.tcp("127.0.0.1", 0)
served = [(tcp, site.Site(pictures, who).application),
          (server.unix(path, ""), site.Site(pictures, who, "X-Remote-User").application)]
server.serve(served, lambda: print(tcp.getsockname()[1], flush=True), seconds)
pictures.close()
print("over", flush=True)
"""


@contextmanager
def running(folder: Path, seconds: float = 20.0) -> Iterator[tuple[int, Path, subprocess.Popen[str]]]:
    """A page's process over the ledger of this folder: its port and its socket."""
    path = folder / "page.sock"
    words = [sys.executable, "-c", SCRIPT, str(folder), str(path), str(seconds)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline()), path, process
        finally:
            process.terminate()
            process.wait(120)


def over_unix(path: Path, address: str, user: str) -> int:
    with socket.socket(socket.AF_UNIX) as made:
        made.settimeout(120)
        made.connect(str(path))
        made.sendall(_question(address, user))
        return int(made.makefile("rb").readline().split()[1])


def _question(address: str, user: str) -> bytes:
    lines = (f"GET {address} HTTP/1.1", "Host: x", f"X-Remote-User: {user}", "Connection: close", "", "")
    return "\r\n".join(lines).encode()


def ask(port: int, address: str, headers: dict[str, str] | None = None) -> tuple[int, Message]:
    """The status and the headers of an answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=120)) as connection:
        connection.request("GET", address, headers=headers or {})
        answer = connection.getresponse()
        answer.read()
        return answer.status, answer.headers


def ended_by_them(made: socket.socket, within: float) -> bool:
    made.settimeout(within)
    try:
        while made.recv(65536):
            pass
    except ConnectionError:
        return True
    except TimeoutError:
        return False
    return True


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("served")
    ledgers.made(made / "ledger.sqlite", now=time.time())
    return made


def test_each_socket_has_its_own_way_of_saying_who_looks(folder: Path) -> None:
    with running(folder) as (port, path, process):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert ask(port, "/overview", {"X-Remote-User": "root"})[0] == 401
        assert over_unix(path, "/overview", "root") == 200
        assert over_unix(path, "/overview", "u003") == 403
        _, opened = ask(port, f"/open?key={link(known_key(folder), '', time.time())}")
        status, headers = ask(port, "/overview", {"Cookie": opened["set-cookie"].partition(";")[0]})
        assert status == 200
        assert "server" not in headers
        process.terminate()
        assert process.stdout is not None
        assert process.stdout.readline() == "over\n"


def test_a_slow_client_is_ended_and_others_are_served(folder: Path) -> None:
    with running(folder, seconds=2.0) as (port, path, _):
        slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(30)]
        for number, one in enumerate(slow):
            one.sendall(b"GET /overview HTTP/1.1\r\nHost: x\r\n" if number % 2 else b"G")
        stop = threading.Event()
        dripping = threading.Thread(target=drip, args=(slow[0], stop))
        dripping.start()
        assert ask(port, "/overview")[0] == 401
        assert over_unix(path, "/mine", "u003") == 200
        assert all(ended_by_them(one, 90.0) for one in slow)
        stop.set()
        dripping.join()
        for one in slow:
            one.close()


def drip(made: socket.socket, stop: threading.Event) -> None:
    with suppress(OSError):
        while not stop.wait(0.2):
            made.sendall(b"E")


def test_who_does_not_read_the_answer_is_ended(folder: Path) -> None:
    with running(folder, seconds=2.0) as (_, path, _), socket.socket(socket.AF_UNIX) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        made.connect(str(path))
        made.sendall(b"GET /machines.json HTTP/1.1\r\nHost: x\r\nX-Remote-User: root\r\n\r\n" * 8)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            try:
                made.sendall(b"x")
            except OSError:
                return
            threading.Event().wait(0.2)
        pytest.fail("a connection that nobody reads from was left open")


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\r\n" * 2000 + b"\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-Remote-User: a\r\n : root\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ],
)
def test_what_is_no_question_gets_no_page(folder: Path, sent: bytes) -> None:
    with running(folder, seconds=2.0) as (port, _, _):
        with socket.create_connection(("127.0.0.1", port)) as made:
            made.settimeout(20)
            answer = b""
            with suppress(OSError):
                made.sendall(sent)
                while more := made.recv(65536):
                    answer += more
            assert not answer or answer.split()[1][:1] == b"4"
        assert ask(port, "/overview")[0] == 401


def test_looking_does_not_keep_the_daemon_from_writing(tmp_path: Path) -> None:
    path = ledgers.made(tmp_path / "ledger.sqlite", now=time.time())
    page = page_over(path).enter()
    stop = threading.Event()

    def look() -> None:
        while not stop.is_set():
            for address in ("/overview", "/cost", "/machines.json", "/log"):
                assert page.ask(address).status == 200

    looking = threading.Thread(target=look)
    looking.start()
    try:
        with Ledger(path) as ledger:
            longest = 0.0
            for number in range(100):
                began = time.thread_time(), time.monotonic()
                ledger.event(time.time(), "test", "x", Reason("test", str(number)))
                longest = max(longest, time.monotonic() - began[1])
            assert longest < 4.0  # SQLite itself would wait five seconds for a lock
            # Nobody who looks keeps an old state of the file: all that was written can be put in its place.
            stop.set()
            looking.join()
            busy, pages, moved = ledger._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            assert (busy, pages) == (0, moved)
    finally:
        stop.set()
        looking.join()
        page.pictures.close()


def test_a_long_question_is_cut_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledgers.made(tmp_path / "ledger.sqlite", now=time.time())
    page = page_over(path).enter()
    monkeypatch.setattr("updraft.web.pictures.SECONDS", -1.0)
    monkeypatch.setattr("updraft.web.pictures._STEPS", 1)
    answer = page.ask("/overview")
    assert answer.status == 503
    assert "interrupted" in answer.text
    page.pictures.close()


def test_too_many_at_once_are_told_to_come_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ledgers.made(tmp_path / "ledger.sqlite", now=time.time())
    page = page_over(path).enter()
    monkeypatch.setattr("updraft.web.pictures.MOST_WAITING", 0)
    answer = page.ask("/overview")
    assert answer.status == 503
    assert answer.headers["retry-after"] == "5"
    page.pictures.close()


def test_a_socket_takes_the_place_of_an_old_one_and_of_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "there" / "page.sock"
    server.unix(path, "").close()
    made = server.unix(path, "root")
    assert stat.S_IMODE(path.stat().st_mode) == 0o660
    made.close()
    path.unlink()
    path.write_text("a file of somebody's")
    with pytest.raises(UsageError, match="is no socket"):
        server.unix(path, "")
    assert path.read_text() == "a file of somebody's"
    with pytest.raises(UsageError, match="no group nobodys-group"):
        server.unix(tmp_path / "x.sock", "nobodys-group")


def test_a_port_that_is_taken_is_named() -> None:
    with server.tcp("127.0.0.1", 0) as made:
        made.listen()
        with pytest.raises(UsageError, match="Address already in use"):
            server.tcp("127.0.0.1", made.getsockname()[1])
