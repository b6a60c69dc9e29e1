"""An EC2 endpoint in a process of its own, started and asked from here; `ec2server.py` beside it is it.

It listens on the loopback, or in the network of a local cloud, where that cloud's machines reach it. It ends
with the process that started it, however that ends.
"""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from updraft.clouds.local.process import LocalCloud
from updraft.demo.pool import RealPool

ROOT = Path(__file__).parents[3]
PORT = 8788  # in a cloud's network; on the loopback any that is free
PATH = "/services/Cloud"
REGION = "eu-west-1"
IMAGE = "ami-00000000000000001"
FLAVOR = "t3.medium"  # as large as the local cloud's medium
KEYS = ("driver", "not-to-be-seen")
CREDENTIALS = """\
[default]
aws_access_key_id = {}
aws_secret_access_key = {}
"""
PRICES = {
    "date": "2026-11-01",
    "source": "made up",
    "currency": "USD per hour",
    "regions": {REGION: {FLAVOR: 0.05}},
}
SETTINGS = """\
[pool]
name = "demo"
job_lease = "5m"
announce = "2s"

[clouds.cloud]
driver = "ec2"
endpoint = "{url}"
region = "{region}"
flavors = ["{flavor}"]
price_file = "/etc/updraft/prices.json"

[classes.worker]
image = "{image}"
flavors = ["{flavor}"]
idle_limit = "6s"
boot_deadline = "3m"
head_gone_after = "5m"

[limits]
machines = 30
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """One call: when it came (POSIX seconds), what it was, and how many machines a launch asked for."""

    at: float
    action: str
    who: str
    count: int


class EC2Site:
    """The running endpoint, in this cloud's network; `bridged` names the image its instances are made of."""

    def __init__(self, log: Path, cloud: LocalCloud | None = None, *, bridged: str = "") -> None:
        host = "127.0.0.1" if cloud is None else cloud.config.gateway
        command = [
            sys.executable,
            "-m",
            "tests.rigs.clouds.ec2server",
            host,
            str(0 if cloud is None else PORT),
        ]
        if cloud is not None:
            command = ["nsenter", "--target", str(cloud.pid), "--net", "--", *command]
        if cloud is not None and bridged:
            command += [str(cloud.state_dir), bridged]
        self._log = log
        with log.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                cwd=ROOT,
                env={**os.environ, **_environment()},
            )
        self.url = f"http://{host}:{self._answer()['port']}{PATH}"

    def calls(self, who: str = KEYS[0]) -> list[Seen]:
        """What was called so far, oldest first."""
        return [call for call in (Seen(**one) for one in self.ask("log")) if call.who == who]

    def spans(self) -> list[tuple[float, float]]:
        """From when to when (as `time.monotonic`) the endpoint was at work on each call."""
        return [(begun, ended) for begun, ended in self.ask("spans")]

    def ask(self, what: str, *arguments: Any) -> Any:
        """One question to the process."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps([what, *arguments]) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the endpoint has ended: {self._log.read_text()[-1500:]}")
        return json.loads(line)


def settings(url: str) -> str:
    """An updraft.toml whose one cloud is the endpoint at `url`; its timings are updraft's own."""
    return SETTINGS.format(url=url, region=REGION, flavor=FLAVOR, image=IMAGE)


def install(pool: RealPool, toml: str) -> None:
    """Put this configuration and a profile with credentials on the head, and restart the service."""
    put = 'mkdir -p "$(dirname "$1")" && umask 077 && cat > "$1"'
    for path, text in (
        ("/root/.aws/credentials", CREDENTIALS.format(*KEYS)),
        ("/etc/updraft/prices.json", json.dumps(PRICES)),
        ("/etc/updraft/updraft.toml", toml),
    ):
        pool.on_head("sh", "-ec", put, "sh", path, stdin=text).check_returncode()
    pool.on_head("systemctl", "restart", "updraft.service").check_returncode()


def _environment() -> dict[str, str]:
    return {"PYTHONPATH": str(ROOT), "MOTO_EC2_LOAD_DEFAULT_AMIS": "false", "PYTHONDONTWRITEBYTECODE": "1"}
