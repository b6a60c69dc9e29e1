"""`updraft web` and `updraft web open`, as a person calls them."""

import http.client
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.rigs import ledgers
from updraft.cli import main
from updraft.web import server
from updraft.web.visitors import kept_key

Capture = pytest.CaptureFixture[str]
TOML = """\
[pool]
name = "demo"
state_dir = "."

[clouds.c1]
driver = "fake"

[classes.default]
image = "img"

[web]
"""


def configured(folder: Path, web: str) -> str:
    file = folder / "updraft.toml"
    file.write_text(TOML + web)
    return str(file)


def free_port() -> int:
    with server.tcp("127.0.0.1", 0) as made:
        return int(made.getsockname()[1])


def test_it_serves_and_a_link_opens_it(tmp_path: Path, capsys: Capture) -> None:
    ledgers.made(tmp_path / "ledger.sqlite", now=time.time())
    file = configured(tmp_path, f'listen = "127.0.0.1:{free_port()}"\nsocket = "{tmp_path}/page.sock"\n')
    words = [sys.executable, "-m", "updraft.cli.main", "--config", file, "web"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            assert "pool demo is shown at" in said
            assert "page.sock" in said
            assert main.call(["--config", file, "web", "open"]) == 0
            link = urlsplit(capsys.readouterr().out.strip())
            assert link.port is not None
            with closing(http.client.HTTPConnection("127.0.0.1", link.port, timeout=120)) as connection:
                connection.request("GET", f"{link.path}?{link.query}")
                answer = connection.getresponse()
                answer.read()
                cookie = str(answer.getheader("set-cookie")).partition(";")[0]
                connection.request("GET", "/overview", headers={"Cookie": cookie})
                answer = connection.getresponse()
                assert answer.status == 200
                assert b"What needs a person" in answer.read()
        finally:
            process.terminate()
        assert process.wait(120) == 0
    assert not (tmp_path / "page.sock").exists()


def test_without_the_page_there_is_no_link(tmp_path: Path, capsys: Capture) -> None:
    file = configured(tmp_path, "")
    assert main.call(["--config", file, "web", "open"]) != 0
    assert "start the page with `updraft web`" in capsys.readouterr().err


def test_a_link_is_for_a_bare_name_and_a_page_with_a_port(tmp_path: Path, capsys: Capture) -> None:
    kept_key(tmp_path)
    file = configured(tmp_path, "")
    assert main.call(["--config", file, "web", "open", "--user", "alice@x"]) == 2
    assert "the bare name" in capsys.readouterr().err
    file = configured(tmp_path, 'listen = ""\nsocket = "/run/x.sock"\n')
    assert main.call(["--config", file, "web", "open"]) == 2
    assert "the page is behind a proxy alone" in capsys.readouterr().err


def test_a_port_that_is_taken_is_said_in_a_sentence(tmp_path: Path, capsys: Capture) -> None:
    with server.tcp("127.0.0.1", 0) as made:
        made.listen()
        file = configured(tmp_path, f'listen = "127.0.0.1:{made.getsockname()[1]}"\n')
        assert main.call(["--config", file, "web"]) == 2
    assert "end what listens there" in capsys.readouterr().err
