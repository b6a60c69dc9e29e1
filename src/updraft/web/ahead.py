"""Reads ahead of who asks: an open page is drawn from what was read a moment ago, and waits for nothing.

A large pool's picture takes a third of a second, a month's report as long. So a thread with a reader of its
own takes both while somebody looks, a twentieth of its time at most, and seldom while nobody does.
"""

import threading
import time
from contextlib import suppress

from updraft.errors import LedgerError
from updraft.web.looking import last_days, this_month
from updraft.web.pictures import Asked, Pictures

EVERY = 2.0
"""How often it reads while somebody looks, in seconds, or less often where that takes long."""
SELDOM = 240.0
"""How often it reads while nobody does."""
WATCHED = 60.0
"""How long somebody looks after a question, in seconds."""
PART = 0.05
"""How much of its time it reads."""
SHORTEST = 31
"""The days of the plots at first: with them a month's sums are read, too."""


class Ahead:
    """Keeps `pictures` supplied by `reading`, which reads the same ledger and is asked by nobody else."""

    def __init__(self, pictures: Pictures, reading: Pictures) -> None:
        self._pictures, self._reading = pictures, reading
        self._over = False
        self._wake = pictures.ahead = threading.Event()
        self._thread = threading.Thread(target=self._run, name="updraft-web-ahead", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Read no more."""
        self._over = True
        self._wake.set()
        self._thread.join()
        self._pictures.ahead = None
        self._reading.close()

    def _run(self) -> None:
        while not self._over:
            begun = time.monotonic()
            self._wake.clear()
            with suppress(LedgerError):  # who asks is told
                self._reading.wait_for(self._read)
            took = time.monotonic() - begun
            watched = time.monotonic() - self._pictures.asked_at < WATCHED
            self._wake.wait(max(EVERY, took / PART) if watched else SELDOM)

    def _read(self, reading: Pictures) -> None:
        """Read what is shown to who looks, and what will be asked for first. Raises LedgerError."""
        self._pictures.give(reading.picture(), {})
        now = time.time()
        first: tuple[Asked, ...] = (("user", this_month(now)), ("day", last_days(now, SHORTEST)))
        for key in dict.fromkeys((*first, *self._pictures.asked_lately(WATCHED))):
            self._pictures.give(None, {key: reading.made(key)})
