"""Counting what a cloud is asked, how long it took and how often it failed: no driver need do it itself.

It goes next to the driver's own machines: what is answered from memory, or refused before the cloud is asked,
is no call. A call of a driver may be several of the cloud's API, such as the pages of a listing.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from updraft.clouds.base import Machines
from updraft.clouds.wrapping import Wrapper
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


class Counted(Wrapper):
    """Machines whose calls are counted in a tally."""

    def __init__(
        self, machines: Machines, tally: CallTally, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(machines)
        self._tally = tally
        self._clock = clock

    @contextmanager
    def _asking(self, method: str) -> Iterator[Machines]:
        begun, failure = self._clock(), UNEXPECTED
        try:
            yield self._machines
            failure = ""
        except CloudError as error:
            failure = error.code
            raise
        finally:
            self._tally.add(CloudCall(self.name, method, failure), self._clock() - begun)
