"""Scaling in: which idle machines go for want of work.

Idle means: no claim for the class's idle limit. Since when is in its record (`last_claimed_at`, which
`lifecycle._heard` writes, by the slot's own counters); here it is held against the limit. Never below the
class's minimum, never a machine that waiting jobs can use, and never while a source that would have to know
is silent. Dearest and oldest go first. A machine that is likely to be wanted again before another would
have booted stays for that long, and one of which more time is paid for than it has been there stays nearly
as long as that: a paid hour is used before the machine goes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial

from updraft.core.machines.entries import Entry, on_the_way, plain_ones
from updraft.core.machines.pressing import CALM, Pressing
from updraft.core.machines.waves import Waves, waves
from updraft.core.model import (
    Drain,
    DrainMode,
    Known,
    Machine,
    MachineId,
    MachineOutlook,
    MachineRecord,
    Phase,
    Reason,
    Snapshot,
)
from updraft.core.reasons import counted, moment, spell
from updraft.core.settings import Policy, WorkerClass
from updraft.core.slots.variants import idle_limit

AHEAD = 180.0
"""How long before the end of what is paid for a machine goes, in seconds: its drain, its exit, the order to
end it and a late look take less. Where not much more than this is paid for at a time, nobody waits for it."""

_EARLY = ("idle", "wave-expected", "paid-for")  # why a machine stays that may go before its time


@dataclass(frozen=True, slots=True)
class ScaleIn:
    """Drains of idle machines, and what is to be said of each idle one."""

    drains: tuple[Drain, ...]
    outlooks: Mapping[MachineId, MachineOutlook]


def scale_in(
    staying: Sequence[Entry],
    promised: Mapping[str, int],
    needed: frozenset[MachineId],
    complete: bool,
    snapshot: Snapshot,
    policy: Policy,
    pressing: Pressing = CALM,
) -> ScaleIn:
    """Drain idle machines beyond the minimum that nothing waits for.

    `staying` are sorted by their ranks, `promised` are plain machines of each class that were asked for and
    have not shown themselves, `needed` the machines that waiting jobs were placed on, `complete` whether
    every schedd has answered. For each of the jobs that are `pressing` one may go before its time.
    """
    counts: dict[str, int] = dict(promised)
    tides = {name: cache(partial(waves, name, snapshot.ledger)) for name in policy.classes}
    for name, number in plain_ones(staying).items():
        counts[name] = counts.get(name, 0) + number
    drains: list[Drain] = []
    outlooks: dict[MachineId, MachineOutlook] = {}
    for one in reversed(staying):
        if one.busy:
            break  # and so are those worth more than it
        machine, worker = one.machine, policy.classes.get(one.machine.worker_class)
        if worker is None or on_the_way(machine):
            continue
        reason, goes, at = _judge(one, worker, counts, needed, complete, snapshot)
        asked_for = bool(machine.record.variant.annex)  # by hand, with an idle limit of its own
        if goes and not asked_for:
            reason, goes, at = _kept(machine, tides[worker.name], policy, snapshot.now) or (reason, True, at)
        early = reason.code in _EARLY and complete and _listed(machine, snapshot)
        if early and not asked_for and pressing.helped_by(machine):
            reason, goes, at = pressing.reason(), True, None
            pressing = replace(pressing, jobs=pressing.jobs - 1)
        if goes:
            if not machine.record.variant:
                counts[machine.worker_class] -= 1
            drains.append(Drain(machine.id, machine.cloud, DrainMode.EMPTY, reason))
        outlooks[one.key] = MachineOutlook(machine.id, machine.cloud, Phase.JOINED, reason, at)
    return ScaleIn(tuple(drains), outlooks)


def _kept(
    machine: Machine, tide: Callable[[], Waves | None], policy: Policy, now: float
) -> tuple[Reason, bool, float | None] | None:
    """Why a machine past its idle limit is kept: for the next wave of jobs, or since it is paid for."""
    found, since = tide(), machine.record.last_claimed_at
    wave = None if found is None or since is None else found.keep(now - since)
    if wave is not None:
        return wave, False, None
    until = paid_for(machine.record, policy, now)
    if until is None:
        return None
    text = f"idle since {moment(since or now)}, and paid for: it stays until {moment(until)}"
    return Reason("paid-for", text), False, until


def paid_for(record: MachineRecord, policy: Policy, now: float) -> float | None:
    """Until when a machine past its idle limit stays for what is paid for of it; None: it may go now.

    One that has outstayed its limit by all that is paid for at a time goes too: looks may be so rare that
    none of them falls into the last minutes.
    """
    billing, worker = policy.rule(record.cloud).billing, policy.classes.get(record.worker_class)
    at_a_time, there = max(billing.period, billing.least), now - record.requested_at
    left = billing.paid(there) - there
    limit = 0.0 if worker is None else idle_limit(worker, record.variant)
    idle = now - (now if record.last_claimed_at is None else record.last_claimed_at) - limit
    if at_a_time < 4 * AHEAD or left <= AHEAD or idle >= at_a_time:
        return None
    return now + left - AHEAD


def _judge(
    one: Entry,
    worker: WorkerClass,
    counts: Mapping[str, int],
    needed: frozenset[MachineId],
    complete: bool,
    snapshot: Snapshot,
) -> tuple[Reason, bool, float | None]:
    """The reason it stays or goes, whether it goes, and when it would."""
    now, machine, record = snapshot.now, one.machine, one.machine.record
    since = record.last_claimed_at if record.last_claimed_at is not None else now
    if one.key in needed:
        return Reason("needed", "waiting jobs can use it"), False, None
    if not record.variant and counts[machine.worker_class] <= worker.min_machines:
        text = f"class {worker.name} keeps at least {counted(worker.min_machines, 'machine')}"
        return Reason("minimum", text), False, None
    limit = idle_limit(worker, record.variant) if record.variant else worker.idle_limit
    idle = f"idle since {moment(since)}, limit {spell(limit)}"
    due = since + limit
    if now < due:
        return Reason("idle", idle), False, due
    if not complete:
        return Reason("queue-unknown", f"{idle}, but not every schedd has answered: it stays"), False, None
    if not _listed(machine, snapshot):
        text = f"{idle}, but cloud {machine.cloud} does not answer: it stays"
        return Reason("cloud-silent", text), False, None
    return Reason("idle-limit", idle), True, None


def _listed(machine: Machine, snapshot: Snapshot) -> bool:
    """Whether the machine's cloud has answered."""
    view = snapshot.clouds.get(machine.cloud)
    return view is not None and isinstance(view.machines, Known)
