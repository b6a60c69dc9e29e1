"""Reading the ledger without disturbing its writer: what `status`, `events` and `explain` open."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Generic, Protocol, Self, TypeVar

from updraft.core.model import Annex, AtWork, LaunchRecord, LaunchState, LedgerView, MachineId, MachineRecord
from updraft.core.model.used import Meters
from updraft.core.settings import DAY
from updraft.errors import LedgerError
from updraft.ledger import counters, usage
from updraft.ledger.migrations import check_version
from updraft.ledger.rows import (
    annex_from_doc,
    at_work_from_doc,
    launch_from_doc,
    machine_from_doc,
    untaken_from_doc,
)

T = TypeVar("T")
BOOTS_KEPT = 50
AT_WORK, AT_WORK_AT = "at-work", "at-work-at"
"""The notes of who had a claim at the last decision, and of when that was."""
UNTAKEN = "untaken"
"""The note of the job groups that don't take the room that there is."""


class RequestKind(StrEnum):
    """What an operator can ask of the daemon."""

    DRAIN = "drain"
    UNDRAIN = "undrain"
    TERMINATE = "terminate"
    DESTROY = "destroy"
    ADOPT = "adopt"
    DISOWN = "disown"


@dataclass(frozen=True, slots=True)
class Request:
    """An operator's wish. `detail` is what else belongs to it: of an adoption, `class` and `cloud`."""

    id: Annotated[int, "Its number."]
    at: Annotated[float, "When it was asked for."]
    who: Annotated[str, "By whom."]
    kind: Annotated[RequestKind, "What."]
    machine: Annotated[str, "Which machine; empty for all."] = ""
    kill_jobs: Annotated[bool, "Whether jobs may be killed for it."] = False
    done_at: float | None = None
    outcome: str = ""
    detail: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnreadRequest:
    """A wish whose row can't be read, and why; what of it can be told all the same."""

    id: int
    who: str
    machine: str
    why: str


@dataclass(frozen=True, slots=True)
class Event:
    """One event: with its reason, and on a line of its own where it is printed."""

    id: Annotated[int, "Grows with time."]
    at: Annotated[float, "When."]
    kind: Annotated[str, "What kind of thing happened."]
    subject: Annotated[str, "The machine, launch or cloud that it happened to."]
    code: Annotated[str, "The reason's code."]
    text: Annotated[str, "The reason's sentence."]
    detail: Annotated[Mapping[str, Any], "More of it."] = field(default_factory=dict)


class _Rows(Protocol):
    @property
    def total_changes(self) -> int: ...
    def execute(self, sql: str, parameters: Sequence[object] = (), /) -> sqlite3.Cursor: ...


class KeptRows(Generic[T]):
    """Records by the texts that they are kept as: most are at the next look as they were at the last."""

    def __init__(self, read: Callable[[str], T]) -> None:
        self.known: dict[str, T] = {}
        self._read = read
        self._texts: list[str] = []
        self._found: tuple[T, ...] = ()

    def one(self, text: str) -> T:
        """The record of one text."""
        return self.known.get(text) or self._read(text)

    def read(self, texts: list[str]) -> tuple[T, ...]:
        """The records of these texts, in their order: the same objects where the texts are the same."""
        if texts != self._texts:
            old = self.known
            found = [(text, old.get(text) or self._read(text)) for text in texts]
            self._texts, self.known = texts, dict(found)
            self._found = tuple([record for _, record in found])
        return self._found


@contextmanager
def edge(path: Path) -> Iterator[None]:
    """Turns SQLite's errors into a LedgerError that says what to do."""
    try:
        yield
    except sqlite3.OperationalError as error:
        raise LedgerError(
            f"the ledger {path} can't be used ({error}): "
            f"look at the disk's room and at the rights of {path.parent}"
        ) from error
    except sqlite3.Error as error:
        raise LedgerError(
            f"the ledger {path} is damaged ({error}): stop updraft and move the file away (with its -wal and "
            "-shm); the next start finds the machines by their tags"
        ) from error


class Queries:
    """The questions that reader and writer share; a subclass says on which connection."""

    path: Path

    def __init__(self) -> None:
        self._machines: KeptRows[MachineRecord] = KeptRows(machine_from_doc)
        self._launches: KeptRows[LaunchRecord] = KeptRows(launch_from_doc)
        self._worked: tuple[str, frozenset[MachineId]] = "", frozenset()
        self._seen: tuple[object, LedgerView] | None = None

    @contextmanager
    def _reading(self) -> Iterator[_Rows]:
        raise NotImplementedError
        yield

    def view(self, now: float) -> LedgerView:
        """Live machines, launches without an answer, both of the last day, and boots: for the planner."""
        with self._reading() as rows:
            # What nobody has written to since is as it was.
            stamp = now, rows.execute("PRAGMA data_version").fetchone()[0], rows.total_changes
            if self._seen is None or self._seen[0] != stamp:
                self._seen = stamp, self._view(rows, now)
            return self._seen[1]

    def _view(self, rows: _Rows, now: float) -> LedgerView:
        launches = rows.execute(
            "SELECT doc FROM launches WHERE asked_at >= ? OR state IN (?, ?) ORDER BY asked_at, key",
            (now - DAY, LaunchState.INTENDED, LaunchState.UNKNOWN),
        ).fetchall()
        machines = rows.execute(
            "SELECT doc FROM machines WHERE ended_at IS NULL OR ended_at >= ? ORDER BY cloud, id",
            (now - DAY,),
        ).fetchall()
        boots: dict[tuple[str, str], tuple[float, ...]] = {}
        for image, flavor, seconds in rows.execute("SELECT image, flavor, seconds FROM boots ORDER BY id"):
            known = boots.get((image, flavor), ())
            boots[image, flavor] = (*known, seconds)[-BOOTS_KEPT:]
        notes = self._last_notes(rows)
        return LedgerView(
            launches=self._launches.read([doc for (doc,) in launches]),
            machines=self._machines.read([doc for (doc,) in machines]),
            boots=boots,
            at_work=self._at_work(notes),
            untaken=untaken_from_doc(notes.get(UNTAKEN, "")),
        )

    def _last_notes(self, rows: _Rows) -> dict[str, str]:
        """What the last decision noted, by its keys."""
        keys = (AT_WORK, AT_WORK_AT, UNTAKEN)
        return dict(rows.execute("SELECT key, doc FROM notes WHERE key IN (?, ?, ?)", keys).fetchall())

    def _at_work(self, notes: Mapping[str, str]) -> AtWork:
        """Who had a claim at the last decision; nobody where no note says so."""
        text = notes.get(AT_WORK, "")
        if text != self._worked[0]:
            self._worked = text, at_work_from_doc(text)
        at = json.loads(notes.get(AT_WORK_AT, "{}")).get("at", 0.0)
        return AtWork(self._worked[1], at)

    def machine(self, machine: str, cloud: str | None = None) -> MachineRecord | None:
        """The record of one machine, ended ones included; the latest where two clouds use one id."""
        with self._reading() as rows:
            found = [
                machine_from_doc(doc)
                for (doc,) in rows.execute("SELECT doc FROM machines WHERE id = ? ORDER BY cloud", (machine,))
            ]
        found = [record for record in found if cloud is None or record.cloud == cloud]
        return max(found, key=lambda record: (record.ended_at is None, record.requested_at), default=None)

    def record(self, cloud: str, machine: str) -> MachineRecord | None:
        """The machine of this cloud as it is written down now, ended or not."""
        with self._reading() as rows:
            row = rows.execute(
                "SELECT doc FROM machines WHERE cloud = ? AND id = ?", (cloud, machine)
            ).fetchone()
            return None if row is None else self._machines.one(row[0])

    def launch(self, key: str) -> LaunchRecord | None:
        """The record of one launch."""
        with self._reading() as rows:
            row = rows.execute("SELECT doc FROM launches WHERE key = ?", (key,)).fetchone()
            return None if row is None else launch_from_doc(row[0])

    def events(
        self,
        *,
        after: int = 0,
        before: int | None = None,
        limit: int = 1000,
        until: float | None = None,
        kinds: Sequence[str] = (),
        subject: str | None = None,
    ) -> tuple[Event, ...]:
        """Events with an id above `after`, oldest first, at most `limit`; the latest where `after` is 0.

        With `before` only those of a lower id, with `until` those of no later moment (POSIX seconds).
        """
        clauses, parameters = ["id > ?"], list[object]([after])
        for clause, value in (("id < ?", before), ("at <= ?", until), ("subject = ?", subject)):
            if value is not None:
                clauses.append(clause)
                parameters.append(value)
        if kinds:
            clauses.append(f"kind IN ({','.join('?' * len(kinds))})")
            parameters += kinds
        order = "DESC" if after == 0 else "ASC"
        sql = (
            "SELECT id, at, kind, subject, code, text, detail FROM events "  # noqa: S608 (names are our own)
            f"WHERE {' AND '.join(clauses)} ORDER BY id {order} LIMIT ?"
        )
        with self._reading() as rows:
            found = [_event(row) for row in rows.execute(sql, (*parameters, limit))]
        return tuple(sorted(found, key=lambda event: event.id))

    def console(self, machine: str, cloud: str | None = None) -> str | None:
        """The console output that was kept of a machine, None where none was."""
        with self._reading() as rows:
            row = rows.execute(
                "SELECT text FROM consoles WHERE machine = ? AND (? IS NULL OR cloud = ?) ORDER BY at DESC",
                (machine, cloud, cloud),
            ).fetchone()
            return None if row is None else str(row[0])

    def requests(self) -> tuple[Request, ...]:
        """Operators' wishes that aren't done, oldest first, without those whose rows can't be read."""
        return tuple(one for one in self._requests() if isinstance(one, Request))

    def unread_requests(self) -> tuple["UnreadRequest", ...]:
        """Those that aren't done and whose rows can't be read."""
        return tuple(one for one in self._requests() if isinstance(one, UnreadRequest))

    def _requests(self) -> list["Request | UnreadRequest"]:
        # All columns, because a file that no newer daemon has opened yet has fewer.
        with self._reading() as rows:
            found = rows.execute("SELECT * FROM requests WHERE done_at IS NULL ORDER BY id")
            names = [column[0] for column in found.description]
            return [_request(dict(zip(names, row, strict=True))) for row in found]

    def request_outcome(self, request: int) -> str | None:
        """What became of a wish; None while it isn't done."""
        with self._reading() as rows:
            row = rows.execute(
                "SELECT outcome FROM requests WHERE id = ? AND done_at IS NOT NULL", (request,)
            ).fetchone()
            return None if row is None else str(row[0])

    def annexes(self) -> tuple[Annex, ...]:
        """Every annex that isn't forgotten, by name; none in a file that no newer daemon has opened yet.

        One whose row can't be read is left out: see `unread_annexes`.
        """
        return tuple(one for _, one in self._annexes() if one is not None)

    def unread_annexes(self) -> tuple[str, ...]:
        """The names of those whose rows can't be read."""
        return tuple(name for name, one in self._annexes() if one is None)

    def _annexes(self) -> list[tuple[str, Annex | None]]:
        with self._reading() as rows:
            if not rows.execute("SELECT 1 FROM sqlite_master WHERE name = 'annexes'").fetchone():
                return []
            found = rows.execute("SELECT name, doc FROM annexes ORDER BY name").fetchall()
            return [(str(name), _annex(doc)) for name, doc in found]

    def meters(self) -> Meters:
        """The meters of the machines that aren't over, as the last look left them."""
        with self._reading() as rows:
            return usage.meters(rows)

    def counters(self) -> counters.Counters:
        """What has been counted since the ledger was made."""
        with self._reading() as rows:
            return counters.read(rows)

    def used_instances(self) -> dict[str, str]:
        """The cloud of each machine that is in the records of what was used, by its id."""
        with self._reading() as rows:
            return usage.instances(rows)

    def learned(self) -> dict[str, str]:
        """The ad text learned for each kind key."""
        with self._reading() as rows:
            return dict(rows.execute("SELECT key, text FROM kinds").fetchall())

    def last_cycle(self) -> dict[str, Any] | None:
        """What the daemon saved of its last cycle; None before the first."""
        return self.noted("cycle")

    def noted(self, key: str) -> dict[str, Any] | None:
        """The note of this key: "cycle", "controller", "schedds"."""
        with self._reading() as rows:
            row = rows.execute("SELECT doc FROM notes WHERE key = ?", (key,)).fetchone()
            return None if row is None else dict(json.loads(row[0]))

    def all_noted(self, prefix: str) -> dict[str, dict[str, Any]]:
        """The notes whose keys begin so, by the rest of their keys."""
        with self._reading() as rows:
            # Not LIKE: a key may have its signs in it.
            found = rows.execute(
                "SELECT substr(key, ?), doc FROM notes WHERE substr(key, 1, ?) = ? ORDER BY key",
                (len(prefix) + 1, len(prefix), prefix),
            )
            return {str(key): dict(json.loads(doc)) for key, doc in found}


class Reader(Queries):
    """A read-only look at the ledger. Raises LedgerError where there is none, or none that can be read."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        if not path.exists():
            raise LedgerError(
                f"there is no ledger at {path} yet: start the daemon with `updraft run`, or call this where "
                "it runs, which is the pool's head"
            )
        with edge(path):
            self._connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5, isolation_level=None
            )
            try:
                if check_version(self._connection, str(path)) == 0:
                    raise LedgerError(f"{path} is empty, no ledger yet: start the daemon with `updraft run`")
            except BaseException:
                self._connection.close()
                raise

    @contextmanager
    def _reading(self) -> Iterator[_Rows]:
        with edge(self.path):
            yield self._connection

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _request(row: Mapping[str, Any]) -> Request | UnreadRequest:
    try:
        return Request(
            id=row["id"],
            at=row["at"],
            who=row["who"],
            kind=RequestKind(row["kind"]),
            machine=row["machine"],
            kill_jobs=bool(row["kill_jobs"]),
            detail={str(name): str(value) for name, value in json.loads(row.get("detail") or "{}").items()},
        )
    except (ValueError, TypeError, AttributeError) as error:
        return UnreadRequest(row["id"], str(row["who"]), str(row["machine"]), type(error).__name__)


def _annex(doc: str) -> Annex | None:
    try:
        return annex_from_doc(doc)
    except sqlite3.DataError:
        return None


def _event(row: Sequence[Any]) -> Event:
    number, at, kind, subject, code, text, detail = row
    return Event(number, at, kind, subject, code, text, json.loads(detail))
