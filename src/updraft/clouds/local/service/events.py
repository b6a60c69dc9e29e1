"""What a local cloud did, and what it was asked: one JSON object a line, for whoever judges its users.

Lines of machines have `machine` and the `state` that it entered; lines of calls have `call`, `who` asked
("controller" or "admin"), and the `code` of the refusal, if any. User-data and credentials are never in it.
"""

import json
import threading
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

_MOST = 64 * 1024 * 1024
_TOLD = ("key", "count", "flavor", "zone", "market", "ids", "id", "tags")
_IDS = 100


class EventLog:
    """Appends to a file (None: to nothing). One of 64 MiB is begun anew, and the old one kept."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = threading.Lock()

    def write(self, **said: Any) -> None:
        """One line, with the time; a disk that takes none is no reason to stop a cloud."""
        if self._path is None:
            return
        line = json.dumps({"at": round(time.time(), 3), **said}) + "\n"
        with self._lock:
            try:
                if self._path.exists() and self._path.stat().st_size > _MOST:
                    self._path.replace(self._path.with_suffix(".old"))
                with self._path.open("a") as file:
                    file.write(line)
            except OSError:
                return

    def call(
        self, name: str, who: str, body: dict[str, Any], begun: float, code: str, made: Iterable[Any]
    ) -> None:
        """One call: what of it may be told, how long it took, its refusal, and the machines that it made."""
        told = {key: body[key] for key in _TOLD if key in body}
        if isinstance(told.get("ids"), list):
            told["ids"] = told["ids"][:_IDS]
        seconds = round(time.time() - begun, 3)
        self.write(call=name, who=who, code=code, took=seconds, made=[one["id"] for one in made], **told)
