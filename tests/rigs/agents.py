"""A worker's agent at work on this machine: its files are a worker's, what it is told is the test's."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from updraft.bootstrap.worker.agent import CONFIG, agent_files

LOG = "log"
_RELEASED = "released"
NOBODY = "no-such-process"  # there may be real ones of HTCondor on the machine that tests
_LIMITS = ("lifetime", "drain_deadline", "head_gone_after", "boot_deadline", "startd_gone_after")


@contextmanager
def agent(root: Path, **told: dict[str, Any]) -> Iterator[subprocess.Popen[bytes]]:
    """The agent with these watchers, its files below `root`; what it says is in `root / LOG`."""
    for entry in agent_files(told):
        path = root / entry["path"].lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entry["content"])
    words = [sys.executable, "-IB", root / "usr/local/lib/updraft/agent", root / CONFIG.lstrip("/")]
    with (
        (root / LOG).open("w") as log,
        subprocess.Popen(words, stdout=log, stderr=subprocess.STDOUT) as run,
    ):
        try:
            yield run
        finally:
            run.kill()
            (root / _RELEASED).touch()


def hanging(root: Path) -> list[str]:
    """A command that leaves `draining` in `root` and goes on for as long as the agent."""
    return ["sh", "-c", f"touch {root / 'draining'}; until [ -e {root / _RELEASED} ]; do sleep 0.2; done"]


def guard_told(root: Path, **changes: Any) -> dict[str, Any]:
    """What a guard is told that has no reason to do anything, `settings` being changes of those."""
    settings = {
        **dict.fromkeys((*_LIMITS, "failed_boot_after"), 10**6),
        "interval": 0.05,
        **changes.pop("settings", {}),
    }
    files = {name: str(root / name) for name in ("failed", "open")}
    return {
        "heads": [["127.0.0.1", 1]],
        "state": str(root / "state" / "guard.json"),
        **files,
        "drain": ["false"],
        "power_off": [["touch", str(root / "off")]],
        "settings": settings,
        **changes,
    }


def guard_state(root: Path) -> dict[str, Any]:
    """What the guard has saved; {} until it has."""
    state = root / "state" / "guard.json"
    return dict(json.loads(state.read_text())) if state.exists() else {}


def lease_told(root: Path, asked: float, end: float) -> dict[str, Any]:
    """What a lease is told, on a machine that only notes in `root / "done"` what it would do."""
    done = root / "done"
    return {
        "metadata": "127.0.0.1:1",
        "state": str(root / "state" / "lease.json"),
        "booted": str(root / "booted"),
        "commands": {word: ["sh", "-c", f"echo {word} >>{done}"] for word in ("close", "open", "vacate")},
        "master": NOBODY,
        "power_off": [["false"], ["sh", "-c", f"echo off >>{done}"]],
        "patience": 0.1,
        "settings": {
            "asked": asked, "latest": 1800.0, "end": end, "interval": 0.1, "closing": 60.0, "grace": 0.5,
        },
    }  # fmt: skip


def notice_told(root: Path, port: int, startd: str) -> dict[str, Any]:
    """The same of a notice; it watches once a process of this name runs."""
    done = root / "done"
    return {
        "metadata": f"127.0.0.1:{port}",
        "startd": startd,
        "master": NOBODY,
        "interval": 0.05,
        "least": 30.0,
        "commands": {word: ["sh", "-c", f"echo {word} {{when}} >>{done}"] for word in ("close", "vacate")},
    }
