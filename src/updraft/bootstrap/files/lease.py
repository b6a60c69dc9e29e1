#!/usr/bin/python3 -I
"""Ends this machine with its lease, with no word from anybody, and hears of it when the lease is changed.

The lease is told with the user-data. A later one is read from the machine's own tag, through the cloud's
metadata service: only root may ask that, and only who may write the cloud's tags may say it. Where the cloud
doesn't show tags there, the lease that was told stays. Shortly before its end no new jobs begin; at its end
those that run are told to save what they have, then HTCondor is ended, so that the queue has its jobs back,
and the machine powers off. Needs Python 3.6.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

CONFIG = "/etc/updraft/lease.json"
TAG = "updraft:lease"
BOOTTIME = getattr(time, "CLOCK_BOOTTIME", 7)  # the name came with Python 3.7
SLACK = 60.0
UNKNOWN = 1e12  # seconds: the machine has been off, and nothing here counted


class Lease:
    """When the lease ends, and what is due. Times are epoch seconds, `age` seconds of this machine's life.

    The wall clock may be wrong, at the first look or at any other, so the boot clock has to agree: with
    `left` of the lease at age 0, it can't be over more than `doubt` earlier, nor more than SLACK later, than
    that clock says. One look ends nothing. How long a machine was off no clock of its own has counted: after
    a reboot the wall clock alone can say that it is over, for `interval` seconds.
    """

    def __init__(
        self, told: "dict[str, float]", state: "dict[str, Any]", now: float, up: float, boot: str, new: bool
    ) -> None:
        self.told, self.up, self.boot = told, up, boot
        self.end = float(state.get("end", told["end"]))
        self.age = float(state.get("age", 0))
        if not state:
            self.left, self.doubt = self._first(now, new)
        else:
            same = state["boot"] == boot
            self.left, self.doubt = state["left"], state["doubt"] if same else UNKNOWN
            self.age += max(0.0, up - state["up"]) if same else 0.0
        self.over = self.vacated = -1.0  # the ages at which it was so, -1 while it isn't
        self.closed = False

    def _first(self, now: float, new: bool) -> "tuple[float, float]":
        """What is left of the lease at the first look, and how much less it may be in truth.

        A machine that isn't `new` has lost what it knew.
        """
        asked, latest, end = self.told["asked"], self.told["latest"], self.told["end"]
        if asked - SLACK <= now <= min(asked + latest, end):
            return end - now, SLACK
        # No machine boots before it was asked for, nor so late.
        return end - asked, latest + SLACK if new else UNKNOWN

    def state(self) -> "dict[str, Any]":
        """What has to outlive a reboot."""
        known = {"end": self.end, "age": self.age, "left": self.left, "doubt": self.doubt}
        return {**known, "up": self.up, "boot": self.boot}

    def tick(self, up: float) -> None:
        """It is that late by the boot clock."""
        self.age += up - self.up
        self.up = up

    def hear(self, text: str) -> bool:
        """Take the lease that a tag tells; True where it is another one. What is no time changes nothing."""
        end = float(text) if re.match("[0-9]{1,11}$", text.strip()) else 0.0
        if not end or end == self.end:
            return False
        self.end = end
        return True

    def remaining(self, now: float) -> float:
        """Seconds until it ends, below zero once it has."""
        own = self.left + (self.end - self.told["end"]) - self.age
        return max(min(self.end - now, own + SLACK), own - self.doubt)

    def due(self, now: float, busy: bool) -> str:
        """The one thing to do now: close, open, vacate, off, or nothing."""
        left = self.remaining(now)
        if left > 0:
            self.over = -1.0
            if left <= self.told["closing"]:
                return "" if self.closed else "close"
            return "open" if self.closed else ""
        if self.vacated >= 0:
            return "off" if not busy or self.age - self.vacated >= self.told["grace"] else ""
        if self.over >= 0 and self.age - self.over >= (self.told["interval"] if self.doubt == UNKNOWN else 0):
            return "vacate"
        self.over = self.age if self.over < 0 else self.over
        return "" if self.closed else "close"

    def note(self, what: str) -> None:
        """That has been done."""
        if what in ("close", "vacate"):
            self.closed = True
        if what == "vacate":
            self.vacated = self.age
        if what == "open":
            self.closed, self.vacated = False, -1.0

    def pause(self, now: float) -> float:
        """How long to wait until something may be due."""
        left = self.remaining(now)
        if left <= 0:
            return 1.0
        return max(0.2, min(self.told["interval"], left if self.closed else abs(left - self.told["closing"])))


class Metadata:
    """The cloud's metadata service, asked for the one tag, as Amazon shows it or as OpenStack does."""

    def __init__(self, host: str, port: int = 80) -> None:
        self._host, self._port = host, port

    def lease(self) -> str:
        """The tag's text; nothing where it isn't shown. Raises OSError where the service doesn't answer."""
        seconds = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
        status, token = self._ask("PUT", "/latest/api/token", seconds)
        headers = {"X-aws-ec2-metadata-token": token} if status == 200 else {}
        status, text = self._ask("GET", "/latest/meta-data/tags/instance/" + TAG, headers)
        if status == 200:
            return text
        status, text = self._ask("GET", "/openstack/latest/meta_data.json", {})
        try:
            return str(json.loads(text)["meta"][TAG]) if status == 200 else ""
        except (KeyError, TypeError, ValueError):
            return ""

    def _ask(self, method: str, path: str, headers: "dict[str, str]") -> "tuple[int, str]":
        connection = http.client.HTTPConnection(self._host, self._port, timeout=3)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(65536).decode(errors="replace")
        except http.client.HTTPException as error:
            raise OSError(f"no answer: {error}") from error
        finally:
            connection.close()


def running() -> "dict[int, str]":
    """The names of all processes of this machine, by their ids."""
    found = {}
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            found[int(comm.parent.name)] = comm.read_text().strip()
        except OSError:
            continue  # it has just ended
    return found


def end_master(master: str) -> None:
    """HTCondor's fast way down, asked by a signal: needs no collector and no right but root's."""
    for pid, name in running().items():
        if name == master:
            try:
                os.kill(pid, signal.SIGQUIT)
            except OSError:
                continue


def say(text: str) -> None:
    """One line on the console, and on the standard output for the journal."""
    line = "updraft-lease: " + text
    print(line, flush=True)  # noqa: T201 (the journal reads it)
    try:
        with Path("/dev/console").open("a") as console:
            console.write(line + "\n")
    except OSError:
        return


def run(command: "list[str]", seconds: float = 10) -> bool:
    """True where the command did it in time."""
    try:
        done = subprocess.run(  # as Python 3.6 has it
            command, timeout=seconds, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return done.returncode == 0


def load(path: Path) -> "dict[str, Any]":
    """The state as it was saved last; nothing where it can't be read."""
    try:
        found = json.loads(path.read_text())
        numbers = {name: float(found[name]) for name in ("end", "age", "left", "doubt", "up")}
        return {**numbers, "boot": str(found["boot"])}
    except (KeyError, OSError, TypeError, ValueError):
        return {}


def this_boot() -> str:
    """What tells this boot from all others."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def save(path: Path, state: "dict[str, Any]") -> None:
    """Write the state in one step; a full disk must not end this."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".new").write_text(json.dumps(state))
        path.with_suffix(".new").replace(path)
    except OSError as error:
        say(f"cannot save: {error}")


def power_off(master: str, commands: "list[list[str]]", patience: float) -> None:
    """End HTCondor, so that its jobs are given back; then try each command until the machine is off."""
    end_master(master)
    time.sleep(min(5.0, patience))
    for command in commands:
        if run(command):
            time.sleep(patience)


def act(lease: Lease, what: str, told: "dict[str, Any]") -> None:
    """Do the one thing that is due."""
    words = {
        "close": "no new jobs: the lease is nearly over",
        "open": "new jobs again: the lease is not over",
        "vacate": "the lease is over: jobs are told to save what they have",
        "off": "powering off: the lease is over",
    }
    if what:
        say(words[what])
        lease.note(what)
    if what == "off":
        power_off(told["master"], told["power_off"], float(told["patience"]))
    elif what:
        run(told["commands"][what])


def main(config: str) -> None:
    """Look until the lease is over; then power off for as long as it takes."""
    told = json.loads(Path(config).read_text())
    host, _, port = str(told["metadata"]).partition(":")
    metadata, state_file = Metadata(host, int(port or 80)), Path(told["state"])
    up, new = time.clock_gettime(BOOTTIME), not Path(told["booted"]).exists()
    lease = Lease(told["settings"], load(state_file), time.time(), up, this_boot(), new)
    while True:
        try:
            heard = lease.hear(metadata.lease()) if lease.vacated < 0 else False
        except OSError:
            heard = False  # what is known holds
        if heard:
            say("the lease is until " + time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(lease.end)))
        lease.tick(time.clock_gettime(BOOTTIME))
        save(state_file, lease.state())
        act(lease, lease.due(time.time(), "condor_starter" in running().values()), told)
        time.sleep(lease.pause(time.time()))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else CONFIG)
