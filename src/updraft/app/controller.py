"""Whether a daemon is at work for this pool: what it has noted in the ledger, and what that says by now."""

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from updraft.ledger.reader import Reader

SILENT_AFTER = 60.0
START = "start it with `updraft run` or `systemctl start updraft`"


def daemon_state(reader: Reader, now: float) -> dict[str, Any]:
    """Whether a daemon is at work, whether it acts or waits for another, and when it last looked."""
    note = reader.noted("controller") or {}
    cycle = reader.last_cycle() or {}
    looked_at = note.get("last_cycle", cycle.get("at"))
    age = None if looked_at is None else max(0.0, now - looked_at)
    return {
        "alive": age is not None and age < SILENT_AFTER and process_lives(note),
        "acting": bool(note.get("acting", False)),
        "standing": cycle.get("standing"),
        "host": note.get("host", ""),
        "pid": note.get("pid"),
        "since": note.get("started"),
        "looked_at": looked_at,
        "age": age,
    }


def process_lives(note: Mapping[str, Any]) -> bool:
    """False where the daemon ran on this host and its process is gone. Of another host nothing is known."""
    if "pid" not in note or note.get("host") != socket.getfqdn():
        return True
    return Path(f"/proc/{note['pid']}").exists()
