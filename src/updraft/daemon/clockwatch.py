"""Whether this host's clock jumps: it is compared with one that nobody sets."""

from updraft.core.model import Reason

JUMP = 30.0
"""Seconds by which the two may differ from one look to the next: a clock that is slewed stays far below."""


class ClockWatch:
    """Remembers both clocks from look to look.

    The wall clock tells deadlines, leases and when an ad was heard of. One that is set (by hand, by a time
    server after a long silence, with a machine that was suspended) makes them pass all at once.
    """

    def __init__(self) -> None:
        self._last: tuple[float, float] | None = None
        self.jumped_at: float | None = None
        self.by = 0.0

    def look(self, wall: float, steady: float) -> bool:
        """Take both as they are now, in seconds; whether the wall clock has jumped since the last look."""
        last, self._last = self._last, (wall, steady)
        if last is None:
            return False
        self.by = (wall - last[0]) - (steady - last[1])
        if abs(self.by) <= JUMP:
            return False
        self.jumped_at = wall
        return True

    @property
    def reason(self) -> Reason:
        """The latest jump in words."""
        where = f"{abs(self.by):.0f} s {'ahead' if self.by > 0 else 'back'}"
        text = f"this host's clock has jumped {where}: no deadline is acted on until all were heard of again"
        return Reason("clock-jumped", text)
