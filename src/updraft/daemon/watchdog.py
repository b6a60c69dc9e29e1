"""Telling systemd that the controller moves, as long as its loop and each of its lanes do.

A thread of its own looks, so that a loop or a lane that stands still is noticed by somebody who doesn't. Then
the stacks of all threads go to the log, and the pings stop: systemd ends the process and starts another one.
A process that can't even run this thread has its stacks written by a timer outside of Python.
"""

import faulthandler
import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import structlog

from updraft.act.lanes import UnderWay
from updraft.daemon.notify import Notify

CALL = 180.0
"""Seconds that one call to a cloud takes at most. Its own deadline is 50 s at most (`timeout` of a cloud); a
read is tried again on a new connection, and credentials and the API's version may have to be had first."""
LANE = 10 * CALL
"""Seconds that an action in a lane may take, beside a call for each of its machines: ten calls one after the
other (look-ups, pages of a listing, the request itself), among them HTCondor's tools with 10 or 20 s each."""
LOOP = 300.0
"""Seconds that a turn of the loop may take. What it waits for has deadlines that add up to less than half of
it: the look 70 s (collector, clouds, schedds, matching), who acts 50 s (HTCondor's answers, 5 s each), the
actions two times 10 s. What it computes has none, and takes seconds in the largest pools."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """Something that has to move: when it last did (`at`), and how many seconds it may stand (`within`)."""

    name: str
    at: float
    within: float


def standing_still(beats: Iterable[Heartbeat], now: float) -> tuple[Heartbeat, ...]:
    """Those that haven't moved for longer than they may; `at` and `now` are seconds of one clock."""
    return tuple(beat for beat in beats if now - beat.at > beat.within)


def of_lanes(tasks: Iterable[UnderWay]) -> tuple[Heartbeat, ...]:
    """The tasks of lanes: each moves when it begins, and may take a call for each of its machines."""
    return tuple(Heartbeat(f"lane {t.lane}: {t.name}", t.since, LANE + CALL * t.machines) for t in tasks)


def interval(environment: Mapping[str, str] = os.environ, pid: int | None = None) -> float | None:
    """Seconds in which systemd wants to hear of this process (WATCHDOG_USEC); None where it doesn't."""
    whose = environment.get("WATCHDOG_PID", "")
    if whose and whose != str(os.getpid() if pid is None else pid):
        return None
    text = environment.get("WATCHDOG_USEC", "")
    return int(text) / 1e6 if text.isascii() and text.isdigit() and int(text) else None


class Watchdog:
    """Pings while it is entered, four times in each interval, unless something stands still.

    `every` is systemd's interval; None does nothing at all. `under_way` says what the lanes do.
    """

    def __init__(
        self,
        under_way: Callable[[], Iterable[UnderWay]],
        notify: Notify,
        every: float | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._under_way = under_way
        self._notify = notify
        self._every = every
        self._clock = clock
        self._beat = clock()
        self._still: tuple[Heartbeat, ...] = ()
        self._quit = threading.Event()
        self._thread: threading.Thread | None = None
        self._log = structlog.get_logger("updraft")

    def beat(self) -> None:
        """The loop moves."""
        self._beat = self._clock()

    def __enter__(self) -> Self:
        if self._every is not None:
            self.beat()
            _write_stacks_after(self._every)  # before anything else has a chance to keep the interpreter
            self._thread = threading.Thread(
                target=self._run, args=(self._every,), daemon=True, name="updraft-watchdog"
            )
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._thread is not None:
            self._quit.set()
            self._thread.join()
            faulthandler.cancel_dump_traceback_later()

    def _run(self, every: float) -> None:
        while True:
            self._look(every)
            if self._quit.wait(every / 4):
                return

    def _look(self, every: float) -> None:
        beats = (Heartbeat("the loop", self._beat, LOOP), *of_lanes(self._under_way()))
        still = standing_still(beats, self._clock())
        if not still:
            _write_stacks_after(every)
            self._notify("WATCHDOG=1")
        elif not self._still:
            # The stacks first, and past the log's own lock: it may be what somebody waits for.
            faulthandler.cancel_dump_traceback_later()
            faulthandler.dump_traceback(all_threads=True)
            self._log.error(
                f"stands still for longer than it may: {_names(still)}. The stacks of all threads are above, "
                "and systemd hears nothing any more",
                code="stands-still",
            )
        if self._still and not still:
            self._log.warning(f"moves again: {_names(self._still)}", code="moves-again")
        self._still = still


def _write_stacks_after(every: float) -> None:
    """By a thread that needs nothing of Python's: before systemd ends us, whatever is stuck."""
    faulthandler.dump_traceback_later(every * 3 / 4)


def _names(beats: Iterable[Heartbeat]) -> str:
    return "; ".join(beat.name[:200] for beat in beats)
