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


class Lease:
    """When the lease ends, and what is due. Times are epoch seconds, `age` seconds of this machine's life.

    The wall clock may be wrong: one that is set back gains nothing, since the machine never lives longer
    than there was left of the lease when it was first looked at, and what was added later.
    """

    def __init__(self, told: "dict[str, float]", state: "dict[str, float]", now: float) -> None:
        self.told = told
        self.end = float(state.get("end", told["end"]))
        self.age = float(state.get("age", 0))
        self.left = float(state.get("left", max(0.0, told["end"] - now)))
        self.closed = False
        self.vacated = 0.0

    def state(self) -> "dict[str, float]":
        """What has to outlive a reboot."""
        return {"end": self.end, "age": self.age, "left": self.left}

    def hear(self, text: str) -> bool:
        """Take the lease that a tag tells; True where it is another one. What is no time changes nothing."""
        end = float(text) if re.match("[0-9]{1,11}$", text.strip()) else 0.0
        if not end or end == self.end:
            return False
        self.end = end
        return True

    def remaining(self, now: float) -> float:
        """Seconds until it ends, below zero once it has."""
        lived = self.left + (self.end - self.told["end"]) + SLACK - self.age
        return min(self.end - now, lived)

    def due(self, now: float, busy: bool) -> str:
        """The one thing to do now: close, open, vacate, off, or nothing."""
        left = self.remaining(now)
        if left > 0:
            if left <= self.told["closing"]:
                return "" if self.closed else "close"
            return "open" if self.closed and not self.vacated else ""
        if not self.vacated:
            return "vacate"
        return "off" if not busy or -left >= self.told["grace"] else ""

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


def load(path: Path) -> "dict[str, float]":
    """The state as it was saved last; nothing where it can't be read."""
    try:
        found = json.loads(path.read_text())
        return {name: float(found[name]) for name in ("end", "age", "left")}
    except (KeyError, OSError, TypeError, ValueError):
        return {}


def save(path: Path, state: "dict[str, float]") -> None:
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


def act(lease: Lease, what: str, told: "dict[str, Any]", now: float) -> None:
    """Do the one thing that is due."""
    commands = told["commands"]
    if what in ("close", "open"):
        words = {"close": "no new jobs: the lease is nearly over", "open": "new jobs again: a later lease"}
        say(words[what])
        run(commands[what])
        lease.closed = what == "close"
    elif what == "vacate":
        say("the lease is over: jobs are told to save what they have")
        lease.vacated = now
        run(commands["vacate"])
    elif what == "off":
        say("powering off: the lease is over")
        power_off(told["master"], told["power_off"], float(told["patience"]))


def main(config: str) -> None:
    """Look until the lease is over; then power off for as long as it takes."""
    told = json.loads(Path(config).read_text())
    host, _, port = str(told["metadata"]).partition(":")
    metadata, state_file = Metadata(host, int(port or 80)), Path(told["state"])
    lease = Lease(told["settings"], load(state_file), time.time())
    before = time.clock_gettime(BOOTTIME)
    while True:
        try:
            heard = lease.hear(metadata.lease()) if not lease.vacated else False
        except OSError:
            heard = False  # what is known holds
        if heard:
            say("the lease is until " + time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(lease.end)))
        now = time.clock_gettime(BOOTTIME)
        lease.age += now - before
        before = now
        save(state_file, lease.state())
        act(lease, lease.due(time.time(), "condor_starter" in running().values()), told, time.time())
        time.sleep(lease.pause(time.time()))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else CONFIG)
