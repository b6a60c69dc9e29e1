"""One machine as `explain` tells of it: its row, its launch, what happened to it, and the console kept."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from updraft.core.machines.entries import BUSY
from updraft.ledger.reader import Reader
from updraft.watching.documents import Document, event_row, machine_row
from updraft.watching.known import daemon_state, machine_named
from updraft.watching.words import ago, clock

if TYPE_CHECKING:
    from updraft.core.model import MachineRecord

EVENTS_SHOWN = 20


def machine_document(reader: Reader, what: str, now: float) -> Document:
    """One machine: its row, its launch, what happened to it, and the console that was kept."""
    record = machine_named(reader, what, gone=True)
    cycle = reader.last_cycle() or {}
    outlook = next(
        (
            row
            for row in cycle.get("machines", [])
            if (row["cloud"], row["machine"]) == (record.cloud, record.id)
        ),
        None,
    )
    launch = reader.launch(record.launch_key)
    events = [
        *reader.events(subject=record.launch_key, limit=EVENTS_SHOWN),
        *reader.events(subject=record.id, limit=EVENTS_SHOWN),
    ]
    return {
        "machine": machine_row(record, outlook, now, reader.view(now).at_work),
        "launch": None if launch is None else asdict(launch),
        "events": [event_row(event) for event in sorted(events, key=lambda event: event.id)],
        "console": reader.console(record.id, record.cloud),
        "no_console": "",
        "left_out": _left_out(record, cycle),
        "daemon": daemon_state(reader, now),
    }


def _left_out(record: "MachineRecord", cycle: Mapping[str, Any]) -> list[Document]:
    """What the last look left out that concerns this machine."""
    from updraft.core.demand.left_out import Named, concerning
    from updraft.core.model import Reason
    from updraft.core.slots.variants import annex_of

    named = Named(record.id, record.cloud, record.worker_class, annex_of(record.variant))
    said = [Reason(one["code"], one["text"]) for one in cycle.get("warnings", ())]
    return [asdict(one) for one in concerning(said, named)]


def life(machine: Mapping[str, Any], now: float) -> str:
    """When it was asked for, joined, was busy, ended."""
    parts = [f"requested {clock(machine['requested_at'])}"]
    if machine["joined_at"] is not None:
        parts.append(f"joined {ago(machine['joined_at'] - machine['requested_at'])} later")
    elif machine["ended_at"] is None:
        parts.append(f"not joined after {ago(now - machine['requested_at'])}")
    else:
        parts.append("never joined")
    if machine["ended_at"] is not None:
        parts.append(f"gone {clock(machine['ended_at'])}")
    elif machine["reason"]["code"] == BUSY.code:
        parts.append("busy by its last ad")
    elif machine["busy_at"] is not None:
        parts.append(f"last seen busy {ago(now - machine['busy_at'])} ago")
    return ", ".join(parts)
