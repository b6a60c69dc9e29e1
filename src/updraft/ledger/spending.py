"""What was spent up to the last look, read of the records of what was used: for budgets of a day or a month.

It is what `updraft usage` says of these days, with the meters' part of today. The time of which nobody knows
whether a machine was there at all, which isn't charged to anybody, counts here as if it was: unknown is not
zero.
"""

from pathlib import Path
from typing import Any

from updraft.core.model import BudgetPeriod, Spent, SpentRow
from updraft.core.usage.days import day_of
from updraft.ledger.reader import Reader
from updraft.ledger.usage_reading import Records, records
from updraft.ledger.usage_sums import PEOPLE, PLACES, by_person, by_place

# Where a price isn't known its flavor and market say which it was; else rows of all flavors are one.
_UNPRICED = "CASE WHEN {0} > 0 THEN flavor ELSE '' END, CASE WHEN {0} > 0 THEN market ELSE '' END"
_MACHINES = f"""
WITH some ({{columns}}) AS ({{some}}),
every AS (
    SELECT day, cloud, class, flavor, market, annex, owner, cost, unpriced FROM some
    UNION ALL
    SELECT d.day, m.cloud, m.class, m.flavor, m.market, m.annex, m.owner,
        d.doubtful * coalesce(d.price, 0) / 3600, CASE WHEN d.price IS NULL THEN d.doubtful ELSE 0 END
    FROM main.usage_days d JOIN main.usage_machines m ON m.id = d.machine
    WHERE d.day BETWEEN {{days}} AND d.doubtful > 0)
SELECT day = :day, sum(cost), sum(unpriced), cloud, class, {_UNPRICED.format("unpriced")},
    CASE annex WHEN '' THEN '' ELSE owner END
FROM every GROUP BY 1, 4, 5, 6, 7, 8 ORDER BY 1, 4, 5, 6, 7, 8
"""  # noqa: S608 (all of it is our own)
_PEOPLE = f"""
WITH every ({{columns}}) AS ({{some}})
SELECT day = :day, sum(cost), sum(unpriced), CASE WHEN unpriced > 0 THEN cloud ELSE '' END,
    {_UNPRICED.format("unpriced")}, user, grp, sum(idle_cost)
FROM every GROUP BY 1, 4, 5, 6, 7, 8 ORDER BY 1, 4, 5, 6, 7, 8
"""  # noqa: S608 (all of it is our own)
_EARLIER = ":first AND :day - 1"
_CHANGED = f"""
SELECT count(*), total(cost), total(unpriced), total(doubtful), total(core_seconds) FROM main.{PLACES}
WHERE day BETWEEN {_EARLIER}
"""  # noqa: S608 (all of it is our own)
_Rows = list[tuple[Any, ...]]


class SpendingRecords:
    """What the ledger at `path` says was spent; called again and again by one that remembers earlier days.

    Whatever is booked for a day that is over changes its sums, of people's as of machines' days.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._earlier: tuple[object, tuple[_Rows, _Rows]] = (None, ([], []))

    def __call__(self, now: float, people: bool) -> Spent | None:
        """What was spent in the UTC day and month of `now`.

        By users only with `people`: that takes longer. None where no look was recorded yet. Raises
        LedgerError where it can't be read.
        """
        first, day = day_of(BudgetPeriod.MONTH.begin(now)), day_of(now)
        with Reader(self._path) as reader, records(reader, first, day) as found:
            if found is None or found.at is None:
                return None
            machines, used = self._of_earlier(found, people)
            machines = [*machines, *_machines(found, by_place("usage_days"), ":day AND :day")]
            if people:
                used = [*used, *_people(found, by_person("usage_users", "usage_days"))]
            return Spent(
                found.at,
                day,
                tuple(SpentRow(bool(row[0]), *row[1:]) for row in machines),
                tuple(
                    SpentRow(bool(now), cost, unpriced, cloud, "", flavor, market, "", user, group, idle)
                    for now, cost, unpriced, cloud, flavor, market, user, group, idle in used
                ),
            )

    def _of_earlier(self, found: Records, people: bool) -> tuple[_Rows, _Rows]:
        """The sums of machines' and people's days before this one that are summed up."""
        days = {"first": found.first, "day": found.last}
        key = found.first, found.last, people, found.rows.execute(_CHANGED, days).fetchone()
        if key != self._earlier[0]:
            summed = "SELECT * FROM main.{} WHERE day BETWEEN " + _EARLIER  # noqa: S608 (our own)
            machines = _machines(found, summed.format(PLACES), _EARLIER)
            self._earlier = key, (machines, _people(found, summed.format(PEOPLE)) if people else [])
        return self._earlier[1]


def spent(path: Path, now: float, *, people: bool) -> Spent | None:
    """What `SpendingRecords` say once."""
    return SpendingRecords(path)(now, people)


def _machines(found: Records, some: str, days: str) -> _Rows:
    return _rows(found, _MACHINES, PLACES, some, days)


def _people(found: Records, some: str) -> _Rows:
    return _rows(found, _PEOPLE, PEOPLE, some, "")


def _rows(found: Records, query: str, table: str, some: str, days: str) -> _Rows:
    columns = [row[1] for row in found.rows.execute(f"PRAGMA main.table_info({table})")]
    some = some.replace("?", ":first", 1).replace("?", ":day")
    text = query.format(columns=", ".join(columns), some=some, days=days)
    rows: _Rows = found.rows.execute(text, {"first": found.first, "day": found.last}).fetchall()
    return rows
