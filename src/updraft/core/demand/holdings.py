"""What each user has of the pool, for the caps: claims, and room that waiting jobs were placed on."""

from collections.abc import Iterable, Mapping, Sequence

from updraft.core.demand.filling import Filling
from updraft.core.demand.room import Room
from updraft.core.machines.cooldowns import Outstanding
from updraft.core.model import JobGroup, Machine, MachineId, Phase
from updraft.core.settings import Policy
from updraft.core.sharing.caps import Caps, Tally, capped
from updraft.core.sharing.shares import Standing
from updraft.core.sharing.submitters import short, user_of

Placed = Mapping[str, Mapping[str, int]]


def caps(
    policy: Policy,
    who: Standing,
    groups: Sequence[JobGroup],
    fillings: Sequence[Filling],
    space: Room,
    machines: Iterable[Machine],
    waiting: Iterable[Outstanding],
) -> Caps | None:
    """The caps with all that counts before anything is bought; None where there are none.

    `groups` are all that wait, `fillings` where their jobs were placed in `space`; `machines` are all that we
    know of, `waiting` the launches of which some are still to be seen.
    """
    if not capped(policy, groups):
        return None
    found = Caps(policy, {name: Tally(0, cores) for name, cores in who.users.items()})
    rows = _CoreCounts(space)
    for machine in machines:
        if machine.phase is not Phase.GONE:
            rows.add_machine(machine)
    for item in waiting:
        for key in item.keys:
            rows.add_coming(key, item)
    of = {group.key: group for group in groups}
    for filling in fillings:
        rows.add_placed(filling.placed, of, found.users)
    rows.count(found)
    return found


class _CoreCounts:
    """Cores by machine and user; a machine that takes one user's jobs alone is that user's, whole."""

    def __init__(self, space: Room) -> None:
        self._owner = space.owner
        self._cores: dict[MachineId, dict[str, int]] = {}
        self._class: dict[MachineId, str] = {}
        self._whole: dict[MachineId, tuple[str, int]] = {}

    def add_machine(self, machine: Machine) -> None:
        key, record = machine.key, machine.record
        self._class[key] = machine.worker_class
        if only := record.variant.user:
            self._whole[key] = only, record.resources.cpus
        cores = self._cores.setdefault(key, {})
        for slot in machine.slots:
            if slot.user:
                cores[slot.user] = cores.get(slot.user, 0) + slot.total.cpus
            for child in slot.children:
                if child.user:
                    cores[child.user] = cores.get(child.user, 0) + child.resources.cpus

    def add_coming(self, key: MachineId, item: Outstanding) -> None:
        self._class[key] = item.launch.worker_class
        if only := item.launch.variant.user:
            self._whole[key] = only, item.launch.resources.cpus
        self._cores.setdefault(key, {})

    def add_placed(self, placed: Placed, of: Mapping[str, JobGroup], users: dict[str, Tally]) -> None:
        """Jobs that found room: their cores count for their users at once, those on ours by machine too."""
        for group, bins in placed.items():
            name, cpus = user_of(of[group]), max(1, of[group].request.cpus)
            users.setdefault(name, Tally()).cores += sum(bins.values()) * cpus
            for found, number in bins.items():
                key = self._owner.get(found)
                if key is not None and key in self._cores:
                    cores = self._cores[key]
                    cores[name] = cores.get(name, 0) + number * cpus

    def count(self, caps: Caps) -> None:
        for key, cores in self._cores.items():
            only, size = self._whole.get(key, ("", 0))
            if only:
                # Claims name a user with the domain, a machine without it.
                name = min((name for name in cores if short(name) == only), default=only)
                rest = max(0, size - sum(cores.values()))
                cores[name] = cores.get(name, 0) + rest
                caps.users.setdefault(name, Tally()).cores += rest
            for name, number in cores.items():
                whole = caps.users.setdefault(name, Tally())
                part = caps.classes.setdefault((name, self._class[key]), Tally())
                whole.machines += 1
                part.machines += 1
                part.cores += number
