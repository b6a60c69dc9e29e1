"""`plan(snapshot, policy) -> Plan`: the one decision of updraft.

Pure: the same snapshot and policy give the same plan. In order: who each machine is and where it is in its
life; who leaves whatever the queue says; where waiting jobs find room (joined machines, then those on their
way, then new ones, within the limits); who is launched to keep a minimum; who is idle and goes.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from updraft.core.budget import budget
from updraft.core.launching import Wish, launches, minimum
from updraft.core.leaving import Fate, Look, fate
from updraft.core.lifecycle import Census, machines
from updraft.core.model import (
    Action,
    Adopt,
    Known,
    LedgerView,
    Machine,
    MachineOutlook,
    MachineRecord,
    Phase,
    Plan,
    Reason,
    Snapshot,
    Terminate,
    Undrain,
)
from updraft.core.packing import Shopping
from updraft.core.placing import place
from updraft.core.policy import Outstanding, outstanding, settled
from updraft.core.scalein import ScaleIn, scale_in
from updraft.core.settings import Policy
from updraft.core.supply import demand, keep_first, on_the_way


def plan(snapshot: Snapshot, policy: Policy) -> Plan:
    """What to do about this snapshot, and why; see the module's docstring for the order of thought."""
    census = machines(snapshot, policy)
    over = set(settled(snapshot.ledger, snapshot.clouds, policy.timings))
    waiting = tuple(
        item for item in outstanding(snapshot.ledger, census.machines) if item.launch.key not in over
    )
    look = Look(snapshot, policy, _surplus(census.machines, policy))
    fates = {(m.cloud, m.id): found for m in census.machines if (found := fate(m, look)) is not None}
    # Sorted once: whoever sorts them again by the same key has nothing to do.
    undecided = tuple(
        sorted((m for m in census.machines if _stays(m, fates.get((m.cloud, m.id)))), key=keep_first)
    )
    reopened = _reopened(census.machines, fates)
    staying = tuple(sorted((*undecided, *reopened), key=keep_first)) if reopened else undecided
    records = _records(census, fates, snapshot)
    ledger = _written(snapshot.ledger, records)
    money = budget(policy, snapshot.clouds, ledger, census.machines, waiting, snapshot.now)
    queue = demand(snapshot, policy)
    placing = place(queue, staying, waiting, census, snapshot, policy, money)
    promised = _promised(waiting)
    wishes = minimum(staying, promised, placing.shopping, snapshot, policy, money)
    gone = scale_in(undecided, promised, placing.needed, queue.complete, snapshot, policy)
    return Plan(
        actions=_actions(census, fates, gone, placing.shopping, wishes, snapshot),
        records=records,
        settled=tuple(sorted(over)),
        groups=placing.outlooks,
        machines=_outlooks(census, fates, gone),
        cooldowns=money.rests,
        warnings=_warnings(census, fates, snapshot),
    )


def _stays(machine: Machine, found: Fate | None) -> bool:
    """Does it count as room and towards a minimum? Those on their way do, while nothing ends them."""
    if found is None:
        return machine.phase is Phase.JOINED
    return on_the_way(machine) and not found.actions and not found.ended


def _reopened(all_machines: Sequence[Machine], fates: Mapping[tuple[str, str], Fate]) -> list[Machine]:
    """Machines whose drain is taken back now: they are room again, and are not idle for want of work yet."""
    found = []
    for machine in all_machines:
        own = fates.get((machine.cloud, machine.id))
        if own is not None and any(isinstance(action, Undrain) for action in own.actions):
            slots = tuple(replace(slot, draining=False) for slot in machine.slots)
            found.append(replace(machine, slots=slots))
    return found


def _promised(waiting: Sequence[Outstanding]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in waiting:
        counts[item.launch.worker_class] = counts.get(item.launch.worker_class, 0) + item.count
    return counts


def _surplus(all_machines: Sequence[Machine], policy: Policy) -> frozenset[tuple[str, str]]:
    """Machines beyond a maximum that was lowered while they ran: the least worth keeping."""
    living = [m for m in all_machines if m.phase in (Phase.BOOTING, Phase.REQUESTED, Phase.JOINED)]
    over: set[tuple[str, str]] = set()

    def trim(member: Callable[[Machine], bool], count: int, most: int | None) -> None:
        if most is not None and count > most:
            mine = [m for m in living if m.phase is Phase.JOINED and member(m)]
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
        Adopt(m.id, m.cloud, Reason("tagged", "it carries the pool's tag and was not in the ledger"))
        for m in census.adopted
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
    return (*adopted, *single, *batches, *gone.drains, *launches(shopping, wishes, snapshot))


def _records(
    census: Census, fates: Mapping[tuple[str, str], Fate], snapshot: Snapshot
) -> tuple[MachineRecord, ...]:
    """Records that differ from the ledger's, those of machines that are over included."""
    before = {(r.cloud, r.id): r for r in snapshot.ledger.machines}
    changed = []
    for machine in census.machines:
        record, found = machine.record, fates.get((machine.cloud, machine.id))
        if found is not None and found.ended:
            record = replace(record, ended_at=snapshot.now, end=record.end or found.reason)
        elif found is not None and any(isinstance(action, Terminate) for action in found.actions):
            record = replace(record, end=record.end or found.reason)
        known = before.get((machine.cloud, machine.id))
        if known is not record and known != record:
            changed.append(record)
    return tuple(changed)


def _written(ledger: LedgerView, records: Sequence[MachineRecord]) -> LedgerView:
    """The ledger as it will be once these records are in it: a failure seen now counts now."""
    fresh = {(r.cloud, r.id): r for r in records}
    kept = tuple(fresh.pop((r.cloud, r.id), r) for r in ledger.machines)
    return replace(ledger, machines=(*kept, *fresh.values()))


def _outlooks(
    census: Census, fates: Mapping[tuple[str, str], Fate], gone: ScaleIn
) -> tuple[MachineOutlook, ...]:
    told = {(o.cloud, o.machine): o for o in gone.outlooks}
    stays = Reason("stays", "nothing is to be done about it")
    found = []
    for machine in census.machines:
        key = (machine.cloud, machine.id)
        own = fates.get(key)
        if own is not None:
            found.append(MachineOutlook(machine.id, machine.cloud, machine.phase, own.reason, own.deadline))
        elif key in told:
            found.append(told[key])
        else:
            found.append(MachineOutlook(machine.id, machine.cloud, machine.phase, stays))
    return tuple(found)


def _warnings(
    census: Census, fates: Mapping[tuple[str, str], Fate], snapshot: Snapshot
) -> tuple[Reason, ...]:
    found = [
        Reason(
            "unexplained-slot", f"slot {slot.name} says it is {slot.instance_id}, which is no machine of ours"
        )
        for slot in census.unexplained
    ]
    for (_, machine), own in sorted(fates.items()):
        if own.warn:
            found.append(Reason(own.reason.code, f"machine {machine}: {own.reason.text}"))
    if isinstance(snapshot.collector, Known) and not snapshot.schedds:
        found.append(Reason("no-schedd", "the collector knows no schedd: there is no queue to look at"))
    return tuple(found)
