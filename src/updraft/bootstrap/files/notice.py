#!/usr/bin/python3 -I
"""Watches for the notice that the cloud takes this spot machine back, and lets its jobs leave in time.

At the notice the startd takes no new jobs; after half of the time left the jobs that still run are told to
save what they have and go; before the end whatever is left is ended, so that all of them are back in the
queue while there still is a machine to say so. Without that a job waits for its lease to end. Needs Python
3.6.
"""

import calendar
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

CONFIG = "/etc/updraft/notice.json"
NOTICE = "/latest/meta-data/spot/instance-action"
TOKEN_FOR = 21600  # seconds


class Metadata:
    """The cloud's metadata service, asked with a session token; it is open to root only."""

    def __init__(self, host: str, port: int = 80) -> None:
        self._host, self._port = host, port
        self._token = ""

    def notice(self) -> str:
        """The notice as it is served, or nothing. Raises OSError where the service doesn't answer."""
        for _ in range(2):
            if not self._token:
                seconds = {"X-aws-ec2-metadata-token-ttl-seconds": str(TOKEN_FOR)}
                status, self._token = self._ask("PUT", "/latest/api/token", seconds)
                if status != 200:
                    self._token = ""
                    raise OSError(f"no token ({status})")
            status, text = self._ask("GET", NOTICE, {"X-aws-ec2-metadata-token": self._token})
            if status == 200:
                return text
            if status != 401:
                return ""
            self._token = ""  # it has ended: ask for another
        return ""

    def _ask(self, method: str, path: str, headers: "dict[str, str]") -> "tuple[int, str]":
        connection = http.client.HTTPConnection(self._host, self._port, timeout=5)
        try:
            connection.request(method, path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read(4096).decode(errors="replace")
        except http.client.HTTPException as error:
            raise OSError(f"no answer: {error}") from error
        finally:
            connection.close()


def end_of(notice: str, now: float, least: float) -> float:
    """When the machine ends, as the notice says; `least` seconds from now where it doesn't say it legibly."""
    try:
        text = str(json.loads(notice)["time"])
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except (KeyError, TypeError, ValueError):
        return now + least


class Leaving:
    """The steps of leaving, each at its time: close at once, then vacate, then end what is left."""

    def __init__(self, began: float, end: float) -> None:
        left = max(0.0, end - began)
        self._steps = [
            ("close", began),
            ("vacate", began + left / 2),
            ("end", began + left * 3 / 4),
        ]

    def due(self, now: float) -> "list[str]":
        """The steps whose time has come, each only once."""
        found = [name for name, at in self._steps if at <= now]
        self._steps = self._steps[len(found) :]
        return found

    @property
    def done(self) -> bool:
        """True once the last step was due."""
        return not self._steps


def say(text: str) -> None:
    """One line on the console, and on the standard output for the journal."""
    line = "updraft-notice: " + text
    print(line, flush=True)  # noqa: T201 (the journal reads it)
    try:
        with Path("/dev/console").open("a") as console:
            console.write(line + "\n")
    except OSError:
        return


def run(command: "list[str]", seconds: float = 20) -> bool:
    """True where the command did it in time; what it says against it goes to the console."""
    try:
        done = subprocess.run(  # as Python 3.6 has it
            command, timeout=seconds, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except (OSError, subprocess.SubprocessError) as error:
        say(f"{command[0]}: {error}")
        return False
    if done.returncode != 0:
        say(" ".join(done.stdout.decode(errors="replace").split())[:200])
    return done.returncode == 0


def end_master() -> None:
    """HTCondor's fast way down, asked by a signal: needs no collector and no right but root's."""
    for comm in Path("/proc").glob("[0-9]*/comm"):
        try:
            if comm.read_text().strip() == "condor_master":
                os.kill(int(comm.parent.name), signal.SIGQUIT)
        except OSError:
            continue  # it has just ended


def step(name: str, told: "dict[str, list[str]]", when: str) -> None:
    """Carry out one step. `told` has the commands, with {when} for the end in their reason."""
    say({"close": f"the cloud takes this machine back at {when}: no new jobs"}.get(name, name))
    if name == "end":
        end_master()
        return
    run([word.replace("{when}", when) for word in told[name]])


def leave(told: "dict[str, list[str]]", notice: str, least: float) -> None:
    """Everything from the notice to the end."""
    now = time.time()
    end = end_of(notice, now, least)
    when = time.strftime("%H:%M:%SZ", time.gmtime(end))
    leaving = Leaving(now, end)
    while not leaving.done:
        for name in leaving.due(time.time()):
            step(name, told, when)
        time.sleep(0.5)


def main(config: str) -> None:
    """Ask every `interval` seconds, until there is a notice; then leave."""
    told = json.loads(Path(config).read_text())
    host, _, port = str(told["metadata"]).partition(":")
    metadata = Metadata(host, int(port or 80))
    while True:
        try:
            notice = metadata.notice()
        except OSError:
            notice = ""  # the next time; a service that is away for long says it in the guard's terms
        if notice and not re.search(r'"action"\s*:\s*"(stop|terminate|hibernate)"', notice):
            notice = ""
        if notice:
            leave(told["commands"], notice, float(told["least"]))
            return
        time.sleep(float(told["interval"]))


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else CONFIG)
