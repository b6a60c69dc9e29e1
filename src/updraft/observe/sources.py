"""Asking a source that may be slow, broken or silent, without waiting for it longer than its deadline.

`Asker` is one source. `ById` asks a cloud for single machines that its listing has no more: some at a time,
and none too often.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar, cast

from updraft.clouds.base import Aged, Found
from updraft.core.model import Instance, Known, Reason, Source, Unknown
from updraft.errors import CloudError, PoolDenied, PoolError, PoolTimeout, UpdraftError

T = TypeVar("T")
BRIEFLY = 1.0  # seconds: the patience with a source that had no answer the last time


def why(error: BaseException) -> Reason:
    """An error as a reason: its short code, and what it says."""
    text = " ".join(str(error).split())[:500] or type(error).__name__
    if isinstance(error, CloudError):
        return Reason(error.code, text)
    codes = ((PoolTimeout, "pool-timeout"), (PoolDenied, "pool-denied"), (PoolError, "pool-error"))
    for kind, code in codes:
        if isinstance(error, kind):
            return Reason(code, text)
    if isinstance(error, UpdraftError):
        return Reason("error", text)
    return Reason("unexpected", f"{type(error).__name__}: {text}")


@dataclass(frozen=True, slots=True)
class Asking:
    """How questions are asked, and by which clock it is measured how long they take.

    Each in a thread of its own, or `inline`, in the caller's. `stopwatch` says seconds since any beginning.
    `wait` waits for an event, at most so many seconds, and says whether it came. Virtual time brings its own.
    """

    inline: bool = False
    stopwatch: Callable[[], float] = time.monotonic
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait


VIRTUAL = Asking(inline=True, stopwatch=lambda: 0.0)  # in virtual time no answer takes any


class _Question(Generic[T]):
    """One call under way, in a thread that nobody has to wait for."""

    def __init__(self, call: Callable[[], T | Aged[T]], at: float, asking: Asking) -> None:
        self.at = at
        self._stopwatch, self._wait = asking.stopwatch, asking.wait
        self.took = 0.0
        self.value: T | Aged[T] | None = None
        self.error: Exception | None = None
        self.done: threading.Event | None = None
        self.ended = False
        if asking.inline:
            self._run(call)
        else:
            self.done = threading.Event()
            threading.Thread(target=self._run, args=(call,), daemon=True, name="updraft-ask").start()

    def _run(self, call: Callable[[], T | Aged[T]]) -> None:
        begun = self._stopwatch()
        try:
            self.value = call()
        except Exception as error:  # whatever went wrong, the source is unknown, and the loop goes on
            self.error = error
        finally:
            self.took = self._stopwatch() - begun
            self.ended = True
            if self.done is not None:
                self.done.set()

    def wait(self, seconds: float) -> bool:
        """Whether the call has ended, after waiting for it for so long at the most."""
        return self.ended or (self.done is not None and self._wait(self.done, max(0.0, seconds)))


def _dated(question: _Question[T]) -> Known[T]:
    """The answer as of when the cloud was really asked: a cloud may be answered for from memory."""
    value = question.value
    if isinstance(value, Aged):
        return Known(value.value, question.at - max(0.0, value.age - question.took))
    return Known(cast(T, value), question.at)


class Asker(Generic[T]):
    """One source. At most one question is under way; a late answer is taken at the next look.

    `stale_after`: an answer to a question asked longer ago than this is no answer about now. With `hurried` a
    source that usually answers soon is given up soon: one of many that all wait for the slowest.
    """

    def __init__(
        self, name: str, *, stale_after: float, hurried: bool = False, asking: Asking | None = None
    ) -> None:
        self.name = name
        self._stale_after = stale_after
        self._hurried = hurried
        self._usual: float | None = None
        self._asking = asking or Asking()
        self._waited = False
        self._question: _Question[T] | None = None
        self._last: Known[T] | None = None
        self._error: Reason | None = None
        self._since = 0.0
        self.asked_at: float | None = None
        self.took = 0.0

    def ask(self, call: Callable[[], T | Aged[T]], now: float) -> None:
        """Ask, unless an earlier question is still under way. An aged answer is known as of its own time."""
        if self._question is None:
            self.asked_at = now
            self._waited = False
            self._question = _Question(call, now, self._asking)

    def answer(self, patience: float, now: float) -> Source[T]:
        """What is known after waiting at most `patience` seconds."""
        question = self._question
        if question is not None:
            # A source that is slow is waited for once, and then only looked at: it holds nobody else up.
            patience = 0.0 if self._waited else self._patience(patience)
            if question.wait(patience):
                self._question = None
                self._take(question, now)
            else:
                self._waited = True
                self._fail(Reason("timeout", f"{self.name} has not answered yet"), question.at)
                self.took = max(self.took, patience)
        return self.state

    def _patience(self, most: float) -> float:
        if self.failing:
            return min(most, BRIEFLY)
        if not self._hurried or self._usual is None:
            return most
        # Twice as long as usual; where even that is too long, waiting is of no use.
        wanted = max(BRIEFLY, 2 * self._usual)
        return wanted if wanted <= most else min(most, BRIEFLY)

    def _take(self, question: _Question[T], now: float) -> None:
        self.took = question.took
        if question.error is None:
            self._usual = max(question.took, 0.9 * (self._usual or 0.0))
        if question.error is not None:
            self._fail(why(question.error), question.at)
            return
        self._last = _dated(question)
        if now - question.at > self._stale_after:
            self._fail(Reason("late", f"{self.name} answered too late to be of use"), question.at)
        else:
            self._error = None

    def _fail(self, reason: Reason, at: float) -> None:
        if self._error is None:
            self._since = at
        self._error = reason

    @property
    def failing(self) -> bool:
        """True while the last question had no answer."""
        return self._error is not None

    @property
    def silent_since(self) -> float:
        """When the first of the questions was asked that have had no answer."""
        return self._since

    @property
    def state(self) -> Source[T]:
        """What is known without asking."""
        if self._error is None and self._last is not None:
            return self._last
        error = self._error or Reason("not-asked", f"{self.name} was not asked yet")
        return Unknown(error, self._since, self._last)


AGAIN = 10.0  # seconds between two questions about the same machine
AT_ONCE = 200  # machines: a cloud may take a call for each


class LooksUp(Protocol):
    """What is asked of the machines of a cloud: see `clouds.base.Machines`."""

    def look_up(self, ids: Iterable[str]) -> Found:
        """What the cloud says of these instances."""


class ById:
    """One cloud's answers about single machines, each with the time of its question.

    What the cloud can't say leaves the last answer as it is; whoever reads it sees how old that is.
    """

    def __init__(self, cloud: str, stale_after: float, asking: Asking) -> None:
        self._asker: Asker[Found] = Asker(cloud, stale_after=stale_after, hurried=True, asking=asking)
        self._asked: dict[str, float] = {}
        self._found: dict[str, Known[Instance | None]] = {}

    def found(
        self, machines: LooksUp, wanted: Sequence[str], patience: float, clock: Callable[[], float]
    ) -> Mapping[str, Known[Instance | None]]:
        """What is known of the `wanted` ones, after waiting for a moment, `patience` seconds at the most."""
        if not wanted:
            self._asked, self._found = {}, {}
            return {}
        now = clock()
        # A clock that was set back makes nothing wait until it is as late again.
        due = [id_ for id_ in wanted if not 0 <= now - self._asked.get(id_, math.inf) < AGAIN]
        if due:
            due = sorted(due, key=lambda id_: self._asked.get(id_, 0.0))[:AT_ONCE]
            self._ask(machines, due, now)
        answer = self._asker.answer(min(patience, BRIEFLY), clock())
        if isinstance(answer, Known):
            self._found.update({id_: Known(one, answer.at) for id_, one in answer.value.items()})
        self._asked = {id_: self._asked[id_] for id_ in wanted if id_ in self._asked}
        self._found = {id_: self._found[id_] for id_ in wanted if id_ in self._found}
        return dict(self._found)

    def _ask(self, machines: LooksUp, due: Sequence[str], now: float) -> None:
        before = self._asker.asked_at
        self._asker.ask(lambda: machines.look_up(due), now)
        if self._asker.asked_at != before:  # else an earlier question is still under way
            self._asked.update(dict.fromkeys(due, now))
