"""Which alarms are due to be told: those that have stood long enough, each once, and not too many of a kind.

What was told outlives the process, in a file beside the ledger: one that is started again and again tells
nothing twice.
"""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import structlog

from updraft.metrics.alarms.conditions import Alarm, AlarmKind, alarms, lost_jobs
from updraft.metrics.reading import FiguresRead

FILE = "alarms.json"
PATIENCE = {AlarmKind.NOT_ACTING: 90.0}
"""Seconds for which an alarm has to stand: a controller that starts listens for a while before it acts."""
SHOWN = 10
"""Alarms of one kind in a message; of more, the number is told."""
LONGEST = 500
"""Letters of one alarm's sentence."""


@dataclass(frozen=True, slots=True)
class Message:
    """What is told at one time: alarms of one kind. `texts` are printable, a line each."""

    pool: str
    kind: AlarmKind
    at: float
    texts: tuple[str, ...]

    @property
    def subject(self) -> str:
        """The message in a line."""
        more = f" (and {len(self.texts) - 1} more)" if len(self.texts) > 1 else ""
        return f"updraft, pool {self.pool}: {self.texts[0]}{more}"


@dataclass(slots=True)
class _AlarmMemory:
    """What was told (kind and key, when), when each kind was last told, and how many lost jobs."""

    told: dict[tuple[str, str], float] = field(default_factory=dict)
    sent: dict[str, float] = field(default_factory=dict)
    lost: float = 0.0


class AlarmWatch:
    """Looks at one picture after the other and tells what is due.

    A kind is told at most once in `pause` seconds, with all of it that is due; an alarm that still stands is
    told `again` after so many.
    """

    def __init__(self, send: Callable[[Message], None], folder: Path, *, pause: float, again: float) -> None:
        self._send, self._file = send, folder / FILE
        self._pause, self._again = pause, again
        self._since: dict[tuple[str, str], float] = {}
        self._memory = _loaded(self._file)
        self._unwritten = ""

    def look(self, picture: FiguresRead) -> None:
        """Tell what is due by this picture. Raises nothing for what can't be written."""
        now, memory = picture.now, self._memory
        standing = {(one.kind.value, one.key): one for one in alarms(picture, memory.lost)}
        self._since = {key: min(now, self._since.get(key, now)) for key in standing}
        before = dict(memory.told), dict(memory.sent), memory.lost
        # What is over may come again, and is news then; but nobody is told of it while nothing can be read.
        if picture.unread is None:
            memory.told = {key: at for key, at in memory.told.items() if key in standing}
        for kind in AlarmKind:
            due = [one for key, one in standing.items() if one.kind is kind and self._is_due(key, now)]
            last = memory.sent.get(kind, float("-inf"))
            if due and not 0 <= now - last < self._pause:
                self._tell(picture, kind, due)
        if (memory.told, memory.sent, memory.lost) != before:
            self._keep()

    def _is_due(self, key: tuple[str, str], now: float) -> bool:
        if now - self._since[key] < PATIENCE.get(AlarmKind(key[0]), 0.0):
            return False
        told = self._memory.told.get(key)
        return told is None or not 0 <= now - told < self._again

    def _tell(self, picture: FiguresRead, kind: AlarmKind, due: list[Alarm]) -> None:
        for one in due:
            self._memory.told[kind, one.key] = picture.now
        self._memory.sent[kind] = picture.now
        if kind is AlarmKind.JOB_LOST:
            self._memory.lost = lost_jobs(picture)
        self._send(Message(printable(picture.pool), kind, picture.now, _texts(due)))

    def _keep(self) -> None:
        memory = self._memory
        doc = {
            "told": [[kind, key, at] for (kind, key), at in memory.told.items()],
            "sent": memory.sent,
            "lost": memory.lost,
        }
        new = self._file.with_suffix(".new")
        try:
            with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
                json.dump(doc, opened)
            new.replace(self._file)
        except OSError as error:
            why = f"{self._file} can't be written ({error.strerror}): a restart may tell again what was told"
            if why != self._unwritten:
                structlog.get_logger("updraft").warning(why, code="alarms-unwritten")
            self._unwritten = why


def printable(text: str) -> str:
    """A line that nothing obeys: what isn't a letter, a sign or a space is replaced."""
    return "".join(one if one.isprintable() else "?" for one in text)


def _texts(due: Iterable[Alarm]) -> tuple[str, ...]:
    texts = [printable(one.text)[:LONGEST] for one in due]
    more = len(texts) - SHOWN
    return (*texts[:SHOWN], *((f"and {more} more",) if more > 0 else ()))


def _loaded(file: Path) -> _AlarmMemory:
    """What was told before; nothing where that can't be read."""
    try:
        doc: Any = json.loads(file.read_text(encoding="utf-8"))
        told = {(str(kind), str(key)): float(at) for kind, key, at in doc["told"]}
        sent = {str(kind): float(at) for kind, at in doc["sent"].items()}
        return _AlarmMemory(told, sent, float(doc["lost"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return _AlarmMemory()
