"""`plan(snapshot, policy) -> Plan`: the one decision of updraft.

Pure: the same snapshot and policy give the same plan. In order: who each machine is and where it is in its
life; who leaves whatever the queue says; what is still to come of annexes; where waiting jobs find room
(joined machines, then those on their way, then new ones, within the limits); who is launched to keep a
minimum; who is idle and goes.
"""

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from updraft.core.annexes.progress import annexed, parted, unknown
from updraft.core.buying.launches import Wish, launches, minimum
from updraft.core.buying.shopping import Shopping
from updraft.core.demand.left_out import left_out
from updraft.core.demand.room import demand
from updraft.core.limits.budget import budget
from updraft.core.limits.pace import slowed
from updraft.core.machines.cache import Roll
from updraft.core.machines.census import Census, Key, of_others
from updraft.core.machines.cooldowns import Outstanding, booted, cooldowns, image_key, outstanding, settled
from updraft.core.machines.entries import Entry, by_rank, entry, keep_first, on_the_way
from updraft.core.machines.fates import Fate, Look
from updraft.core.machines.leaving import fate, left_on_hold
from updraft.core.machines.scalein import ScaleIn, scale_in
from updraft.core.machines.witnesses import ANOTHERS, UNTAGGED, in_doubt
from updraft.core.model import (
    Action,
    Adopt,
    Cooldown,
    Known,
    LedgerView,
    Machine,
    MachineOutlook,
    MachineRecord,
    Phase,
    Plan,
    Questions,
    Reason,
    Slot,
    Snapshot,
    Terminate,
    Undrain,
)
from updraft.core.placing import Pool, place
from updraft.core.settings import Policy
from updraft.core.slots.variants import annex_of
from updraft.core.sparing import Sparing

_TAGGED = Reason("tagged", "it carries the pool's tag and was not in the ledger")
_CAME_BACK = Reason("came-back", "it was taken for ended, and its cloud shows it again")
_SOON = 1.0  # seconds: of what is due so soon the exact rule is asked


def plan(snapshot: Snapshot, policy: Policy, roll: Roll | None = None) -> Plan:
    """What to do about this snapshot, and why; see the module's docstring for the order of thought.

    `roll` remembers what was made of each machine at the last decision, and is brought up to date: with one,
    a decision takes less time, and is the same.
    """
    roll = Roll() if roll is None else roll
    snapshot, own = parted(snapshot)
    census = roll.look(snapshot, policy)
    # Of the launches only those that may still bring something have a say here.
    waits = replace(snapshot.ledger, launches=roll.open)
    over = set(settled(roll.open, snapshot, policy.timings))
    waiting = tuple(item for item in outstanding(waits, census.machines) if item.launch.key not in over)
    look = Look(snapshot, policy, _surplus(census.machines, policy))
    fates = _fates(roll, look)
    undecided = _undecided(roll, fates)
    others = [*_reopened(roll, fates), *_untouched(roll, fates)]
    staying = sorted((*undecided, *others), key=by_rank) if others else undecided
    records = _records(roll, fates, snapshot.now)
    money = budget(roll, waiting, *_history(roll, records, snapshot, policy), snapshot, policy)
    annexes = annexed(own, census.machines, waiting, snapshot, policy, money, roll.held)
    queue = demand(snapshot, policy)
    pool = Pool(queue, staying, (*waiting, *annexes.coming), census, roll.held)
    placing = place(pool, snapshot, policy, money)
    promised = _promised(waiting)
    wishes = minimum(staying, promised, placing.shopping, snapshot, policy, money)
    gone = scale_in(undecided, promised, placing.needed, queue.complete, snapshot, policy, placing.pressing)
    return Plan(
        actions=_actions(census, fates, gone, placing.shopping, (*annexes.wishes, *wishes), snapshot),
        records=records,
        settled=tuple(sorted(over)),
        groups=placing.outlooks,
        machines=_outlooks(roll, fates, gone),
        cooldowns=money.rests,
        warnings=(
            *_warnings(census, fates, roll, snapshot),
            *left_out(queue, snapshot),
            *snapshot.left_out,
        ),
        annexes=annexes.outlooks,
        at_work=None if snapshot.ledger.at_work is None else roll.at_work,
        questions=_questions(roll, look),
        untaken=placing.untaken,
    )


class Planning:
    """`plan` with a memory of its own, for one that decides again and again about the same pool.

    Where it fails for some jobs, slots, offers, classes, annexes or clouds, these are left out and named, and
    `tell` is told once.
    """

    def __init__(self, tell: Callable[[Exception], None] = lambda _error: None) -> None:
        self._roll: Roll | None = None
        self._sparing: Sparing[Plan] = Sparing(tell)

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """What to do about this snapshot: what `plan` says."""
        # A decision that fails halfway leaves nothing behind that the next one would believe.
        roll, self._roll = self._roll or Roll(), None

        def first(some: Snapshot, by: Policy) -> Plan:
            made = plan(some, by, roll)
            self._roll = roll
            return made

        made = self._sparing.made(first, plan, snapshot, policy)
        found = self._sparing.warnings
        return replace(made, warnings=(*made.warnings, *found)) if found else made


def _fates(roll: Roll, look: Look) -> dict[Key, Fate]:
    """What becomes of machines whatever the queue says, in the order of their keys.

    A settled one stays until its lifetime is over, unless a limit was lowered.
    """
    soon = look.now + _SOON
    late = [one.key for one in roll.settled if look.surplus or one.due <= soon]
    asked = sorted((*late, *(one.key for one in roll.others))) if late else [one.key for one in roll.others]
    return {key: found for key in asked if (found := fate(roll.entries[key].machine, look)) is not None}


def _questions(roll: Roll, look: Look) -> Questions:
    """What the next look is to ask besides: all that an end wants to know and this look didn't say."""
    doubted = [
        (one.key, one.machine.record)
        for one in roll.others
        if in_doubt(one.machine.record, look.snapshot, look.policy)
    ]
    joined = {key for key, record in doubted if record.joined_at is not None}
    joined.update(one.key for one in roll.others if one.doubt is not None)
    return Questions(frozenset(key for key, _ in doubted), frozenset(joined | look.asked_for))


def _undecided(roll: Roll, fates: Mapping[Key, Fate]) -> list[Entry]:
    """Machines that count as room and towards a minimum, those worth keeping first."""
    some = [one for one in roll.others if _stays(one.machine, fates.get(one.key))]
    kept = [one for one in roll.settled if one.key not in fates] if fates else roll.settled
    return sorted((*kept, *some), key=by_rank) if some else kept


def _stays(machine: Machine, found: Fate | None) -> bool:
    """Does it count as room and towards a minimum? Those on their way do, while nothing ends them."""
    if found is None:
        return machine.phase is Phase.JOINED
    return on_the_way(machine) and not found.actions and not found.ended


def _reopened(roll: Roll, fates: Mapping[Key, Fate]) -> list[Entry]:
    """Machines whose drain is taken back now: they are room again, and are not idle for want of work yet."""
    found = []
    for key, own in fates.items():
        if any(isinstance(action, Undrain) for action in own.actions):
            machine = roll.entries[key].machine
            slots = tuple(replace(slot, draining=False) for slot in machine.slots)
            found.append(entry(replace(machine, slots=slots)))
    return found


def _untouched(roll: Roll, fates: Mapping[Key, Fate]) -> list[Entry]:
    """Machines that aren't ours to end any more, and whose room is there all the same."""
    found = (roll.entries[key] for key, own in fates.items() if own.reason.code in (UNTAGGED.code, ANOTHERS))
    return [one for one in found if one.machine.phase is Phase.JOINED]


def _promised(waiting: Sequence[Outstanding]) -> dict[str, int]:
    """Plain machines of each class that were asked for: a minimum counts no others."""
    counts: dict[str, int] = {}
    for item in waiting:
        if not item.launch.variant:
            counts[item.launch.worker_class] = counts.get(item.launch.worker_class, 0) + item.count
    return counts


def _surplus(all_machines: Sequence[Machine], policy: Policy) -> frozenset[tuple[str, str]]:
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
    over: set[tuple[str, str]] = set()

    def trim(member: Callable[[Machine], bool], count: int, most: int | None) -> None:
        if most is not None and count > most:
            joined = [m for m in living if m.phase is Phase.JOINED and member(m)]
            mine = [m for m in joined if not annex_of(m.record.variant)]
            ranked = sorted(mine, key=keep_first, reverse=True)
            over.update((m.cloud, m.id) for m in ranked[: count - most])

    classes = Counter(m.worker_class for m in living)
    for name, worker in policy.classes.items():
        trim(lambda m, name=name: m.worker_class == name, classes[name], worker.max_machines)  # type: ignore[misc]
    clouds = Counter(m.cloud for m in living)
    for cloud, limits in policy.cloud_limits.items():
        trim(lambda m, cloud=cloud: m.cloud == cloud, clouds[cloud], limits.machines)  # type: ignore[misc]
    trim(lambda m: True, len(living), policy.limits.machines)
    return frozenset(over)


def _actions(
    census: Census,
    fates: Mapping[tuple[str, str], Fate],
    gone: ScaleIn,
    shopping: Shopping,
    wishes: Sequence[Wish],
    snapshot: Snapshot,
) -> tuple[Action, ...]:
    adopted: list[Action] = [
        Adopt(m.id, m.cloud, _CAME_BACK if m.record.end else _TAGGED) for m in census.adopted
    ]
    single: list[Action] = []
    ends: dict[tuple[str, Reason], list[str]] = {}
    for found in fates.values():
        for action in found.actions:
            if isinstance(action, Terminate):
                ends.setdefault((action.cloud, action.reason), []).extend(action.machines)
            else:
                single.append(action)
    batches: list[Action] = [
        Terminate(tuple(ids), cloud, reason) for (cloud, reason), ids in sorted(ends.items(), key=str)
    ]
    held = left_on_hold(snapshot, single)
    return (*adopted, *single, *held, *batches, *gone.drains, *launches(shopping, wishes, snapshot))


def _records(roll: Roll, fates: Mapping[Key, Fate], now: float) -> tuple[MachineRecord, ...]:
    """Records that differ from the ledger's, those of machines that are over included."""
    changed = []
    for key in sorted({*roll.renewed, *fates}):
        record, found = roll.entries[key].machine.record, fates.get(key)
        if found is not None and found.ended:
            record = replace(record, ended_at=now, end=record.end or found.reason)
        elif found is not None and (found.failed or any(isinstance(a, Terminate) for a in found.actions)):
            record = replace(record, end=record.end or found.reason)
        known = roll.records.get(key)
        if known is not record and known != record:
            changed.append(record)
    return tuple(changed)


def _history(
    roll: Roll, records: Sequence[MachineRecord], snapshot: Snapshot, policy: Policy
) -> tuple[tuple[Cooldown, ...], frozenset[str]]:
    """What rests after failures, and the images that are proven, once these records are in the ledger."""
    images = {image for image, count in roll.proven.items() if count > 0}
    images.update(
        (r.worker_class, booted(r.image, r.variant), r.cloud) for r in records if r.joined_at is not None
    )
    proven = frozenset(image_key(*each) for each in images)
    failing = any(r.joined_at is None and r.end is not None for r in records)
    if not (failing or roll.failing or roll.refused):
        return (), proven
    return cooldowns(_written(snapshot.ledger, records), snapshot.now, policy.timings), proven


def _written(ledger: LedgerView, records: Sequence[MachineRecord]) -> LedgerView:
    """The ledger as it will be once these records are in it: a failure seen now counts now."""
    fresh = {(r.cloud, r.id): r for r in records}
    kept = tuple(fresh.pop((r.cloud, r.id), r) for r in ledger.machines)
    return replace(ledger, machines=(*kept, *fresh.values()))


def _outlooks(roll: Roll, fates: Mapping[Key, Fate], gone: ScaleIn) -> tuple[MachineOutlook, ...]:
    told = {(one.cloud, one.machine): one for one in gone.outlooks}
    for key, own in fates.items():
        machine = roll.entries[key].machine
        told[key] = MachineOutlook(machine.id, machine.cloud, machine.phase, own.reason, own.deadline)
    entries = roll.entries
    return tuple([told[key] if key in told else entries[key].outlook for key in roll.keys])


def _unexplained(slot: Slot, known: Container[str]) -> Reason:
    """What is said of a slot that no machine of ours explains; its token's launch, where that is another.

    Of `known` machines it takes the name. A machine's own token is named as `tokens revoke` takes it.
    """
    name, who = _printable(slot.name), _printable(slot.instance_id) or "a machine of another pool"
    text = f"slot {name} says it is {who}, which is no machine of ours"
    if slot.instance_id in known:
        text = f"slot {name} says it is {who}, and has shown a token that isn't that machine's"
    if not slot.instance_id or "@" in slot.launch_key:
        launch = slot.launch_key.partition("@")[0]
        text += f"; it has a token of launch {launch}: `updraft tokens revoke {launch}` ends that"
    return Reason("unexplained-slot", text)


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() else "?" for one in text)


def _warnings(
    census: Census, fates: Mapping[Key, Fate], roll: Roll, snapshot: Snapshot
) -> tuple[Reason, ...]:
    known = {one.id for one in census.machines}
    found = [*of_others(census.others), *(_unexplained(slot, known) for slot in census.unexplained)]
    for (_, machine), text in sorted(roll.unread.items()):
        why = f"machine {machine}: {text[:80]!r} is no variant of a class; it is no room until it has joined"
        found.append(Reason("odd-variant", why))
    for one in census.machines:
        if one.instance is not None and one.instance.unknown_state:
            said = f"its cloud says that it is {one.instance.unknown_state!r}, which nobody here knows"
            found.append(Reason("unknown-state", f"machine {one.id}: {said}: it counts as running"))
    for (_, machine), own in sorted(fates.items()):
        if own.warn:
            found.append(Reason(own.reason.code, f"machine {machine}: {own.reason.text}"))
    found.extend(
        Reason(one.doubt.code, f"machine {one.machine.id}: {one.doubt.text}")
        for one in roll.others
        if one.doubt is not None and one.key not in fates
    )
    found.extend(unknown(census.machines, snapshot.annexes))
    if snapshot.pace.most is not None:
        found.append(slowed(snapshot.pace))
    if isinstance(snapshot.collector, Known) and not snapshot.schedds:
        found.append(Reason("no-schedd", "the collector knows no schedd: there is no queue to look at"))
    return tuple(found)
