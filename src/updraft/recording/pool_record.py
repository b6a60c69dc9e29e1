"""What really was in a pool, on disk: jobs, what waited and why, machines, what clouds sold.

A file of its own beside the ledger: it decides nothing, and may be lost. Jobs are kept as compressed lists, a
list for each time that a schedd was asked. Everything is bounded in age and in number; the oldest goes first.
"""

import json
import os
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from updraft.errors import LedgerError

DAY = 86400.0
VERSION = 1
Row = Mapping[str, Any]
Fields = Sequence[Any]
"""The values of one job's attributes, in the order that the list of its names has."""

_TABLES = """
CREATE TABLE jobs (id INTEGER PRIMARY KEY, schedd TEXT, at REAL, names TEXT, number INTEGER, fields BLOB);
CREATE TABLE queue (schedd TEXT PRIMARY KEY, at REAL, names TEXT, number INTEGER, fields BLOB);
CREATE TABLE looks (at REAL PRIMARY KEY, acts INTEGER, idle INTEGER, running INTEGER, wanted INTEGER,
    claimed INTEGER, cores INTEGER, machines INTEGER, others INTEGER);
CREATE TABLE machines (name TEXT, started REAL, cores INTEGER, ours INTEGER, first REAL, last REAL,
    PRIMARY KEY (name, started)) WITHOUT ROWID;
CREATE TABLE waits (day INTEGER, user TEXT, code TEXT, job_seconds REAL, text TEXT,
    PRIMARY KEY (day, user, code)) WITHOUT ROWID;
CREATE TABLE offers (cloud TEXT PRIMARY KEY, at REAL, doc TEXT);
CREATE TABLE notes (key TEXT PRIMARY KEY, doc TEXT);
"""


@dataclass(frozen=True, slots=True)
class RecordLimits:
    """How much is kept: `age` in seconds, the rest in rows; `users` is of one day, `queued` of one schedd."""

    age: float = 62 * DAY
    jobs: int = 2_000_000
    queued: int = 50_000
    machines: int = 200_000
    users: int = 500


@dataclass(frozen=True, slots=True)
class PoolLook:
    """The pool at one moment: jobs that wait and run, and cores.

    `wanted` are those that waiting jobs and claims have together, `claimed` the latter, `cores` and
    `machines` all that there are, `others` how many of the machines updraft doesn't own. `acts` is False
    where updraft only watched.
    """

    at: float
    acts: bool
    idle: int
    running: int
    wanted: int
    claimed: int
    cores: int
    machines: int
    others: int


@dataclass(frozen=True, slots=True)
class SeenMachine:
    """A machine in the pool from `first` to `last`; `started` is when its startd did. `ours` is updraft's."""

    name: str
    started: float
    cores: int
    ours: bool
    first: float
    last: float


@dataclass(frozen=True, slots=True)
class Waited:
    """How many seconds jobs of a user have waited for a reason together, and its latest sentence."""

    day: int
    user: str
    code: str
    job_seconds: float
    text: str


class PoolRecord:
    """The record, open for writing: the daemon's. Safe for many threads; every method is one transaction.

    Raises LedgerError where the file can't be used.
    """

    def __init__(self, path: Path, limits: RecordLimits | None = None) -> None:
        self._limits = limits or RecordLimits()
        self._lock = threading.Lock()
        self._path = path
        with _edge(path):
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
            self._rows = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
            self._rows.execute("PRAGMA journal_mode = WAL")
            self._rows.execute("PRAGMA synchronous = NORMAL")
            if _version(self._rows, path) == 0:
                self._rows.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")

    def close(self) -> None:
        """Close the file."""
        self._rows.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, _edge(self._path), self._rows:
            self._rows.execute("BEGIN IMMEDIATE")
            yield self._rows

    def asked_until(self, schedd: str) -> float | None:
        """Up to when this schedd's history was read; None where it never was."""
        with self._lock, _edge(self._path):
            found = self._rows.execute("SELECT doc FROM notes WHERE key = ?", (f"until:{schedd}",)).fetchone()
        return None if found is None else float(found[0])

    def add_jobs(
        self, schedd: str, names: Sequence[str], ended: Sequence[Fields], queued: Sequence[Fields], at: float
    ) -> None:
        """Jobs of a schedd that have ended since it was asked before, and all that are in its queue now."""
        told = json.dumps(list(names))
        kept, over = _packed(queued[: self._limits.queued]), _packed(ended)
        with self._writing() as rows:
            if ended:
                rows.execute(
                    "INSERT INTO jobs (schedd, at, names, number, fields) VALUES (?, ?, ?, ?, ?)",
                    (schedd, at, told, len(ended), over),
                )
            rows.execute(
                "INSERT OR REPLACE INTO queue (schedd, at, names, number, fields) VALUES (?, ?, ?, ?, ?)",
                (schedd, at, told, len(queued), kept),
            )
            rows.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (f"until:{schedd}", str(at)))

    def add_look(
        self,
        look: PoolLook,
        machines: Iterable[SeenMachine],
        waits: Iterable[Waited],
        offers: Mapping[str, str],
    ) -> None:
        """The pool as it is now; `waits` are added to those of before, `offers` (JSON, by cloud) replaced."""
        with self._writing() as rows:
            values = [getattr(look, name) for name in PoolLook.__dataclass_fields__]
            rows.execute(f"INSERT OR REPLACE INTO looks VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608
            rows.executemany(
                "INSERT INTO machines VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "last = excluded.last, ours = max(ours, excluded.ours), cores = excluded.cores",
                [(one.name, one.started, one.cores, one.ours, one.first, one.last) for one in machines],
            )
            for one in waits:
                _add_wait(rows, one, self._limits.users)
            rows.executemany(
                "INSERT OR REPLACE INTO offers VALUES (?, ?, ?)",
                [(cloud, look.at, doc) for cloud, doc in offers.items()],
            )

    def prune(self, now: float) -> None:
        """Forget what is older, or more, than is kept."""
        since = now - self._limits.age
        with self._writing() as rows:
            for table, column in (("jobs", "at"), ("queue", "at"), ("looks", "at"), ("machines", "last")):
                rows.execute(f"DELETE FROM {table} WHERE {column} < ?", (since,))  # noqa: S608 (our own names)
            rows.execute("DELETE FROM waits WHERE day < ?", (int(since // DAY),))
            rows.execute(
                """DELETE FROM jobs WHERE id IN (SELECT id FROM (
                    SELECT id, sum(number) OVER (ORDER BY id DESC) AS newer FROM jobs) WHERE newer > ?)""",
                (self._limits.jobs,),
            )
            rows.execute(
                """DELETE FROM machines WHERE (name, started) IN (
                    SELECT name, started FROM machines ORDER BY last DESC LIMIT -1 OFFSET ?)""",
                (self._limits.machines,),
            )


class RecordReader:
    """The record as it is, read without disturbing who writes it. Raises LedgerError where it can't be."""

    def __init__(self, path: Path) -> None:
        self._path = path
        with _edge(path):
            self._rows = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=5)
            if _version(self._rows, path) == 0:
                raise sqlite3.DatabaseError("it is no record of a pool")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._rows.close()

    def jobs(self) -> Iterator[Row]:
        """Each job that has ended, by the names of its attributes; one may come twice."""
        return self._jobs("SELECT names, fields FROM jobs ORDER BY id")

    def queue(self) -> Iterator[Row]:
        """Each job that was in a queue when it was asked last."""
        return self._jobs("SELECT names, fields FROM queue ORDER BY schedd")

    def queued(self) -> tuple[int, float | None]:
        """How many jobs those queues had (not all of very many are kept), and when the last was asked."""
        number, at = self._all("SELECT coalesce(sum(number), 0), max(at) FROM queue")[0]
        return int(number), at

    def looks(self, first: float, last: float) -> list[PoolLook]:
        """The pool's looks between these moments, in their order."""
        found = self._all("SELECT * FROM looks WHERE at >= ? AND at < ? ORDER BY at", first, last)
        return [PoolLook(row[0], bool(row[1]), *row[2:]) for row in found]

    def span(self) -> tuple[float, float] | None:
        """The times of the first look and of the last; None where there is none."""
        first, last = self._all("SELECT min(at), max(at) FROM looks")[0]
        return None if first is None else (first, last)

    def machines(self, first: float, last: float) -> list[SeenMachine]:
        """Machines that were seen between these moments."""
        found = self._all("SELECT * FROM machines WHERE last >= ? AND first < ? ORDER BY first", first, last)
        return [SeenMachine(row[0], row[1], row[2], bool(row[3]), *row[4:]) for row in found]

    def waits(self, first: int, last: int) -> list[Waited]:
        """What jobs waited for, on these UTC days (counted from 1970), each with the latest sentence."""
        found = self._all(
            "SELECT max(day), user, code, sum(job_seconds), text FROM waits WHERE day BETWEEN ? AND ? "
            "GROUP BY user, code ORDER BY sum(job_seconds) DESC, user, code",
            first,
            last,
        )
        return [Waited(*row) for row in found]

    def offers(self) -> dict[str, str]:
        """What each cloud sold when it answered last, as JSON."""
        return dict(self._all("SELECT cloud, doc FROM offers ORDER BY cloud"))

    def _jobs(self, query: str) -> Iterator[Row]:
        for names, packed in self._all(query):
            with _edge(self._path):
                told, rows = json.loads(names), json.loads(zlib.decompress(packed))
            for fields in rows:
                yield {name: value for name, value in zip(told, fields, strict=True) if value is not None}

    def _all(self, query: str, *values: float) -> list[Any]:
        with _edge(self._path):
            return self._rows.execute(query, values).fetchall()


def _add_wait(rows: sqlite3.Connection, one: Waited, most: int) -> None:
    """Add it; of very many users of a day those who come last are one, of no name."""
    key = (one.day, one.user, one.code)
    known = rows.execute("SELECT 1 FROM waits WHERE day = ? AND user = ? AND code = ?", key).fetchone()
    if known is None:
        (users,) = rows.execute("SELECT count(DISTINCT user) FROM waits WHERE day = ?", key[:1]).fetchone()
        key = key if users < most else (one.day, "", one.code)
    rows.execute(
        "INSERT INTO waits VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
        "job_seconds = job_seconds + excluded.job_seconds, text = excluded.text",
        (*key, one.job_seconds, one.text),
    )


def _packed(rows: Sequence[Fields]) -> bytes:
    return zlib.compress(json.dumps(rows, separators=(",", ":")).encode("utf-8", "replace"), 6)


def _version(rows: sqlite3.Connection, path: Path) -> int:
    (found,) = rows.execute("PRAGMA user_version").fetchone()
    if found > VERSION:
        raise LedgerError(f"the record {path} was written by a newer updraft: use that one")
    return int(found)


@contextmanager
def _edge(path: Path) -> Iterator[None]:
    """Turns what is wrong with the file into a LedgerError that says what to do."""
    try:
        yield
    except (sqlite3.Error, OSError, zlib.error, ValueError) as error:
        raise LedgerError(
            f"the record {path} can't be used ({error}): look at the disk's room and at the rights, or move "
            "the file away; the daemon begins another"
        ) from error
