"""What follows from a machine alone: its place among those worth keeping, whether it is busy or has room."""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from updraft.core.model import Child, Machine, MachineId, MachineOutlook, Phase, Reason, Slot

Rank = tuple[int, float, float, str, str]
Account = tuple[str, str, int, int, float | None]
BUSY = Reason("busy", "jobs have it")
by_rank = attrgetter("rank")
STAYS = Reason("stays", "nothing is to be done about it")


@dataclass(frozen=True, slots=True)
class Entry:
    """A machine and what follows from it alone.

    `rank` is its place among those worth keeping, `account` what it counts as against limits (cloud, class,
    cores, memory, price); `settled` says that time alone changes nothing about it before `due`, when its
    lifetime ends or its ads are older than they should be; `roomy` that some slot may have room; `claims` are
    those that wait for a job, with the kind of their slot; `doubt` is why it may not be busy any more;
    `outlook` is what is to be said of it where nothing is to be done.
    """

    machine: Machine
    key: MachineId
    rank: Rank
    account: Account
    busy: bool
    settled: bool
    due: float
    roomy: bool
    claims: tuple[tuple[Child, str], ...]
    doubt: Reason | None
    outlook: MachineOutlook


def entry(
    machine: Machine, *, settled: bool = False, due: float = -math.inf, doubt: Reason | None = None
) -> Entry:
    """The entry of a machine; see there. `doubt` is why it may not be busy any more."""
    record, size = machine.record, machine.record.resources
    busy, joined = machine.busy, machine.phase is Phase.JOINED and bool(machine.slots)
    roomy = False
    for slot in machine.slots:
        roomy = roomy or slot.free.cpus > 0 or not slot.partitionable
    return Entry(
        machine,
        machine.key,
        (*keep_first(machine), machine.cloud),
        (record.cloud, record.worker_class, size.cpus, size.memory, record.price),
        busy,
        settled,
        due,
        roomy,
        tuple(idle_claims(machine.slots)),
        doubt,
        MachineOutlook(
            machine.id, machine.cloud, machine.phase, doubt or (BUSY if busy and joined else STAYS)
        ),
    )


def idle_claims(slots: Iterable[Slot]) -> list[tuple[Child, str]]:
    """The claims on these slots that wait for a job, each with the kind of its slot."""
    return [
        (child, slot.kind)
        for slot in slots
        for child in slot.children
        if child.activity == "Idle" and child.state == "Claimed"
    ]


def plain_ones(staying: Iterable[Entry]) -> Counter[str]:
    """How many machines of each class are plain ones: a minimum counts no others."""
    return Counter([one.machine.worker_class for one in staying if not one.machine.record.variant])


def keep_first(machine: Machine) -> tuple[int, float, float, str]:
    """The order in which machines are worth keeping: busy, cheap, young; an unknown price is the dearest."""
    record = machine.record
    price = float("inf") if record.price is None else record.price
    return (0 if machine.busy else 1, price, -record.requested_at, machine.id)


def on_the_way(machine: Machine) -> bool:
    """Is it still to join (or, its pool being unknown, to be heard of again)?"""
    return machine.phase in (Phase.REQUESTED, Phase.BOOTING) or (
        machine.phase is Phase.JOINED and not machine.slots
    )
