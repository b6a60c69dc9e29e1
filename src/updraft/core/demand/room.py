"""Demand and room as the packing sees them: job groups with counts, and bins.

Room on a joined machine is what its slots have left; a slot that drains, that no longer accepts, or whose
ad is stale is none. A machine on its way is a whole empty one. What a schedd that is silent said last still
holds machines, and buys none.
"""

import math
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, replace

from updraft.core.demand.filling import Bin
from updraft.core.machines.cooldowns import Outstanding
from updraft.core.machines.entries import Entry
from updraft.core.model import (
    JobGroup,
    Known,
    Machine,
    MachineId,
    ScheddView,
    Slot,
    Snapshot,
    Unknown,
    Variant,
)
from updraft.core.settings import Policy, WorkerClass
from updraft.core.sharing.submitters import trusted
from updraft.core.slots.counts import believable
from updraft.core.slots.kinds import apart_key, kind_key

_COMING = 1e6  # bins of machines on their way are filled after those of joined ones


@dataclass(frozen=True, slots=True)
class Demand:
    """Job groups that wait. `fresh` may buy; `stale` (from a schedd that is silent) only hold what is there.

    `complete` is False where some schedd has not answered: then nothing is drained for want of work.
    """

    fresh: tuple[JobGroup, ...]
    stale: tuple[JobGroup, ...]
    complete: bool

    @property
    def all(self) -> tuple[JobGroup, ...]:
        """Both, fresh ones first."""
        return self.fresh + self.stale


def demand(snapshot: Snapshot, policy: Policy) -> Demand:
    """The job groups that wait in the queues, as far as they are known."""
    fresh: list[JobGroup] = list(snapshot.spare)
    stale: list[JobGroup] = []
    complete = bool(snapshot.schedds)
    for _, source in sorted(snapshot.schedds.items()):
        if isinstance(source, Known):
            fresh.extend(trusted(group, policy) for group in source.value.groups)
        elif _patient(source, snapshot.now, policy):
            complete = False
            if source.last is not None:
                stale.extend(trusted(group, policy) for group in source.last.value.groups)
    return Demand(tuple(fresh), tuple(stale), complete)


def _patient(source: Unknown[ScheddView], now: float, policy: Policy) -> bool:
    since = source.last.at if source.last is not None else source.since
    return now - since < policy.timings.schedd_patience


@dataclass(frozen=True, slots=True)
class Room:
    """All bins, and which machine each belongs to (None for the site's own; see `Outstanding.keys` too)."""

    joined: tuple[Bin, ...]
    coming: tuple[Bin, ...]
    owner: dict[str, MachineId | None]

    def without(self, machines: Container[MachineId]) -> "Room":
        """The same without what has joined of these machines."""
        kept = tuple(item for item in self.joined if self.owner.get(item.key) not in machines)
        return Room(kept, self.coming, self.owner)


def room(
    staying: Sequence[Entry],
    waiting: Iterable[Outstanding],
    site: Iterable[Slot],
    snapshot: Snapshot,
    policy: Policy,
) -> Room:
    """Bins of the site's own machines, of joined ones and of those on their way.

    Machines that stay are filled in their order: those worth keeping come first, as their ranks say.
    """
    joined: list[Bin] = []
    coming: list[Bin] = []
    owner: dict[str, MachineId | None] = {}
    for slot in site:
        found = _slot_bin(slot, -1.0, snapshot, policy)
        if found is not None:
            owner[found.key] = None
            joined.append(found)
    for rank, one in enumerate(staying):
        machine, key = one.machine, one.key
        if machine.slots and not one.roomy:
            continue
        life = _life(machine, snapshot, policy)
        for slot in machine.slots:
            found = _slot_bin(slot, float(rank), snapshot, policy, life)
            if found is not None:
                free = believable(found.free, machine.record.resources)
                found = found if free is found.free else replace(found, free=free)
                owner[found.key] = key
                joined.append(found)
        if not machine.slots:
            kind = _kind_of(machine, snapshot)
            made = _whole(str(key), kind, _COMING + rank, snapshot, life)
            owner.update({found.key: key for found in made})
            coming.extend(made)
    for item in waiting:
        launch = item.launch
        kind = kind_key(
            launch.worker_class, launch.generation, launch.cloud, launch.flavor, launch.variant.text
        )
        kind = _placed(kind, launch.zone, launch.market, snapshot)
        life = _lease(launch.variant, snapshot)
        for key in item.keys:
            made = _whole(key.id, kind, 2 * _COMING, snapshot, life)
            owner.update({found.key: key for found in made})
            coming.extend(made)
    return Room(tuple(joined), tuple(coming), owner)


def _kind_of(machine: Machine, snapshot: Snapshot) -> str:
    variant = machine.record.variant
    kind = kind_key(machine.worker_class, machine.generation, machine.cloud, machine.flavor, variant.text)
    return _placed(kind, machine.record.zone, machine.record.market, snapshot)


def _placed(kind: str, zone: str, market: str, snapshot: Snapshot) -> str:
    """The kind by place, where kinds are told apart by it."""
    apart = apart_key(kind, zone, market)
    return apart if apart in snapshot.kinds else kind


def _life(machine: Machine, snapshot: Snapshot, policy: Policy) -> float:
    """How many seconds a job that starts now on this machine may run before the machine's end ends it."""
    lease = _lease(machine.record.variant, snapshot)
    worker = policy.classes.get(machine.worker_class)
    if worker is None:
        return lease
    return min(lease, _lifetime(machine, worker, snapshot.now))


def _lease(variant: Variant, snapshot: Snapshot) -> float:
    """How many seconds are left of the lease of the annex that it is of, if it is of one."""
    name = variant.annex
    return min(
        (one.until - snapshot.now for one in snapshot.annexes if name and one.name == name), default=math.inf
    )


def _lifetime(machine: Machine, worker: WorkerClass, now: float) -> float:
    return machine.record.requested_at + worker.lifetime + worker.drain_deadline - now


def _slot_bin(
    slot: Slot, order: float, snapshot: Snapshot, policy: Policy, life: float = float("inf")
) -> Bin | None:
    if slot.draining or not slot.accepting or snapshot.now - slot.heard > policy.timings.stale_ad:
        return None
    if slot.partitionable:
        if slot.free.cpus <= 0 or slot.free.memory <= 0:
            return None
        return Bin(slot.name, slot.kind, slot.free, order, life, slot.total)
    if slot.state != "Unclaimed":
        return None
    return Bin(slot.name, slot.kind, slot.total, order, life, slot.total)


def _whole(key: str, kind: str, order: float, snapshot: Snapshot, life: float = float("inf")) -> list[Bin]:
    found = snapshot.kinds.get(kind)
    if found is None:
        return []
    return [Bin(f"{key}/{number}", kind, found.resources, order, life) for number in range(found.slots)]
