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
WITH fresh ({{columns}}) AS ({{fresh}}),
every AS (
    SELECT day, cloud, class, flavor, market, annex, owner, cost, unpriced FROM main.{PLACES}
    WHERE day BETWEEN :first AND :day
    UNION ALL SELECT day, cloud, class, flavor, market, annex, owner, cost, unpriced FROM fresh
    UNION ALL
    SELECT d.day, m.cloud, m.class, m.flavor, m.market, m.annex, m.owner,
        d.doubtful * coalesce(d.price, 0) / 3600, CASE WHEN d.price IS NULL THEN d.doubtful ELSE 0 END
    FROM main.usage_days d JOIN main.usage_machines m ON m.id = d.machine
    WHERE d.day BETWEEN :first AND :day AND d.doubtful > 0)
SELECT day = :day, sum(cost), sum(unpriced), cloud, class, {_UNPRICED.format("unpriced")},
    CASE annex WHEN '' THEN '' ELSE owner END
FROM every GROUP BY 1, 4, 5, 6, 7, 8 ORDER BY 1, 4, 5, 6, 7, 8
"""  # noqa: S608 (all of it is our own)
_PEOPLE = f"""
WITH fresh ({{columns}}) AS ({{fresh}}),
every AS (
    SELECT * FROM main.{PEOPLE} WHERE day BETWEEN :first AND :day UNION ALL SELECT * FROM fresh)
SELECT day = :day, sum(cost), sum(unpriced), CASE WHEN unpriced > 0 THEN cloud ELSE '' END,
    {_UNPRICED.format("unpriced")}, user, grp, sum(idle_cost)
FROM every GROUP BY 1, 4, 5, 6, 7, 8 ORDER BY 1, 4, 5, 6, 7, 8
"""  # noqa: S608 (all of it is our own)


def spent(path: Path, now: float, *, people: bool) -> Spent | None:
    """What the ledger at `path` says was spent in the UTC day and month of `now`.

    By users only with `people`: that takes longer. None where no look was recorded yet. Raises LedgerError
    where it can't be read.
    """
    first, day = day_of(BudgetPeriod.MONTH.begin(now)), day_of(now)
    with Reader(path) as reader, records(reader, first, day) as found:
        if found is None or found.at is None:
            return None
        machines = _rows(found, _MACHINES, PLACES, by_place("usage_days"))
        used: list[tuple[Any, ...]] = []
        if people:
            used = _rows(found, _PEOPLE, PEOPLE, by_person("usage_users", "usage_days"))
        return Spent(
            found.at,
            day,
            tuple(SpentRow(bool(row[0]), *row[1:]) for row in machines),
            tuple(
                SpentRow(bool(today), cost, unpriced, cloud, "", flavor, market, "", user, group, idle_cost)
                for today, cost, unpriced, cloud, flavor, market, user, group, idle_cost in used
            ),
        )


def _rows(found: Records, query: str, table: str, fresh: str) -> list[tuple[Any, ...]]:
    columns = [row[1] for row in found.rows.execute(f"PRAGMA main.table_info({table})")]
    text = query.format(
        columns=", ".join(columns), fresh=fresh.replace("?", ":first", 1).replace("?", ":day")
    )
    rows: list[tuple[Any, ...]] = found.rows.execute(
        text, {"first": found.first, "day": found.last}
    ).fetchall()
    return rows
