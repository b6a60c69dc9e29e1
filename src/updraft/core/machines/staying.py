"""Who leaves and who stays, whatever the queue says.

Each machine that isn't settled is asked about every cause of leaving; what nothing ends is room for jobs.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from updraft.core.machines.cache import MachineCache
from updraft.core.machines.dispositions import DecisionView, Disposition
from updraft.core.machines.entries import Entry, by_rank, entry, keep_first, on_the_way
from updraft.core.machines.leaving import disposition
from updraft.core.machines.witnesses import ANOTHERS, UNTAGGED
from updraft.core.model import Machine, MachineId, Phase, Undrain
from updraft.core.settings import Policy

_SOON = 1.0  # seconds: of what is due so soon the exact rule is asked


@dataclass(frozen=True, slots=True)
class Staying:
    """`dispositions` is what becomes of those that a rule moves, in the order of their keys.

    `undecided` are those that may stay and count towards a minimum; `room` these, and machines that aren't
    ours to end or whose drain is taken back. Both have first what is worth keeping.
    """

    dispositions: Mapping[MachineId, Disposition]
    undecided: Sequence[Entry]
    room: Sequence[Entry]


def staying(cache: MachineCache, look: DecisionView) -> Staying:
    """Divide the machines of this look; `cache` has looked at its snapshot."""
    dispositions = _dispositions(cache, look)
    undecided = _undecided(cache, dispositions)
    others = [*_reopened(cache, dispositions), *_untouched(cache, dispositions)]
    return Staying(
        dispositions, undecided, sorted((*undecided, *others), key=by_rank) if others else undecided
    )


def _dispositions(cache: MachineCache, look: DecisionView) -> dict[MachineId, Disposition]:
    """The dispositions of machines whatever the queue says, in the order of their keys.

    A settled one stays until its lifetime is over, unless a limit was lowered or a budget is spent.
    """
    soon = look.now + _SOON
    moved = look.surplus or look.overspent
    late = [one.key for one in cache.settled if moved or one.due <= soon]
    asked = sorted((*late, *(one.key for one in cache.others))) if late else [one.key for one in cache.others]
    return {
        key: found for key in asked if (found := disposition(cache.entries[key].machine, look)) is not None
    }


def _undecided(cache: MachineCache, dispositions: Mapping[MachineId, Disposition]) -> list[Entry]:
    """Machines that count as room and towards a minimum, those worth keeping first."""
    some = [one for one in cache.others if _stays(one.machine, dispositions.get(one.key))]
    kept = [one for one in cache.settled if one.key not in dispositions] if dispositions else cache.settled
    return sorted((*kept, *some), key=by_rank) if some else kept


def _stays(machine: Machine, found: Disposition | None) -> bool:
    """Does it count as room and towards a minimum? Those on their way do, while nothing ends them."""
    if found is None:
        return machine.phase is Phase.JOINED
    return on_the_way(machine) and not found.actions and not found.ended


def _reopened(cache: MachineCache, dispositions: Mapping[MachineId, Disposition]) -> list[Entry]:
    """Machines whose drain is taken back now: they are room again, and are not idle for want of work yet."""
    found = []
    for key, own in dispositions.items():
        if any(isinstance(action, Undrain) for action in own.actions):
            machine = cache.entries[key].machine
            slots = tuple(replace(slot, draining=False) for slot in machine.slots)
            found.append(entry(replace(machine, slots=slots)))
    return found


def _untouched(cache: MachineCache, dispositions: Mapping[MachineId, Disposition]) -> list[Entry]:
    """Machines that aren't ours to end any more, and whose room is there all the same."""
    found = (
        cache.entries[key]
        for key, own in dispositions.items()
        if own.reason.code in (UNTAGGED.code, ANOTHERS)
    )
    return [one for one in found if one.machine.phase is Phase.JOINED]


def surplus(all_machines: Sequence[Machine], policy: Policy) -> frozenset[MachineId]:
    """Machines beyond a maximum that was lowered while they ran: the least worth keeping.

    Those of annexes count, and stay until their leases end.
    """
    maxima = (
        policy.limits.machines,
        *(worker.max_machines for worker in policy.classes.values()),
        *(limits.machines for limits in policy.cloud_limits.values()),
    )
    if all(most is None or len(all_machines) <= most for most in maxima):
        return frozenset()
    living = [m for m in all_machines if m.phase in (Phase.BOOTING, Phase.REQUESTED, Phase.JOINED)]
    over: set[MachineId] = set()

    def trim(member: Callable[[Machine], bool], count: int, most: int | None) -> None:
        if most is not None and count > most:
            joined = [m for m in living if m.phase is Phase.JOINED and member(m)]
            mine = [m for m in joined if not m.record.variant.annex]
            ranked = sorted(mine, key=keep_first, reverse=True)
            over.update(m.key for m in ranked[: count - most])

    classes = Counter(m.worker_class for m in living)
    for name, worker in policy.classes.items():
        trim(lambda m, name=name: m.worker_class == name, classes[name], worker.max_machines)  # type: ignore[misc]
    clouds = Counter(m.cloud for m in living)
    for cloud, limits in policy.cloud_limits.items():
        trim(lambda m, cloud=cloud: m.cloud == cloud, clouds[cloud], limits.machines)  # type: ignore[misc]
    trim(lambda m: True, len(living), policy.limits.machines)
    return frozenset(over)
