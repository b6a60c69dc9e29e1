"""What is still to happen in a simulated world, in the order of its time."""

import heapq
from collections.abc import Callable
from typing import Any


class Agenda:
    """A clock in POSIX seconds and what is due on it.

    `changes` counts what has changed for anybody who looks, as far as `touched` was called; `changed_at` is
    when that was last.
    """

    def __init__(self, start: float) -> None:
        self.now = start
        self.changes = 0
        self.changed_at = start
        self._due: list[tuple[float, int, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, when: float, what: Callable[..., None], *given: Any) -> None:
        """Let this happen then; what is due at the same time happens in the order of these calls."""
        self._count += 1
        heapq.heappush(self._due, (when, self._count, what, given))

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
