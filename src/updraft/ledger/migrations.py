"""The shape of the ledger, as numbered steps; each is applied in one transaction with its number.

A step that was released is never edited: a change is a new step at the end.
"""

import sqlite3

from updraft.errors import LedgerError

MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        """CREATE TABLE launches (
            key TEXT PRIMARY KEY, cloud TEXT NOT NULL, asked_at REAL NOT NULL, state TEXT NOT NULL,
            doc TEXT NOT NULL)""",
        "CREATE INDEX launches_asked ON launches (asked_at)",
        "CREATE INDEX launches_state ON launches (state)",
        """CREATE TABLE machines (
            cloud TEXT NOT NULL, id TEXT NOT NULL, launch_key TEXT NOT NULL, ended_at REAL, doc TEXT NOT NULL,
            PRIMARY KEY (cloud, id)) WITHOUT ROWID""",
        "CREATE INDEX machines_ended ON machines (ended_at)",
        """CREATE TABLE boots (
            id INTEGER PRIMARY KEY, at REAL NOT NULL, image TEXT NOT NULL, flavor TEXT NOT NULL,
            seconds REAL NOT NULL)""",
        "CREATE INDEX boots_kind ON boots (image, flavor, id)",
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL,
            code TEXT NOT NULL, text TEXT NOT NULL, detail TEXT NOT NULL)""",
        "CREATE INDEX events_subject ON events (subject, id)",
        """CREATE TABLE consoles (
            cloud TEXT NOT NULL, machine TEXT NOT NULL, at REAL NOT NULL, text TEXT NOT NULL,
            PRIMARY KEY (cloud, machine))""",
        """CREATE TABLE requests (
            id INTEGER PRIMARY KEY AUTOINCREMENT, at REAL NOT NULL, who TEXT NOT NULL, kind TEXT NOT NULL,
            machine TEXT NOT NULL, kill_jobs INTEGER NOT NULL, done_at REAL,
            outcome TEXT NOT NULL DEFAULT '')""",
        "CREATE INDEX requests_open ON requests (done_at)",
        "CREATE TABLE kinds (key TEXT PRIMARY KEY, at REAL NOT NULL, text TEXT NOT NULL)",
        "CREATE TABLE notes (key TEXT PRIMARY KEY, at REAL NOT NULL, doc TEXT NOT NULL)",
    ),
    ("ALTER TABLE requests ADD COLUMN detail TEXT NOT NULL DEFAULT '{}'",),
    ("CREATE TABLE annexes (name TEXT PRIMARY KEY, since REAL NOT NULL, doc TEXT NOT NULL)",),
    (
        """CREATE TABLE usage_machines (
            id INTEGER PRIMARY KEY, cloud TEXT NOT NULL, instance TEXT NOT NULL, pool TEXT NOT NULL,
            region TEXT NOT NULL, zone TEXT NOT NULL, flavor TEXT NOT NULL, market TEXT NOT NULL,
            image TEXT NOT NULL, class TEXT NOT NULL, annex TEXT NOT NULL, owner TEXT NOT NULL,
            cores INTEGER NOT NULL, memory INTEGER NOT NULL, gpus INTEGER NOT NULL, asked REAL NOT NULL,
            UNIQUE (cloud, instance, asked))""",
        """CREATE TABLE usage_days (
            day INTEGER NOT NULL, machine INTEGER NOT NULL, began REAL NOT NULL, until REAL NOT NULL,
            alive REAL NOT NULL, joined REAL NOT NULL, claimed REAL NOT NULL, unseen REAL NOT NULL,
            doubtful REAL NOT NULL, core_seconds REAL NOT NULL, gpu_seconds REAL NOT NULL, cost REAL NOT NULL,
            unpriced REAL NOT NULL, jobs INTEGER NOT NULL, lost REAL NOT NULL, price REAL,
            currency TEXT NOT NULL, source TEXT NOT NULL, benchmark TEXT NOT NULL, score REAL,
            ended TEXT NOT NULL, why TEXT NOT NULL, PRIMARY KEY (day, machine)) WITHOUT ROWID""",
        """CREATE TABLE usage_users (
            day INTEGER NOT NULL, machine INTEGER NOT NULL, user TEXT NOT NULL, grp TEXT NOT NULL,
            core_seconds REAL NOT NULL, gpu_seconds REAL NOT NULL, jobs INTEGER NOT NULL, lost REAL NOT NULL,
            PRIMARY KEY (day, machine, user, grp)) WITHOUT ROWID""",
        """CREATE TABLE usage_meters (
            cloud TEXT NOT NULL, machine TEXT NOT NULL, doc TEXT NOT NULL,
            PRIMARY KEY (cloud, machine)) WITHOUT ROWID""",
        """CREATE TABLE usage_places (
            day INTEGER NOT NULL, cloud TEXT NOT NULL, region TEXT NOT NULL, class TEXT NOT NULL,
            flavor TEXT NOT NULL, market TEXT NOT NULL, annex TEXT NOT NULL, owner TEXT NOT NULL,
            currency TEXT NOT NULL, machines INTEGER NOT NULL, alive REAL NOT NULL,
            joined REAL NOT NULL, claimed REAL NOT NULL, unseen REAL NOT NULL, doubtful REAL NOT NULL,
            room REAL NOT NULL, unseen_room REAL NOT NULL, doubtful_room REAL NOT NULL,
            gpu_room REAL NOT NULL, core_seconds REAL NOT NULL, gpu_seconds REAL NOT NULL, cost REAL NOT NULL,
            unpriced REAL NOT NULL, jobs INTEGER NOT NULL, lost REAL NOT NULL)""",
        "CREATE INDEX usage_places_day ON usage_places (day)",
        """CREATE TABLE usage_people (
            day INTEGER NOT NULL, user TEXT NOT NULL, grp TEXT NOT NULL, cloud TEXT NOT NULL,
            region TEXT NOT NULL, class TEXT NOT NULL, flavor TEXT NOT NULL, market TEXT NOT NULL,
            annex TEXT NOT NULL, owner TEXT NOT NULL, currency TEXT NOT NULL, machines INTEGER NOT NULL,
            core_seconds REAL NOT NULL, gpu_seconds REAL NOT NULL, jobs INTEGER NOT NULL, lost REAL NOT NULL,
            idle_core_seconds REAL NOT NULL, cost REAL NOT NULL, idle_cost REAL NOT NULL,
            unpriced REAL NOT NULL)""",
        "CREATE INDEX usage_people_day ON usage_people (day)",
        "CREATE TABLE usage_summed (day INTEGER PRIMARY KEY)",
        """CREATE TABLE usage_bills (
            day INTEGER NOT NULL, cloud TEXT NOT NULL, instance TEXT NOT NULL, currency TEXT NOT NULL,
            billed REAL NOT NULL, PRIMARY KEY (day, cloud, instance, currency)) WITHOUT ROWID""",
    ),
    (
        """CREATE TABLE counters (
            name TEXT NOT NULL, labels TEXT NOT NULL, value REAL NOT NULL,
            PRIMARY KEY (name, labels)) WITHOUT ROWID""",
    ),
)


def version_of(connection: sqlite3.Connection) -> int:
    """How many steps this file has had; 0 for a new one."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def check_version(connection: sqlite3.Connection, name: str, known: int = len(MIGRATIONS)) -> int:
    """The file's version. Raises LedgerError if a newer updraft wrote it."""
    version = version_of(connection)
    if version > known:
        raise LedgerError(
            f"the ledger {name} was written by a newer updraft (version {version}, this one knows {known}): "
            "install that version again, or move the file away; machines are found again by their tags"
        )
    return version


def migrate(
    connection: sqlite3.Connection, name: str, steps: tuple[tuple[str, ...], ...] = MIGRATIONS
) -> None:
    """Bring the file to the newest version; a step is applied whole or not at all.

    `connection` must be in autocommit mode. Raises LedgerError if a newer updraft wrote the file.
    """
    while check_version(connection, name, len(steps)) < len(steps):
        connection.execute("BEGIN IMMEDIATE")
        try:
            # Looked at again inside the transaction: another process may have been faster.
            version = version_of(connection)
            if version < len(steps):
                for statement in steps[version]:
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise
