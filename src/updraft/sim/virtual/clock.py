"""Virtual time: what is due happens in its order, and nothing waits."""

import heapq
import itertools
from collections.abc import Callable

START = 1_800_000_000.0  # a POSIX time like any other


class Timeline:
    """A clock and the things that are due on it. Calling it tells the time, in POSIX seconds."""

    def __init__(self, start: float = START) -> None:
        self.now = start
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def __call__(self) -> float:
        return self.now

    def at(self, when: float, what: Callable[[], None]) -> None:
        """Let this happen then; what is due at the same time happens in the order of these calls."""
        heapq.heappush(self._due, (max(when, self.now), next(self._order), what))

    def after(self, delay: float, what: Callable[[], None]) -> None:
        """Let this happen `delay` seconds from now."""
        self.at(self.now + delay, what)

    def every(self, interval: float, what: Callable[[], None]) -> None:
        """Let this happen again and again, first `interval` seconds from now."""

        def again() -> None:
            what()
            self.after(interval, again)

        self.after(interval, again)

    def run_until(self, when: float) -> None:
        """Let time pass until `when`, with everything that is due by then."""
        while self._due and self._due[0][0] <= when:
            self.now, _, what = heapq.heappop(self._due)
            what()
        self.now = max(self.now, when)
