"""Boots that can't read their user-data: told by the machine's console, long before its boot deadline.

Such a machine never joins, and says nothing to anybody but its console. One machine of each cloud is asked at
a time: they are launched alike, and one console tells as much as a hundred.
"""

import math
import re
from collections.abc import Callable, Iterable
from typing import Protocol

from updraft.core.demand.left_out import UNREAD_BOOT
from updraft.core.model import Instance, Known, MachineRecord, Reason
from updraft.observe.sources import Asker, Asking

FIRST = 20.0  # seconds after its launch: most have joined by then, or have nothing on their consoles yet
AGAIN = 15.0  # seconds between two questions about one cloud's machines
LATEST = 300.0  # seconds: what a console hasn't said by then, the boot deadline says
_LINES = 400  # of a console's end; what an image prints is of any length
_LONGEST = 200
# What cloud-init prints (wait_for_url in url_helper.py, DataSourceEc2.py, main.py, cc_final_message.py). It
# asks again and again: a refusal says that no later answer will be another, a silence may be the network's.
_REFUSED = re.compile(
    r"Calling '(http[^']{1,200})' failed \[[^\]]{1,20}\]: (?:bad status code \[)?(40[13])\b"
)
_GIVEN_UP = re.compile(
    r"(Giving up on md from|Unable to get metadata|IMDS's HTTP endpoint is probably disabled"
    r"|No instance datasource found|Used fallback datasource)"
)
_TOKENS = (
    "the metadata service wants a token (IMDSv2), and the image's cloud-init asks without; "
    'metadata_tokens = "optional" in [clouds.NAME] lets machines of EC2 be launched otherwise'
)


class Shows(Protocol):
    """What is asked of the machines of a cloud: see `clouds.base.Machines`."""

    def console(self, machine: str) -> str:
        """What the machine has printed; empty where there is nothing."""


def unread(console: str) -> str:
    """Why a boot can't read its user-data, as its console says; "" where it doesn't say so.

    The console's last word counts, and control characters are taken out: it is an image's own text.
    """
    refused = given_up = ""
    for line in console.splitlines()[-_LINES:]:
        if found := _REFUSED.search(line):
            refused = f"{_plain(found[1])} answers {found[2]}: {_TOKENS}"
        elif _GIVEN_UP.search(line):
            given_up = _plain(line)
        elif "updraft-boot:" in line:  # our own script, which came with the user-data
            return ""
    return refused or given_up


def _plain(line: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in line).strip()[-_LONGEST:]


class Boots:
    """One cloud's boots that can't read their user-data, by machine."""

    def __init__(self, cloud: str, stale_after: float, asking: Asking) -> None:
        self._cloud = cloud
        self._asker: Asker[tuple[str, str]] = Asker(f"cloud {cloud}", stale_after=stale_after, asking=asking)
        self._asked: dict[str, float] = {}
        self._found: dict[str, str] = {}

    def look(
        self,
        cloud: Shows,
        instances: Iterable[Instance],
        records: Iterable[MachineRecord],
        clock: Callable[[], float],
    ) -> tuple[Reason, ...]:
        """What is known now, after asking for one console more; nothing is waited for."""
        now = clock()
        young = [
            one.id
            for one in records
            if one.joined_at is None
            and one.cloud == self._cloud
            and one.end is None
            and FIRST <= now - one.requested_at < LATEST
        ]
        up = {one.id for one in instances if one.alive} if young else frozenset()
        booting = [one for one in young if one in up]
        before = self._asker.asked_at
        if booting and not 0 <= now - (math.inf if before is None else before) < AGAIN:
            machine = min(booting, key=lambda one: (self._asked.get(one, 0.0), one))
            self._asker.ask(lambda: (machine, cloud.console(machine)), now)
            self._asked[machine] = now
        answer = self._asker.answer(0.0, clock())
        if isinstance(answer, Known):
            machine, console = answer.value
            self._found[machine] = unread(console)
        self._asked = {one: at for one, at in self._asked.items() if one in booting}
        self._found = {one: why for one, why in self._found.items() if one in booting}
        return tuple(
            Reason(UNREAD_BOOT, f"machine {one} of cloud {self._cloud} can't read its user-data: {why}")
            for one, why in sorted(self._found.items())
            if why
        )
