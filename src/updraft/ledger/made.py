"""What updraft has made in clouds that keep no tags on such things: a note for each, until it is removed."""

import time
from pathlib import Path

from updraft.errors import LedgerError
from updraft.ledger.reader import Queries
from updraft.ledger.store import Ledger

_PREFIX = "made "


def note_made(path: Path, cloud: str, kind: str, one: str) -> str:
    """Write it down in the ledger at this path; returns why that can't be, "" where it is done."""
    try:
        with Ledger(path) as ledger:
            doc = {"cloud": cloud, "kind": kind, "id": one}
            ledger.note(f"{_PREFIX}{cloud} {kind} {one}", doc, time.time())
    except LedgerError as error:
        return str(error)
    return ""


def made(ledger: Queries) -> frozenset[tuple[str, str, str]]:
    """Cloud, kind and id of everything that is written down."""
    return frozenset(
        (str(doc["cloud"]), str(doc["kind"]), str(doc["id"]))
        for doc in ledger.all_noted(_PREFIX).values()
        if {"cloud", "kind", "id"} <= doc.keys()
    )


def forget_made(path: Path, cloud: str, kind: str, one: str) -> None:
    """It is removed. Raises LedgerError: the note would make another of this name ours."""
    with Ledger(path) as ledger:
        ledger.drop_note(f"{_PREFIX}{cloud} {kind} {one}")
