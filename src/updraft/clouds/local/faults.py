"""Failures that a test can ask of the local cloud."""

from dataclasses import dataclass
from enum import StrEnum


class FaultKind(StrEnum):
    """What goes wrong."""

    SLOW_BOOT = "slow-boot"  # the machine boots `seconds` later
    NEVER_BOOTS = (
        "never-boots"  # the machine runs and does nothing; its console says that the kernel panicked
    )
    NO_CAPACITY = "no-capacity"  # launches are refused: no room
    THROTTLED = "throttled"  # calls are refused: too many; `seconds` is what the answer says to wait
    AUTH_FAILED = "auth-failed"  # calls are refused: the credential is not accepted
    API_DOWN = "api-down"  # calls fail on the cloud's side
    API_SLOW = "api-slow"  # calls take `seconds` longer
    LOST_ANSWER = "lost-answer"  # the launch is done, and its answer fails: for the caller it is unknown


_AT_BOOT = frozenset({FaultKind.SLOW_BOOT, FaultKind.NEVER_BOOTS})
_AT_LAUNCH = frozenset({FaultKind.NO_CAPACITY, FaultKind.LOST_ANSWER})


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure and what it touches: "*" is everything.

    It starts to bite after `skip` occasions (so that "broken after N" can be said), for `times` occasions
    (None: always), and ends `lasts` seconds after it was asked for (None: never). An occasion is
    a machine for boots and capacity, a call for the others.
    """

    kind: FaultKind
    image: str = "*"
    flavor: str = "*"
    zone: str = "*"
    seconds: float = 0.0
    skip: int = 0
    times: int | None = None
    lasts: float | None = None

    def touches(self, image: str, flavor: str, zone: str) -> bool:
        """True where a machine of this image, flavor and zone is meant."""
        pairs = ((self.image, image), (self.flavor, flavor), (self.zone, zone))
        return all(mine in ("*", theirs) for mine, theirs in pairs)


@dataclass(slots=True)
class _Armed:
    fault: Fault
    since: float
    seen: int = 0


class Faults:
    """The faults asked for, and how often each had its occasion. Not locked: the cloud's lock holds it."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []

    def set(self, faults: list[Fault], now: float) -> None:
        """Replace all faults by these."""
        self._armed = [_Armed(fault, now) for fault in faults]

    def boot(self, image: str, flavor: str, zone: str, now: float) -> Fault | None:
        """The fault that this machine's boot suffers."""
        return self._bite(_AT_BOOT, now, (image, flavor, zone))

    def launch(self, kind: FaultKind, image: str, flavor: str, zone: str, now: float) -> bool:
        """True where this launch, or this machine of it, suffers `kind`."""
        return self._bite(frozenset({kind}) & _AT_LAUNCH, now, (image, flavor, zone)) is not None

    def call(self, now: float) -> list[Fault]:
        """The faults that this API call suffers."""
        kinds = (FaultKind.API_SLOW, FaultKind.API_DOWN, FaultKind.THROTTLED, FaultKind.AUTH_FAILED)
        found = (self._bite(frozenset({kind}), now, None) for kind in kinds)
        return [fault for fault in found if fault is not None]

    def _bite(
        self, kinds: frozenset[FaultKind], now: float, what: tuple[str, str, str] | None
    ) -> Fault | None:
        for armed in self._armed:
            fault = armed.fault
            if fault.kind not in kinds or (what and not fault.touches(*what)):
                continue
            if fault.lasts is not None and now > armed.since + fault.lasts:
                continue
            armed.seen += 1
            past = armed.seen - fault.skip
            if past > 0 and (fault.times is None or past <= fault.times):
                return fault
        return None
