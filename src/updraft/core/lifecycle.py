"""Where each machine is in its life: what the cloud says × what the pool says, as one table.

`merged` puts the three things together that are known of a machine (its cloud's word, its pool's and the
ledger's) and brings the record up to date: joined, busy, silent, missing, drained. It decides nothing. `roll`
does it for all machines.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from updraft.core.model import (
    CloudState,
    CollectorView,
    DrainMode,
    DrainRecord,
    Instance,
    Known,
    LaunchRecord,
    LedgerView,
    Machine,
    MachineRecord,
    Offer,
    Phase,
    Reason,
    Resources,
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

# What the cloud says ↓, what the pool says →. *never*: no ad, and none was ever seen. *open*, *closing*: an
# ad, the latter of a slot that drains. *left*: no ad any more, after a drain of ours that was atomic.
# *silent*: no ad any more, and nobody asked for that (a busy drain doesn't: its jobs may run on). *unknown*:
# the pool was not seen, or is too young to know.
PHASES: Mapping[str, Mapping[str, Phase]] = {
    "unlisted": {
        "never": Phase.REQUESTED,
        "open": Phase.JOINED,
        "closing": Phase.DRAINING,
        "left": Phase.ENDING,
        "silent": Phase.LOST,
        "unknown": Phase.REQUESTED,
    },
    "pending": {
        "never": Phase.BOOTING,
        "open": Phase.JOINED,
        "closing": Phase.DRAINING,
        "left": Phase.ENDING,
        "silent": Phase.LOST,
        "unknown": Phase.BOOTING,
    },
    "running": {
        "never": Phase.BOOTING,
        "open": Phase.JOINED,
        "closing": Phase.DRAINING,
        "left": Phase.ENDING,
        "silent": Phase.LOST,
        "unknown": Phase.JOINED,
    },
    "unknown": {
        "never": Phase.BOOTING,
        "open": Phase.JOINED,
        "closing": Phase.DRAINING,
        "left": Phase.ENDING,
        "silent": Phase.LOST,
        "unknown": Phase.BOOTING,
    },
    "stopping": dict.fromkeys(("never", "open", "closing", "left", "silent", "unknown"), Phase.ENDING),
    "stopped": dict.fromkeys(("never", "open", "closing", "left", "silent", "unknown"), Phase.ENDING),
    "error": dict.fromkeys(("never", "open", "closing", "left", "silent", "unknown"), Phase.FAILED),
    "gone": dict.fromkeys(("never", "open", "closing", "left", "silent", "unknown"), Phase.GONE),
}

_CLOUD_WORDS = {
    CloudState.PENDING: "pending",
    CloudState.RUNNING: "running",
    CloudState.STOPPING: "stopping",
    CloudState.STOPPED: "stopped",
    CloudState.TERMINATED: "gone",
    CloudState.ERROR: "error",
}


Key = tuple[str, str]
"""A machine's cloud and id."""


@dataclass(frozen=True, slots=True)
class Census:
    """All machines, the adopted among them, and the slots that claim to be ours and are explained by none."""

    machines: tuple[Machine, ...]
    adopted: tuple[Machine, ...]
    unexplained: tuple[Slot, ...]
    site_slots: tuple[Slot, ...]


def collector_knows(collector: CollectorView, since: float, now: float, policy: Policy) -> bool:
    """Does the absence of an ad mean anything, of a machine that could have advertised itself `since` then?

    Yes where the collector has run since before that, or is old enough to have heard of every machine again.
    """
    return collector.started <= since or now - collector.started >= policy.timings.collector_age


def adopt(instance: Instance, snapshot: Snapshot) -> MachineRecord:
    """The record of an instance that carries our tag and that the ledger doesn't know."""
    return Origins(snapshot).record(instance)


class Origins:
    """Where instances without a record come from: the launches that are known, and what is on sale."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._now = snapshot.now
        self._launches: dict[str, LaunchRecord] = {}
        for launch in snapshot.ledger.launches:
            self._launches.setdefault(launch.key, launch)
        self._offers: dict[tuple[str, str, str], Offer] = {}
        for offer in snapshot.offers:
            self._offers.setdefault((offer.cloud, offer.flavor, offer.market), offer)

    def record(self, instance: Instance) -> MachineRecord:
        """What is known of it: by its launch, else by an offer of its flavor, else nothing."""
        launch = self._launches.get(instance.launch_key)
        worth = launch or self._offers.get((instance.cloud, instance.flavor, instance.market))
        return MachineRecord(
            id=instance.id,
            cloud=instance.cloud,
            launch_key=instance.launch_key,
            worker_class=instance.worker_class,
            flavor=instance.flavor,
            generation=instance.generation,
            requested_at=launch.asked_at if launch else instance.launched_at,
            resources=worth.resources if worth else Resources(),
            zone=instance.zone,
            market=instance.market,
            image=instance.image,
            price=worth.price if worth else None,
            seen_at=self._now,
            adopted=launch is None,
            variant=launch.variant if launch else instance.variant,
        )


def by_machine(
    slots: Iterable[Slot],
    records: Mapping[Key, MachineRecord],
    ended: Mapping[Key, MachineRecord],
    instances: Mapping[Key, Instance],
) -> tuple[dict[Key, tuple[Slot, ...]], list[Slot], list[Slot]]:
    """Slots by the machine that explains them; slots of the site's own; slots that nobody explains."""
    explained: dict[Key, tuple[Slot, ...]] = {}
    site: list[Slot] = []
    strangers: list[Slot] = []
    launches: set[str] | None = None
    for slot in slots:
        if not slot.instance_id:
            if slot.launch_key and launches is None:
                launches = {record.launch_key for record in records.values()}
            # With a token of ours, and it says that it is of another pool.
            lies = bool(slot.launch_key) and slot.launch_key in (launches or ())
            (strangers if lies else site).append(slot)
            continue
        key = (slot.cloud, slot.instance_id)
        ours = instances.get(key) or records.get(key)
        past = None if ours is not None else ended.get(key)
        if ours is not None and ours.launch_key == slot.launch_key:
            explained[key] = (*explained[key], slot) if key in explained else (slot,)
        elif past is not None and past.end is not None and past.end.code == LET_GO:
            site.append(slot)
        elif past is None or past.launch_key != slot.launch_key:
            strangers.append(slot)
    return explained, site, strangers


def merged(
    record: MachineRecord,
    instance: Instance | None,
    slots: tuple[Slot, ...],
    snapshot: Snapshot,
    policy: Policy,
) -> Machine:
    """A machine with its phase, from what the ledger, its cloud and the pool say of it."""
    fresh = refresh(record, instance, slots, snapshot, policy)
    # To hash a state takes longer than to compare it, and most machines run.
    running = instance is not None and instance.state is CloudState.RUNNING
    cloud_word = "running" if running else _cloud_word(fresh, instance, snapshot, policy)
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
        slots,
    )


def _cloud_word(record: MachineRecord, instance: Instance | None, snapshot: Snapshot, policy: Policy) -> str:
    if instance is not None:
        return _CLOUD_WORDS[instance.state]
    view = snapshot.clouds.get(record.cloud)
    if view is None or not isinstance(view.machines, Known):
        return "unknown"
    if record.missing_since is None:
        return "unlisted"
    patience = policy.timings.settle if record.seen_at is None else policy.timings.missing_confirm
    return "gone" if snapshot.now - record.missing_since >= patience else "unlisted"


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
    changes: dict[str, Any] = {}
    _listed(record, instance, snapshot, changes)
    worked = _last_work(record, snapshot.ledger)
    if slots:
        _heard(record, slots, now, worked, changes)
    elif record.joined_at is not None and isinstance(snapshot.collector, Known):
        knows = collector_knows(snapshot.collector.value, record.joined_at, now, policy)
        if knows and record.silent_since is None:
            changes["silent_since"] = now
    if worked is not None and not slots:
        changes["busy_at"] = worked
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
    record: MachineRecord, instance: Instance | None, snapshot: Snapshot, changes: dict[str, Any]
) -> None:
    """What its cloud tells, into `changes`."""
    if instance is not None:
        if not record.seen_at:
            changes["seen_at"] = snapshot.now
        if instance.state is CloudState.TERMINATED:
            if not record.missing_since:
                changes["missing_since"] = snapshot.now
        elif record.missing_since is not None:
            changes["missing_since"] = None
    elif record.missing_since is None:
        view = snapshot.clouds.get(record.cloud)
        if view is not None and isinstance(view.machines, Known):
            changes["missing_since"] = snapshot.now


def _last_work(record: MachineRecord, ledger: LedgerView) -> float | None:
    """When the last decision was, if it saw a claim on it and that is not in its record."""
    last = ledger.at_work
    return last.at if last is not None and (record.cloud, record.id) in last.machines else None


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
        changes["joined_at"] = now
    if record.silent_since is not None:
        changes["silent_since"] = None
    if worked is not None:
        if not busy:
            changes["busy_at"] = now if begun else worked
    elif busy or begun or record.busy_at is None:
        changes["busy_at"] = now
        if busy or begun:
            changes["gaps"] = _gaps(record, now)


def _closing(slots: tuple[Slot, ...]) -> Slot | None:
    """The first slot that drains."""
    for slot in slots:
        if slot.draining:
            return slot
    return None


def _gaps(record: MachineRecord, now: float) -> tuple[float, ...]:
    """The times that it was idle between two claims, with the one that ends now."""
    if record.busy_at is None or now - record.busy_at < _SHORTEST_GAP:
        return record.gaps
    return (*record.gaps, now - record.busy_at)[-_GAPS_KEPT:]


def _drained(
    record: MachineRecord, instance: Instance | None, slots: tuple[Slot, ...], now: float, policy: Policy
) -> MachineRecord:
    """What tags and slots say of a drain, where the ledger doesn't know it (or knows too much)."""
    closing = _closing(slots)
    drain = record.drain
    if closing is not None and drain is None and closing.drain_reason.startswith(OUR_DRAINS):
        words = closing.drain_reason.split()
        code = words[1].strip(":") if len(words) > 1 else "found"
        mode = DrainMode.BUSY if any(slot.busy for slot in slots) else DrainMode.EMPTY
        found = Reason(code, f"a drain of ours was found under way: {closing.drain_reason}")
        if code == SPOT_NOTICE:
            found = Reason(code, closing.drain_reason.partition(": ")[2])
        return replace(record, drain=DrainRecord(mode, now, found, accepted_at=now))
    if closing is not None and drain is not None and drain.accepted_at is None:
        return replace(record, drain=replace(drain, accepted_at=now))
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
