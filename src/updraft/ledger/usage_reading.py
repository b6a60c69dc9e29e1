"""Reading the records of what was used: sums by what a report asks for, or every record of some days.

What the meters have counted since it was written belongs to it. So the days that aren't summed up are copied
into tables of this connection alone, the meters are added there as the daemon would, and whoever asks finds
both as one.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from updraft.core.model.used import Booking
from updraft.core.usage.booking import pending
from updraft.ledger import usage
from updraft.ledger.reader import Reader
from updraft.ledger.usage_sums import PEOPLE, PLACES, bills, bills_of_people, by_person, by_place

Row = dict[str, Any]
DIMENSIONS = {
    "cloud": "cloud",
    "class": "class",
    "flavor": "flavor",
    "annex": "annex",
    "user": "user",
    "group": "grp",
    "day": "day",
}
_PLACE_SUMS = (
    *("machines", "alive", "joined", "claimed", "unseen", "doubtful", "room", "unseen_room", "doubtful_room"),
    *("gpu_room", "core_seconds", "gpu_seconds", "cost", "unpriced", "jobs", "lost"),
)
_PEOPLE_SUMS = (
    *("machines", "core_seconds", "gpu_seconds", "jobs", "lost", "idle_core_seconds", "cost", "idle_cost"),
    "unpriced",
)
_FIRSTS = ("SELECT min(day) FROM main.usage_days", "SELECT min(day) FROM temp.usage_days")
_TABLES = ("usage_machines", "usage_days", "usage_users")


@dataclass(frozen=True, slots=True)
class Records:
    """The records of the days from `first` to `last`, as they were at the look `at`; None before any.

    `since` is the first day of which there are any at all.
    """

    rows: Any
    first: int
    last: int
    at: float | None
    since: int | None

    def places(self, dimension: str) -> list[Row]:
        """Machines, summed by this dimension ("" for all together), by cloud and currency."""
        return self._sums(PLACES, by_place("usage_days"), dimension, _PLACE_SUMS)

    def people(self, dimension: str) -> list[Row]:
        """Users' parts of machines, summed likewise."""
        return self._sums(PEOPLE, by_person("usage_users", "usage_days"), dimension, _PEOPLE_SUMS)

    def _sums(self, table: str, fresh: str, dimension: str, sums: Sequence[str]) -> list[Row]:
        name = DIMENSIONS.get(dimension, "''")
        columns = [row[1] for row in self.rows.execute(f"PRAGMA main.table_info({table})")]
        found = self.rows.execute(
            f"WITH fresh ({', '.join(columns)}) AS ({fresh}), "  # noqa: S608 (names are our own)
            f"every AS (SELECT * FROM main.{table} WHERE day BETWEEN ? AND ? UNION ALL SELECT * FROM fresh) "
            f"SELECT {name}, cloud, currency, {', '.join(f'sum({one})' for one in sums)} FROM every "
            f"GROUP BY {name}, cloud, currency ORDER BY {name}, cloud, currency",
            (self.first, self.last, self.first, self.last),
        )
        names = ("name", "cloud", "currency", *sums)
        return [dict(zip(names, row, strict=True)) for row in found]

    def bills(self, dimension: str, *, idle: bool) -> list[Row]:
        """What an imported bill says, by this dimension (or "machine"); with `idle` users pay what idled."""
        if dimension in ("user", "group"):
            query = bills_of_people(f"u.{DIMENSIONS[dimension]}", idle=idle)
        elif dimension == "machine":
            query = bills("m.cloud || '/' || m.instance")
        else:
            query = bills(f"m.{DIMENSIONS[dimension]}" if dimension else "''")
        found = self.rows.execute(query, (self.first, self.last))
        return [dict(zip(("name", "cloud", "currency", "billed"), row, strict=True)) for row in found]

    def machine_days(self) -> Iterator[Row]:
        """Every record of a machine and day, in the order of days."""
        return self._every(
            "SELECT m.*, d.* FROM {0}.usage_days d JOIN {0}.usage_machines m ON m.id = d.machine"
        )

    def machines(self) -> Iterator[Row]:
        """Each machine that these days have a record of, with the sums of its whole life up to their end."""
        parts = "m.cloud, m.instance, m.asked, m.pool, m.owner, m.cores, m.memory, m.image, d.*"
        found = self.rows.execute(
            f"""
            WITH every AS (
                SELECT {parts} FROM main.usage_days d JOIN main.usage_machines m ON m.id = d.machine
                WHERE d.day <= :last AND (d.day < :first OR d.day IN (SELECT day FROM main.usage_summed))
                UNION ALL
                SELECT {parts} FROM temp.usage_days d JOIN temp.usage_machines m ON m.id = d.machine)
            SELECT cloud, instance, asked, pool, owner, cores, memory, image, benchmark, score, max(day),
                sum(alive) AS alive, sum(core_seconds) AS core_seconds, max(until) AS until,
                max(ended) AS ended
            FROM every GROUP BY cloud, instance, asked HAVING max(day) >= :first
            ORDER BY asked, cloud, instance
            """,  # noqa: S608 (names are our own)
            {"first": self.first, "last": self.last},
        )
        names = [column[0] for column in found.description]
        for row in found:
            yield dict(zip(names, row, strict=True))

    def user_days(self) -> Iterator[Row]:
        """Every record of a user on a machine and day, with the machine's own of that day."""
        return self._every(
            "SELECT m.*, d.*, u.user, u.grp, u.core_seconds AS user_core_seconds, "
            "u.gpu_seconds AS user_gpu_seconds, u.jobs AS user_jobs, u.lost AS user_lost "
            "FROM {0}.usage_days d JOIN {0}.usage_machines m ON m.id = d.machine "
            "JOIN {0}.usage_users u ON u.day = d.day AND u.machine = d.machine"
        )

    def _every(self, query: str) -> Iterator[Row]:
        within = "WHERE d.day BETWEEN ? AND ?"
        summed = f"{within} AND d.day IN (SELECT day FROM main.usage_summed)"  # noqa: S608 (names are our own)
        for text in (f"{query.format('main')} {summed}", f"{query.format('temp')} {within}"):
            found = self.rows.execute(f"{text} ORDER BY d.day, d.machine", (self.first, self.last))
            names = [column[0] for column in found.description]
            for row in found:
                yield dict(zip(names, row, strict=True))


@contextmanager
def records(reader: Reader, first: int, last: int) -> Iterator[Records | None]:
    """The records of these days while this is open; None in a ledger that has none.

    What the daemon writes meanwhile isn't seen.
    """
    with reader._reading() as rows:
        if not usage.has_usage(rows):
            yield None
            return
        rows.execute("PRAGMA temp_store = MEMORY")
        rows.execute("BEGIN")
        try:
            meters = usage.meters(rows)
            _copy(rows, first, last)
            books = pending(meters)
            within = {key: one for key, one in books.machines.items() if first <= key[1] <= last}
            used = {key: one for key, one in books.users.items() if first <= key[1] <= last}
            usage.add(rows, Booking(books.at, within, used))  # type: ignore[arg-type]
            firsts = [rows.execute(text).fetchone()[0] for text in _FIRSTS]
            since = min((day for day in firsts if day is not None), default=None)
            yield Records(rows, first, last, meters.at, since)
        finally:
            rows.execute("ROLLBACK")


def _copy(rows: Any, first: int, last: int) -> None:
    """Copy the days that aren't summed up, under the same names: these are found first."""
    for name in _TABLES:
        (made,) = rows.execute("SELECT sql FROM main.sqlite_master WHERE name = ?", (name,)).fetchone()
        rows.execute(made.replace("CREATE TABLE", "CREATE TEMP TABLE", 1))
    days = "day BETWEEN ? AND ? AND day NOT IN (SELECT day FROM main.usage_summed)"
    for name in _TABLES[1:]:
        rows.execute(f"INSERT INTO temp.{name} SELECT * FROM main.{name} WHERE {days}", (first, last))  # noqa: S608
    rows.execute(
        "INSERT INTO temp.usage_machines SELECT * FROM main.usage_machines "
        "WHERE id IN (SELECT machine FROM temp.usage_days)"
    )
