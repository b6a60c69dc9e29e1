"""Where each machine is in its life: what the cloud says × what the pool says, as one table.

`merged` puts the three things together that are known of a machine (its cloud's word, its pool's and the
ledger's) and brings the record up to date: joined, silent, missing, drained, and when it last had a claim
(`_heard`), from which idle counts. It decides nothing. `cache.MachineCache` does it for all machines.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from operator import attrgetter
from typing import Any

from updraft.core.machines.witnesses import (
    alive,
    doubted,
    is_over,
    last_heard,
    lately,
    noted,
    said_by_id,
    shown,
)
from updraft.core.model import (
    CloudState,
    CollectorView,
    DrainMode,
    DrainRecord,
    Instance,
    Known,
    LedgerView,
    Machine,
    MachineRecord,
    Phase,
    Reason,
    Slot,
    Snapshot,
)
from updraft.core.settings import Policy

OUR_DRAINS = "updraft"  # how the reason of a drain begins that this program asked for
SPOT_NOTICE = "spot-notice"  # the code of a drain that a machine has begun itself, told by its cloud
LEASE = "lease"  # the code of a drain that a machine has begun itself, before its lease ends
LET_GO = "let-go"  # the reason code by which a record ends whose machine stays
_SHORTEST_GAP = 20.0  # a shorter pause between two claims says nothing about waves of jobs
_GAPS_KEPT = 6
_SCHEDDS_KEPT = 16

# What the cloud says ↓, what the pool says →. *never*: no ad, and none was ever seen. *open*, *closing*: an
# ad, the latter of a slot that drains. *left*: no ad any more, after a drain of ours that was atomic.
# *silent*: no ad any more, and nobody asked for that (a busy drain doesn't: its jobs may run on). *unknown*:
# the pool was not seen, or is too young to know.
_POOL_WORDS = ("never", "open", "closing", "left", "silent", "unknown")
_HEARD = {"open": Phase.JOINED, "closing": Phase.DRAINING, "left": Phase.ENDING, "silent": Phase.LOST}
PHASES: Mapping[str, Mapping[str, Phase]] = {
    "unlisted": {"never": Phase.REQUESTED, **_HEARD, "unknown": Phase.REQUESTED},
    "pending": {"never": Phase.BOOTING, **_HEARD, "unknown": Phase.BOOTING},
    "running": {"never": Phase.BOOTING, **_HEARD, "unknown": Phase.JOINED},
    "unknown": {"never": Phase.BOOTING, **_HEARD, "unknown": Phase.BOOTING},
    "stopping": dict.fromkeys(_POOL_WORDS, Phase.ENDING),
    "stopped": dict.fromkeys(_POOL_WORDS, Phase.ENDING),
    "error": dict.fromkeys(_POOL_WORDS, Phase.FAILED),
    "gone": dict.fromkeys(_POOL_WORDS, Phase.GONE),
}

_CLOUD_WORDS = {
    CloudState.PENDING: "pending",
    CloudState.RUNNING: "running",
    CloudState.STOPPING: "stopping",
    CloudState.STOPPED: "stopped",
    CloudState.TERMINATED: "stopping",  # until that was confirmed, see `witnesses`
    CloudState.ERROR: "error",
}


def collector_knows(collector: CollectorView, since: float, now: float, policy: Policy) -> bool:
    """Does the absence of an ad mean anything, of a machine that could have advertised itself `since` then?

    Yes where the collector has run since before that, or is old enough to have heard of every machine again.
    """
    return collector.started <= since or now - collector.started >= policy.timings.collector_age


def merged(
    record: MachineRecord,
    instance: Instance | None,
    slots: tuple[Slot, ...],
    snapshot: Snapshot,
    policy: Policy,
) -> Machine:
    """A machine with its phase, from what the ledger, its cloud and the pool say of it.

    `instance` is the listing's; what the cloud says of its id comes before it. Ads that nobody has renewed
    for long say nothing of it any more, though the collector may keep them.
    """
    seen, slots = slots, lately(slots, snapshot.now, policy)
    fresh = refresh(record, instance, slots, snapshot, policy)
    if fresh.missing_since is not None:
        instance = shown(instance, said_by_id(fresh, snapshot))
    # To hash a state takes longer than to compare it, and most machines run.
    running = instance is not None and instance.state is CloudState.RUNNING
    cloud_word = "running" if running else _cloud_word(fresh, instance, slots, snapshot, policy)
    pool_word = _pool_word(fresh, slots, snapshot, policy)
    if pool_word == "unknown" and fresh.joined_at is None and cloud_word == "running":
        pool_word = "never"
    phase = PHASES[cloud_word][pool_word]
    return Machine(
        fresh.id,
        fresh.cloud,
        phase,
        fresh.worker_class,
        fresh.flavor,
        fresh.generation,
        fresh,
        instance,
        seen,
    )


def _cloud_word(
    record: MachineRecord,
    instance: Instance | None,
    slots: tuple[Slot, ...],
    snapshot: Snapshot,
    policy: Policy,
) -> str:
    if is_over(record, instance, slots, snapshot, policy):
        return "gone"
    if instance is not None:
        return _CLOUD_WORDS[instance.state]
    view = snapshot.clouds.get(record.cloud)
    return "unlisted" if view is not None and isinstance(view.machines, Known) else "unknown"


def _pool_word(record: MachineRecord, slots: tuple[Slot, ...], snapshot: Snapshot, policy: Policy) -> str:
    if slots:
        return "open" if _closing(slots) is None else "closing"
    collector = snapshot.collector
    if not isinstance(collector, Known):
        return "unknown"
    drain = record.drain
    if drain is not None and drain.mode is DrainMode.EMPTY and drain.accepted_at is not None:
        return "left"
    since = record.requested_at if record.joined_at is None else record.joined_at
    if not collector_knows(collector.value, since, snapshot.now, policy):
        return "unknown"
    return "never" if record.joined_at is None else "silent"


def refresh(
    record: MachineRecord,
    instance: Instance | None,
    slots: tuple[Slot, ...],
    snapshot: Snapshot,
    policy: Policy,
) -> MachineRecord:
    """The record with what this look adds: first seen, joined, busy, silent, missing, drained."""
    now = snapshot.now
    record = _not_ahead(record, now)
    changes: dict[str, Any] = {}
    _listed(record, instance, slots, snapshot, changes)
    worked = _last_work(record, snapshot.ledger, now)
    if slots:
        _heard(record, slots, now, worked, changes)
        if doubted(slots, now, policy):
            _unsure(record, slots, changes)
        _served(record, slots, snapshot, changes)
    elif record.joined_at is not None and isinstance(snapshot.collector, Known):
        knows = collector_knows(snapshot.collector.value, record.joined_at, now, policy)
        if knows and record.silent_since is None:
            changes["silent_since"] = now
    if worked is not None and not slots:
        changes["last_claimed_at"] = worked
    fresh = changed(record, changes) if changes else record
    return _drained(fresh, instance, slots, now, policy)


_NAMES = tuple(each.name for each in fields(MachineRecord))
_PLACES = {name: at for at, name in enumerate(_NAMES)}
_values = attrgetter(*_NAMES)


def changed(record: MachineRecord, changes: Mapping[str, Any]) -> MachineRecord:
    """The record with these values: `dataclasses.replace` at about half its cost."""
    values = list(_values(record))
    for name, value in changes.items():
        values[_PLACES[name]] = value
    return MachineRecord(*values)


def _listed(
    record: MachineRecord,
    instance: Instance | None,
    slots: tuple[Slot, ...],
    snapshot: Snapshot,
    changes: dict[str, Any],
) -> None:
    """What its cloud tells, into `changes`: by its listing and, where that has it no more, by its id."""
    if instance is not None and not record.seen_at:
        changes["seen_at"] = snapshot.now
    if instance is not None and alive(instance):
        if record.missing_since is not None:
            changes.update(missing_since=None, gone_since=None)
        if (
            snapshot.jumped_at is not None
            and record.requested_at + _JUMPED < instance.launched_at <= snapshot.now
        ):
            changes["requested_at"] = instance.launched_at
        return
    if record.missing_since is None:
        view = snapshot.clouds.get(record.cloud)
        if view is None or not isinstance(view.machines, Known):
            return
        changes["missing_since"] = view.machines.at
    # Of one that is missing already the cloud may say something by its id while its listing is silent.
    changes.update(noted(record, slots, snapshot))


_JUMPED = 60.0
"""Seconds by which a machine may be younger to its cloud than to us: more comes of a clock that was set.

A time that was noted while it was behind, or had to be taken for one still to come, is far too early once it
is right again: a machine would be older than its lifetime, with all that a deadline allows.
"""

_TIMES = (
    *(
        "requested_at",
        "seen_at",
        "joined_at",
        "last_claimed_at",
        "silent_since",
        "missing_since",
        "gone_since",
    ),
    *("terminate_asked_at", "unanswered_since", "unanswered_at"),
)
_times = attrgetter(*_TIMES)


def _not_ahead(record: MachineRecord, now: float) -> MachineRecord:
    """The record without times that are still to come: the clock was set back since, and nothing is to wait
    until it is as late again.
    """
    found = _times(record)
    drain = record.drain
    late = max([at for at in found if at is not None]) > now + 1.0
    if not late and (drain is None or max(drain.asked_at, drain.accepted_at or 0.0) <= now + 1.0):
        return record
    changes: dict[str, Any] = {
        name: now for name, at in zip(_TIMES, found, strict=True) if at is not None and at > now
    }
    if drain is not None:
        accepted = None if drain.accepted_at is None else min(drain.accepted_at, now)
        changes["drain"] = replace(drain, asked_at=min(drain.asked_at, now), accepted_at=accepted)
    return changed(record, changes)


def _last_work(record: MachineRecord, ledger: LedgerView, now: float) -> float | None:
    """When the last decision was, if it saw a claim on it and that is not in its record."""
    last = ledger.at_work
    return min(last.at, now) if last is not None and record.key in last.machines else None


def _heard(
    record: MachineRecord, slots: tuple[Slot, ...], now: float, worked: float | None, changes: dict[str, Any]
) -> None:
    """What the slots' ads tell, into `changes`; `worked` is when it last had a claim if no record says."""
    starts, busy = None, False
    for slot in slots:
        busy = busy or slot.busy
        if slot.job_starts is not None:
            starts = (starts or 0) + slot.job_starts
    begun = False
    if starts != record.job_starts:
        changes["job_starts"] = starts
        begun = record.job_starts is not None and starts is not None
    if not record.joined_at:
        # One that its cloud had given up, and that comes all the same, hasn't failed.
        changes.update(joined_at=now, end=record.end if record.terminate_asked_at else None)
    if record.silent_since is not None:
        changes["silent_since"] = None
    if worked is not None:
        if not busy:
            changes["last_claimed_at"] = now if begun else worked
    elif busy or begun or record.last_claimed_at is None:
        changes["last_claimed_at"] = now
        # One that is busy with the work of before was not idle meanwhile: its ads were late.
        if begun or (busy and None in (starts, record.job_starts)):
            changes["gaps"] = _gaps(record, now)


def _unsure(record: MachineRecord, slots: tuple[Slot, ...], changes: dict[str, Any]) -> None:
    """Ads that are older than they should be tell of then, not of now, into `changes`."""
    if any(slot.busy for slot in slots):
        changes.pop("gaps", None)
        changes["last_claimed_at"] = last_heard(slots)
    if changes.get("last_claimed_at") == record.last_claimed_at:
        changes.pop("last_claimed_at", None)


def _served(
    record: MachineRecord, slots: tuple[Slot, ...], snapshot: Snapshot, changes: dict[str, Any]
) -> None:
    """Schedds with jobs there that the pool doesn't list, into `changes`: an end has to ask them, too.

    Never fewer: another machine may forge an ad that says that nothing runs on this one.
    """
    for slot in slots:
        for name in slot.schedds:
            if name not in snapshot.schedds and name not in record.other_schedds:
                known = changes.get("other_schedds", record.other_schedds)
                changes["other_schedds"] = (*known, name)[-_SCHEDDS_KEPT:]


def _closing(slots: tuple[Slot, ...]) -> Slot | None:
    """The first slot that drains."""
    for slot in slots:
        if slot.draining:
            return slot
    return None


def _gaps(record: MachineRecord, now: float) -> tuple[float, ...]:
    """The times that it was idle between two claims, with the one that ends now."""
    if record.last_claimed_at is None or now - record.last_claimed_at < _SHORTEST_GAP:
        return record.gaps
    return (*record.gaps, now - record.last_claimed_at)[-_GAPS_KEPT:]


def _drained(
    record: MachineRecord, instance: Instance | None, slots: tuple[Slot, ...], now: float, policy: Policy
) -> MachineRecord:
    """What tags and slots say of a drain, where the ledger doesn't know it (or knows too much).

    An ad that says that it drains for us proves nothing: its startd has yet to say so when it is asked.
    """
    closing = _closing(slots)
    drain = record.drain
    if closing is not None and drain is None and closing.drain_reason.startswith(OUR_DRAINS):
        words = closing.drain_reason.split()
        code = words[1].strip(":") if len(words) > 1 else "found"
        mode = DrainMode.BUSY if any(slot.busy for slot in slots) else DrainMode.EMPTY
        found = Reason(code, f"a drain of ours was found under way: {closing.drain_reason}")
        if code == SPOT_NOTICE:
            found = Reason(code, closing.drain_reason.partition(": ")[2])
        return replace(record, drain=DrainRecord(mode, now, found))
    if drain is None and instance is not None and instance.retiring:
        found = Reason("retiring-tag", "its tag says that it was to be drained")
        return replace(record, drain=DrainRecord(DrainMode.EMPTY, now, found))
    forgotten = (
        drain is not None
        and drain.accepted_at is not None
        and bool(slots)
        and closing is None
        and now - drain.accepted_at > policy.timings.end_patience
    )
    return replace(record, drain=None) if forgotten else record
