"""The daemon as the program wires it, but with a clock that can be set, and steps at which it dies or stops.

Run on a head in place of the service, by its Python. `/run/chaos/clock` has by how many seconds its clock is
wrong; `/run/chaos/step` the name of a step and a signal: it is sent when that step is next reached, once.
"""

import contextlib
import os
import signal
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

from updraft.app import serving

SETTINGS = Path("/etc/updraft/updraft.toml")
CLOCK, STEP = Path("/run/chaos/clock"), Path("/run/chaos/step")


def now() -> float:
    """The time, wrong by as much as is asked for."""
    try:
        return time.time() + float(CLOCK.read_text())
    except (OSError, ValueError):
        return time.time()


def reached(step: str) -> None:
    """Die or stand still where this step is the one that is asked for."""
    with contextlib.suppress(OSError, ValueError):
        wanted, _, name = STEP.read_text().strip().rpartition(" ")
        if wanted == step:
            STEP.unlink()
            os.kill(os.getpid(), signal.Signals[f"SIG{name}"])


if __name__ == "__main__":  # the daemon's children import this file
    serving.time = SimpleNamespace(**{**vars(time), "time": now})  # type: ignore[assignment]
    serving.Actor = partial(serving.Actor, step=reached)  # type: ignore[misc,assignment]
    serving.run_daemon(SETTINGS, "text")
