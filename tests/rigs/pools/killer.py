"""A daemon that dies by SIGKILL at one named step: run on a head in place of the service, by its Python.

    killer.py STEP [STEP COMMAND]

It is the daemon as the program wires it, but for the actor's `step`. With three arguments the shell runs
COMMAND when the second STEP is first reached, to its end, before the daemon goes on.
"""

import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

from updraft.app import serving

SETTINGS = Path("/etc/updraft/updraft.toml")


class Killer:
    """Ends its own process at `last`; runs `command` at `first`, once."""

    def __init__(self, last: str, first: str = "", command: str = "") -> None:
        self.last = last
        self.first = first
        self.command = command

    def __call__(self, step: str) -> None:
        if step == self.first and self.command:
            command, self.command = self.command, ""
            subprocess.run(["sh", "-c", command], check=True)
        elif step == self.last:
            os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":  # the daemon's children import this file
    serving.Actor = partial(serving.Actor, step=Killer(*sys.argv[1:]))  # type: ignore[misc,assignment]
    serving.run_daemon(SETTINGS, "text")
