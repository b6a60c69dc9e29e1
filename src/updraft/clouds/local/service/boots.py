"""How many machines of a local cloud boot at once: all of them share the cores of one host."""

import os
import threading
from collections import deque
from collections.abc import Callable

LONGEST = 30.0
"""Seconds after which a boot no longer keeps others waiting: it may well install something from afar."""

_LOOK_AGAIN = 1.0


def at_once() -> int:
    """Two for each core, so that none is idle while a boot waits for something."""
    return 2 * (os.cpu_count() or 1)


class Boots:
    """Lets machines boot in the order in which they were asked for, so many at once."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._going = 0
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    @property
    def waiting(self) -> int:
        """How many wait for their turn."""
        with self._changed:
            return len(self._queue)

    def one(self, boot: Callable[[], threading.Event | None], cancelled: threading.Event) -> bool:
        """Wait for this machine's turn, call `boot`, and wait until the event that it returns is set.

        None is a boot that has ended already. False where `cancelled` was set before the machine's turn.
        """
        if not self._turn(cancelled):
            return False
        try:
            done = boot()
            if done is not None:
                done.wait(LONGEST)
        finally:
            with self._changed:
                self._going -= 1
                self._changed.notify_all()
        return True

    def _turn(self, cancelled: threading.Event) -> bool:
        place = object()
        with self._changed:
            self._queue.append(place)
            while not cancelled.is_set() and (self._queue[0] is not place or self._going >= self._most):
                self._changed.wait(_LOOK_AGAIN)
            self._queue.remove(place)
            self._changed.notify_all()
            if cancelled.is_set():
                return False
            self._going += 1
            return True
