"""What the ledger says, read in one thread: the last picture serves all who look, until there is a newer one.

A page is never asked of the ledger by several threads, and never for long: a question that takes more than
SECONDS is cut short, and who comes when too many wait is told to come again. So the daemon, which writes
there, isn't slowed down, however many look.
"""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

from updraft.config.tables.usage import Usage
from updraft.core.model import MachineId
from updraft.core.model.used import UserClaim
from updraft.documents import Row, plain
from updraft.ledger.reader import Reader
from updraft.ledger.usage_reading import Records, records
from updraft.usage.period import ReportPeriod
from updraft.usage.report import By, daily, document
from updraft.watching.documents import machine_row, machine_rows, status_document

T = TypeVar("T")
SECONDS = 10.0
MOST_WAITING = 50
_STEPS = 20_000  # of SQLite's machine, between two looks at the clock
PICTURE_SERVES = 1.0
"""How long a picture serves although somebody has written meanwhile, in seconds."""
PICTURE_LASTS = 10.0
"""How long it serves at most, in seconds: a daemon that has ended writes nothing, and is to be missed."""
GIVEN_LASTS = 30.0
"""How long one serves that was read ahead, in seconds: on a busy head no question is to read it again."""
USAGE_SERVES = 60.0
"""How long a report of what was used serves, in seconds: it grows by looks, and costs more than the rest."""
USAGE_LASTS = 600.0
"""How long it serves where somebody reads ahead, who makes it anew while somebody looks."""
_REPORTS_KEPT = 40
Asked = tuple[By | Literal["day"], ReportPeriod]
"""What a report was asked by, and for which time."""


class TooManyAskError(Exception):
    """More wait than can be served soon."""


class PageReader(Reader):
    """A ledger's reader that keeps what it has read of notes: the daemon's last cycle is a large one."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._notes: dict[str, tuple[str, dict[str, Any]]] = {}
        self._until = 0.0
        self._connection.set_progress_handler(self._late, _STEPS)

    def noted(self, key: str) -> dict[str, Any] | None:
        """The note of this key, which nobody may change."""
        with self._reading() as rows:
            row = rows.execute("SELECT doc FROM notes WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        if self._notes.get(key, ("", {}))[0] != row[0]:
            self._notes[key] = row[0], dict(json.loads(row[0]))
        return self._notes[key][1]

    def hurry(self, until: float) -> None:
        """Cut short what isn't answered by this moment of the monotonic clock."""
        self._until = until

    def _late(self) -> bool:
        return time.monotonic() > self._until

    @property
    def stamp(self) -> int:
        """Another number whenever somebody has written."""
        with self._reading() as rows:
            return int(rows.execute("PRAGMA data_version").fetchone()[0])


@dataclass(frozen=True, slots=True)
class Picture:
    """What all views are made of: read at `at`, seen by the daemon at `status["daemon"]["looked_at"]`.

    `machines` are those that aren't gone, `gone` those of the last day. `boots` maps (image, flavor) to the
    seconds from request to join of the latest boots.
    """

    at: float
    status: Row
    cycle: Row
    machines: list[Row]
    gone: list[Row]
    boots: Mapping[tuple[str, str], tuple[float, ...]]


class Pictures:
    """Reads one pool's ledger, whose file may be away, or another one, from one question to the next."""

    def __init__(self, ledger: Path, pool: str, usage: Usage) -> None:
        self.pool, self.usage = pool, usage
        self._ledger = ledger
        self._reader: PageReader | None = None
        self._inode = (0, 0)
        self._picture: tuple[int, Picture] | None = None
        self._claims: tuple[float, Mapping[MachineId, tuple[UserClaim, ...]]] | None = None
        self._reports: dict[Asked, tuple[float, Any]] = {}
        self._asked: dict[Asked, float] = {}
        self._given: Picture | None = None
        self.asked_at = float("-inf")
        """When the last question came, by the monotonic clock."""
        self.ahead: threading.Event | None = None
        """What wakes who reads ahead, where somebody does."""
        self._thread = ThreadPoolExecutor(1, "updraft-web")
        self._waiting = 0

    async def ask(self, make: Callable[["Pictures"], T]) -> T:
        """What this makes of the ledger, in the one thread.

        Raises TooManyAskError, and LedgerError where there is none or the question takes too long.
        """
        if self._waiting >= MOST_WAITING:
            raise TooManyAskError
        self._waiting += 1
        self.asked_at, before = time.monotonic(), self.asked_at
        if self.ahead is not None and self.asked_at - before > PICTURE_LASTS:
            self.ahead.set()
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, make, self)
        finally:
            self._waiting -= 1

    def wait_for(self, make: Callable[["Pictures"], T]) -> T:
        """The same, for who may wait for it in a thread of its own. Raises LedgerError."""
        return self._thread.submit(make, self).result()

    def close(self) -> None:
        """Read no more."""
        self._thread.submit(self._close_reader).result()
        self._thread.shutdown()

    # ------------------------------------------------------------------------ by who reads ahead of it

    def give(self, picture: Picture | None, reports: Mapping[Asked, Any]) -> None:
        """What was read elsewhere, just now: from now on it serves."""
        if picture is not None:
            self._given = picture
        now = time.monotonic()
        for key, made in reports.items():
            self._reports[key] = now, made

    def asked_lately(self, seconds: float) -> list[Asked]:
        """The reports that were asked for within this time."""
        now = time.monotonic()
        return [key for key, at in tuple(self._asked.items()) if now - at < seconds]

    # ------------------------------------------------------------------------------------- in the thread

    def reader(self) -> PageReader:
        """The ledger's reader. Raises LedgerError where there is none."""
        found = self._ledger.stat() if self._ledger.exists() else None
        inode = (0, 0) if found is None else (found.st_dev, found.st_ino)
        if self._reader is None or inode != self._inode:
            self._close_reader()
            self._reader, self._inode = PageReader(self._ledger), inode
        self._reader.hurry(time.monotonic() + SECONDS)
        return self._reader

    def picture(self) -> Picture:
        """The newest picture; what was read ahead is new enough."""
        reader, now = self.reader(), time.time()
        given = self._given
        if self.ahead is not None and given is not None and 0 <= now - given.at < GIVEN_LASTS:
            return given
        kept = self._picture
        age = -1.0 if kept is None else now - kept[1].at
        if (
            kept is None
            or not 0 <= age < PICTURE_LASTS
            or (age >= PICTURE_SERVES and reader.stamp != kept[0])
        ):
            kept = self._picture = reader.stamp, _read(reader, self.pool, now)
        return kept[1]

    def claims(self) -> Mapping[MachineId, tuple[UserClaim, ...]]:
        """Whose claims each machine has, by the last look that is in the records of what was used."""
        picture = self.picture()
        if self._claims is None or self._claims[0] != picture.at:
            meters = self.reader().meters().machines
            pools = {key: meter.sighting.pool for key, meter in meters.items()}
            self._claims = (
                picture.at,
                {key: pool.claims for key, pool in pools.items() if pool and pool.claims},
            )
        return self._claims[1]

    def report(self, by: By, period: ReportPeriod) -> Row | None:
        """What was used in this time, as `updraft usage --by` has it; None where there are no records."""
        return cast(Row | None, self.made((by, period)))

    def daily(self, period: ReportPeriod) -> list[Row] | None:
        """The figures of each day of this time; None where there are no records."""
        return cast(list[Row] | None, self.made(("day", period)))

    def made(self, key: Asked) -> Any:
        """What is made of the records of a time, kept for a while; None where there are none."""
        now = self._asked[key] = time.monotonic()
        kept = self._reports.get(key)
        if kept is None or now - kept[0] > (USAGE_SERVES if self.ahead is None else USAGE_LASTS):
            if len(self._reports) >= _REPORTS_KEPT:
                self._reports.clear()
                self._asked = {key: now}
            with records(self.reader(), *key[1].days) as found:
                there = found is not None and found.at is not None
                kept = self._reports[key] = now, self._make(found, key) if found and there else None
        return kept[1]

    def _make(self, found: Records, key: Asked) -> Any:
        by, period = key
        if by == "day":
            return daily(found, self.usage)
        return plain(document(found, self.pool, period, by, self.usage))

    def _close_reader(self) -> None:
        if self._reader is not None:
            self._reader.close()
        self._reader = self._picture = self._claims = self._given = None
        self._reports.clear()


def _read(reader: PageReader, pool: str, now: float) -> Picture:
    cycle = reader.last_cycle() or {}
    view = reader.view(now)
    machines = machine_rows(reader, cycle, now)
    return Picture(
        at=now,
        status=plain(status_document(reader, pool, now, machines)),
        cycle=cycle,
        machines=plain(machines),
        gone=[plain(machine_row(one, None, now)) for one in view.machines if one.ended_at is not None],
        boots=view.boots,
    )
