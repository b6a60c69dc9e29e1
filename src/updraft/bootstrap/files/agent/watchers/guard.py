"""Powers this machine off when its time is over, or when there is nobody left to work for.

It goes by the clock that counts from the boot, so that a wall clock set forwards or backwards ends nothing.
Of what it loses patience with it adds up only what it has watched itself; the machine's age goes on while the
agent is away.
"""

import signal
import socket
import time
from pathlib import Path
from typing import Any, Iterable  # noqa: UP035 (as Python 3.6 has it)

from .machine import load, power_off, processes, run, save, say, send, this_boot, uptime

NO_NEW_JOBS = {"lifetime": "lifetime over", "metadata-open": "metadata address open"}
KEPT = {"age": float, "started": float, "up": float, "boot": str}


class Guard:
    """What was seen so far, and what follows from it. `settings` are told, in seconds."""

    def __init__(self, settings: "dict[str, float]", state: "dict[str, float]") -> None:
        self.settings = settings
        self.age = float(state.get("age", 0))
        self.started = bool(state.get("started", False))
        self.alone = 0.0
        self.without_startd = 0.0
        self.failed = 0.0

    def state(self) -> "dict[str, float]":
        """What has to outlive a reboot."""
        return {"age": self.age, "started": float(self.started)}

    def look(self, passed: float, *, processes: "set[str]", head: bool, boot_failed: bool) -> str:
        """Why the machine is to go now, or nothing. `passed` are the seconds since the last look.

        A machine that was stopped for a while watched nothing meanwhile: its age grows by all of it, its
        patience with the head by no more than two looks.
        """
        watched = min(passed, 2 * self.settings["interval"])
        self.age += passed
        self.alone = 0.0 if head or "condor_starter" in processes else self.alone + watched
        startd = "condor_startd" in processes
        self.started = self.started or startd
        self.without_startd = 0.0 if startd or not self.started else self.without_startd + watched
        self.failed = self.failed + watched if boot_failed else 0.0
        return self.verdict()

    @property
    def over(self) -> bool:
        """True once the lifetime is over: no job may start here any more."""
        return self.age >= self.settings["lifetime"]

    def verdict(self) -> str:
        """The first of the reasons to go that holds, or nothing."""
        limits = self.settings
        if self.age >= limits["lifetime"] + limits["drain_deadline"]:
            return "its lifetime and the time to finish are over"
        if self.alone >= limits["head_gone_after"]:
            return f"no claim and no head for {self.alone:.0f} s"
        if self.without_startd >= limits["startd_gone_after"]:
            return "HTCondor's startd has ended"
        if self.failed >= limits["failed_boot_after"]:
            return "its boot has failed"
        if not self.started and self.age >= limits["boot_deadline"]:
            return "HTCondor has not started within the boot deadline"
        return ""


def reachable(heads: "Iterable[tuple[str, int]]") -> "list[tuple[str, int]]":
    """Address and port of the first of the collectors that takes a connection; empty where none does."""
    for host, port in heads:
        try:
            with socket.create_connection((host, port), timeout=5) as there:
                return [(str(there.getpeername()[0]), port)]
        except OSError:
            continue
    return []


def has_moved(known: "list[tuple[str, int]]", found: "list[tuple[str, int]]") -> bool:
    """Does the head answer elsewhere, and no longer where it did?"""
    return bool(known and found and known != found and not reachable(known))


def close(command: "list[str]") -> bool:
    """Let the startd finish what runs and take nothing new; True once it is so, by whomever."""
    done, said = run(command, 60)
    # 10001: somebody else has begun it.
    return done or "10001" in said


def main(told: "dict[str, Any]") -> None:
    """Look every `interval` seconds; once there is a reason to go, power off for as long as it takes."""
    settings, state_file, boot = told["settings"], Path(told["state"]), this_boot()
    state = load(state_file, KEPT)
    guard = Guard(settings, state)
    closed, known = False, reachable([])
    # What the agent was away for counts, unless there was another boot in between.
    before = state["up"] if state.get("boot") == boot else uptime()
    while True:
        now = uptime()
        head = reachable(told["heads"])
        if has_moved(known, head):
            say(f"the head has moved to {head[0][0]}")
            # HTCondor looks its collectors' names up only when it reads its configuration.
            send(signal.SIGHUP, "condor_master")
            known = head
        known = known or head
        why = guard.look(
            now - before,
            processes=set(processes().values()),
            head=bool(head),
            boot_failed=Path(told["failed"]).exists(),
        )
        before = now
        save(state_file, {**guard.state(), "up": now, "boot": boot})
        if why:
            say("powering off: " + why)
            power_off(told["power_off"], 60, 60)
        code = "lifetime" if guard.over else "metadata-open" if Path(told["open"]).exists() else ""
        if code and not closed:
            closed = close([*told["drain"], code])
            if closed:
                say(NO_NEW_JOBS[code] + ": no new jobs")
        time.sleep(settings["interval"])
