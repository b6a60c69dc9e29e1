"""`updraft run` as the program wires it, in a process of its own, on a pool in memory.

    python -m tests.rigs.daemonprocess CONFIG [lane|loop|python|standby]

`lane` and `loop`: from its first launch, or its first plan, on, that stands still for ever. `python`: no
thread runs any Python from its first plan on. `standby`: another
controller, an older one, acts for the pool. What may stand, and for how long, is cut down to seconds.
"""

import ctypes
import os
import sys
import threading
import time
from pathlib import Path

from tests.rigs.pools.virtualpool import VirtualPool
from updraft.app import serving, wiring
from updraft.condor.access import PoolAccess
from updraft.condor.base import ControllerAd
from updraft.core.model import Plan, Snapshot
from updraft.core.settings import Policy
from updraft.daemon import watchdog


def stand_still() -> None:
    """As who waits for a lock that nobody gives back."""
    threading.Event().wait()


class Pool(VirtualPool):
    """The pool in memory, in real time."""

    def __init__(self, _access: PoolAccess, fault: str) -> None:
        super().__init__(time.time)  # type: ignore[arg-type]
        self._fault = fault

    def mint_token(self, launch_key: str, lifetime: float) -> str:
        if self._fault == "lane":
            stand_still()
        return super().mint_token(launch_key, lifetime)

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        found = super().controllers(deadline)
        if self._fault != "standby":
            return found
        return (*found, ControllerAd("older", "elsewhere", since=1.0, heard=time.time()))

    def close(self) -> None:
        """There is nothing to end."""


def stuck_plan(_snapshot: Snapshot, _policy: Policy) -> Plan:
    stand_still()
    raise AssertionError


def held_plan(_snapshot: Snapshot, _policy: Policy) -> Plan:
    ctypes.PyDLL(None).sleep(3600)  # a PyDLL's functions keep the interpreter to themselves
    raise AssertionError


def main(config: Path, fault: str) -> None:
    wiring.HTCondorPool = serving.HTCondorPool = lambda access: Pool(access, fault)  # type: ignore[misc,assignment]
    if fault == "lane":
        watchdog.LANE = watchdog.CALL = 0.5
    if fault == "loop":
        watchdog.LOOP = 8.0
        serving.Planning = lambda _tell: stuck_plan  # type: ignore[misc,assignment]
    if fault == "python":
        serving.Planning = lambda _tell: held_plan  # type: ignore[misc,assignment]
    serving.run_daemon(config, "text")


if __name__ == "__main__":  # the daemon's children import this file
    os.environ["WATCHDOG_PID"] = str(os.getpid())
    main(Path(sys.argv[1]), *sys.argv[2:] or [""])
