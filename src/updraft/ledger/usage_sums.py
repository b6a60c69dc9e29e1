"""The records of a day that is over, summed up by all that a report goes by.

A report reads these for days that are over, and the records themselves for the others. Costs are parted here,
machine by machine: what was paid for the cores that were claimed, and what for those that idled meanwhile,
which those who used the machine that day may be charged with by their shares. What nobody used, and the time
of which nobody knows, is nobody's.
"""

import sqlite3

PLACES, PEOPLE = "usage_places", "usage_people"

# Cores of a machine that somebody may have, in core-seconds: claims may come to more than the cloud sold.
_ROOM = "max(m.cores * d.alive, d.core_seconds, 1e-9)"
_IDLE = "max(0.0, m.cores * (d.alive - d.unseen) - d.core_seconds)"
_PART = "u.core_seconds / max(d.core_seconds, 1e-9)"

_BY_PLACE = """
SELECT d.day, m.cloud, m.region, m.class, m.flavor, m.market, m.annex, m.owner, d.currency,
    count(*), sum(d.alive), sum(d.joined), sum(d.claimed), sum(d.unseen), sum(d.doubtful),
    sum(m.cores * d.alive), sum(m.cores * d.unseen), sum(m.cores * d.doubtful), sum(m.gpus * d.alive),
    sum(d.core_seconds), sum(d.gpu_seconds), sum(d.cost), sum(d.unpriced), sum(d.jobs), sum(d.lost)
FROM {days} d JOIN usage_machines m ON m.id = d.machine WHERE d.day BETWEEN ? AND ?
GROUP BY d.day, m.cloud, m.region, m.class, m.flavor, m.market, m.annex, m.owner, d.currency
"""
_BY_PERSON = f"""
SELECT d.day, u.user, u.grp, m.cloud, m.region, m.class, m.flavor, m.market, m.annex, m.owner, d.currency,
    count(*), sum(u.core_seconds), sum(u.gpu_seconds), sum(u.jobs), sum(u.lost),
    sum({_IDLE} * {_PART}),
    sum(d.cost * u.core_seconds / {_ROOM}),
    sum(d.cost * {_IDLE} / {_ROOM} * {_PART}),
    sum(d.unpriced * {_PART})
FROM {{users}} u JOIN {{days}} d ON d.day = u.day AND d.machine = u.machine
    JOIN usage_machines m ON m.id = u.machine WHERE u.day BETWEEN ? AND ?
GROUP BY d.day, u.user, u.grp, m.cloud, m.region, m.class, m.flavor, m.market, m.annex, m.owner, d.currency
"""  # noqa: S608 (all of it is our own)


_MACHINE = "m.id = (SELECT max(id) FROM main.usage_machines WHERE cloud = b.cloud AND instance = b.instance)"


def bills(name: str) -> str:
    """The query for what was billed, by an expression of machines (`m`), from one day to another."""
    return (
        f"SELECT {name}, m.cloud, b.currency, sum(b.billed) FROM main.usage_bills b "  # noqa: S608
        f"JOIN main.usage_machines m ON {_MACHINE} WHERE b.day BETWEEN ? AND ? GROUP BY 1, 2, 3"
    )


def bills_of_people(name: str, *, idle: bool) -> str:
    """The same by an expression of users' parts (`u`): of what they used, and what idled if they pay it."""
    part = f"u.core_seconds / {_ROOM}" + (f" + {_IDLE} / {_ROOM} * {_PART}" if idle else "")
    return (
        f"SELECT {name}, m.cloud, b.currency, sum(b.billed * ({part})) FROM main.usage_bills b "  # noqa: S608
        f"JOIN main.usage_machines m ON {_MACHINE} "
        "JOIN main.usage_days d ON d.day = b.day AND d.machine = m.id "
        "JOIN main.usage_users u ON u.day = d.day AND u.machine = d.machine "
        "WHERE b.day BETWEEN ? AND ? GROUP BY 1, 2, 3"
    )


def by_place(days: str) -> str:
    """The query for sums by place of the machines' days in this table, from one day to another."""
    return _BY_PLACE.format(days=days)


def by_person(users: str, days: str) -> str:
    """The same by person."""
    return _BY_PERSON.format(users=users, days=days)


def sum_up(rows: sqlite3.Connection, day: int, *, over: bool) -> None:
    """Sum up this day if it is over; else let go of sums of before, when a clock said that it was."""
    if not over and not rows.execute("SELECT 1 FROM usage_summed WHERE day = ?", (day,)).fetchone():
        return
    for table in (PLACES, PEOPLE, "usage_summed"):
        rows.execute(f"DELETE FROM {table} WHERE day = ?", (day,))  # noqa: S608 (names are our own)
    if over:
        rows.execute(f"INSERT INTO {PLACES} {by_place('usage_days')}", (day, day))
        rows.execute(f"INSERT INTO {PEOPLE} {by_person('usage_users', 'usage_days')}", (day, day))
        rows.execute("INSERT INTO usage_summed (day) VALUES (?)", (day,))
