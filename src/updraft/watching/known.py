"""What the ledger knows, as a person asks for it: whether a daemon is at work, and which machine is meant."""

import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from updraft.core.model import MachineRecord
from updraft.core.slots.choice import near
from updraft.documents.cycle import DaemonState
from updraft.errors import UsageError
from updraft.ledger.reader import Reader

SILENT_AFTER = 60.0
START = "start it with `updraft run` or `systemctl start updraft`"


def daemon_state(reader: Reader, now: float) -> DaemonState:
    """Whether a daemon is at work, whether it acts or waits for another, and when it last looked."""
    note = reader.noted("controller") or {}
    cycle = reader.last_cycle() or {}
    looked_at = note.get("last_cycle", cycle.get("at"))
    age = None if looked_at is None else max(0.0, now - looked_at)
    return DaemonState(
        alive=age is not None and age < SILENT_AFTER and process_lives(note),
        acting=bool(note.get("acting", False)),
        standing=cycle.get("standing"),
        host=note.get("host", ""),
        pid=note.get("pid"),
        since=note.get("started"),
        looked_at=looked_at,
        age=age,
    )


def process_lives(note: Mapping[str, Any]) -> bool:
    """False where the daemon ran on this host and its process is gone. Of another host nothing is known."""
    if "pid" not in note or note.get("host") != socket.getfqdn():
        return True
    return Path(f"/proc/{note['pid']}").exists()


def machine_named(reader: Reader, wanted: str, *, gone: bool = False) -> MachineRecord:
    """The machine of this id or unique beginning; with `gone`, also one that has ended.

    Raises UsageError that lists near names where there is none, or more than one.
    """
    exact = reader.machine(wanted)
    if exact is not None and (gone or exact.ended_at is None):
        return exact
    records = [one for one in reader.view(time.time()).machines if gone or one.ended_at is None]
    found = [one for one in records if one.id.startswith(wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{wanted} may be any of {_listed([one.id for one in found])}; write more of the name"
        )
    if exact is not None:
        raise UsageError(f"{wanted} is gone already; `updraft explain {wanted}` says why")
    close = near(wanted, [one.id for one in records])
    hint = f"did you mean {_listed(close)}?" if close else "`updraft machines` lists them"
    raise UsageError(f"there is no machine {wanted}; {hint}")


def _listed(names: list[str]) -> str:
    shown = sorted(names)[:5]
    return ", ".join(shown) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
