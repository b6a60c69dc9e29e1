"""Failures that a test can ask of the local cloud."""

import random
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class FaultKind(StrEnum):
    """What goes wrong."""

    # machines: an occasion is a machine
    SLOW_BOOT = "slow-boot"  # the machine boots `seconds` later
    NEVER_BOOTS = (
        "never-boots"  # the machine runs and does nothing; its console says that the kernel panicked
    )
    BOOT_CRASHES = "boot-crashes"  # the machine's host dies `seconds` after its system's start
    BOOT_HANGS = "boot-hangs"  # `seconds` after its system's start every process of it stops for good
    NO_USER_DATA = "no-user-data"  # the machine boots, and the metadata service has no user-data for it
    WANTS_TOKEN = "wants-token"  # the metadata service answers it by version 2 only  # noqa: S105
    SAME_ADDRESS = "same-address"  # the machine has the address that became free last
    NO_CAPACITY = "no-capacity"  # launches are refused: no room
    # calls: an occasion is a call
    THROTTLED = "throttled"  # calls are refused: too many; `seconds` is what the answer says to wait
    AUTH_FAILED = "auth-failed"  # calls are refused: the credential is not accepted
    API_DOWN = "api-down"  # calls fail on the cloud's side
    API_SLOW = "api-slow"  # calls take `seconds` longer
    NO_ANSWER = "no-answer"  # the call isn't done, and its connection ends after `seconds` without a word
    LATE_ANSWER = "late-answer"  # the call is done at once and answered `seconds` later
    LOST_ANSWER = "lost-answer"  # the call is done, and its answer fails: for the caller it is unknown
    # listings: an occasion is a machine
    LEAVES_OUT = "leaves-out"  # a machine isn't listed, but is told of by its id; for as long as this lasts
    WRONG_STATE = "wrong-state"  # a machine is shown in `state`, also by its id; likewise
    LAGS = "lags"  # what is shown, also by id, is that of `seconds` ago; an occasion is a call


_AT_BOOT = frozenset(
    {FaultKind.SLOW_BOOT, FaultKind.NEVER_BOOTS, FaultKind.BOOT_CRASHES, FaultKind.BOOT_HANGS}
)
_BEFORE = (
    FaultKind.API_SLOW, FaultKind.API_DOWN, FaultKind.THROTTLED, FaultKind.AUTH_FAILED, FaultKind.NO_ANSWER,
)  # fmt: skip
_AFTER = (FaultKind.LATE_ANSWER, FaultKind.LOST_ANSWER)


@dataclass(frozen=True, slots=True)
class What:
    """What a launch or a machine is: the words by which a fault may narrow down what it touches."""

    image: str = ""
    flavor: str = ""
    zone: str = ""
    market: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """One failure and what it touches: "*" is everything.

    It starts to bite after `skip` occasions (so that "broken after N" can be said), for `times` occasions
    (None: always), each with this `chance`, and ends `lasts` seconds after it was asked for (None: never).
    `call` is the API call that it touches. With a `rate` a fault is a bucket: so many calls a second pass,
    and `burst` at once, and the others suffer it.
    """

    kind: FaultKind
    image: str = "*"
    flavor: str = "*"
    zone: str = "*"
    market: str = "*"
    call: str = "*"
    state: str = ""
    seconds: float = 0.0
    chance: float = 1.0
    rate: float = 0.0
    burst: int = 1
    skip: int = 0
    times: int | None = None
    lasts: float | None = None

    def touches(self, what: What) -> bool:
        """True where a machine of this image, flavor, zone and market is meant."""
        pairs = (
            (self.image, what.image),
            (self.flavor, what.flavor),
            (self.zone, what.zone),
            (self.market, what.market),
        )
        return all(mine in ("*", theirs) for mine, theirs in pairs)

    @classmethod
    def read(cls, row: Mapping[str, Any]) -> "Fault":
        """A fault as JSON has it. Raises TypeError or ValueError where it is none."""
        return cls(**{**row, "kind": FaultKind(row["kind"])})


@dataclass(slots=True)
class _Armed:
    fault: Fault
    since: float
    draw: random.Random
    seen: int = 0
    level: float = field(default=0.0)
    filled: float = field(default=0.0)

    def over(self, now: float) -> bool:
        return self.fault.lasts is not None and now > self.since + self.fault.lasts

    def bites(self, now: float) -> bool:
        """Does this occasion suffer it? It counts."""
        fault = self.fault
        if fault.rate > 0:
            return not self._passes(now)
        self.seen += 1
        past = self.seen - fault.skip
        meant = past > 0 and (fault.times is None or past <= fault.times)
        return meant and (fault.chance >= 1 or self.draw.random() < fault.chance)

    def _passes(self, now: float) -> bool:
        if not self.filled:
            self.level, self.filled = float(self.fault.burst), now
        self.level = min(float(self.fault.burst), self.level + (now - self.filled) * self.fault.rate)
        self.filled = now
        if self.level < 1:
            return False
        self.level -= 1
        return True

    def bites_machine(self, id_: str) -> bool:
        """Does this machine suffer it? For as long as the fault lasts the answer is the same."""
        share = zlib.crc32(f"{self.since} {id_}".encode()) / 2**32
        return share < self.fault.chance


class Faults:
    """The faults asked for, and how often each had its occasion. Not locked: the cloud's lock holds it."""

    def __init__(self) -> None:
        self._armed: list[_Armed] = []

    def set(self, faults: Iterable[Fault], now: float) -> None:
        """Replace all faults by these."""
        self._armed = []
        self.add(faults, now)

    def add(self, faults: Iterable[Fault], now: float) -> None:
        """Have these too; those that are over are forgotten."""
        self._armed = [one for one in self._armed if not one.over(now)]
        self._armed += [_Armed(fault, now, random.Random()) for fault in faults]  # noqa: S311  # no secret

    def boot(self, what: What, now: float) -> Fault | None:
        """The fault that this machine's boot suffers."""
        return self._bite(_AT_BOOT, now, what)

    def machine(self, kind: FaultKind, what: What, now: float) -> bool:
        """True where this machine suffers `kind` from its launch on."""
        return self._bite(frozenset({kind}), now, what) is not None

    def before(self, call: str, what: What | None, now: float) -> list[Fault]:
        """The faults that this API call suffers before anything is done."""
        return self._of_call(_BEFORE, call, what, now)

    def after(self, call: str, what: What | None, now: float) -> list[Fault]:
        """The faults that this API call suffers once it is done."""
        return self._of_call(_AFTER, call, what, now)

    def lag(self, now: float) -> float:
        """How many seconds ago what this listing says was true."""
        fault = self._bite(frozenset({FaultKind.LAGS}), now, None)
        return fault.seconds if fault is not None else 0.0

    def listed_as(self, id_: str, state: str, what: What, now: float, *, by_id: bool = False) -> str:
        """The state in which a machine is shown now, "" where it isn't; `by_id` where it is asked for so."""
        for armed in self._armed:
            fault = armed.fault
            if armed.over(now) or not fault.touches(what) or not armed.bites_machine(id_):
                continue
            if fault.kind is FaultKind.LEAVES_OUT and not by_id:
                return ""
            if fault.kind is FaultKind.WRONG_STATE:
                return fault.state
        return state

    def _of_call(self, kinds: Iterable[FaultKind], call: str, what: What | None, now: float) -> list[Fault]:
        found = (self._bite(frozenset({kind}), now, what, call) for kind in kinds)
        return [fault for fault in found if fault is not None]

    def _bite(
        self, kinds: frozenset[FaultKind], now: float, what: What | None, call: str = ""
    ) -> Fault | None:
        for armed in self._armed:
            fault = armed.fault
            if fault.kind not in kinds or armed.over(now) or (what and not fault.touches(what)):
                continue
            if call and fault.call not in ("*", call):
                continue
            if armed.bites(now):
                return fault
        return None
