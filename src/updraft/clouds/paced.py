"""Asking a cloud no more often than it has news: a wrapper, so that no driver need keep an answer.

The loop looks every few seconds; a remote cloud where nothing happens is asked every ten. An answer from
memory says how old it is, so that nobody takes it for a look.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Generic, TypeVar

from updraft.clouds.base import Aged, Machines, Pace
from updraft.clouds.wrapping import Wrapper
from updraft.core.model import CloudOffer, CloudState, Instance, Quota
from updraft.errors import CloudError

T = TypeVar("T")

MOVING = (CloudState.PENDING, CloudState.STOPPING)
REST = 2.0  # times as long as an answer took
LONGEST_REST = 30.0


class _Memory(Generic[T]):
    """The last answer to one question. What was asked before a change is not kept after it.

    A cloud that is slow is left alone for twice as long as its answer took, or its error: to ask on and on is
    what would keep it slow.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._answer: tuple[T, float, float] | None = None
        self._error: tuple[CloudError, float] | None = None
        self._change = 0

    def get(self, ask: Callable[[], T], lasts: Callable[[T], float]) -> Aged[T]:
        """The last answer, or error, while it lasts, else a new one. Raises what `ask` raises."""
        with self._lock:
            now = self._clock()
            if self._error is not None and now < self._error[1]:
                raise self._error[0]
            if self._answer is not None and now < self._answer[2]:
                return Aged(self._answer[0], now - self._answer[1])
            change = self._change
        try:
            value = ask()
        except CloudError as error:
            with self._lock:
                if change == self._change:
                    self._error = (error, self._rested(now))
            raise
        with self._lock:
            if change == self._change:
                self._answer = (value, now, max(now + lasts(value), self._rested(now)))
                self._error = None
        return Aged(value, self._clock() - now)

    def _rested(self, begun: float) -> float:
        """Until when a cloud rests that was asked at `begun` and has answered now."""
        now = self._clock()
        return now + min(REST * (now - begun), LONGEST_REST)

    def forget(self) -> None:
        """Something changed: the next answer is a new one, also if one is under way now."""
        with self._lock:
            self._change += 1
            self._answer, self._error = None, None


class Paced(Wrapper):
    """Machines that are asked for, as offers and quota are, at a pace of their own. It keeps `Remembering`.

    They are asked at once after anything that was done through this wrapper. As long as any machine is on its
    way up or down, they are asked as soon as the cloud has rested. Safe for many threads.
    """

    def __init__(self, machines: Machines, pace: Pace, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(machines)
        self._pace = pace
        self._listing: _Memory[tuple[Instance, ...]] = _Memory(clock)
        self._offers: _Memory[tuple[CloudOffer, ...]] = _Memory(clock)
        self._quota: _Memory[Quota] = _Memory(clock)

    def machines(self) -> tuple[Instance, ...]:
        """As the cloud says, or said lately."""
        return self.aged_machines().value

    def aged_machines(self) -> Aged[tuple[Instance, ...]]:
        """The same, with the age of the answer."""
        return self._listing.get(super().machines, self._machines_last)

    def offers(self) -> tuple[CloudOffer, ...]:
        """As the cloud says, or said lately."""
        return self._offers.get(super().offers, lambda _: self._pace.offers).value

    def quota(self) -> Quota:
        """As the cloud says, or said lately."""
        return self.aged_quota().value

    def aged_quota(self) -> Aged[Quota]:
        """The same, with the age of the answer."""
        return self._quota.get(super().quota, lambda _: self._pace.quota)

    def _machines_last(self, machines: tuple[Instance, ...]) -> float:
        if any(one.state in MOVING for one in machines):
            return 0.0
        pages = -(-len(machines) // self._pace.page)
        return self._pace.machines * max(1, pages)

    @contextmanager
    def _changing(self, method: str) -> Iterator[Machines]:
        try:
            with self._asking(method) as asked:
                yield asked
        finally:  # also a call that failed may have done something
            self._listing.forget()
            self._quota.forget()
