"""`check` and the site's proxies: one that would fetch the cloud's metadata for a job is warned of."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from updraft.checks import proxies
from updraft.checks.asking import ask
from updraft.config import load

TEXT = """
[pool]
name = "p"
[clouds.one]
driver = "fake"
[classes.a]
image = "i"
flavors = ["small"]
cvmfs = ["sft.cern.ch"]
cvmfs_proxy = "http://{a}|http://{b};DIRECT"
[classes.b]
image = "i"
flavors = ["small"]
cvmfs = ["sft.cern.ch"]
cvmfs_proxy = "http://{a};http://{c}:9;auto"
[classes.c]
image = "i"
flavors = ["small"]
"""


class Squid(BaseHTTPRequestHandler):
    """A proxy; `status` is what comes of a fetch, `asked` what it was asked for."""

    status = 200
    asked: list[str] = []  # noqa: RUF012 (each server has a class of its own)

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(self.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        """Nothing."""


@pytest.fixture
def squids() -> Iterator[list[ThreadingHTTPServer]]:
    made = []
    for status in (200, 401, 403, 503):
        kind = type("One", (Squid,), {"status": status, "asked": []})
        server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        made.append(server)
    yield made
    for server in made:
        server.shutdown()
        server.server_close()


def address(server: ThreadingHTTPServer) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}"


def test_each_proxy_of_the_settings_is_asked_once(tmp_path: Path) -> None:
    file = tmp_path / "updraft.toml"
    file.write_text(TEXT.format(a="one.test:3128", b="two.test:3128", c="three.test"))
    wanted = proxies.wanted(load(file))
    assert wanted == ("http://one.test:3128", "http://two.test:3128", "http://three.test:9")


def test_a_proxy_that_fetches_the_metadata_is_warned_of(squids: list[ThreadingHTTPServer]) -> None:
    answers = ask({address(one): lambda one=one: proxies.fetches(address(one)) for one in squids}, 10)
    found = list(proxies.judge(answers))
    assert [one.state for one in found] == ["warning", "warning", "ok", "ok"]
    assert "169.254.0.0/16" in found[0].remedy
    assert {path for one in squids for path in one.RequestHandlerClass.asked} == {"http://169.254.169.254/"}


def test_of_one_that_does_not_answer_nobody_knows() -> None:
    nowhere = "http://127.0.0.1:1"
    (found,) = proxies.judge(ask({nowhere: lambda: proxies.fetches(nowhere)}, 10))
    assert (found.state, found.what) == ("skipped", f"proxy {nowhere}")
    assert "does not answer here" in found.text


@pytest.mark.parametrize("odd", ["http://[::1", "http://a:99999", "http://a:b"])
def test_an_address_that_is_none_costs_itself(odd: str) -> None:
    (found,) = proxies.judge(ask({odd: lambda: proxies.fetches(odd)}, 10))
    assert found.state == "skipped"
