"""What an actor goes by: the instances and slots that a look has shown, with the ledger as it is now."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from updraft.core.model import (
    Drain,
    Instance,
    Known,
    MachineId,
    Plan,
    Reason,
    Slot,
    Snapshot,
    Terminate,
    Undrain,
)
from updraft.ledger import Ledger


@dataclass(frozen=True, slots=True)
class Sightings:
    """One cycle's, of the machines that its plan closes, opens or ends.

    Nothing here changes, so that threads need no lock. What changes is in the ledger.

    An action may come after its cycle, so it reads a machine's record when it needs it and keeps none.
    """

    ledger: Ledger
    instances: dict[MachineId, Instance]
    slots: dict[MachineId, tuple[Slot, ...]]

    def ours(self, cloud: str, machine: str) -> bool:
        """Does a tag or the ledger say that this machine is ours?"""
        return MachineId(cloud, machine) in self.instances or self.ledger.record(cloud, machine) is not None

    def slots_of(self, cloud: str, machine: str) -> tuple[Slot, ...]:
        """The machine's slots; those that claim its name under another launch are not its own."""
        record = self.ledger.record(cloud, machine)
        launch = record.launch_key if record else ""
        return tuple(s for s in self.slots.get(MachineId(cloud, machine), ()) if s.launch_key == launch)


def sightings(ledger: Ledger, snapshot: Snapshot, plan: Plan) -> Sightings:
    """What this look has shown of the machines that the plan is about."""
    closed = {one.key for one in plan.actions if isinstance(one, Drain | Undrain)}
    ended = {key for one in plan.actions if isinstance(one, Terminate) for key in one.keys}
    return Sightings(ledger, _instances(snapshot, closed | ended), _slots(snapshot, closed))


def news(plan: Plan, snapshot: Snapshot) -> list[tuple[str, str, Reason]]:
    """What happened to machines since the last look: (machine, joined or gone, with words)."""
    if not plan.records:
        return []
    named = {record.id for record in plan.records}
    before = {r.key: r for r in snapshot.ledger.machines if r.id in named}
    found: list[tuple[str, str, Reason]] = []
    for record in plan.records:
        old = before.get(record.key)
        if record.joined_at is not None and (old is None or old.joined_at is None):
            took = record.joined_at - record.requested_at
            text = "in the pool" if record.adopted else f"in the pool {took:.0f} s after it was asked for"
            found.append((record.id, "joined", Reason("joined", text)))
        if record.ended_at is not None and (old is None or old.ended_at is None):
            lived = record.ended_at - record.requested_at
            why = record.end or Reason("gone", "the cloud has it no more")
            found.append((record.id, "gone", Reason(why.code, f"gone after {lived:.0f} s: {why.text}")))
    return found


def _instances(snapshot: Snapshot, wanted: AbstractSet[MachineId]) -> dict[MachineId, Instance]:
    found = {}
    for name in {cloud for cloud, _ in wanted} & snapshot.clouds.keys():
        view = snapshot.clouds[name]
        source = view.machines if isinstance(view.machines, Known) else view.machines.last
        for instance in source.value if source is not None else ():
            if MachineId(name, instance.id) in wanted:
                found[MachineId(name, instance.id)] = instance
    return found


def _slots(snapshot: Snapshot, wanted: AbstractSet[MachineId]) -> dict[MachineId, tuple[Slot, ...]]:
    source = snapshot.collector if isinstance(snapshot.collector, Known) else snapshot.collector.last
    found: dict[MachineId, tuple[Slot, ...]] = {}
    for slot in source.value.slots if source is not None and wanted else ():
        key = slot.machine_id
        if key in wanted:
            found[key] = (*found.get(key, ()), slot)
    return found
