"""A look at a head under load: its daemons as the kernel shows them, its collectors as they answer.

Runs on the head as `python3 -m updraft.load.look`: a JSON list of the collectors at the leaves of the tree on
stdin, everything as JSON on stdout.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from updraft.condor.support import loading
from updraft.load.ads import SENT

_SAMPLES = 3  # of condor_status
_KIB = 1024
_ATTRIBUTES = ("MyType", "Machine", "UpdatesTotal", "UpdatesLost", "LastHeardFrom", SENT)


def daemons(proc: Path = Path("/proc")) -> list[dict[str, Any]]:
    """Every HTCondor process: its name, bytes of memory (`pss`: shared pages by share), descriptors, CPU."""
    found = []
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            daemon = _daemon(entry)
        except (OSError, ValueError, KeyError, IndexError):  # it has ended meanwhile
            continue
        if daemon is not None:
            found.append(daemon)
    return sorted(found, key=lambda one: (str(one["name"]), int(one["pid"])))


def name_of(words: list[str]) -> str:
    """What a daemon is called by its command line, "" where it is none: `collector 3`, `schedd`, `shadow`."""
    program = words[0].rpartition("/")[2] if words else ""
    if not program.startswith("condor_"):
        return ""
    name = program.removeprefix("condor_")
    if "-local-name" in words[:-1]:
        local = words[words.index("-local-name") + 1]
        number = local.lower().removeprefix(name)
        return f"{name} {number}" if number else name
    return name


def _daemon(entry: Path) -> dict[str, Any] | None:
    words = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
    name = name_of([word for word in words if word])
    if not name:
        return None
    memory = _numbers(entry / "smaps_rollup")
    fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
    ticks = int(fields[11]) + int(fields[12])
    limits = (entry / "limits").read_text().splitlines()
    limit = next(line.split()[3] for line in limits if line.startswith("Max open files"))
    return {
        "name": name,
        "pid": int(entry.name),
        "rss": memory["Rss"] * _KIB,
        "pss": memory["Pss"] * _KIB,
        "peak": _numbers(entry / "status")["VmHWM"] * _KIB,
        "descriptors": sum(1 for _ in (entry / "fd").iterdir()),
        "descriptor_limit": int(limit),
        "cpu": ticks / os.sysconf("SC_CLK_TCK"),
    }


def _numbers(path: Path) -> dict[str, int]:
    """The `Name:   12 kB` lines of a file of /proc."""
    pairs = (line.split(":", 1) for line in path.read_text().splitlines() if ":" in line)
    return {name: int(value.split()[0]) for name, value in pairs if value.strip().endswith(" kB")}


def status_seconds(times: int) -> list[float]:
    """How long condor_status over all slots takes, some times; `nan` where it fails."""
    took = []
    for _ in range(times):
        began = time.monotonic()
        done = subprocess.run(
            ["condor_status"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        took.append(time.monotonic() - began if done.returncode == 0 else float("nan"))
    return took


def everything(leaves: list[str]) -> dict[str, Any]:
    """All that there is to see; `heard` and `statistics` by leaf, `top` is what reached the top collector.

    Without leaves only what costs the collectors little: status, cycles and daemons.
    """
    simulated = f"{SENT} =!= undefined"
    slots = f'{simulated} && MyType == "Machine"'
    return {
        "at": time.time(),
        "daemons": daemons(),
        "status": status_seconds(_SAMPLES if leaves else 1),
        "heard": {leaf: loading.heard(leaf, _ATTRIBUTES, simulated) for leaf in leaves},
        "statistics": {leaf: loading.own_statistics(leaf) for leaf in leaves},
        "top": loading.heard(None, ("Machine", "LastHeardFrom"), slots) if leaves else [],
        "cycles": loading.cycles(None),
    }


def main() -> int:
    """Look once."""
    sys.stdout.write(json.dumps(everything(json.loads(sys.stdin.read()))) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
