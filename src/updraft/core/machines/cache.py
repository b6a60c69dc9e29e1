"""All machines, with what was made of each at the last decision: used again where nothing has changed.

Most machines are joined, at work, and the same at one look as at the last one. `MachineCache.look` finds the
objects of the snapshot that are new, makes those machines anew, and those that time alone could change; the
rest, the *settled*, are as they were. With an empty cache the decision is the same, and takes longer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from updraft.core.machines.census import Census, Origins, by_machine, revived
from updraft.core.machines.cooldowns import booted
from updraft.core.machines.entries import Entry, by_rank, entry
from updraft.core.machines.lifecycle import LET_GO, merged
from updraft.core.machines.witnesses import doubt, doubted, doubted_after, not_ours
from updraft.core.model import (
    CloudState,
    Instance,
    Known,
    LaunchRecord,
    LaunchState,
    Machine,
    MachineId,
    MachineRecord,
    Phase,
    Slot,
    Snapshot,
)
from updraft.core.settings import Policy
from updraft.core.sharing.shares import Held

T = TypeVar("T")
_OPEN = (LaunchState.INTENDED, LaunchState.UNKNOWN)


class _LastListed(Generic[T]):
    """The objects of one list at the last look."""

    def __init__(self) -> None:
        self.all: Sequence[T] = ()
        self._ids: dict[int, T] = {}

    def turn(self, found: Sequence[T]) -> tuple[list[T], list[T]]:
        """The objects new in this list, and those that only the last one had."""
        if found is self.all:
            return [], []
        # Both lists are held: no two of their objects have one number.
        before, now = self._ids, dict(zip(map(id, found), found, strict=True))
        self.all, self._ids = found, now
        return (
            [one for number, one in now.items() if number not in before],
            [one for number, one in before.items() if number not in now],
        )


@dataclass(slots=True)
class MachineCache:
    """One decision after the other looks at it; see the module's docstring.

    `entries` are all machines by their keys, `keys` these in order. `settled` are the settled ones, by rank;
    `others` the rest, in the order of the keys; `renewed` the keys of all that were made anew at this look.
    `records` are the ledger's live ones, `proven` counts machines that have joined by their class, image and
    cloud, `failing` those that ended without; `open` are launches that may still bring some, and `refused`
    says whether any was. `unread` are variants that nobody can read. `held` is who has what, by all slots of
    the pool.
    """

    entries: dict[MachineId, Entry] = field(default_factory=dict)
    keys: list[MachineId] = field(default_factory=list)
    settled: list[Entry] = field(default_factory=list)
    others: list[Entry] = field(default_factory=list)
    renewed: list[MachineId] = field(default_factory=list)
    records: dict[MachineId, MachineRecord] = field(default_factory=dict)
    proven: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    failing: int = 0
    open: tuple[LaunchRecord, ...] = ()
    refused: bool = False
    held: Held = field(default_factory=Held)
    at_work: frozenset[MachineId] = frozenset()
    unread: dict[MachineId, str] = field(default_factory=dict)
    _ended: dict[MachineId, MachineRecord] = field(default_factory=dict)
    _instances: dict[MachineId, Instance] = field(default_factory=dict)
    _others: set[MachineId] = field(default_factory=set)
    _seen_records: _LastListed[MachineRecord] = field(default_factory=_LastListed)
    _launches: tuple[LaunchRecord, ...] = ()
    _seen_slots: _LastListed[Slot] = field(default_factory=_LastListed)
    _seen_instances: dict[str, _LastListed[Instance]] = field(default_factory=dict)
    _policy: Policy | None = None
    _jumped_at: float | None = None
    _unwritten: list[MachineId] = field(default_factory=list)
    _odd: bool = True

    def look(self, snapshot: Snapshot, policy: Policy) -> Census:
        """The machines of this snapshot, as `lifecycle.merged` makes them of what is known of each."""
        if not self._goes_on(snapshot, policy):
            self.__init__()  # type: ignore[misc]
        self._policy, self._jumped_at = policy, snapshot.jumped_at
        todo = {one.key for one in self.others}
        todo.update(one.key for one in self.settled if one.due <= snapshot.now)
        self._read_records(snapshot.ledger.machines, todo)
        self._read_launches(snapshot.ledger.launches)
        self._read_instances(snapshot, todo)
        slots, site, strangers = self._read_slots(snapshot, todo)
        adopted = sorted(key for key in todo if self._unknown(key, heard=key in slots))
        self._renew(todo, adopted, slots, snapshot)
        self._sort(todo, snapshot)
        entries = self.entries
        return Census(
            machines=tuple([entries[key].machine for key in self.keys]),
            adopted=tuple([entries[key].machine for key in adopted]),
            unexplained=tuple(strangers),
            site_slots=tuple(site),
            others=tuple([self._instances[key] for key in self._others if key not in self.records]),
        )

    def _goes_on(self, snapshot: Snapshot, policy: Policy) -> bool:
        """Whether this look follows the last one: the same policy, every source known, and the ledger knows
        what was said."""
        if (self._policy is not policy and self._policy != policy) or self._jumped_at != snapshot.jumped_at:
            return False
        known = isinstance(snapshot.collector, Known) and all(
            isinstance(view.machines, Known) for view in snapshot.clouds.values()
        )
        last = snapshot.ledger.at_work
        told = frozenset() if last is None else last.machines
        return known and (told is self.at_work or told == self.at_work)

    # ------------------------------------------------------------------------------------- what has changed

    def _read_records(self, found: Sequence[MachineRecord], todo: set[MachineId]) -> None:
        fresh, gone = self._seen_records.turn(found)
        for record in gone:
            self._count(record, -1)
            key = record.key
            rows = self.records if record.ended_at is None else self._ended
            if rows.get(key) is record:
                del rows[key]
        for record in fresh:
            self._count(record, 1)
            key = record.key
            (self.records if record.ended_at is None else self._ended)[key] = record
        for record in (*gone, *fresh):
            key = record.key
            known = self.entries.get(key)
            # What was to be remembered is what is known already.
            if known is None or known.machine.record is not self.records.get(key):
                todo.add(key)
        for key in self._unwritten:
            if self.entries[key].machine.record is not self.records.get(key):
                todo.add(key)

    def _count(self, record: MachineRecord, sign: int) -> None:
        if record.joined_at is not None:
            image = booted(record.image, record.variant)
            self.proven[record.worker_class, image, record.cloud] += sign
        elif record.end is not None:
            self.failing += sign

    def _read_launches(self, found: tuple[LaunchRecord, ...]) -> None:
        if found is not self._launches:
            self._launches = found
            self.open = tuple([one for one in found if one.state in _OPEN])
            self.refused = any(one.error is not None for one in found)

    def _read_instances(self, snapshot: Snapshot, todo: set[MachineId]) -> None:
        for name, view in snapshot.clouds.items():
            seen = self._seen_instances.setdefault(name, _LastListed())
            fresh, gone = seen.turn(view.machines.value if isinstance(view.machines, Known) else ())
            for instance in gone:
                self._instances.pop(MachineId(name, instance.id), None)
                self._others.discard(MachineId(name, instance.id))
            for instance in fresh:
                self._instances[MachineId(name, instance.id)] = instance
                if self._policy is not None and not_ours(instance, self._policy) is not None:
                    self._others.add(MachineId(name, instance.id))
            todo.update(MachineId(name, instance.id) for instance in (*gone, *fresh))

    def _read_slots(
        self, snapshot: Snapshot, todo: set[MachineId]
    ) -> tuple[Mapping[MachineId, tuple[Slot, ...]], list[Slot], list[Slot]]:
        """The slots of the machines in question, the site's own, and those that nobody explains."""
        found = snapshot.collector.value.slots if isinstance(snapshot.collector, Known) else ()
        fresh, gone = self._seen_slots.turn(found)
        for slot in gone:
            self.held.add(slot, -1)
        for slot in fresh:
            self.held.add(slot)
        todo.update(slot.machine_id for slot in (*gone, *fresh))
        if not self._odd:
            ids = {key.id for key in todo}  # tried first: few slots are of these machines
            mine = [slot for slot in found if slot.instance_id in ids and slot.machine_id in todo]
            explained = by_machine(mine, self.records, self._ended, self._instances, self._others)
            if not explained[1] and not explained[2]:
                return explained
        explained = by_machine(found, self.records, self._ended, self._instances, self._others)
        self._odd = bool(explained[1] or explained[2])
        return explained

    def _unknown(self, key: MachineId, *, heard: bool) -> bool:
        """Whether it carries our tag, and the ledger doesn't know it, or takes it for ended.

        What its cloud shows as ended is none of these, unless the pool hears of it: of an end no source is
        believed alone.
        """
        instance, past = self._instances.get(key), self._ended.get(key)
        if instance is None or key in self._others:
            return False
        if instance.state is CloudState.TERMINATED and (past is not None or not heard):
            return False
        let_go = past is not None and past.end is not None and past.end.code == LET_GO
        return key not in self.records and not let_go

    # -------------------------------------------------------------------------------------- what comes of it

    def _renew(
        self,
        todo: set[MachineId],
        adopted: Sequence[MachineId],
        slots: Mapping[MachineId, tuple[Slot, ...]],
        snapshot: Snapshot,
    ) -> None:
        policy, entries = self._policy, self.entries
        assert policy is not None  # noqa: S101 - set by `look`
        origins = Origins(snapshot.now, snapshot.ledger.launches, snapshot.offers) if adopted else None
        taken, moved = set(adopted), False
        self.renewed = []
        for key in sorted(todo):
            record = self.records.get(key)
            self.unread.pop(key, None)
            if record is None and origins is not None and key in taken:
                past = self._ended.get(key)
                record = origins.record(self._instances[key]) if past is None else revived(past)
            if record is None:
                moved = entries.pop(key, None) is not None or moved
                continue
            moved = moved or key not in entries
            if record.variant.unreadable:
                self.unread[key] = record.variant.text
            made = merged(record, self._instances.get(key), slots.get(key, ()), snapshot, policy)
            entries[key] = _entry(made, snapshot, policy)
            self.renewed.append(key)
        if moved:
            self.keys = sorted(entries)

    def _sort(self, todo: set[MachineId], snapshot: Snapshot) -> None:
        entries = self.entries
        new = [entries[key] for key in self.renewed]
        self.others = [one for one in new if not one.settled]
        if todo:
            kept = [one for one in self.settled if one.key not in todo]
            self.settled = sorted((*kept, *(one for one in new if one.settled)), key=by_rank)
        self._unwritten = [one.key for one in new if one.machine.record is not self.records.get(one.key)]
        if snapshot.ledger.at_work is not None:
            busy = {one.key for one in new if one.busy and not self._old(one, snapshot.now)}
            if busy != todo & self.at_work:
                self.at_work = (self.at_work - todo) | busy

    def _old(self, one: Entry, now: float) -> bool:
        """Are its ads older than they should be? When it was busy last is in its record then."""
        return self._policy is not None and doubted(one.machine.slots, now, self._policy)


def _entry(machine: Machine, snapshot: Snapshot, policy: Policy) -> Entry:
    worker = policy.classes.get(machine.worker_class)
    unsure = doubt(machine, snapshot.now, policy)
    quiet = (
        worker is not None
        and unsure is None
        and worker.generation == machine.generation
        and not policy.closing
        and policy.rule(machine.cloud).leaving is None
        and (snapshot.ledger.at_work is not None or not machine.busy)
        and not machine.record.variant.annex  # whose lease may be changed at any time
        and _quiet(machine)
        and not_ours(machine.instance, policy) is None
    )
    if worker is None or not quiet:
        return entry(machine, doubt=unsure)
    unheard = min(slot.heard for slot in machine.slots) + doubted_after(policy)
    return entry(machine, settled=True, due=min(machine.record.requested_at + worker.lifetime, unheard))


def _quiet(machine: Machine) -> bool:
    """Is it joined, listed and heard of, and nobody wants it to go?"""
    record, instance = machine.record, machine.instance
    return (
        machine.phase is Phase.JOINED
        and bool(machine.slots)
        and instance is not None
        and instance.state is CloudState.RUNNING
        and not instance.retiring
        and bool(record.seen_at and record.joined_at and record.last_claimed_at)
        and record.drain is None
        and record.wanted_drain is None
        and record.let_go is None
        and record.terminate_asked_at is None
        and record.silent_since is None
        and record.missing_since is None
        and record.unanswered_since is None
    )
