"""Whether this host's clock is right: it is compared with one that nobody sets, and with the collector's."""

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from updraft.core.model import Reason

JUMP = 30.0
"""Seconds by which two clocks may differ from one look to the next: one that is slewed stays far below."""
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def this_boot() -> str:
    """What Linux calls this boot of the host, through which the steady clock goes on; empty where unknown."""
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


class ClockWatch:
    """Remembers both clocks from look to look, and from process to process by its `note`.

    The wall clock tells deadlines, leases and when an ad was heard of. One that is set (by hand, by a time
    server after a long silence, with a machine that was suspended) makes them pass all at once. `noted` is
    the note of an earlier process, which counts if the host has not been booted since.
    """

    def __init__(self, noted: Mapping[str, Any] | None = None, boot: str = "") -> None:
        self._boot = boot
        self._offset: float | None = None  # the wall clock less the steady one
        self.jumped_at: float | None = None
        self.by = 0.0
        if noted and boot and noted.get("boot") == boot:
            self._offset, self.jumped_at = _number(noted.get("offset")), _number(noted.get("jumped_at"))
        self._noted = self._offset

    @property
    def note(self) -> dict[str, Any]:
        """What a later process is to know. It changes when the clock has jumped."""
        return {"boot": self._boot, "offset": self._noted, "jumped_at": self.jumped_at}

    def look(self, wall: float, steady: float) -> bool:
        """Take both as they are now, in seconds; whether the wall clock has jumped since the last look."""
        last, self._offset = self._offset, wall - steady
        if self.jumped_at is not None and self.jumped_at > wall:
            self.jumped_at = wall  # it was set back since: from now on, then
        if self._noted is None or abs(self._offset - self._noted) > JUMP:
            self._noted = self._offset
        if last is None:
            return False
        self.by = self._offset - last
        if abs(self.by) <= JUMP:
            return False
        self.jumped_at = wall
        return True

    def compare(self, wall: float, ahead: float | None, most: float) -> Reason | None:
        """Why this clock isn't to be believed: it is more than `most` seconds off the collector's.

        `ahead` is how far it is ahead of that one, None where nobody knows. As long as they differ it is as
        if the clock had just jumped.
        """
        if ahead is None or abs(ahead) <= most:
            return None
        self.jumped_at = wall
        where = f"{abs(ahead):.0f} s {'ahead of' if ahead > 0 else 'behind'} the collector's"
        text = f"this host's clock is {where}: no deadline is acted on until they agree"
        return Reason("clock-differs", text)

    @property
    def reason(self) -> Reason:
        """The latest jump in words."""
        where = f"{abs(self.by):.0f} s {'ahead' if self.by > 0 else 'back'}"
        text = f"this host's clock has jumped {where}: no deadline is acted on until all were heard of again"
        return Reason("clock-jumped", text)


def _number(value: object) -> float | None:
    return value if isinstance(value, float) and math.isfinite(value) else None
