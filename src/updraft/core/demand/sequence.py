"""Which of the jobs without room wait their turn, and which are worth a machine: by expected run times.

A machine costs its boot and its idle tail besides the work on it. A job that would be over before a new
machine has joined, on slots that free themselves until then, buys none; and many short jobs share a slot, one
after the other, as long as the last of them doesn't wait longer than the class's `wait_target` for it.

The arithmetic, for a group whose jobs run r seconds, B a boot, W the wait that is allowed (B, unless the
class says otherwise): a slot that is free now takes (B + W) / r jobs until then, one that is on its way
W / r; n running jobs of the group end at a rate of n / r (Little's law), so that their slots take
n (B + W) / r. Of the m jobs left over, ceil(m r / max(r, W)) get a slot each. Where r isn't known, every job
gets one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from updraft.core.demand.runtimes import needs
from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import JobGroup, LedgerView, Offer, Reason
from updraft.core.settings import Policy

_LATEST_BOOTS = 10
_OVERDUE = 2.0
_LONGEST = 1e12


@dataclass(frozen=True, slots=True)
class Turns:
    """Of a group's jobs without room, `slots` are worth a new slot each; `in_turn` wait, for this reason."""

    slots: int
    in_turn: int
    reason: Reason | None = None


@dataclass(frozen=True, slots=True)
class BootPace:
    """The times known for one group: seconds to `boot` what it could be given, and to `wait` for it."""

    boot: float
    wait: float


class Paces:
    """How fast the offers that serve a group boot, and how long it may wait.

    Of several offers the slowest boot and of several classes the smallest wait: what is expected of a machine
    that is bought should rather be too late than too early, or its job would wait for nothing.
    """

    def __init__(
        self, offers: Sequence[Offer], table: VerdictTable, ledger: LedgerView, policy: Policy
    ) -> None:
        known = [offer for offer in offers if offer.kind in table.kind_at]
        boots = {key: boot for key in {(o.image, o.flavor) for o in known} if (boot := booting(ledger, key))}
        waits = {name: worker.wait_target for name, worker in policy.classes.items()}
        self._table = table
        self._columns = np.array([table.kind_at[offer.kind] for offer in known], dtype=np.intp)
        self._boots = np.array([boots.get((offer.image, offer.flavor), 0.0) for offer in known])
        self._waits = np.array([_or(waits.get(offer.worker_class), _LONGEST) for offer in known])

    def of(self, group: JobGroup) -> BootPace | None:
        """The group's pace; None where no boot was seen of anything that serves it."""
        row = self._table.group_at[group.key]
        serves = self._table.copies[row, self._columns] > 0
        if not serves.any():
            return None
        boot, wait = float(self._boots[serves].max()), float(self._waits[serves].min())
        return BootPace(boot, wait if wait < _LONGEST else boot) if boot > 0 else None


def booting(ledger: LedgerView, kind: tuple[str, str]) -> float:
    """The median of the latest boots of an image and flavor, in seconds; 0 where none was seen."""
    latest = sorted(ledger.boots.get(kind, ())[-_LATEST_BOOTS:])
    return latest[len(latest) // 2] if latest else 0.0


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def turns(group: JobGroup, left: int, here: int, coming: int, known: BootPace | None, now: float) -> Turns:
    """How many of `left` jobs of a group get a new slot each.

    `here` are its jobs placed on free room, `coming` those placed on machines that are on their way.
    """
    run = group.run_time
    if left <= 0 or known is None or run is None or run <= 0 or known.wait <= 0:
        return Turns(max(0, left), 0)
    soon = known.boot + known.wait
    if now - group.oldest > _OVERDUE * (soon + run):
        return Turns(left, 0)  # what was expected has not come about
    freed = here * max(0.0, soon / run - 1) + coming * max(0.0, known.wait / run - 1)
    freed += group.running * soon / run
    rest = max(0, left - math.floor(freed))
    slots = min(left, math.ceil(rest * run / max(run, known.wait)))
    if slots == left:
        return Turns(left, 0)
    text = (
        f"{left - slots} jobs wait their turn: they are expected to run {_short(run)} each, "
        f"and a machine takes {_short(known.boot)} to come"
    )
    return Turns(slots, left - slots, Reason("in-turn", text))


def lasting(
    table: VerdictTable, groups: Sequence[JobGroup], offers: Sequence[Offer], policy: Policy
) -> VerdictTable:
    """The table with no room for jobs on what doesn't live as long as they may need."""
    lives = {name: worker.lifetime + worker.drain_deadline for name, worker in policy.classes.items()}
    long = [group for group in groups if needs(group) > min(lives.values(), default=0.0)]
    if not long:
        return table
    copies = table.copies.copy()
    columns = {o.kind: lives.get(o.worker_class, 0.0) for o in offers if o.kind in table.kind_at}
    for group in long:
        short_lived = [table.kind_at[kind] for kind, life in columns.items() if life < needs(group)]
        copies[table.group_at[group.key], short_lived] = 0
    return replace(table, copies=copies)


def too_long(group: JobGroup, table: VerdictTable, left: VerdictTable) -> Reason | None:
    """Why nothing that would run a group's jobs is `left` of the table, where it is for their length."""
    row = table.group_at[group.key]
    if left is table or (left.copies[row] > 0).any() or not (table.copies[row] > 0).any():
        return None
    text = f"its jobs may run {_short(needs(group))}, and no machine that they fit on lives so long"
    return Reason("too-long", f"{text}: a longer `lifetime` would change that")


def _short(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
