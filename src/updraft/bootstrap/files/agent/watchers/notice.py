"""Watches for the notice that the cloud takes this spot machine back, and lets its jobs leave in time.

At the notice the startd takes no new jobs; after half of the time left the jobs that still run are told to
save what they have and go; before the end whatever is left is ended, so that all of them are back in the
queue while there still is a machine to say so. Without that a job waits for its lease to end.
"""

import calendar
import json
import re
import signal
import time
from typing import Any

from .machine import processes, run, say, send
from .metadata import Metadata

NOTICE = "/latest/meta-data/spot/instance-action"
TOKEN_FOR = 21600  # seconds


class Notices:
    """Asks for the notice, with a session token that is kept for as long as it is taken."""

    def __init__(self, metadata: Metadata) -> None:
        self._metadata = metadata
        self._token = ""

    def ask(self) -> str:
        """The notice as it is served, or nothing. Raises OSError where the service doesn't answer."""
        for _ in range(2):
            if not self._token:
                status, token = self._metadata.token(TOKEN_FOR)
                if status != 200:
                    raise OSError(f"no token ({status})")
                self._token = token
            status, text = self._metadata.get(NOTICE, self._token)
            if status == 200:
                return text
            if status != 401:
                return ""
            self._token = ""  # it has ended: ask for another
        return ""


def end_of(notice: str, now: float, least: float) -> float:
    """When the machine ends, as the notice says; `least` seconds from now where it doesn't say it legibly."""
    try:
        text = str(json.loads(notice)["time"])
        return float(calendar.timegm(time.strptime(text, "%Y-%m-%dT%H:%M:%SZ")))
    except (KeyError, RecursionError, TypeError, ValueError):
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


def step(name: str, told: "dict[str, Any]", when: str) -> None:
    """Carry out one step; what is said against it goes to the console. {when} in a command is the end."""
    say({"close": f"the cloud takes this machine back at {when}: no new jobs"}.get(name, name))
    if name == "end":
        send(signal.SIGQUIT, told["master"])  # HTCondor's fast way down
        return
    done, said = run([word.replace("{when}", when) for word in told["commands"][name]], 20)
    if not done:
        say(said[:400] or name + " has failed")


def leave(told: "dict[str, Any]", notice: str) -> None:
    """Everything from the notice to the end."""
    now = time.time()
    end = end_of(notice, now, float(told["least"]))
    when = time.strftime("%H:%M:%SZ", time.gmtime(end))
    leaving = Leaving(now, end)
    while not leaving.done:
        for name in leaving.due(time.time()):
            step(name, told, when)
        time.sleep(0.5)


def main(told: "dict[str, Any]") -> None:
    """Once HTCondor runs, ask every `interval` seconds until there is a notice; then leave."""
    notices = Notices(Metadata(told["metadata"], 5))
    while told["startd"] not in processes().values():
        time.sleep(1)
    while True:
        try:
            notice = notices.ask()
        except OSError:
            notice = ""  # the next time; a service that is away for long says it in the guard's terms
        if re.search(r'"action"\s*:\s*"(stop|terminate|hibernate)"', notice):
            leave(told, notice)
            return
        time.sleep(float(told["interval"]))
