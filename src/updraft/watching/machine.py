"""One machine as `explain` tells of it: its row, its launch, what happened to it, and the console kept."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from updraft.core.machines.entries import BUSY
from updraft.core.model import LaunchRecord, Reason
from updraft.documents import Document
from updraft.documents.cycle import DaemonState
from updraft.ledger.reader import Event, Reader
from updraft.watching.documents import Machine, machine_row
from updraft.watching.known import daemon_state, machine_named
from updraft.watching.words import ago, clock

if TYPE_CHECKING:
    from updraft.core.model import MachineRecord

EVENTS_SHOWN = 20


class ExplainedMachine(Document):
    """One machine."""

    machine: Machine
    launch: Annotated[LaunchRecord | None, "The launch that made it, or null."]
    events: Annotated[Sequence[Event], "What happened to it."]
    console: Annotated[str | None, "Its console: as kept at its end, else as its cloud shows it."]
    no_console: Annotated[str, "Why there is none; empty where there is one."]
    left_out: Annotated[Sequence[Reason], "What the last look left out of it, its cloud, class or annex."]
    daemon: DaemonState


def machine_document(reader: Reader, what: str, now: float) -> ExplainedMachine:
    """One machine: its row, its launch, what happened to it, and the console that was kept."""
    record = machine_named(reader, what, gone=True)
    cycle = reader.last_cycle() or {}
    outlook = next(
        (row for row in cycle.get("machines", []) if (row["cloud"], row["machine"]) == record.key),
        None,
    )
    events = [
        *reader.events(subject=record.launch_key, limit=EVENTS_SHOWN),
        *reader.events(subject=record.id, limit=EVENTS_SHOWN),
    ]
    return ExplainedMachine(
        machine=machine_row(record, outlook, now, reader.view(now).at_work),
        launch=reader.launch(record.launch_key),
        events=sorted(events, key=lambda event: event.id),
        console=reader.console(record.id, record.cloud),
        no_console="",
        left_out=_left_out(record, cycle),
        daemon=daemon_state(reader, now),
    )


def _left_out(record: "MachineRecord", cycle: Mapping[str, Any]) -> Sequence[Reason]:
    """What the last look left out that concerns this machine."""
    from updraft.core.demand.left_out import Named, concerning

    named = Named(record.id, record.cloud, record.worker_class, record.variant.annex)
    said = [Reason(one["code"], one["text"]) for one in cycle.get("warnings", ())]
    return concerning(said, named)


def life(machine: Machine, now: float) -> str:
    """When it was asked for, joined, was busy, ended."""
    parts = [f"requested {clock(machine.requested_at)}"]
    if machine.joined_at is not None:
        parts.append(f"joined {ago(machine.joined_at - machine.requested_at)} later")
    elif machine.ended_at is None:
        parts.append(f"not joined after {ago(now - machine.requested_at)}")
    else:
        parts.append("never joined")
    if machine.ended_at is not None:
        parts.append(f"gone {clock(machine.ended_at)}")
    elif machine.reason.code == BUSY.code:
        parts.append("busy by its last ad")
    elif machine.busy_at is not None:
        parts.append(f"last seen busy {ago(now - machine.busy_at)} ago")
    return ", ".join(parts)
