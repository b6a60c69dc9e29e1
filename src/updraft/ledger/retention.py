"""How much of the past the ledger keeps, so that a year of it is no larger than a month."""

import sqlite3
from dataclasses import dataclass

from updraft.core.model import LaunchState
from updraft.core.settings import DAY


@dataclass(frozen=True, slots=True)
class Retention:
    """Ages in seconds, numbers in rows. What is alive or unsettled is kept whatever its age."""

    events_age: float = 90 * DAY
    events: int = 50_000
    ended_age: float = 30 * DAY
    ended: int = 20_000
    consoles: int = 200
    boots: int = 50
    kinds: int = 500
    requests: int = 1000


def prune(rows: sqlite3.Connection, keep: Retention, now: float) -> None:
    """Delete what is older, or more, than `keep` says. Runs in the caller's transaction."""
    rows.execute("DELETE FROM events WHERE at < ?", (now - keep.events_age,))
    # A token that has ended is history; the oldest note of it is as old as the longest life of a machine.
    for first, behind in (("token:", "token;"), ("handed:", "handed;")):
        rows.execute(
            "DELETE FROM notes WHERE key >= ? AND key < ? AND json_extract(doc, '$.expires') < ?",
            (first, behind, now - keep.ended_age),
        )
    rows.execute("DELETE FROM events WHERE id <= (SELECT MAX(id) FROM events) - ?", (keep.events,))
    _prune_ended(rows, keep, now)
    rows.execute(
        "DELETE FROM consoles WHERE rowid IN (SELECT rowid FROM consoles ORDER BY at DESC LIMIT -1 OFFSET ?)",
        (keep.consoles,),
    )
    rows.execute(
        """DELETE FROM boots WHERE id IN (SELECT id FROM (
            SELECT id, ROW_NUMBER() OVER (PARTITION BY image, flavor ORDER BY id DESC) AS place FROM boots)
            WHERE place > ?) OR at < ?""",
        (keep.boots, now - keep.events_age),
    )
    rows.execute(
        "DELETE FROM kinds WHERE key IN (SELECT key FROM kinds ORDER BY at DESC LIMIT -1 OFFSET ?)",
        (keep.kinds,),
    )
    rows.execute(
        """DELETE FROM requests WHERE done_at IS NOT NULL AND id IN (
            SELECT id FROM requests WHERE done_at IS NOT NULL ORDER BY id DESC LIMIT -1 OFFSET ?)""",
        (keep.requests,),
    )


def _prune_ended(rows: sqlite3.Connection, keep: Retention, now: float) -> None:
    """Machines that have ended, and launches that are closed."""
    # An end of the last day is a planner's fact (cool-downs count it): age goes before number.
    ended = min(now - keep.ended_age, now - 2 * DAY)
    rows.execute("DELETE FROM machines WHERE ended_at < ?", (ended,))
    rows.execute(
        """DELETE FROM machines WHERE ended_at < ? AND (cloud, id) IN (
            SELECT cloud, id FROM machines WHERE ended_at IS NOT NULL
            ORDER BY ended_at DESC LIMIT -1 OFFSET ?)""",
        (now - 2 * DAY, keep.ended),
    )
    # An accepted launch has its machines' own records: it is as closed as one that is settled or refused.
    closed = (LaunchState.SETTLED, LaunchState.REFUSED, LaunchState.ACCEPTED)
    rows.execute("DELETE FROM launches WHERE asked_at < ? AND state IN (?, ?, ?)", (ended, *closed))
    rows.execute(
        """DELETE FROM launches WHERE asked_at < ? AND key IN (
            SELECT key FROM launches WHERE state IN (?, ?, ?) ORDER BY asked_at DESC LIMIT -1 OFFSET ?)""",
        (now - 2 * DAY, *closed, keep.ended),
    )
