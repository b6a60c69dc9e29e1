"""A head under test on the local cloud: its configuration, its token, its daemons, its jobs."""

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from updraft.bootstrap import Layer, machine
from updraft.bootstrap.head.identities import WORKER_USER
from updraft.clouds.local import process
from updraft.clouds.local.config import DOMAIN
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import USER, RealPool, Say, Wishes, bring_up
from updraft.errors import ProblemFound
from updraft.load import conf
from updraft.load.ads import LAUNCH

TOKENS = "/var/lib/updraft-load-tokens"
IDENTITY = f"{WORKER_USER}{LAUNCH}@{DOMAIN}"
"""Whose token all machines of a load test show: that of the launch which their slots name."""
_PYTHON = ("env", "PYTHONPATH=/opt/updraft/src:/opt/updraft/lib", "python3", "-P", "-m")
_LOOK_DEADLINE = 180.0
_TREE_DEADLINE = 30.0


@dataclass(frozen=True, slots=True)
class Head:
    """A head that runs, with the addresses of the collectors that machines advertise to."""

    pool: RealPool
    address: str
    leaves: tuple[str, ...]

    def run(self, *argv: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        """A command's output. Raises ProblemFound with its error where it fails."""
        done = self.pool.on_head(*argv, stdin=stdin, timeout=timeout)
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise ProblemFound(f"`{argv[0]}` failed on the head: {last}")
        return done.stdout

    def start(self, module: str) -> "subprocess.Popen[str]":
        """A program of ours on the head, with pipes for its input and output."""
        command = process.enter_command(self.pool.cloud, self.pool.head, [*_PYTHON, module])
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def look(self, *, whole: bool) -> dict[str, Any]:
        """What `load.look` sees now; not `whole` is without what the collectors hold."""
        leaves = json.dumps(self.leaves if whole else ())
        text = self.run(*_PYTHON, "updraft.load.look", stdin=leaves, timeout=_LOOK_DEADLINE)
        seen: dict[str, Any] = json.loads(text)
        return seen

    def daemons(self) -> list[dict[str, Any]]:
        """The daemons only: cheaper than a look."""
        script = "import json; from updraft.load.look import daemons; print(json.dumps(daemons()))"
        found: list[dict[str, Any]] = json.loads(self.run(*_PYTHON[:-1], "-c", script))
        return found


def bring_up_head(image: Image, folder: Path, say: Say, config: str) -> Head:
    """A new head with this configuration; its cloud ends with this process, or by `pool.cloud.stop`."""
    texts = {conf.OURS: conf.ours(), conf.CONFIG: config, conf.MEASURING: conf.measuring()}
    files = [machine.file(path, text) for path, text in texts.items()]
    layer = Layer("the load test's configuration", {"write_files": files})
    pool = bring_up(image, folder, say, Wishes(controller=False, head_layers=(layer,)))
    try:
        return _ready(pool)
    except BaseException:
        pool.cloud.stop()
        raise


def _ready(pool: RealPool) -> Head:
    address = next(m["address"] for m in pool.cloud.client().machines() if m["id"] == pool.head)
    bare = Head(pool, address, ())
    listed = bare.run("condor_config_val", "DAEMON_LIST")
    names = [name for name in listed.replace(",", " ").split() if name.startswith("COLLECTOR")]
    arguments = []
    for name in names:
        done = pool.on_head("condor_config_val", f"{name}_ARGS")
        arguments.append((name, done.stdout.strip() if done.returncode == 0 else ""))
    leaves = conf.leaves(address, listed, arguments)
    bare.run("mkdir", "-p", "-m", "700", TOKENS)
    token = bare.run(
        *("condor_token_create", "-identity", IDENTITY, "-key", "updraft-workers", "-lifetime", "86400"),
        *("-authz", "ADVERTISE_STARTD", "-authz", "ADVERTISE_MASTER"),
    )
    bare.run("sh", "-c", f"umask 077 && cat > {TOKENS}/load", stdin=token)
    _await_leaves(bare, leaves)
    return Head(pool, address, leaves)


def _await_leaves(head: Head, leaves: Sequence[str]) -> None:
    """Until every child collector answers: they start after the others."""
    for leaf in leaves:
        wait_for(
            partial(_answers, head, leaf),
            _TREE_DEADLINE,
            f"the collector {leaf} does not answer",
        )


def _answers(head: Head, leaf: str) -> bool:
    return head.pool.on_head("condor_status", "-pool", leaf, "-any").returncode == 0


def wait_for(
    condition: Callable[[], bool],
    deadline: float,
    otherwise: str,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> float:
    """Wait until it is true, and say how many seconds that took; ProblemFound after the deadline."""
    began = clock()
    while not condition():
        if clock() - began > deadline:
            raise ProblemFound(f"{otherwise} within {deadline:.0f} s")
        sleep(0.5)
    return clock() - began


class Jobs:
    """The stream of dummy jobs: as many as at first, a batch of each group in and the oldest batch out."""

    def __init__(self, head: Head, groups: int, jobs: int) -> None:
        self._head = head
        self._groups = groups
        self._clusters: list[int] = []
        if groups and jobs:
            self._submit(max(1, jobs // groups))

    def move(self) -> None:
        """One batch more, and the oldest of the batches that came so is taken out."""
        if not self._clusters:
            return
        self._submit(1)
        if len(self._clusters) > 2:
            self._head.run("condor_rm", str(self._clusters.pop(1)))

    def _submit(self, each: int) -> None:
        self._clusters.append(self._head.pool.submit(conf.dummy_jobs(self._groups, each), USER))
