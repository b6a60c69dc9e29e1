"""The ledger's writer: the daemon holds one, and the command line one for the blink of a request."""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from updraft.core.model import Annex, LaunchRecord, LaunchState, MachineId, MachineRecord, Reason, Untaken
from updraft.core.model.used import Booking
from updraft.errors import LedgerError
from updraft.ledger import counters, usage
from updraft.ledger.migrations import migrate
from updraft.ledger.reader import AT_WORK, AT_WORK_AT, UNTAKEN, Queries, RequestKind, edge
from updraft.ledger.retention import Retention, prune
from updraft.ledger.rows import (
    annex_to_doc,
    at_work_to_doc,
    clean,
    dump,
    launch_from_doc,
    launch_to_doc,
    machine_to_doc,
    untaken_to_doc,
)
from updraft.ledger.secrets import REMOVED, scrub, storable

CONSOLE_KEPT = 64 * 1024
TEXT_KEPT = 4096
MANY = 50  # records written at once, from which on it is worth while to know who has joined already


class Ledger(Queries):
    """The ledger, open for writing. Safe to share between threads; every method is one transaction.

    It is the only keeper of what threads change together, so its lock is the only one that is held for longer
    than a moment. Whoever is inside `together` has it, and calls nothing but the ledger there.

    Raises LedgerError where the file is damaged, not writable, or of a newer updraft.
    """

    def __init__(self, path: Path, retention: Retention | None = None) -> None:
        super().__init__()
        self.path = path
        self._retention = retention or Retention()
        self._lock = threading.RLock()
        _make_private(path)
        with edge(path):
            self._connection = sqlite3.connect(path, timeout=5, isolation_level=None, check_same_thread=False)
            try:
                self._open()
            except BaseException:
                self._connection.close()
                raise

    def _open(self) -> None:
        rows = self._connection
        found = rows.execute("PRAGMA quick_check(1)").fetchone()[0]
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        rows.execute("PRAGMA journal_mode = WAL")
        # An intent must survive a power cut: it is what the cloud's answer is held against.
        rows.execute("PRAGMA synchronous = FULL")
        migrate(rows, str(self.path))

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, edge(self.path):
            yield self._connection

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._lock, edge(self.path):
            if self._connection.in_transaction:  # inside `together`
                yield self._connection
                return
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def together(self) -> Iterator[None]:
        """What is written inside is kept whole or not at all."""
        with self._writing():
            yield

    # ------------------------------------------------------------------------------------- launches

    def intend(self, record: LaunchRecord) -> None:
        """Write down a launch before the cloud is asked. Raises LedgerError for a key that is known."""
        with self._writing() as rows:
            if rows.execute("SELECT 1 FROM launches WHERE key = ?", (record.key,)).fetchone():
                raise LedgerError(f"the launch {record.key} is in the ledger already: it isn't made twice")
            self._put_launch(rows, record)
            counters.add(rows, counters.launched(record))

    def outcome(
        self,
        key: str,
        state: LaunchState,
        ids: Iterable[str] = (),
        error: Reason | None = None,
        failed_at: float | None = None,
    ) -> None:
        """Write down what the cloud said to a launch. A key that isn't known is left alone."""
        with self._writing() as rows:
            row = rows.execute("SELECT doc FROM launches WHERE key = ?", (key,)).fetchone()
            if row is None:
                return
            record = launch_from_doc(row[0])
            # A launch that was looked at again and settled meanwhile stays so: ids are only added.
            kept = record.state if record.state is LaunchState.SETTLED else state
            all_ids = tuple(dict.fromkeys((*record.ids, *ids)))
            told = replace(record, state=kept, ids=all_ids, error=error or record.error)
            self._put_launch(rows, replace(told, failed_at=failed_at or record.failed_at))
            counters.add(rows, counters.answered(record, len(all_ids) - len(record.ids), error))

    def settle(self, keys: Iterable[str]) -> None:
        """Nothing more will come of these launches."""
        with self._writing():
            for key in keys:
                self.outcome(key, LaunchState.SETTLED)

    def _put_launch(self, rows: sqlite3.Connection, record: LaunchRecord) -> None:
        rows.execute(
            "INSERT OR REPLACE INTO launches (key, cloud, asked_at, state, doc) VALUES (?, ?, ?, ?, ?)",
            (record.key, record.cloud, record.asked_at, record.state, launch_to_doc(record)),
        )

    # ------------------------------------------------------------------------------------- machines

    def remember(self, records: Iterable[MachineRecord]) -> None:
        """Write down machines as they are now known, and the boot of each that has just joined."""
        records = list(records)
        with self._writing() as rows:
            known = self._machines.known.values() if len(records) > MANY else ()
            joined = {one.key for one in known if one.joined_at is not None}
            docs = []
            for record in records:
                if record.key not in joined:
                    self._note_boot(rows, record)
                if record.ended_at is not None:
                    self._note_end(rows, record)
                docs.append(machine_to_doc(record))
            rows.executemany(
                "INSERT OR REPLACE INTO machines (cloud, id, launch_key, ended_at, doc) "
                "VALUES (?, ?, ?, ?, ?)",
                [
                    (record.cloud, record.id, record.launch_key, record.ended_at, doc)
                    for record, doc in zip(records, docs, strict=True)
                ],
            )
            # They read as they were written.
            self._machines.known.update(
                (doc, record) for record, doc in zip(records, docs, strict=True) if REMOVED not in doc
            )

    def change(self, cloud: str, machines: Iterable[str], **changes: Any) -> None:
        """Change these fields of machines as they are written down now; one that isn't known is left out."""
        with self._writing():
            known = [self.record(cloud, machine) for machine in machines]
            self.remember([replace(record, **changes) for record in known if record is not None])

    def add(self, records: Iterable[MachineRecord]) -> None:
        """Write down new machines; one that is known already is left as it is."""
        with self._writing():
            self.remember([one for one in records if self.record(one.cloud, one.id) is None])

    def keep_at_work(self, machines: frozenset[MachineId], at: float) -> None:
        """Write down which machines (cloud and id) had a claim at the decision of a look at that time.

        In one place, since it is most of them at most looks: their records would all have to be written anew.
        """
        with self._writing() as rows:
            before = self._at_work(self._last_notes(rows)).machines
            if machines != before:
                self.note(AT_WORK, at_work_to_doc(machines), at)
            if machines or before:
                self.note(AT_WORK_AT, {"at": at}, at)

    def keep_untaken(self, groups: Mapping[str, Untaken], at: float) -> None:
        """Write down which job groups don't take the room that there is, in place of those of before."""
        self.note(UNTAKEN, untaken_to_doc(groups), at)

    def _note_boot(self, rows: sqlite3.Connection, record: MachineRecord) -> None:
        # Only launches of our own teach how long a boot takes: of an adopted machine we know the join
        # only as the moment when we first saw it.
        if record.joined_at is None or record.adopted or not record.launch_key:
            return
        row = rows.execute(
            "SELECT json_extract(doc, '$.joined_at') FROM machines WHERE cloud = ? AND id = ?",
            (record.cloud, record.id),
        ).fetchone()
        if row is None or row[0] is not None:
            return
        if not rows.execute("SELECT 1 FROM launches WHERE key = ?", (record.launch_key,)).fetchone():
            return
        rows.execute(
            "INSERT INTO boots (at, image, flavor, seconds) VALUES (?, ?, ?, ?)",
            (record.joined_at, record.image, record.flavor, max(0.0, record.joined_at - record.requested_at)),
        )
        counters.add(rows, counters.joined(record))

    def _note_end(self, rows: sqlite3.Connection, record: MachineRecord) -> None:
        row = rows.execute(
            "SELECT ended_at FROM machines WHERE cloud = ? AND id = ?", (record.cloud, record.id)
        ).fetchone()
        if row is None or row[0] is None:
            counters.add(rows, counters.ended(record))

    def count(self, counts: Iterable[counters.Count]) -> None:
        """Add to what `updraft metrics` tells: see `ledger.counters`."""
        with self._writing() as rows:
            counters.add(rows, counts)

    def keep_console(self, cloud: str, machine: str, text: str, at: float) -> None:
        """Keep the end of a machine's console output, without what looks like a secret."""
        with self._writing() as rows:
            rows.execute(
                "INSERT OR REPLACE INTO consoles (cloud, machine, at, text) VALUES (?, ?, ?, ?)",
                (cloud, machine, at, scrub(text)[-CONSOLE_KEPT:]),
            )

    # --------------------------------------------------------------------------------------- events

    def event(
        self, at: float, kind: str, subject: str, reason: Reason, detail: Mapping[str, Any] | None = None
    ) -> None:
        """Write down that something happened."""
        with self._writing() as rows:
            rows.execute(
                "INSERT INTO events (at, kind, subject, code, text, detail) VALUES (?, ?, ?, ?, ?, ?)",
                (
                    at,
                    kind,
                    subject,
                    reason.code,
                    scrub(reason.text)[:TEXT_KEPT],
                    clean(dict(detail or {})),
                ),
            )
            counters.add(rows, counters.happened(kind, reason, detail or {}))

    # ------------------------------------------------------------------------------------- requests

    def request(
        self,
        at: float,
        who: str,
        kind: RequestKind,
        machine: str = "",
        *,
        kill_jobs: bool = False,
        detail: Mapping[str, str] | None = None,
    ) -> int:
        """Write down an operator's wish for the daemon to take up; its number."""
        with self._writing() as rows:
            cursor = rows.execute(
                "INSERT INTO requests (at, who, kind, machine, kill_jobs, detail) VALUES (?, ?, ?, ?, ?, ?)",
                (at, who, kind, machine, int(kill_jobs), dump(dict(detail or {}))),
            )
            return int(cursor.lastrowid or 0)

    def done(self, request: int, outcome: str, at: float) -> None:
        """Write down what became of a wish."""
        with self._writing() as rows:
            rows.execute(
                "UPDATE requests SET done_at = ?, outcome = ? WHERE id = ?", (at, scrub(outcome), request)
            )

    # -------------------------------------------------------------------------------------- annexes

    def put_annex(self, annex: Annex) -> None:
        """Write down an annex as it is now."""
        with self._writing() as rows:
            rows.execute(
                "INSERT OR REPLACE INTO annexes (name, since, doc) VALUES (?, ?, ?)",
                (annex.name, annex.since, annex_to_doc(annex)),
            )

    def drop_annex(self, name: str) -> None:
        """Forget an annex. One that isn't there is fine."""
        with self._writing() as rows:
            rows.execute("DELETE FROM annexes WHERE name = ?", (name,))

    # ---------------------------------------------------------------------------------- what is known

    def learn(self, kind: str, text: str, at: float) -> None:
        """Keep the ad text of a kind, in place of an older one."""
        with self._writing() as rows:
            rows.execute(
                "INSERT OR REPLACE INTO kinds (key, at, text) VALUES (?, ?, ?)",
                (storable(kind), at, storable(text)),
            )

    def save_cycle(self, doc: Mapping[str, Any], at: float) -> None:
        """Keep the last cycle for `status`, in place of the one before."""
        self.note("cycle", doc, at)

    def note(self, key: str, doc: Mapping[str, Any], at: float) -> None:
        """Keep a small document under a key."""
        with self._writing() as rows:
            rows.execute(
                "INSERT OR REPLACE INTO notes (key, at, doc) VALUES (?, ?, ?)",
                (key, at, clean(dict(doc))),
            )

    def book(self, books: Booking) -> None:
        """Add what a look adds to the records of what was used, and note that it is in them."""
        with self._writing() as rows:
            usage.add(rows, books)
            usage.keep(rows, books)
            self.note(usage.LAST_LOOK, {"at": books.at}, books.at)

    def put_bill(self, billed: Mapping[tuple[int, str, str, str], float]) -> None:
        """Keep what was billed, by day, cloud, instance id and currency."""
        with self._writing() as rows:
            usage.put_bill(rows, billed)

    def booked(self, machines: Iterable[MachineId]) -> dict[MachineId, float]:
        """Up to when each of these (cloud and id) is in the records; one that isn't in them is left out."""
        with self._reading() as rows:
            return usage.booked(rows, machines)

    def drop_note(self, key: str) -> None:
        """Forget the note of this key. One that isn't there is fine."""
        with self._writing() as rows:
            rows.execute("DELETE FROM notes WHERE key = ?", (key,))

    def prune(self, now: float) -> None:
        """Let go of what is older, or more, than the retention says."""
        with self._writing() as rows:
            prune(rows, self._retention, now)

    def close(self) -> None:
        """Close the file. Closing twice is fine."""
        with self._lock:
            self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _make_private(path: Path) -> None:
    """Create the file as 0600 before SQLite does; its -wal and -shm take the rights of the file."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600))
        path.chmod(0o600)
    except OSError as error:
        raise LedgerError(
            f"the ledger {path} can't be opened for writing ({error.strerror}): "
            f"run as the owner of {path.parent}, or set another state directory"
        ) from error
