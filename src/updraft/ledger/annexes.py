"""Annexes in the ledger: who asked for which, how they change, what becomes of them.

Each change is one transaction with the event that tells of it. The layer of user-data that somebody gave may
hold secrets, so no row has it: it is a file beside the ledger, named by its hash, that only the ledger's
owner may read.
"""

import hashlib
import os
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

from updraft.core.annexes.progress import left_of_itself
from updraft.core.model import Annex, AnnexOutlook, MachineRecord, Reason
from updraft.errors import LedgerError, UsageError
from updraft.ledger.reader import Queries
from updraft.ledger.store import Ledger

EVENT = "annex"
LAYERS = "annex-layers"


def annex_named(ledger: Queries, name: str) -> Annex | None:
    """The annex of this name, None where there is none."""
    return next((one for one in ledger.annexes() if one.name == name), None)


def create(ledger: Ledger, annex: Annex, who: str, layer: str = "") -> Annex:
    """Write down a new annex, with the text of its layer; returns it as it was written.

    Raises UsageError where there is one of that name: its machines would be counted as this one's.
    """
    kept = replace(annex, layer=keep_layer(ledger.path, layer)) if layer else annex
    with ledger.together():
        if annex_named(ledger, annex.name) is not None:
            raise UsageError(
                f"there is an annex {annex.name} already; delete it, or give this one another name"
            )
        ledger.put_annex(kept)
        what = f"{annex.machines} machines" if annex.machines else f"{annex.cores} cores"
        reason = Reason("annex-created", f"{who} asked for annex {annex.name}: {what}")
        ledger.event(annex.since, EVENT, annex.name, reason)
    return kept


def extend(ledger: Ledger, name: str, until: float, who: str, now: float) -> Annex:
    """Move the end of its lease. Raises UsageError where there is none, or its machines are to go already."""

    def change(old: Annex) -> Annex:
        if old.over(now):
            raise UsageError(f"annex {name} is over, and its machines leave: create another one")
        return replace(old, until=until)

    return _change(
        ledger, name, change, Reason("annex-extended", f"{who} moved the end of annex {name}"), now
    )


def stop(ledger: Ledger, name: str, who: str, now: float, *, kill_jobs: bool = False) -> Annex:
    """End its machines now: each when its jobs have ended, or with `kill_jobs` at once."""
    reason = Reason("annex-stopped", f"{who} stopped annex {name}" + (" with its jobs" if kill_jobs else ""))

    def change(old: Annex) -> Annex:
        return replace(old, stopped=reason, kill_jobs=kill_jobs or old.kill_jobs)

    return _change(ledger, name, change, reason, now)


def delete(ledger: Ledger, name: str, who: str, now: float, *, kill_jobs: bool = False) -> Annex:
    """Stop it, and forget it once none of its machines is left."""
    reason = Reason("annex-deleted", f"{who} deleted annex {name}")

    def change(old: Annex) -> Annex:
        stopped = old.stopped or reason
        return replace(old, stopped=stopped, kill_jobs=kill_jobs or old.kill_jobs, deleted=True)

    return _change(ledger, name, change, reason, now)


def _change(ledger: Ledger, name: str, change: Callable[[Annex], Annex], reason: Reason, now: float) -> Annex:
    with ledger.together():
        old = annex_named(ledger, name)
        if old is None:
            raise UsageError(f"there is no annex {name}; `updraft annex list` shows those that there are")
        new = change(old)
        ledger.put_annex(new)
        ledger.event(now, EVENT, name, reason)
    return new


# ------------------------------------------------------------------------------------- what the daemon writes


def count_left(ledger: Ledger, ended: Iterable[MachineRecord]) -> None:
    """Of machines whose end is written down now, those that left of themselves make their annexes smaller."""
    for record in ended:
        name = record.variant.annex if record.variant and left_of_itself(record) else ""
        annex = annex_named(ledger, name) if name else None
        if annex is not None:
            cores = annex.left_cores + record.resources.cpus
            ledger.put_annex(replace(annex, left=annex.left + 1, left_cores=cores))


def forget(ledger: Ledger, outlooks: Iterable[AnnexOutlook], now: float) -> None:
    """Let go of deleted annexes of which nothing is left, and of layers that no other one has."""
    gone = [one.name for one in outlooks if one.forget]
    if not gone:
        return
    for name in gone:
        ledger.drop_annex(name)
        ledger.event(now, EVENT, name, Reason("annex-forgotten", "none of its machines is left"))
    if ledger.unread_annexes():
        return  # their layers aren't known
    used = {one.layer for one in ledger.annexes()}
    for path in _directory(ledger.path).glob("*"):
        if path.name not in used:
            path.unlink(missing_ok=True)


# ------------------------------------------------------------------------------------------ layers of users


def _directory(ledger: Path) -> Path:
    return ledger.parent / LAYERS


def keep_layer(ledger: Path, text: str) -> str:
    """Keep a layer's text beside the ledger; its hash. Raises LedgerError where it can't be written."""
    name = hashlib.sha256(text.encode()).hexdigest()
    path = _directory(ledger) / name
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = path.with_suffix(f".{os.getpid()}")
        fresh.touch(mode=0o600)
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    except OSError as error:
        raise LedgerError(f"{path} can't be written ({error.strerror})") from error
    return name


def layer_text(ledger: Path, name: str) -> str:
    """The text of a layer, by its hash. Raises LedgerError where it isn't there any more."""
    try:
        return (_directory(ledger) / name).read_text(encoding="utf-8")
    except OSError as error:
        raise LedgerError(f"the user-data of the annex is gone: {error.strerror}") from error
