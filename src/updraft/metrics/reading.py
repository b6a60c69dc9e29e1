"""A picture of the ledger at one moment: all that the metrics and the alarms are made of."""

import base64
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from updraft.documents import plain
from updraft.documents.cycle import DaemonState
from updraft.errors import LedgerError
from updraft.ledger.counters import Counters
from updraft.ledger.reader import Reader
from updraft.ledger.usage_reading import records

COSTS_LAST = 60.0
"""Seconds for which a sum of all costs serves: it takes the longest, and grows slowly."""
POOL_TOKEN = "pool-token"  # noqa: S105 (what the credential is called)
_LAST_DAY = 10**6
_MOST = 64 * 1024  # bytes of a token's file

State = Callable[[Reader, float], DaemonState]
Costs = Mapping[tuple[str, str], float]
"""What the machines of each cloud have cost, by cloud and currency."""


@dataclass(frozen=True, slots=True)
class FiguresRead:
    """What was read at `now`.

    `state` says how the daemon is, `cycle` is the document of its last cycle: both empty where there is none.
    `unread` is why the ledger can't be read, None where it can. `expiries` are Unix times by credential.
    """

    now: float
    pool: str
    state: Mapping[str, Any] = field(default_factory=dict)
    cycle: Mapping[str, Any] = field(default_factory=dict)
    counters: Counters = field(default_factory=dict)
    costs: Costs = field(default_factory=dict)
    expiries: Mapping[str, float] = field(default_factory=dict)
    unread: str | None = None

    @property
    def up(self) -> bool:
        """Whether a controller is at work, acting or waiting for another."""
        return bool(self.state.get("alive"))

    @property
    def acting(self) -> bool:
        """Whether a controller is at work and acts."""
        return self.up and bool(self.state.get("acting"))


class LedgerSource:
    """Makes pictures of one ledger. `state` tells how the daemon is; `token` is its token's file, if any."""

    def __init__(
        self,
        ledger: Path,
        pool: str,
        state: State,
        token: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._ledger, self._pool, self._state, self._token = ledger, pool, state, token
        self._clock = clock
        self._costs: tuple[float, Costs] = (float("-inf"), {})

    def picture(self) -> FiguresRead:
        """The ledger as it is now; one that can't be read is a picture too."""
        now = self._clock()
        expiry = None if self._token is None else token_expiry(self._token)
        expiries = {} if expiry is None else {POOL_TOKEN: expiry}
        try:
            with Reader(self._ledger) as reader:
                cycle = reader.last_cycle() or {}
                return FiguresRead(
                    now,
                    self._pool,
                    plain(self._state(reader, now)),
                    cycle,
                    reader.counters(),
                    self._costs_of(reader, now),
                    {**expiries, **cloud_expiries(cycle)},
                )
        except LedgerError as error:
            return FiguresRead(now, self._pool, expiries=expiries, unread=str(error))
        except ValueError as error:  # a row that is no JSON
            why = f"a row of the ledger {self._ledger} can't be read ({type(error).__name__})"
            return FiguresRead(now, self._pool, expiries=expiries, unread=why)

    def _costs_of(self, reader: Reader, now: float) -> Costs:
        if not 0 <= now - self._costs[0] < COSTS_LAST:
            self._costs = now, costs(reader, self._costs[1])
        return self._costs[1]


def cloud_expiries(cycle: Mapping[str, Any]) -> dict[str, float]:
    """When the credentials of clouds end, as their drivers last said it."""
    found = {f"cloud {row['name']}": row.get("credentials_end") for row in cycle.get("clouds", [])}
    return {name: end for name, end in found.items() if end is not None}


def costs(reader: Reader, before: Costs) -> Costs:
    """What was spent in all; never less than `before`.

    Sums of the same numbers differ in their last digits, and a counter that shrinks by one of them would be
    taken for one that began anew.
    """
    with records(reader, 0, _LAST_DAY) as found:
        rows = [] if found is None else found.places("cloud")
    new = {(row["cloud"], row["currency"]): round(row["cost"], 6) for row in rows}
    return {key: max(new.get(key, 0.0), before.get(key, 0.0)) for key in {**before, **new}}


def token_expiry(file: Path) -> float | None:
    """When the token in this file ends, in Unix time; None where it says nothing, or isn't to be read.

    A file may hold several, a line each: the last of them to end counts. `exp` is as in RFC 7519.
    """
    try:
        with file.open("rb") as opened:
            lines = opened.read(_MOST).split()
    except OSError:
        return None
    ends = [end for end in map(_expiry, lines) if end is not None]
    return max(ends, default=None)


def _expiry(token: bytes) -> float | None:
    parts = token.split(b".")
    if len(parts) != 3:
        return None
    try:
        said = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
        return float(said["exp"])
    except (ValueError, TypeError, KeyError, RecursionError):
        return None
