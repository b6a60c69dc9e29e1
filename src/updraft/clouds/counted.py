"""Counting what a cloud is asked, how long it took and how often it failed: no driver need do it itself.

It goes next to the driver itself: what is answered from memory, or refused before the cloud is asked, is no
call. A call of a driver may be several of the cloud's API, such as the pages of a listing.
"""

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from updraft.clouds.base import Driver, Found, LaunchRequest
from updraft.core.model import CloudOffer, Instance, Quota
from updraft.errors import CloudError

UNEXPECTED = "unexpected"
"""The code of a failure that a driver has no name for."""


@dataclass(frozen=True, slots=True)
class CloudCall:
    """A kind of call: the `cloud`, the driver's method, and the code of its failure, "" where it has none."""

    cloud: str
    method: str
    failure: str = ""


class CallTally:
    """How many calls there were of each kind, and how many seconds they took. Safe for many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[CloudCall, tuple[int, float]] = {}

    def add(self, call: CloudCall, seconds: float) -> None:
        """Count a call that has ended."""
        with self._lock:
            number, took = self._found.get(call, (0, 0.0))
            self._found[call] = number + 1, took + max(0.0, seconds)

    def taken(self) -> Mapping[CloudCall, tuple[int, float]]:
        """The calls since this was last asked, each kind with its number and its seconds."""
        with self._lock:
            found, self._found = self._found, {}
        return found


class Counted:
    """A driver whose calls are counted in a tally. `driver` is what is wrapped."""

    def __init__(self, driver: Driver, tally: CallTally, clock: Callable[[], float] = time.monotonic) -> None:
        self.driver = driver
        self.name = driver.name
        self._tally = tally
        self._clock = clock

    @contextmanager
    def _counting(self, method: str) -> Iterator[None]:
        begun, failure = self._clock(), UNEXPECTED
        try:
            yield
            failure = ""
        except CloudError as error:
            failure = error.code
            raise
        finally:
            self._tally.add(CloudCall(self.name, method, failure), self._clock() - begun)

    def machines(self) -> tuple[Instance, ...]:
        """As the driver."""
        with self._counting("machines"):
            return self.driver.machines()

    def look_up(self, ids: Iterable[str]) -> Found:
        """As the driver."""
        with self._counting("look_up"):
            return self.driver.look_up(ids)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """As the driver."""
        with self._counting("launch"):
            return self.driver.launch(request)

    def terminate(self, ids: Iterable[str]) -> None:
        """As the driver."""
        with self._counting("terminate"):
            self.driver.terminate(ids)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """As the driver."""
        with self._counting("tag"):
            self.driver.tag(ids, tags)

    def offers(self) -> tuple[CloudOffer, ...]:
        """As the driver."""
        with self._counting("offers"):
            return self.driver.offers()

    def quota(self) -> Quota:
        """As the driver."""
        with self._counting("quota"):
            return self.driver.quota()

    def console(self, machine: str) -> str:
        """As the driver."""
        with self._counting("console"):
            return self.driver.console(machine)
