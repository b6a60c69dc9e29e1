"""What an actor writes down: machine records as they are now, and events."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from updraft.core.model import Instance, Known, MachineRecord, Plan, Reason, Slot, Snapshot
from updraft.ledger import Ledger

Key = tuple[str, str]


class Books:
    """The records of one cycle: the snapshot's, the plan's over them, and what the actions add."""

    def __init__(self, ledger: Ledger, snapshot: Snapshot, plan: Plan) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._records: dict[Key, MachineRecord] = {(r.cloud, r.id): r for r in snapshot.ledger.machines}
        self._records.update({(r.cloud, r.id): r for r in plan.records})
        self.instances = _instances(snapshot)
        self.slots = _slots(snapshot)

    def record(self, cloud: str, machine: str) -> MachineRecord | None:
        """The machine as it is known now."""
        with self._lock:
            return self._records.get((cloud, machine))

    def change(self, cloud: str, machine: str, **changes: Any) -> None:
        """Change the machine's record, if there is one, and write it down."""
        self.change_all(cloud, (machine,), **changes)

    def change_all(self, cloud: str, machines: Iterable[str], **changes: Any) -> None:
        """Change the records of several machines at once."""
        with self._lock:
            keys = [(cloud, machine) for machine in machines if (cloud, machine) in self._records]
            changed = [replace(self._records[key], **changes) for key in keys]
            self._ledger.remember(changed)
            self._records.update(zip(keys, changed, strict=True))

    def add(self, records: Iterable[MachineRecord]) -> None:
        """Write down new machines; one that is known already is left as it is."""
        with self._lock:
            new = {(r.cloud, r.id): r for r in records if (r.cloud, r.id) not in self._records}
            self._ledger.remember(new.values())
            self._records.update(new)

    def ours(self, cloud: str, machine: str) -> bool:
        """Does a tag or the ledger say that this machine is ours?"""
        return (cloud, machine) in self.instances or self.record(cloud, machine) is not None

    def slots_of(self, cloud: str, machine: str) -> tuple[Slot, ...]:
        """The machine's slots; those that claim its name under another launch are not its own."""
        record = self.record(cloud, machine)
        launch = record.launch_key if record else ""
        return tuple(s for s in self.slots.get((cloud, machine), ()) if s.launch_key == launch)

    def event(
        self,
        at: float,
        kind: str,
        subject: str,
        reason: Reason,
        detail: Mapping[str, Any] | None = None,
    ) -> None:
        """Write down that something was done, or went wrong."""
        self._ledger.event(at, kind, subject, reason, detail)


def news(plan: Plan, snapshot: Snapshot) -> list[tuple[str, str, Reason]]:
    """What happened to machines since the last look: (machine, joined or gone, with words)."""
    before = {(r.cloud, r.id): r for r in snapshot.ledger.machines}
    found: list[tuple[str, str, Reason]] = []
    for record in plan.records:
        old = before.get((record.cloud, record.id))
        if record.joined_at is not None and (old is None or old.joined_at is None):
            took = record.joined_at - record.requested_at
            text = "in the pool" if record.adopted else f"in the pool {took:.0f} s after it was asked for"
            found.append((record.id, "joined", Reason("joined", text)))
        if record.ended_at is not None and (old is None or old.ended_at is None):
            lived = record.ended_at - record.requested_at
            why = record.end or Reason("gone", "the cloud has it no more")
            found.append((record.id, "gone", Reason(why.code, f"gone after {lived:.0f} s: {why.text}")))
    return found


def _instances(snapshot: Snapshot) -> dict[Key, Instance]:
    found = {}
    for name, view in snapshot.clouds.items():
        source = view.machines if isinstance(view.machines, Known) else view.machines.last
        if source is not None:
            found.update({(name, instance.id): instance for instance in source.value})
    return found


def _slots(snapshot: Snapshot) -> dict[Key, tuple[Slot, ...]]:
    source = snapshot.collector if isinstance(snapshot.collector, Known) else snapshot.collector.last
    found: dict[Key, tuple[Slot, ...]] = {}
    for slot in source.value.slots if source is not None else ():
        key = (slot.cloud, slot.instance_id)
        found[key] = (*found.get(key, ()), slot)
    return found
