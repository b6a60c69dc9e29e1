"""`plan(snapshot, policy) -> Plan`: the one decision of updraft.

Pure: the same snapshot and policy give the same plan. Its stages, each a function of values:

1. `recognise`: which machines there are, where each is in its life, which launches may still bring some
2. `staying`: who leaves whatever the queue says, and whose room stays
3. `budget`: what may still be bought, and where it would fail again
4. `annexed`: what is still to come of machines that were asked for by hand
5. `place`: where waiting jobs find room: joined machines, then those on their way, then new ones
6. `minimum` and `scale_in`: who is launched to keep a minimum, and who is idle and goes
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from updraft.core.annexes.progress import annexed, parted
from updraft.core.buying.launches import launches, minimum
from updraft.core.demand.doubts import doubters, fault, in_doubt_of
from updraft.core.demand.left_out import left_out
from updraft.core.demand.room import demand
from updraft.core.limits.budget import budget, tried
from updraft.core.limits.purses import told
from updraft.core.limits.standings import SpendingBudgets, spending_budgets, spending_warnings
from updraft.core.machines.cache import MachineCache
from updraft.core.machines.census import Census
from updraft.core.machines.cooldowns import Outstanding, outstanding, settled
from updraft.core.machines.dispositions import DecisionView, Disposition
from updraft.core.machines.leaving import left_on_hold
from updraft.core.machines.scalein import ScaleIn, scale_in
from updraft.core.machines.staying import staying, surplus
from updraft.core.machines.witnesses import in_doubt
from updraft.core.model import (
    Action,
    Adopt,
    Machine,
    MachineId,
    MachineOutlook,
    MachineRecord,
    Plan,
    Questions,
    Reason,
    Snapshot,
    Terminate,
)
from updraft.core.placing import PoolState, place
from updraft.core.settings import Policy
from updraft.core.sparing import Sparing
from updraft.core.warnings import warnings

_TAGGED = Reason("tagged", "it carries the pool's tag and was not in the ledger")
_CAME_BACK = Reason("came-back", "it was taken for ended, and its cloud shows it again")


@dataclass(frozen=True, slots=True)
class Recognised:
    """All machines, and the launches that may still bring some (`coming`) or won't any more (`settled`)."""

    census: Census
    coming: tuple[Outstanding, ...]
    settled: tuple[str, ...]


def plan(snapshot: Snapshot, policy: Policy, cache: MachineCache | None = None) -> Plan:
    """The actions for this snapshot, and why; the module's docstring has the stages.

    `cache` remembers what was made of each machine at the last decision, and is brought up to date: with one,
    a decision takes less time, and is the same.
    """
    cache = MachineCache() if cache is None else cache
    snapshot, annexes_offers = parted(snapshot)
    there = recognise(cache, snapshot, policy)
    machines = there.census.machines
    spending = spending_budgets(snapshot, policy, machines, there.coming)
    look = DecisionView(snapshot, policy, surplus(machines, policy), _overspent(spending, machines, policy))
    stays = staying(cache, look)
    records = _records(cache, stays.dispositions, snapshot.now)
    resting = tried(cache, records, snapshot, policy)
    money = budget(cache, there.coming, *resting, snapshot, policy, spending)
    annexes = annexed(annexes_offers, machines, there.coming, snapshot, policy, money, cache.held)
    queue = demand(snapshot, policy)
    pool = PoolState(queue, stays.room, (*there.coming, *annexes.coming), there.census, cache.held)
    placing = place(pool, snapshot, policy, money)
    promised = _promised(there.coming)
    wishes = minimum(stays.undecided, promised, placing.shopping, snapshot, policy, money)
    gone = scale_in(
        stays.undecided, promised, placing.needed, queue.complete, snapshot, policy, placing.pressing
    )
    ends = _ends(stays.dispositions, snapshot)
    bought = launches(placing.shopping, (*annexes.wishes, *wishes), snapshot)
    odd = warnings(there.census, stays.dispositions, cache, snapshot)
    odd += tuple(fault(name, groups) for (_, name), groups in sorted(placing.faulty.items()))
    spent = told(spending, machines, there.coming)
    return Plan(
        actions=(*_adopted(there.census), *ends, *gone.drains, *bought),
        records=records,
        settled=there.settled,
        groups=placing.outlooks,
        machines=_outlooks(cache, stays.dispositions, gone, doubters(placing.untaken)),
        cooldowns=money.rests,
        warnings=(*odd, *spending_warnings(spending, spent), *left_out(queue, snapshot), *snapshot.left_out),
        annexes=annexes.outlooks,
        spending=spent,
        at_work=None if snapshot.ledger.at_work is None else cache.at_work,
        questions=_questions(cache, look),
        untaken=placing.untaken,
    )


def _overspent(
    spending: SpendingBudgets | None, machines: Sequence[Machine], policy: Policy
) -> Mapping[MachineId, Reason]:
    """Who is drained since a budget is spent, where the site wants that."""
    return spending.overspent(machines) if spending is not None and policy.drain_when_spent else {}


def recognise(cache: MachineCache, snapshot: Snapshot, policy: Policy) -> Recognised:
    """Which machines there are by what cloud, pool and ledger say, and which launches may bring more."""
    census = cache.look(snapshot, policy)
    # Of the launches only those that may still bring something have a say here.
    waits = replace(snapshot.ledger, launches=cache.open)
    over = settled(cache.open, snapshot, policy.timings)
    coming = tuple(item for item in outstanding(waits, census.machines) if item.launch.key not in over)
    return Recognised(census, coming, tuple(sorted(over)))


class Planning:
    """`plan` with a memory of its own, for one that decides again and again about the same pool.

    Where it fails for some jobs, slots, offers, classes, annexes or clouds, these are left out and named, and
    `tell` is told once.
    """

    def __init__(self, tell: Callable[[Exception], None] = lambda _error: None) -> None:
        self._cache: MachineCache | None = None
        self._sparing: Sparing[Plan] = Sparing(tell)

    def __call__(self, snapshot: Snapshot, policy: Policy) -> Plan:
        """The plan for this snapshot, as `plan` makes it."""
        # A decision that fails halfway leaves nothing behind that the next one would believe.
        cache, self._cache = self._cache or MachineCache(), None

        def first(some: Snapshot, by: Policy) -> Plan:
            made = plan(some, by, cache)
            self._cache = cache
            return made

        made = self._sparing.made(first, plan, snapshot, policy)
        found = self._sparing.warnings
        return replace(made, warnings=(*made.warnings, *found)) if found else made


def _questions(cache: MachineCache, look: DecisionView) -> Questions:
    """The questions for the next look: all that an end wants to know and this look didn't say."""
    doubted = [
        (one.key, one.machine.record)
        for one in cache.others
        if in_doubt(one.machine.record, look.snapshot, look.policy)
    ]
    joined = {key for key, record in doubted if record.joined_at is not None}
    joined.update(one.key for one in cache.others if one.doubt is not None)
    return Questions(frozenset(key for key, _ in doubted), frozenset(joined | look.asked_for))


def _promised(waiting: Sequence[Outstanding]) -> dict[str, int]:
    """Plain machines of each class that were asked for: a minimum counts no others."""
    counts: dict[str, int] = {}
    for item in waiting:
        if not item.launch.variant:
            counts[item.launch.worker_class] = counts.get(item.launch.worker_class, 0) + item.count
    return counts


def _adopted(census: Census) -> list[Action]:
    return [Adopt(m.id, m.cloud, _CAME_BACK if m.record.end else _TAGGED) for m in census.adopted]


def _ends(dispositions: Mapping[MachineId, Disposition], snapshot: Snapshot) -> list[Action]:
    """The actions of the rules of leaving; machines of one cloud that end for one reason end by one call."""
    single: list[Action] = []
    ends: dict[tuple[str, Reason], list[str]] = {}
    for found in dispositions.values():
        for action in found.actions:
            if isinstance(action, Terminate):
                ends.setdefault((action.cloud, action.reason), []).extend(action.machines)
            else:
                single.append(action)
    batches = [Terminate(tuple(ids), cloud, reason) for (cloud, reason), ids in sorted(ends.items(), key=str)]
    return [*single, *left_on_hold(snapshot, single), *batches]


def _records(
    cache: MachineCache, dispositions: Mapping[MachineId, Disposition], now: float
) -> tuple[MachineRecord, ...]:
    """Records that differ from the ledger's, those of machines that are over included."""
    changed = []
    for key in sorted({*cache.renewed, *dispositions}):
        record, found = cache.entries[key].machine.record, dispositions.get(key)
        if found is not None and found.ended:
            record = replace(record, ended_at=now, end=record.end or found.reason)
        elif found is not None and (found.failed or any(isinstance(a, Terminate) for a in found.actions)):
            record = replace(record, end=record.end or found.reason)
        known = cache.records.get(key)
        if known is not record and known != record:
            changed.append(record)
    return tuple(changed)


def _outlooks(
    cache: MachineCache,
    dispositions: Mapping[MachineId, Disposition],
    gone: ScaleIn,
    doubted: Mapping[MachineId, int],
) -> tuple[MachineOutlook, ...]:
    told = dict(gone.outlooks)
    for key, own in dispositions.items():
        machine = cache.entries[key].machine
        told[key] = MachineOutlook(machine.id, machine.cloud, machine.phase, own.reason, own.deadline)
    entries = cache.entries
    for key in doubted.keys() & entries.keys():
        known = told.get(key, entries[key].outlook)
        told[key] = replace(known, reason=in_doubt_of(known.reason, doubted[key]))
    return tuple([told[key] if key in told else entries[key].outlook for key in cache.keys])
