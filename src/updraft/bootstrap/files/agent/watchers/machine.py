"""This machine as all watchers know it: its clock, processes, commands, state files, and console."""

import json
import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

BOOTTIME = 7  # the name, CLOCK_BOOTTIME, came with Python 3.7


def uptime() -> float:
    """Seconds since the boot, by the clock that nobody sets."""
    return time.clock_gettime(BOOTTIME)


def this_boot() -> str:
    """What tells this boot from all others."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def processes() -> "dict[int, str]":
    """The names of all processes, by their ids. A job may give its own a name that is no text."""
    found = {}
    for comm in Path("/proc").glob("[0-9]*/comm"):
        with suppress(OSError):  # it has just ended
            found[int(comm.parent.name)] = comm.read_text(errors="replace").strip()
    return found


def send(number: int, name: str) -> None:
    """Send a signal to all processes of that name: needs no collector and no right but root's."""
    for pid, found in processes().items():
        if found == name:
            with suppress(OSError):
                os.kill(pid, number)


def say(text: str) -> None:
    """One line on the console, and on the standard output for the journal.

    Each is written at once and without a lock, so that no watcher waits for another.
    """
    line = f"updraft-agent: {text}\n".encode("utf-8", "replace")
    with suppress(OSError):
        os.write(1, line)
    with suppress(OSError), Path("/dev/console").open("ab") as console:
        console.write(line)


def run(command: "list[str]", seconds: float) -> "tuple[bool, str]":
    """Whether the command did it in time, and what was said. All that it has begun ends with its time."""
    timed = ["timeout", "-sKILL", str(seconds), *command]
    try:
        done = subprocess.run(timed, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        return False, str(error)
    return done.returncode == 0, " ".join(done.stdout.decode(errors="replace").split())


def power_off(commands: "list[list[str]]", seconds: float, patience: float) -> None:
    """Try each command in turn, with `patience` for it to work, until the machine is off."""
    for command in commands:
        if run(command, seconds)[0]:
            time.sleep(patience)


def load(path: Path, kinds: "dict[str, type]") -> "dict[str, Any]":
    """The state as it was saved last, each value of its kind; nothing where it can't be read."""
    try:
        found = json.loads(path.read_text())
        return {name: kind(found[name]) for name, kind in kinds.items()}
    except (KeyError, OSError, TypeError, ValueError):
        return {}


def save(path: Path, state: "dict[str, Any]") -> None:
    """Write the state in one step; a full disk must not end the agent."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".new").write_text(json.dumps(state))
        path.with_suffix(".new").replace(path)
    except OSError as error:
        say(f"cannot save: {error}")
