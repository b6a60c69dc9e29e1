"""Ends this machine with its lease, with no word from anybody, and hears of it when the lease is changed.

The lease is told with the user-data. A later one is read from the machine's own tag, through the cloud's
metadata service: only root may ask that, and only who may write the cloud's tags may say it. Where the cloud
doesn't show tags there, the lease that was told stays. Shortly before its end no new jobs begin; at its end
those that run are told to save what they have, then HTCondor is ended, so that the queue has its jobs back,
and the machine powers off.
"""

import json
import re
import signal
import time
from pathlib import Path
from typing import Any

from .machine import load, power_off, processes, run, save, say, send, this_boot, uptime
from .metadata import Metadata

TAG = "updraft:lease"
KEPT = {"end": float, "age": float, "left": float, "doubt": float, "up": float, "boot": str}
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


def tag(metadata: Metadata) -> str:
    """The tag's text, as Amazon shows it or as OpenStack does; nothing where it isn't shown.

    Raises OSError where the service doesn't answer.
    """
    status, token = metadata.token(60)
    status, text = metadata.get("/latest/meta-data/tags/instance/" + TAG, token if status == 200 else "")
    if status == 200:
        return text
    status, text = metadata.get("/openstack/latest/meta_data.json")
    try:
        return str(json.loads(text)["meta"][TAG]) if status == 200 else ""
    except (KeyError, RecursionError, TypeError, ValueError):
        return ""


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
        patience = float(told["patience"])
        # HTCondor's fast way down, so that its jobs are given back.
        send(signal.SIGQUIT, told["master"])
        time.sleep(min(5.0, patience))
        power_off(told["power_off"], 10, patience)
    elif what:
        run(told["commands"][what], 10)


def main(told: "dict[str, Any]") -> None:
    """Look until the lease is over; then power off for as long as it takes."""
    metadata, state_file = Metadata(told["metadata"], 3), Path(told["state"])
    up, new = uptime(), not Path(told["booted"]).exists()
    lease = Lease(told["settings"], load(state_file, KEPT), time.time(), up, this_boot(), new)
    while True:
        try:
            heard = lease.hear(tag(metadata)) if lease.vacated < 0 else False
        except OSError:
            heard = False  # what is known holds
        if heard:
            say("the lease is until " + time.strftime("%Y-%m-%d %H:%M:%SZ", time.gmtime(lease.end)))
        lease.tick(uptime())
        save(state_file, lease.state())
        act(lease, lease.due(time.time(), "condor_starter" in processes().values()), told)
        time.sleep(lease.pause(time.time()))
