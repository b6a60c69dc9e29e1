"""What is to be said of each job group: how many fit where, what held the rest back, why offers refuse it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from updraft.core.buying.shopping import Shopping
from updraft.core.demand.filling import Filling
from updraft.core.demand.room import Demand
from updraft.core.matching.verdicts import MISSING, VerdictTable
from updraft.core.model import NO_TERMS, GroupOutlook, JobGroup, Offer, Reason, Snapshot
from updraft.core.settings import WorkerClass
from updraft.core.slots.kinds import problem
from updraft.core.slots.terms import refused_terms

# What fails is worked out anew for each pair that is asked about, and a plan is made every few seconds: so
# many pairs in one decision, and so many of one group. `explain` asks about all pairs of the one in question.
_PAIRS = 64
_PAIRS_OF_A_GROUP = 8
_TERMS = 16

Refused = tuple[tuple[str, Reason], ...]


@dataclass(frozen=True, slots=True)
class RoomFound:
    """The room found for the jobs that wait: claims of their users, room here and on its way, purchases.

    `frozen` are the groups that more machines would not help, and why; `spared` those for which less was
    asked for than they have jobs without room, and why.
    """

    claimed: Mapping[str, int]
    here: Filling
    coming: Filling
    shopping: Shopping
    frozen: Mapping[str, Reason]
    spared: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)


def group_outlooks(
    queue: Demand,
    found: RoomFound,
    table: VerdictTable,
    snapshot: Snapshot,
    closed: bool,
    classes: Mapping[str, WorkerClass],
) -> tuple[GroupOutlook, ...]:
    """One outlook for each group, in the order of the queue; `closed` where nothing may be launched."""
    stale = {group.key for group in queue.stale}
    bought: dict[str, int] = {}
    for purchase in found.shopping.purchases:
        for key, number in purchase.holds.items():
            bought[key] = bought.get(key, 0) + number
    told = []
    for group in queue.all:
        key = group.key
        joined = found.claimed.get(key, 0) + sum(found.here.placed.get(key, {}).values())
        later = sum(found.coming.placed.get(key, {}).values())
        new = bought.get(key, 0)
        unmet = max(0, group.idle - joined - later - new)
        held = tuple(_held(group, unmet, found, key in stale, closed))
        told.append((group, joined, later, new, unmet, held))
    refused = _refusals([group for group, *_, unmet, _ in told if unmet > 0], table, snapshot)
    terms = _terms([group for group, *_ in told if group.key in refused], snapshot, classes)
    return tuple(
        GroupOutlook(
            group.key,
            group.idle,
            joined,
            later,
            new,
            unmet,
            (*terms.get(group.key, ()), *held),
            refused.get(group.key, ()),
        )
        for group, joined, later, new, unmet, held in told
    )


def _held(group: JobGroup, unmet: int, found: RoomFound, stale: bool, closed: bool) -> Iterator[Reason]:
    """The reasons that hold a group back."""
    if not group.evaluable:
        why = problem(group.ad) or "its ad can't be evaluated"
        yield Reason("not-evaluable", f"{why}: nothing is launched for it")
    if group.key in found.frozen:
        yield found.frozen[group.key]
    if stale:
        yield Reason("schedd-silent", f"schedd {group.schedd} does not answer: this is its last word")
    if closed and unmet > 0:
        yield Reason("no-launches", "the pool is unknown or closing: nothing is launched")
    if unmet > 0:
        yield from found.spared.get(group.key, ())
        yield from found.shopping.unmet.get(group.key, ())


def _terms(
    groups: list[JobGroup], snapshot: Snapshot, classes: Mapping[str, WorkerClass]
) -> dict[str, tuple[Reason, ...]]:
    """For groups that nothing on sale serves, which of their terms nothing is left for."""
    found: dict[str, tuple[Reason, ...]] = {}
    asking = [group for group in groups if group.terms != NO_TERMS and not group.terms.faults]
    for group in asking[:_TERMS]:
        reason = refused_terms(group.terms, classes, snapshot.offers)
        if reason is not None:
            found[group.key] = (reason,)
    return found


def _refusals(unmet: list[JobGroup], table: VerdictTable, snapshot: Snapshot) -> dict[str, Refused]:
    """For groups that nothing on sale serves the clauses that fail, for the first offers of some kinds.

    The kind that is nearest to the request in size comes first.
    """
    first: dict[int, Offer] = {}
    for offer in snapshot.offers:
        if offer.kind in table.kind_at:
            first.setdefault(table.kind_at[offer.kind], offer)
    if not unmet or not first:
        return {}
    columns = list(first)
    rows = [table.group_at[group.key] for group in unmet]
    served = (table.copies[np.ix_(rows, columns)] > 0).any(axis=1)
    hopeless = [rows[at] for at in np.flatnonzero(~served).tolist()][:_PAIRS]
    if not hopeless:
        return {}
    each = min(_PAIRS_OF_A_GROUP, _PAIRS // len(hopeless))
    # Kinds from all over the list rather than its beginning: those next to each other are alike.
    some_kinds = columns[:: max(1, len(columns) // each)][:each]
    wanted = {table.group_at[group.key]: group.request for group in unmet}
    found: dict[str, Refused] = {}
    for row in hopeless:
        near = min(columns, key=lambda at: first[at].resources.shortfall(wanted[row]))
        mine = dict.fromkeys((near, *some_kinds))
        found[table.groups[row]] = tuple(_clauses(row, list(mine)[:each], first, table))
    return found


def _clauses(
    row: int, columns: list[int], offers: Mapping[int, Offer], table: VerdictTable
) -> Iterator[tuple[str, Reason]]:
    for column in columns:
        if table.copies[row, column] == MISSING:
            yield offers[column].key, Reason("not-evaluated", "the pair was not evaluated")
            continue
        for reason in table.explain(row, column).reasons:
            yield offers[column].key, reason
