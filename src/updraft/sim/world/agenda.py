"""Virtual time: what is still to happen in a simulated world, in the order of its time. Nothing waits."""

import heapq
from collections.abc import Callable
from typing import Any

START = 1_800_000_000.0  # a POSIX time like any other


class Agenda:
    """A clock in POSIX seconds and what is due on it. Calling it tells the time.

    `changes` counts what has changed for anybody who looks, as far as `touched` was called; `changed_at` is
    when that was last.
    """

    def __init__(self, start: float = START) -> None:
        self.now = start
        self.changes = 0
        self.changed_at = start
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def __call__(self) -> float:
        return self.now

    def at(self, when: float, what: Callable[..., None], *given: Any) -> None:
        """Let this happen then; what is due at the same time happens in the order of these calls."""
        self._count += 1
        heapq.heappush(self._due, (when, self._count, what, given))

    def after(self, delay: float, what: Callable[..., None], *given: Any) -> None:
        """Let this happen `delay` seconds from now."""
        self.at(self.now + delay, what, *given)

    def every(self, interval: float, what: Callable[[], None], first: float | None = None) -> None:
        """Let this happen again and again, first after `first` seconds, an `interval` unless it is given."""

        def again(at: float) -> None:
            what()
            self.at(at + interval, again, at + interval)

        begins = self.now + (interval if first is None else first)
        self.at(begins, again, begins)

    def run_until(self, when: float) -> None:
        """Let time pass until `when`, with everything that is due by then."""
        due = self._due
        while due and due[0][0] <= when:
            at, _, what, given = heapq.heappop(due)
            if at > self.now:
                self.now = at
            what(*given)
        self.now = when

    def touched(self) -> None:
        """Something is different now: whoever looks sees something else than before."""
        self.changes += 1
        self.changed_at = self.now
