"""What goes wrong on a fake cloud, told as data."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from updraft.errors import (
    AuthFailed,
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
)

ERRORS: dict[str, type[CloudError]] = {
    kind.code: kind
    for kind in (NoCapacity, QuotaExceeded, Throttled, AuthFailed, BadRequest, CloudUnavailable)
}


@dataclass(frozen=True, slots=True)
class Fault:
    """An error that the cloud answers with: which, to which calls, when and how often.

    `error` is the code of a `CloudError`; `call`, `zone` and `flavor` are shell patterns; `times` None is
    every time between `start` and `until` (POSIX seconds). With `after` the cloud does what it was asked
    to and only then fails: a time-out though the machines were made. `retry_after` is in seconds.
    """

    error: str
    call: str = "launch"
    zone: str = "*"
    flavor: str = "*"
    start: float = -math.inf
    until: float = math.inf
    times: int | None = None
    after: bool = False
    message: str = "this is what the fake cloud was told to answer"
    retry_after: float | None = None

    def __post_init__(self) -> None:
        if self.error not in ERRORS:
            raise ValueError(f"no error of a cloud is called {self.error!r}: one of {', '.join(ERRORS)}")

    def hits(self, call: str, zone: str, flavor: str, now: float) -> bool:
        """True if this fault concerns this call at this time."""
        return (
            self.start <= now < self.until
            and fnmatchcase(call, self.call)
            and fnmatchcase(zone, self.zone)
            and fnmatchcase(flavor, self.flavor)
        )

    def exception(self) -> CloudError:
        """A fresh error to raise."""
        if self.error == Throttled.code:
            return Throttled(self.message, self.retry_after)
        return ERRORS[self.error](self.message)


class Faults:
    """The faults of one site, with how often each has struck."""

    def __init__(self, faults: Iterable[Fault] = ()) -> None:
        self._active: list[tuple[Fault, int]] = [(fault, 0) for fault in faults]

    def add(self, fault: Fault) -> None:
        """From now on, this goes wrong too."""
        self._active.append((fault, 0))

    def clear(self) -> None:
        """Everything works again."""
        self._active.clear()

    def raise_for(self, call: str, now: float, *, zone: str = "", flavor: str = "", after: bool) -> None:
        """Raise the first fault that concerns this call, and count it; return if there is none."""
        for index, (fault, struck) in enumerate(self._active):
            spent = fault.times is not None and struck >= fault.times
            if not spent and fault.after == after and fault.hits(call, zone, flavor, now):
                self._active[index] = (fault, struck + 1)
                raise fault.exception()
