"""The local cloud's API: a refusal reaches the caller however large the call is, and whoever closes first."""

import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, cast

import pytest

from updraft.clouds.local.client import Client
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.clouds.local.service.cloud import Cloud
from updraft.clouds.local.service.server import ApiServer, Tokens, UnixApiServer
from updraft.errors import AuthFailed, BadRequest, CloudUnavailable

LARGE = b"x" * 2_500_000  # far more than a socket holds
TOKENS = Tokens("admin", "controller")


@contextmanager
def serving(server: ApiServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(params=["unix", "http"])
def endpoint(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The API of a cloud that is never reached: every call of these tests is refused before."""
    nowhere = cast(Cloud, None)
    if request.param == "unix":
        with serving(UnixApiServer(str(tmp_path / "api"), nowhere, TOKENS)):
            yield f"unix:{tmp_path / 'api'}"
    else:
        server = ApiServer(("127.0.0.1", 0), nowhere, TOKENS)
        with serving(server):
            yield f"http://127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize("data", [b"", LARGE], ids=["small", "large"])
def test_a_wrong_token_is_said_to_be_wrong(endpoint: str, data: bytes) -> None:
    for _ in range(5):
        with pytest.raises(AuthFailed, match="credential is missing or wrong"):
            Client(endpoint, "wrong").run(user_data=data)


def test_a_call_that_is_too_large_is_said_to_be_so(endpoint: str) -> None:
    with pytest.raises(BadRequest, match="larger than"):
        Client(endpoint, "controller").run(user_data=LARGE * 2)


def test_a_call_is_heard_out_before_it_is_refused(tmp_path: Path) -> None:
    """Whoever has no ear before all is said, as most clients of HTTP, gets the refusal too."""
    head = f"POST /v1/run HTTP/1.0\r\nAuthorization: Bearer wrong\r\nContent-Length: {len(LARGE)}\r\n\r\n"
    server = UnixApiServer(str(tmp_path / "api"), cast(Cloud, None), TOKENS)
    with serving(server), socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(10)
        caller.connect(str(tmp_path / "api"))
        caller.sendall(head.encode() + LARGE)
        assert b" 401 " in caller.recv(1000)


@contextmanager
def answering(path: Path, answer: bytes) -> Iterator[None]:
    """A server that takes the head of a call, answers, and takes no more: the caller's pipe breaks."""

    def serve(ear: socket.socket) -> None:
        with closing(ear.accept()[0]) as caller:
            caller.recv(1000)
            caller.sendall(answer)
            caller.shutdown(socket.SHUT_RDWR)
            done.wait(10)

    done = threading.Event()
    with socket.socket(socket.AF_UNIX) as ear:
        ear.bind(str(path))
        ear.listen()
        thread = threading.Thread(target=serve, args=(ear,))
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()


def refusal(**answer: Any) -> bytes:
    said = str(answer).replace("'", '"').encode()
    return b"HTTP/1.0 401 No\r\nContent-Length: %d\r\n\r\n%b" % (len(said), said)


def test_an_answer_behind_a_broken_pipe_is_read(tmp_path: Path) -> None:
    with (
        answering(tmp_path / "api", refusal(code="auth-failed", message="not you")),
        pytest.raises(AuthFailed, match="not you"),
    ):
        Client(f"unix:{tmp_path / 'api'}", "any", timeout=10).run(user_data=LARGE)


def test_a_broken_pipe_with_no_answer_behind_it_is_no_answer(tmp_path: Path) -> None:
    with answering(tmp_path / "api", b""), pytest.raises(CloudUnavailable, match="did not answer run"):
        Client(f"unix:{tmp_path / 'api'}", "any", timeout=10).run(user_data=LARGE)


class FaultyCloud:
    """A cloud whose API is down for whoever isn't spared."""

    def __init__(self) -> None:
        self.log = self
        self.callers: list[tuple[str, str]] = []

    def faults_before(self, call: str, what: object) -> list[Fault]:
        return [Fault(FaultKind.API_DOWN)]

    def faults_after(self, call: str, what: object) -> list[Fault]:
        return []

    def quota(self) -> dict[str, int]:
        return {"machines": 3}

    def call(self, name: str, who: str, body: object, begun: float, code: str, made: object) -> None:
        self.callers.append((who, code))


def test_who_makes_the_faults_suffers_none_and_nobody_else_is_spared(tmp_path: Path) -> None:
    cloud = FaultyCloud()
    with serving(UnixApiServer(str(tmp_path / "api"), cast(Cloud, cloud), TOKENS)):
        endpoint = f"unix:{tmp_path / 'api'}"
        assert Client(endpoint, "admin", spared=True).quota() == {"machines": 3}
        for caller in (Client(endpoint, "admin"), Client(endpoint, "controller", spared=True)):
            with pytest.raises(CloudUnavailable):
                caller.quota()
    assert [who for who, _ in cloud.callers] == ["admin", "admin", "controller"]
