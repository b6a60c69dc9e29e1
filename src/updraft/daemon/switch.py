"""How the daemon sleeps, and what wakes it: the signals of its operator."""

import os
import select
import signal
from contextlib import suppress
from types import FrameType


class Switch:
    """`stop` and `reload` are set by signals; `wait` returns early when one comes."""

    def __init__(self) -> None:
        self.stop = False
        self.reload = False
        # A pipe, because nothing else that wakes a waiting thread may be used inside a signal handler.
        self._ear, self._mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def install(self) -> None:
        """Listen to SIGTERM and SIGINT (stop), and SIGHUP (reload). Only in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heard)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stop = True
        self.wake()

    def wake(self) -> None:
        """End the wait under way, or the next one."""
        with suppress(BlockingIOError):  # full of wake-ups already
            os.write(self._mouth, b"!")

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until woken."""
        ready, _, _ = select.select([self._ear], [], [], max(0.0, seconds))
        if ready:
            os.read(self._ear, 4096)

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._ear)
        os.close(self._mouth)
