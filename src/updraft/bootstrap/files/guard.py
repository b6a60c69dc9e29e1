#!/usr/bin/python3 -I
"""Powers this machine off when its time is over, or when there is nobody left to work for.

Needs nothing but Python 3.6, the oldest that cloud-init comes with. It goes by the clock that counts from the
boot, so that a wall clock set forwards or backwards ends nothing, and it adds up only what it has watched
itself.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

CONFIG = "/etc/updraft/guard.json"
NO_NEW_JOBS = {"lifetime": "lifetime over", "metadata-open": "metadata address open"}
BOOTTIME = getattr(time, "CLOCK_BOOTTIME", 7)  # the name came with Python 3.7


class Guard:
    """What was seen so far, and what follows from it. `settings` are those of guard.json, in seconds."""

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


def processes() -> "set[str]":
    """The names of all processes of this machine."""
    names = set()
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            names.add(comm.read_text().strip())
        except OSError:
            continue  # it has just ended
    return names


def reachable(heads: "list[tuple[str, int]]") -> "list[tuple[str, int]]":
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


def reread() -> None:
    """Have HTCondor look its collectors' names up again: it does so only when it reads its configuration."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == "condor_master":
                os.kill(int(comm.parent.name), signal.SIGHUP)
        except OSError:
            continue


def say(text: str) -> None:
    """One line on the console, and on the standard output for the journal."""
    line = "updraft-guard: " + text
    print(line, flush=True)  # noqa: T201 (the journal reads it)
    try:
        with Path("/dev/console").open("a") as console:
            console.write(line + "\n")
    except OSError:
        return


def close(command: "list[str]") -> bool:
    """Let the startd finish what runs and take nothing new; True once it is so, by whomever."""
    try:
        done = subprocess.run(  # as Python 3.6 has it
            command, timeout=60, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except (OSError, subprocess.SubprocessError):
        return False
    # 10001: somebody else has begun it.
    return done.returncode == 0 or b"10001" in done.stdout


def power_off(commands: "list[list[str]]") -> None:
    """Try each command in turn, with time for it to work, until the machine is off."""
    for command in commands:
        try:
            subprocess.run(command, timeout=60, check=True)
        except (OSError, subprocess.SubprocessError):
            continue
        time.sleep(60)


def load(path: Path) -> "dict[str, float]":
    """The state as it was saved last; nothing where it can't be read: then the count begins anew."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def save(path: Path, state: "dict[str, float]") -> None:
    """Write the state in one step; a full disk must not end the guard."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".new").write_text(json.dumps(state))
        path.with_suffix(".new").replace(path)
    except OSError as error:
        say(f"cannot save: {error}")


def main(config: str) -> None:
    """Look every `interval` seconds; once there is a reason to go, power off for as long as it takes."""
    told = json.loads(Path(config).read_text())
    settings, state_file = told["settings"], Path(told["state"])
    heads = [(str(host), int(port)) for host, port in told["heads"]]
    guard = Guard(settings, load(state_file))
    closed, known = False, reachable([])
    before = time.clock_gettime(BOOTTIME)
    while True:
        now = time.clock_gettime(BOOTTIME)
        head = reachable(heads)
        if has_moved(known, head):
            say(f"the head has moved to {head[0][0]}")
            reread()
            known = head
        known = known or head
        why = guard.look(
            now - before,
            processes=processes(),
            head=bool(head),
            boot_failed=Path(told["failed"]).exists(),
        )
        before = now
        save(state_file, guard.state())
        if why:
            say("powering off: " + why)
            power_off(told["power_off"])
        code = "lifetime" if guard.over else "metadata-open" if Path(told["open"]).exists() else ""
        if code and not closed:
            closed = close([*told["drain"], code])
            if closed:
                say(NO_NEW_JOBS[code] + ": no new jobs")
        time.sleep(settings["interval"])


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else CONFIG)
