"""Where waiting jobs find room: joined machines first, then those on their way, then what can be bought.

What is to be said of each job group then is in `outlooks`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from updraft.core.annexes.use import bound_to_annexes
from updraft.core.buying.shopping import Shopping
from updraft.core.buying.tiers import buy_by_priority
from updraft.core.buying.wanting import Wanted, wanted
from updraft.core.demand.filling import Filling, fill
from updraft.core.demand.fitting import turns
from updraft.core.demand.holdings import caps
from updraft.core.demand.room import Demand, Room, room
from updraft.core.demand.sequence import lasting, too_long
from updraft.core.demand.threshold import ignored
from updraft.core.demand.untaken import CODE, NO_HELP, allowed, noticed, recalled, resting
from updraft.core.limits.budget import Budget
from updraft.core.machines.census import Census
from updraft.core.machines.cooldowns import Outstanding
from updraft.core.machines.entries import Entry, idle_claims
from updraft.core.machines.pressing import CALM, Pressing, pressing
from updraft.core.matching.verdicts import VerdictTable, table_of
from updraft.core.model import Child, CollectorView, GroupOutlook, JobGroup, Known, Reason, Snapshot, Untaken
from updraft.core.outlooks import Found, group_outlooks
from updraft.core.settings import Policy
from updraft.core.sharing.shares import Held, Standing, standing
from updraft.core.sharing.submitters import parted, parties, short, user_of
from updraft.core.slots.variants import kept_as_asked, not_on_sale


@dataclass(frozen=True, slots=True)
class Placing:
    """Where waiting jobs find room: on machines that are `needed`, and by what is bought.

    `pressing` are jobs of high priority that a limit holds back. `untaken` are the groups that don't take the
    room that there is, as is to be remembered.
    """

    shopping: Shopping
    needed: frozenset[tuple[str, str]]
    outlooks: tuple[GroupOutlook, ...]
    pressing: Pressing = CALM
    untaken: Mapping[str, Untaken] = field(default_factory=dict)


def place(
    queue: Demand,
    staying: Sequence[Entry],
    waiting: Sequence[Outstanding],
    census: Census,
    snapshot: Snapshot,
    policy: Policy,
    money: Budget,
    held: Held,
) -> Placing:
    """Find room for all that waits; what is bought is taken from `money`. `held` is who has what now."""
    now = snapshot.now
    memory = recalled(snapshot.ledger.untaken, queue, now, policy.timings)
    if not queue.all:
        return Placing(Shopping(), frozenset(), (), untaken=memory)
    space = room(staying, waiting, census.site_slots, snapshot, policy)
    table = table_of(snapshot.verdicts, queue.all, list(snapshot.kinds.values()))
    claims = [*idle_claims(census.site_slots), *(claim for one in staying for claim in one.claims)]
    claimed = matched(queue, claims, table)
    counts, trying = allowed(_unclaimed(queue.all, claimed), memory, now)
    here = fill(counts, space.joined, table, snapshot.kinds)
    idling = _frozen(here, space, staying, queue, snapshot, policy)
    untaken = noticed(memory, [key for key in idling if idling[key].code == CODE], queue, now, policy.timings)
    frozen = resting(untaken, now) | idling | _faulty(queue)
    frozen |= bound_to_annexes(queue.all, snapshot.annexes, now)
    left = [(group, here.left.get(group.key, 0)) for group, _ in counts]
    coming = fill([(g, n) for g, n in left if n > 0], space.coming, table, snapshot.kinds)
    buying = {
        group.key: (group, coming.left.get(group.key, 0))
        for group in queue.fresh
        if group.evaluable and group.key not in frozen and coming.left.get(group.key, 0) > 0
    }
    small = ignored(buying, table, snapshot.offers, policy.threshold, now)
    buying = {key: found for key, found in buying.items() if key not in small}
    pool = snapshot.collector
    closed = policy.closing or not isinstance(pool, Known)
    shopping, urgent = Shopping(), CALM
    held_back: Mapping[str, tuple[Reason, ...]] = {}
    if buying and isinstance(pool, Known) and not closed:
        who, fillings = standing(pool.value, policy, held), (here, coming)
        most = caps(policy, who, queue.all, fillings, space, census.machines, waiting)
        some = parted(list(buying.values()), _serving(buying, table, snapshot), policy)
        who = replace(who, caps=most, high=parties(some))
        want = wanted(some, queue.all, here, coming, table, snapshot, policy, who)
        shopping, held_back = _shopped(want, table, snapshot, policy, money, who)
        if who.high:
            urgent = pressing(want.groups, shopping.left, shopping.unmet, snapshot.offers, table, policy)
    found = Found(
        claimed,
        here,
        coming,
        shopping,
        frozen,
        _both(held_back, trying | {key: (why,) for key, why in small.items()}),
    )
    outlooks = group_outlooks(queue, found, table, snapshot, closed, policy.classes)
    return Placing(shopping, _needed(here, space, frozen), outlooks, urgent, untaken)


def _both(
    some: Mapping[str, tuple[Reason, ...]], others: Mapping[str, tuple[Reason, ...]]
) -> Mapping[str, tuple[Reason, ...]]:
    return {**some, **{key: (*why, *some.get(key, ())) for key, why in others.items()}}


def _unclaimed(groups: Sequence[JobGroup], claimed: Mapping[str, int]) -> list[tuple[JobGroup, int]]:
    """How many jobs of each group no claim is there for."""
    left = ((group, group.idle - claimed.get(group.key, 0)) for group in groups if group.evaluable)
    return [(group, count) for group, count in left if count > 0]


def _faulty(queue: Demand) -> dict[str, Reason]:
    """Groups whose terms are refused: they may run where they match, and nothing is bought for them."""
    return {group.key: group.terms.faults[0] for group in queue.all if group.terms.faults}


def _serving(
    buying: Mapping[str, tuple[JobGroup, int]], table: VerdictTable, snapshot: Snapshot
) -> dict[str, list[str]]:
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
    want: Wanted, table: VerdictTable, snapshot: Snapshot, policy: Policy, money: Budget, who: Standing
) -> tuple[Shopping, Mapping[str, tuple[Reason, ...]]]:
    """What is bought for these, and why groups get less or nothing, by their keys."""
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


def matched(queue: Demand, claims: Sequence[tuple[Child, str]], table: VerdictTable) -> dict[str, int]:
    """Jobs of each group that claimed and idle slots will take: their users' claims are there already.

    Between the match and the job's start, and between two jobs of one claim, a job is still idle at its
    schedd while its dynamic slot is claimed: it must not count twice. A claim takes one job.
    """
    if not claims:
        return {}
    order = turns([group for group in queue.all if group.evaluable])
    left = [group.idle for group in order]
    users = _users(order)
    # The groups that a claim like this one may take jobs of, those that want none any more left out.
    takers: dict[tuple[Child, str], list[int]] = {}
    taken: dict[str, int] = {}
    for child, kind in claims:
        mine = takers.get((child, kind))
        if mine is None:
            mine = takers[child, kind] = _takers(child, kind, users(child.user), order, table)
        while mine and not left[mine[-1]]:
            mine.pop()
        if mine:
            at = mine[-1]
            left[at] -= 1
            taken[order[at].key] = taken.get(order[at].key, 0) + 1
    return taken


def _takers(
    child: Child, kind: str, mine: Iterable[int], order: Sequence[JobGroup], table: VerdictTable
) -> list[int]:
    """Of a user's groups those that the claim can take, the last ones first."""
    column = table.kind_at.get(kind)
    if column is None:
        return []
    return [
        at
        for at in sorted(mine, reverse=True)
        if table.copies[table.group_at[order[at].key], column] > 0
        and child.resources.holds(order[at].request) > 0
    ]


def _users(groups: Sequence[JobGroup]) -> Callable[[str], set[int]]:
    """Finds the groups of a slot's user: they are named with their domain, or one of them without."""
    whole: dict[str, set[int]] = {}
    named: dict[str, set[int]] = {}
    for at, group in enumerate(groups):
        if group.ready:
            continue
        whole.setdefault(user_of(group), set()).add(at)
        for name in (group.owner, short(user_of(group))):
            named.setdefault(name, set()).add(at)

    def of(user: str) -> set[int]:
        return whole[user] if user in whole else named.get(user, set()) | named.get(short(user), set())

    return of


def _needed(here: Filling, space: Room, frozen: Mapping[str, Reason]) -> frozenset[tuple[str, str]]:
    keys: set[tuple[str, str]] = set()
    for group, bins in here.placed.items():
        if group in frozen and frozen[group].code == CODE:
            continue
        for name, count in bins.items():
            owner = space.owner.get(name)
            if count and owner is not None:
                keys.add(owner)
    return frozenset(keys)


def _frozen(
    here: Filling, space: Room, staying: Sequence[Entry], queue: Demand, snapshot: Snapshot, policy: Policy
) -> dict[str, Reason]:
    """Groups whose jobs had room that matches, all through the negotiation patience, and didn't take it.

    More machines would not help them: a concurrency limit, MAX_JOBS_RUNNING, or a negotiator that is down.
    """
    if not isinstance(snapshot.collector, Known):
        return {}
    patience, now = policy.timings.negotiation_patience, snapshot.now
    late = [group for group in queue.all if now - group.oldest >= patience and group.key in here.placed]
    if not late:
        return {}
    idle_since = {one.key: since for one in staying if not one.busy and (since := one.machine.record.busy_at)}
    found: dict[str, Reason] = {}
    for group in late:
        waits = [
            since
            for name in here.placed.get(group.key, {})
            if (owner := space.owner.get(name)) is not None and (since := idle_since.get(owner)) is not None
        ]
        if waits and now - min(waits) >= patience:
            began = max(min(waits), group.oldest)
            found[group.key] = _untaken(now - min(waits), began, snapshot.collector.value, now, patience)
    return found


def _untaken(seconds: float, both_at: float, seen: CollectorView, now: float, patience: float) -> Reason:
    """Why room isn't taken that has been there for so long: by the negotiator's will, or its silence.

    It has refused it only in a cycle that began when the room and the jobs were both there (`both_at`).
    """
    ended, began = seen.cycle_ended, seen.cycle_began
    if ended is not None and now - ended > patience:
        text = f"the negotiator has finished no cycle for {now - ended:.0f} s"
        return Reason("no-negotiation", f"{text}: {NO_HELP}")
    if began is not None and began < both_at:
        text = f"no cycle of the negotiator has begun and ended in the {seconds:.0f} s that there is room"
        return Reason("no-negotiation", f"{text}: {NO_HELP}")
    return Reason(CODE, f"room that matches has not been taken for {seconds:.0f} s: {NO_HELP}")
