"""The records of what was used, in the ledger: each machine by UTC days, and who used it. Never pruned.

What a look adds is added to the rows that are there. A machine of which nothing changes is not written: its
meter says since when it is as it is, and one note tells the time of the last look. A day that is over is
summed up besides (`usage_sums`), so that a month of a large pool is read at once.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from updraft.core.model import MachineId
from updraft.core.model.used import Booking, InPool, MachineFacts, Meter, Meters, Sighting, UserClaim
from updraft.core.usage.days import day_of
from updraft.ledger.rows import decoding, dump
from updraft.ledger.secrets import scrub
from updraft.ledger.usage_sums import sum_up

LAST_LOOK = "usage-at"
"""The note of when the last look was that is in the records."""
MOST_USERS = 200
"""Users of one machine on one day that are told apart: an ad may name any number. Others are nobody known."""
UNTOLD = ("", "")

# A machine's columns, and what is in them.
_MACHINE = {
    "cloud": "cloud",
    "instance": "id",
    "asked": "begin",
    "pool": "pool",
    "region": "region",
    "zone": "zone",
    "flavor": "flavor",
    "market": "market",
    "image": "image",
    "class": "worker_class",
    "annex": "annex",
    "owner": "owner",
    "cores": "cores",
    "memory": "memory",
    "gpus": "gpus",
}
_SAID = ("price", "currency", "source", "benchmark", "score")
_ADDED = (
    *("alive", "joined", "claimed", "unseen", "doubtful", "core_seconds", "gpu_seconds", "cost", "unpriced"),
    *("jobs", "lost"),
)
_USED = ("core_seconds", "gpu_seconds", "jobs", "lost")


def _upsert(table: str, key: Iterable[str], changes: Mapping[str, str]) -> str:
    """An insert of named values that changes the row that is there: `changes` says how, by column."""
    columns = [*key, *changes]
    sets = ", ".join(f"{name} = {how}" for name, how in changes.items())
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) "  # noqa: S608 (names are our own)
        f"VALUES ({', '.join(f':{name}' for name in columns)}) "
        f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets}"
    )


def _new(names: Iterable[str]) -> dict[str, str]:
    return {name: f"excluded.{name}" for name in names}


def _more(names: Iterable[str]) -> dict[str, str]:
    return {name: f"{name} + excluded.{name}" for name in names}


_KEY = ("cloud", "instance", "asked")  # ids come back on clouds that were made anew
_MACHINES = _upsert("usage_machines", _KEY, _new(list(_MACHINE)[len(_KEY) :]))
_DAY = {
    "began": "min(began, excluded.began)",
    "until": "max(until, excluded.until)",
    **_more(_ADDED),
    **_new(_SAID),
    "ended": "CASE excluded.ended WHEN '' THEN ended ELSE excluded.ended END",
    "why": "CASE excluded.ended WHEN '' THEN why ELSE excluded.why END",
}


def add(
    rows: sqlite3.Connection, books: Booking, days: str = "usage_days", users: str = "usage_users"
) -> None:
    """Add what a look adds to the records, in the caller's transaction."""
    ids = _machines(rows, books)
    rows.executemany(
        _upsert(days, ("day", "machine"), _DAY),
        [
            {
                "day": day,
                "machine": ids[key],
                "began": row.begin,
                "until": row.end,
                **{name: getattr(row, name) for name in _ADDED},
                **{name: getattr(facts, name) for name in _SAID},
                "ended": "" if row.ended is None else row.ended.code,
                "why": "" if row.ended is None else _text(row.ended.text),
            }
            for (key, day), (facts, row) in books.machines.items()
        ],
    )
    told = _UserNames(rows, users)
    rows.executemany(
        _upsert(users, ("day", "machine", "user", "grp"), _more(_USED)),
        [
            {
                **{name: getattr(used, name) for name in _USED},
                **dict(
                    zip(("day", "machine", "user", "grp"), told.name(day, ids[key], who, group), strict=True)
                ),
            }
            for (key, day, who, group), used in books.users.items()
        ],
    )


def keep(rows: sqlite3.Connection, books: Booking) -> None:
    """Keep the meters that a look has changed, and sum up the days that are over and were added to."""
    rows.executemany(
        "INSERT OR REPLACE INTO usage_meters (cloud, machine, doc) VALUES (?, ?, ?)",
        [(*key, _meter_to_doc(meter)) for key, meter in books.meters.items() if meter is not None],
    )
    rows.executemany(
        "DELETE FROM usage_meters WHERE cloud = ? AND machine = ?",
        [key for key, meter in books.meters.items() if meter is None],
    )
    for day in sorted({day for _, day in books.machines}):
        sum_up(rows, day, over=day != day_of(books.at))


def meters(rows: Any) -> Meters:
    """The meters that are kept, with the time of the last look; none in a file of an earlier updraft."""
    if not has_usage(rows):
        return Meters()
    note = rows.execute("SELECT doc FROM notes WHERE key = ?", (LAST_LOOK,)).fetchone()
    with decoding():
        found = [_meter_from_doc(doc) for (doc,) in rows.execute("SELECT doc FROM usage_meters")]
        at = None if note is None else float(json.loads(note[0])["at"])
    return Meters(at, {one.sighting.facts.key: one for one in found})


def put_bill(rows: sqlite3.Connection, billed: Mapping[tuple[int, str, str, str], float]) -> None:
    """Keep what was billed (by day, cloud, instance id, currency), in place of an earlier bill of these."""
    rows.executemany(
        "INSERT OR REPLACE INTO usage_bills (day, cloud, instance, currency, billed) VALUES (?, ?, ?, ?, ?)",
        [(*map(_plain, line), amount) for line, amount in billed.items()],
    )


def instances(rows: Any) -> dict[str, str]:
    """The cloud of each machine that is in the records, by its id: the latest one where two clouds use it."""
    if not has_usage(rows):
        return {}
    return dict(rows.execute("SELECT instance, cloud FROM usage_machines ORDER BY asked").fetchall())


def booked(rows: Any, keys: Iterable[MachineId]) -> dict[MachineId, float]:
    """Up to when each of these is in the records; one that isn't in them is left out."""
    query = """SELECT max(d.until) FROM usage_days d JOIN usage_machines m ON m.id = d.machine
        WHERE m.cloud = ? AND m.instance = ?"""
    found = {key: rows.execute(query, tuple(map(_plain, key))).fetchone()[0] for key in keys}
    return {key: float(until) for key, until in found.items() if until is not None}


def has_usage(rows: Any) -> bool:
    """Whether this file has such records: none that no newer daemon has opened yet does."""
    return rows.execute("SELECT 1 FROM sqlite_master WHERE name = 'usage_days'").fetchone() is not None


def _machines(rows: sqlite3.Connection, books: Booking) -> dict[MachineId, int]:
    """Write down the machines, and the number of each."""
    facts = {key: meter.sighting.facts for key, meter in books.meters.items() if meter is not None}
    facts.update((key, facts) for (key, _), (facts, _) in books.machines.items())
    rows.executemany(
        _MACHINES,
        [{column: _plain(getattr(one, name)) for column, name in _MACHINE.items()} for one in facts.values()],
    )
    query = "SELECT id FROM usage_machines WHERE cloud = ? AND instance = ? AND asked = ?"
    return {
        key: int(rows.execute(query, (*map(_plain, key), one.begin)).fetchone()[0])
        for key, one in facts.items()
    }


class _UserNames:
    """Which users of a machine's day are told apart."""

    def __init__(self, rows: sqlite3.Connection, table: str) -> None:
        self._rows = rows
        self._query = f"SELECT user, grp FROM {table} WHERE day = ? AND machine = ?"  # noqa: S608
        self._known: dict[tuple[int, int], set[tuple[str, str]]] = {}

    def name(self, day: int, machine: int, user: str, group: str) -> tuple[int, int, str, str]:
        known = self._known.get((day, machine))
        if known is None:
            known = self._known[day, machine] = set(
                self._rows.execute(self._query, (day, machine)).fetchall()
            )
        name = (_text(user), _text(group))
        if name not in known and len(known) >= MOST_USERS:
            name = UNTOLD
        known.add(name)
        return day, machine, *name


def _plain(value: object) -> object:
    return _text(value) if isinstance(value, str) else value


@lru_cache(maxsize=4096)
def _text(text: str) -> str:
    """A text as it may be kept."""
    return scrub(text)


# ---------------------------------------------------------------------------------------------- meters


def _meter_to_doc(meter: Meter) -> str:
    """A meter as JSON. By hand: thousands of these are written at midnight."""
    seen = meter.sighting
    return dump(
        {
            "facts": {name: _plain(getattr(seen.facts, name)) for name in MachineFacts.__dataclass_fields__},
            "lives": seen.lives,
            "pool": _pool_to_doc(seen.pool),
            "since": meter.since,
            "known": _pool_to_doc(meter.known),
        }
    )


def _pool_to_doc(pool: InPool | None) -> dict[str, Any] | None:
    if pool is None:
        return None
    claims = [
        [_text(one.user), _text(one.group), one.cores, one.gpus, one.began, one.running]
        for one in pool.claims
    ]
    return {"joined": pool.joined, "claims": claims, "begun": pool.begun, "started": pool.started}


def _meter_from_doc(doc: str) -> Meter:
    values = json.loads(doc)
    names = MachineFacts.__dataclass_fields__
    facts = MachineFacts(**{name: value for name, value in values["facts"].items() if name in names})
    seen = Sighting(facts, values["lives"], _pool_from_doc(values["pool"]))
    return Meter(seen, float(values["since"]), _pool_from_doc(values["known"]))


def _pool_from_doc(doc: Mapping[str, Any] | None) -> InPool | None:
    if doc is None:
        return None
    claims = tuple(UserClaim(*one) for one in doc["claims"])
    return InPool(bool(doc["joined"]), claims, doc["begun"], float(doc["started"]))
