"""How many slots, and how much room, a machine can have that was bought as so much.

What a machine advertises is its own word, and its token is good for any number of slots of its name. A site
may let its machines run more jobs than they have processors (`NUM_CPUS`), so the bound is a wide one.
"""

from collections.abc import Iterable
from dataclasses import replace

from updraft.core.model import CollectorView, Known, MachineId, MachineRecord, Resources, Slot, Source

OVERSOLD = 16
"""How many times what was bought a machine may say that it has, in processors, memory and slots for them."""
_BESIDES = 8  # slots that have no processor of their own
_UNKNOWN = 1_000  # slots of a machine of which nobody knows what was bought


def most_slots(size: Resources) -> int:
    """How many slots a machine of this size can have, dynamic ones not counted."""
    return OVERSOLD * size.cpus + _BESIDES if size.cpus > 0 else _UNKNOWN


def believable(free: Resources, size: Resources) -> Resources:
    """The room that a machine of this size says it has, as far as it can be so."""
    if size.cpus <= 0 or (free.cpus <= OVERSOLD * size.cpus and free.memory <= OVERSOLD * size.memory):
        return free
    cpus, memory = (OVERSOLD * one for one in (size.cpus, size.memory))
    return replace(free, cpus=min(free.cpus, cpus), memory=min(free.memory, memory))


def bounded(collector: Source[CollectorView], records: Iterable[MachineRecord]) -> Source[CollectorView]:
    """The collector's answer without the slots that machines of ours can't have.

    The first slot of such a machine says in its fault how many it had. Where there is none, it is the answer.
    """
    if not isinstance(collector, Known):
        return collector
    slots = collector.value.slots
    count: dict[MachineId, int] = {}
    for slot in slots:
        key = slot.machine_id
        count[key] = count.get(key, 0) + 1
    many = {key: number for key, number in count.items() if key[1] and number > _BESIDES}
    if not many:
        return collector
    sizes = {one.key: one.resources for one in records if one.key in many}
    over = {key: number for key, number in many.items() if number > most_slots(sizes.get(key, Resources()))}
    if not over:
        return collector
    kept = [slot for slot in slots if slot.machine_id not in over]
    crowds: dict[MachineId, list[Slot]] = {}
    for slot in slots:
        crowds.setdefault(slot.machine_id, []).append(slot)
    for key, number in sorted(over.items()):
        most = most_slots(sizes.get(key, Resources()))
        first, *others = sorted(crowds[key], key=lambda slot: (len(slot.name), slot.name))[:most]
        told = first.fault or f"its machine has {number} slots"
        kept += [replace(first, fault=f"{told}; its size allows {most}: the others are left out"), *others]
    return replace(collector, value=replace(collector.value, slots=tuple(kept)))
