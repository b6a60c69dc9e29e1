"""Where waiting jobs find room: joined machines first, then those on their way, then what can be bought.

What is to be said of each job group then is in `outlooks`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from updraft.core.annexes.use import bound_to_annexes
from updraft.core.buying.shopping import Shopping
from updraft.core.buying.tiers import buy_by_priority
from updraft.core.buying.wanting import Shortfall, wanted
from updraft.core.demand.claimed import matched
from updraft.core.demand.doubts import at_fault, barred, doubters, serving
from updraft.core.demand.filling import Filling, fill
from updraft.core.demand.holdings import caps
from updraft.core.demand.room import Demand, Room, room
from updraft.core.demand.sequence import lasting, too_long
from updraft.core.demand.threshold import ignored
from updraft.core.demand.untaken import CODE, allowed, not_taking, noticed, recalled, resting, stood_still
from updraft.core.limits.budget import Budget
from updraft.core.limits.purses import paid
from updraft.core.machines.census import Census
from updraft.core.machines.cooldowns import Outstanding
from updraft.core.machines.entries import Entry, idle_claims
from updraft.core.machines.pressing import CALM, Pressing, pressing
from updraft.core.matching.verdicts import VerdictTable, table_of
from updraft.core.model import GroupOutlook, JobGroup, Known, MachineId, Reason, Snapshot, Untaken
from updraft.core.outlooks import RoomFound, group_outlooks
from updraft.core.settings import Policy
from updraft.core.sharing.shares import Held, Standing, standing
from updraft.core.sharing.submitters import parted, parties
from updraft.core.slots.variants import kept_as_asked, not_on_sale

Counted = Mapping[str, tuple[JobGroup, int]]
"""Job groups by their keys, each with a number of its jobs."""
Reasons = Mapping[str, tuple[Reason, ...]]
"""Reasons by the keys of job groups."""


@dataclass(frozen=True, slots=True)
class PoolState:
    """The state of the pool when room is looked for: who waits, which machines stay or come, and who has
    what now.
    """

    queue: Demand
    staying: Sequence[Entry]
    waiting: Sequence[Outstanding]
    census: Census
    held: Held


@dataclass(frozen=True, slots=True)
class Placing:
    """Where waiting jobs find room: on machines that are `needed`, and by what is bought.

    `pressing` are jobs of high priority that a limit holds back. `untaken` are the groups that don't take the
    room that there is, as is to be remembered. `faulty` are machines whose room counts for nobody, each with
    the number of groups that say so.
    """

    shopping: Shopping
    needed: frozenset[MachineId]
    outlooks: tuple[GroupOutlook, ...]
    pressing: Pressing = CALM
    untaken: Mapping[str, Untaken] = field(default_factory=dict)
    faulty: Mapping[MachineId, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _RoomThere:
    """The room that is there, or on its way, and the jobs that find a place in it.

    `claimed` jobs have a slot already; `here` and `coming` say who is placed; more machines would not help
    groups that are `frozen`; those that are `tried` with a few machines have less room than they wait for.
    """

    space: Room
    claimed: Mapping[str, int]
    here: Filling
    coming: Filling
    frozen: Mapping[str, Reason]
    tried: Reasons
    untaken: Mapping[str, Untaken]
    faulty: Mapping[MachineId, int]


@dataclass(frozen=True, slots=True)
class _Purchases:
    """The purchases, why groups get less than they have jobs without room, and who presses on a limit."""

    shopping: Shopping = field(default_factory=Shopping)
    less: Reasons = field(default_factory=dict)
    pressing: Pressing = CALM


def place(pool: PoolState, snapshot: Snapshot, policy: Policy, money: Budget) -> Placing:
    """Find room for all that waits; what is bought is taken from `money`."""
    queue = pool.queue
    joined = {one.key for one in pool.staying}
    memory = recalled(snapshot.ledger.untaken, queue, snapshot.now, policy.timings, joined)
    if not queue.all:
        return Placing(Shopping(), frozenset(), (), untaken=memory)
    table = table_of(snapshot.verdicts, queue.all, list(snapshot.kinds.values()))
    there = _room_there(pool, memory, table, snapshot, policy)
    without = _without_room(queue, there)
    small = ignored(without, table, snapshot.offers, policy.threshold, snapshot.now)
    worth = {key: found for key, found in without.items() if key not in small}
    closed = policy.closing or not isinstance(snapshot.collector, Known)
    bought = (
        _Purchases() if closed or not worth else _bought(worth, pool, there, table, snapshot, policy, money)
    )
    less = _both(bought.less, {**there.tried, **{key: (why,) for key, why in small.items()}})
    found = RoomFound(there.claimed, there.here, there.coming, bought.shopping, there.frozen, less)
    outlooks = group_outlooks(queue, found, table, snapshot, closed, policy.classes)
    needed = _needed(there.here, there.space, there.frozen)
    return Placing(bought.shopping, needed, outlooks, bought.pressing, there.untaken, there.faulty)


def _room_there(
    pool: PoolState, memory: Mapping[str, Untaken], table: VerdictTable, snapshot: Snapshot, policy: Policy
) -> _RoomThere:
    """Who has a claim, then who fits on joined machines, then who fits on those that are on their way."""
    queue, now, sites = pool.queue, snapshot.now, pool.census.site_slots
    space = room(pool.staying, pool.waiting, sites, snapshot, policy)
    faulty, doubted = at_fault(memory, queue, pool.staying), doubters(memory)
    space = space.without(faulty) if faulty else space
    believed = [one for one in pool.staying if one.key not in doubted] if doubted else pool.staying
    claims = [*idle_claims(sites), *(claim for one in believed for claim in one.claims)]
    claimed = matched(queue, claims, table)
    counts, tried = allowed(_unclaimed(queue.all, claimed), memory, now)
    here = fill(counts, space.joined, table, snapshot.kinds, barred(memory, space))
    idling = not_taking(here, space, pool.staying, queue, snapshot, policy)
    refused = {key: one.machines for key, one in idling.items() if one.reason.code == CODE}
    untaken = noticed(memory, refused, queue, now, policy.timings)
    served = serving(here, claimed, space, believed, queue, now - policy.timings.negotiation_patience)
    idle = {one.key for one in believed if not one.busy} if served else frozenset[MachineId]()
    untaken = stood_still(untaken, served, idle, queue, snapshot, policy.timings)
    frozen = resting(untaken, now) | {key: one.reason for key, one in idling.items()} | _faulty(queue)
    frozen |= bound_to_annexes(queue.all, snapshot.annexes, now)
    left = [(group, here.left.get(group.key, 0)) for group, _ in counts]
    coming = fill([(g, n) for g, n in left if n > 0], space.coming, table, snapshot.kinds)
    return _RoomThere(space, claimed, here, coming, frozen, tried, untaken, faulty)


def _without_room(queue: Demand, there: _RoomThere) -> Counted:
    """The jobs that machines may be bought for: their schedds answer, and more machines would help."""
    return {
        group.key: (group, there.coming.left.get(group.key, 0))
        for group in queue.fresh
        if group.evaluable and group.key not in there.frozen and there.coming.left.get(group.key, 0) > 0
    }


def _bought(
    worth: Counted,
    pool: PoolState,
    there: _RoomThere,
    table: VerdictTable,
    snapshot: Snapshot,
    policy: Policy,
    money: Budget,
) -> _Purchases:
    """Machines for those whose turn it is, within everybody's caps and what `money` allows."""
    assert isinstance(snapshot.collector, Known)  # noqa: S101  # nothing is bought where the pool is silent
    who = standing(snapshot.collector.value, policy, pool.held)
    fillings, everyone = (there.here, there.coming), pool.queue.all
    machines, coming = pool.census.machines, pool.waiting
    most = caps(policy, who, everyone, fillings, there.space, machines, coming)
    most = paid(most, money.spending, everyone, fillings, there.space, machines, coming)
    some = parted(list(worth.values()), _serving(worth, table, snapshot), policy)
    who = replace(who, caps=most, high=parties(some))
    want = wanted(some, everyone, *fillings, table, snapshot, policy, who)
    shopping, less = _shopped(want, table, snapshot, policy, money, who)
    if not who.high:
        return _Purchases(shopping, less)
    urgent = pressing(want.groups, shopping.left, shopping.unmet, snapshot.offers, table, policy)
    return _Purchases(shopping, less, urgent)


def _both(some: Reasons, others: Reasons) -> Reasons:
    return {**some, **{key: (*why, *some.get(key, ())) for key, why in others.items()}}


def _unclaimed(groups: Sequence[JobGroup], claimed: Mapping[str, int]) -> list[tuple[JobGroup, int]]:
    """How many jobs of each group no claim is there for."""
    left = ((group, group.idle - claimed.get(group.key, 0)) for group in groups if group.evaluable)
    return [(group, count) for group, count in left if count > 0]


def _faulty(queue: Demand) -> dict[str, Reason]:
    """Groups whose terms are refused: they may run where they match, and nothing is bought for them."""
    return {group.key: group.terms.faults[0] for group in queue.all if group.terms.faults}


def _serving(buying: Counted, table: VerdictTable, snapshot: Snapshot) -> dict[str, list[str]]:
    """The classes on sale that can run the jobs of each group with a high priority."""
    if not any(group.terms.high_priority > 0 for group, _ in buying.values()):
        return {}
    kinds = {offer.kind: offer.worker_class for offer in snapshot.offers if offer.kind in table.kind_at}
    return {
        key: sorted(
            {
                worker
                for kind, worker in kinds.items()
                if table.copies[table.group_at[key], table.kind_at[kind]] > 0
            }
        )
        for key, (group, _) in buying.items()
        if group.terms.high_priority > 0
    }


def _shopped(
    want: Shortfall, table: VerdictTable, snapshot: Snapshot, policy: Policy, money: Budget, who: Standing
) -> tuple[Shopping, Reasons]:
    """The purchases for these, and why groups get less or nothing, by their keys."""
    if not want.groups:
        return Shopping(), want.held
    groups = [group for group, _ in want.groups]
    sold = kept_as_asked(lasting(table, groups, snapshot.offers, policy), groups, snapshot.offers, policy)
    shopping = buy_by_priority(
        want.groups, snapshot.offers, snapshot.kinds, sold, money.allow, who, money.machines_left, policy
    )
    long = {group.key: (why,) for group, _ in want.groups if (why := too_long(group, table, sold))}
    unmade = not_on_sale((g for g in groups if shopping.left.get(g.key)), policy, snapshot.offers)
    return shopping, {**want.held, **long, **unmade}


def _needed(here: Filling, space: Room, frozen: Mapping[str, Reason]) -> frozenset[MachineId]:
    keys: set[MachineId] = set()
    for group, bins in here.placed.items():
        if group in frozen and frozen[group].code == CODE:
            continue
        for name, count in bins.items():
            owner = space.owner.get(name)
            if count and owner is not None:
                keys.add(owner)
    return frozenset(keys)
