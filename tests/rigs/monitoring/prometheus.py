"""A real Prometheus on loopback, from a folder of its own; nothing of it is installed or outlives a test."""

import json
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
FETCHED = ROOT / "build" / "prometheus"
PATIENCE = 120.0


def tool(name: str) -> str:
    """The program `prometheus` or `promtool`; the test is skipped where nobody has fetched it."""
    found = shutil.which(name) or shutil.which(name, path=str(FETCHED))
    if found is None:
        pytest.skip(f"{name} isn't here: tools/prerequisites prometheus fetches it")
    return found


class Prometheus:
    """What it answers."""

    def __init__(self, port: int, process: subprocess.Popen[bytes], log: Path) -> None:
        self._base = f"http://127.0.0.1:{port}"
        self._process, self._log = process, log

    def ask(self, path: str, **arguments: str) -> Any:
        """The data of an answer of its API. Raises AssertionError with its words where it refuses."""
        url = f"{self._base}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=30) as answer:  # noqa: S310 (our own address)
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{arguments}: {error.read().decode()}") from error

    def query(self, expression: str) -> list[dict[str, Any]]:
        """What an expression is now."""
        found: list[dict[str, Any]] = self.ask("query", query=expression)["result"]
        return found

    def wait(self) -> None:
        """Until it answers."""
        until = time.monotonic() + PATIENCE
        while True:
            assert self._process.poll() is None, self._log.read_text()
            try:
                self.query("vector(1)")
            except (OSError, AssertionError):  # nobody listens yet, or it isn't ready
                assert time.monotonic() < until, self._log.read_text()
                time.sleep(0.1)
            else:
                return


@contextmanager
def prometheus(folder: Path, config: dict[str, Any]) -> Iterator[Prometheus]:
    """One with this configuration (JSON is YAML), which is at work meanwhile."""
    program = tool("prometheus")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "prometheus.yml").write_text(json.dumps(config))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [
                program,
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            cwd=folder, stdout=out, stderr=out,
        )  # fmt: skip
    try:
        server = Prometheus(port, process, log)
        server.wait()
        yield server
    finally:
        process.kill()
        process.wait()
