"""Two witnesses before an end: the one road by which a machine is ended, or given up with its jobs.

A machine is ended, forgotten, or its jobs taken back only where the cloud and the pool both bear it out, or a
deadline that the policy names has passed.

*The cloud's word.* A listing may leave out what lives: a tag was removed, a part of the cloud is down. So a
machine is over only once its cloud, asked for it by its id twice, `missing_confirm` apart, has said
"terminated" or "no such instance", and no ad of it was heard since the first of these answers. Of one that
the pool had closed for good before, one answer is enough: nothing ran there any more (`is_over`).

*The pool's word.* While the cloud shows a machine, or merely leaves it out, it isn't ended (`objection`)
while its ads are renewed, or a job names it under a live lease. Schedds that are silent
object until the longest lease that is known, and never less than `schedd_patience`, has passed since the
machine was last heard of: that is the bound.
"""

from collections.abc import Callable, Sequence
from typing import Any

from updraft.core.model import (
    CloudState,
    DrainMode,
    Instance,
    Known,
    Machine,
    MachineRecord,
    Phase,
    Reason,
    RunningJob,
    Slot,
    Snapshot,
    Unknown,
)
from updraft.core.reasons import spell
from updraft.core.settings import Policy

Said = Known[Instance | None]
"""A cloud's answer about one id: None where it has no such instance."""


def unsettled(snapshot: Snapshot, policy: Policy) -> bool:
    """Has the clock jumped lately? Then no deadline that is told by it has passed for certain.

    For as long as a collector takes to hear of every machine again.
    """
    jumped = snapshot.jumped_at
    return jumped is not None and snapshot.now - jumped < policy.timings.collector_age


# ------------------------------------------------------------------------------------- the cloud's word


def said_by_id(record: MachineRecord, snapshot: Snapshot) -> Said | None:
    """The latest answer of its cloud about this very machine; None where it wasn't asked, or said nothing.

    One of the time before its listing left it out, or before the clock was set back, says nothing of now.
    """
    view = snapshot.clouds.get(record.cloud)
    said = None if view is None else view.found.get(record.id)
    if said is None or said.at > snapshot.now:
        return None
    return None if record.missing_since is not None and said.at < record.missing_since else said


def alive(instance: Instance | None) -> bool:
    """Whether the cloud has it, in whatever state but the last."""
    return instance is not None and instance.state is not CloudState.TERMINATED


def shown(listed: Instance | None, said: Said | None) -> Instance | None:
    """The instance to go by: what the cloud says of its id comes before a listing that has it no more."""
    return said.value if said is not None and not alive(listed) and alive(said.value) else listed


def closed_for_good(record: MachineRecord) -> bool:
    """Has the pool closed it in the way that can't be taken back, when nothing ran on it?"""
    drain = record.drain
    return drain is not None and drain.mode is DrainMode.EMPTY and drain.accepted_at is not None


def in_doubt(record: MachineRecord, snapshot: Snapshot, policy: Policy) -> bool:
    """Whether its cloud is to be asked for it by its id: the listing has it no more, and it was there."""
    if record.missing_since is None:
        return False
    return record.seen_at is not None or _unlisted_for(record, snapshot) >= policy.timings.settle


def noted(record: MachineRecord, slots: Sequence[Slot], snapshot: Snapshot) -> dict[str, Any]:
    """What the cloud's answers about a machine that its listing has no more change in its record."""
    said = said_by_id(record, snapshot)
    if said is None:
        return {}
    if alive(said.value):
        seen = {} if record.seen_at else {"seen_at": snapshot.now}
        return {"gone_since": None, **seen}
    heard = last_heard(slots)
    jumped = snapshot.jumped_at
    if record.gone_since is None or (jumped is not None and record.gone_since < jumped <= said.at):
        return {"gone_since": said.at, "gone_heard": heard}
    if heard > record.gone_heard:  # it was there after that: what the cloud says counts from now on
        return {"gone_since": snapshot.now, "gone_heard": heard}
    return {}


def is_over(
    record: MachineRecord,
    instance: Instance | None,
    slots: Sequence[Slot],
    snapshot: Snapshot,
    policy: Policy,
) -> bool:
    """Whether the cloud's word is that this machine has ended; `instance` is what `shown` made of it."""
    if record.missing_since is None or alive(instance):
        return False
    said = said_by_id(record, snapshot)
    denied = said is not None and not alive(said.value)
    unknown = record.seen_at is None and record.joined_at is None and instance is None and not slots
    if unknown:  # a cloud may be slow to show what was launched
        return denied and _unlisted_for(record, snapshot) >= policy.timings.settle
    ended_empty = closed_for_good(record) or (
        record.joined_at is None and record.terminate_asked_at is not None
    )
    if ended_empty and not slots:
        return instance is not None or denied
    if said is None or not denied or record.gone_since is None:
        return False
    return said.at - record.gone_since >= policy.timings.missing_confirm


def _unlisted_for(record: MachineRecord, snapshot: Snapshot) -> float:
    """Seconds from the first listing that left it out to the latest: one read again proves nothing."""
    view = snapshot.clouds.get(record.cloud)
    if view is None or not isinstance(view.machines, Known) or record.missing_since is None:
        return 0.0
    return view.machines.at - record.missing_since


# -------------------------------------------------------------------------------------- the pool's word


def objection(
    machine: Machine,
    snapshot: Snapshot,
    policy: Policy,
    jobs: Callable[[], Sequence[RunningJob] | None],
) -> Reason | None:
    """Why this machine may not be ended now; None where both witnesses bear it out.

    `jobs` says which jobs run there by the schedds' word, None where not every schedd has said; it is asked
    only where that decides.
    """
    record = machine.record
    collector, view = snapshot.collector, snapshot.clouds.get(machine.cloud)
    foreign = not_ours(machine.instance, policy)
    if foreign is not None:
        return foreign
    if view is None or not isinstance(view.machines, Known):
        return Reason("cloud-silent", f"cloud {machine.cloud} does not answer")
    if _closed_and_empty(machine):
        return None
    if not isinstance(collector, Known):
        return Reason("pool-unknown", "the collector does not answer")
    if not machine.slots and not _vouches(collector.value.started, record, snapshot.now, policy):
        return Reason("pool-young", "the collector is too young to know of every machine")
    if lately(machine.slots, snapshot.now, policy) and not _emptied(machine):
        heard = last_heard(machine.slots)
        ago = f" {max(0.0, snapshot.now - heard):.0f} s ago" if heard > 0 else ", and does not say when"
        return Reason("heard-of", f"the pool heard of it{ago}")
    return _jobs_object(machine, snapshot, policy, jobs())


UNTAGGED = Reason(
    "untagged",
    "it carries the pool's tag no more, so that it isn't touched: write the tag back, or `updraft disown` it",
)
ANOTHERS = "another-pool"


def not_ours(instance: Instance | None, policy: Policy) -> Reason | None:
    """Why this instance isn't ours to touch, though the ledger knows it or its tag names our pool; else None.

    Names of pools are alike by chance, or by a copied configuration; identities are not. One without any is
    ours by its name alone.
    """
    if instance is None or (instance.tagged and instance.identity in ("", policy.identity)):
        return None
    if not instance.tagged:
        return UNTAGGED
    text = f"it carries the identity of another pool of this name ({instance.identity[:40]!r}): not touched"
    return Reason(ANOTHERS, text)


def _closed_and_empty(machine: Machine) -> bool:
    """Has its startd said itself, in one step, that nothing runs there and nothing will?"""
    if not closed_for_good(machine.record) or machine.busy:
        return False
    return not machine.slots or any(slot.draining for slot in machine.slots)


def _emptied(machine: Machine) -> bool:
    """Has its startd taken a drain of ours while jobs ran, and is it empty by its ads?

    These may be another's, made with a stolen token: what the schedds say counts.
    """
    drain = machine.record.drain
    closed = drain is not None and drain.accepted_at is not None and not machine.busy
    return closed and any(slot.draining for slot in machine.slots)


def _vouches(started: float, record: MachineRecord, now: float, policy: Policy) -> bool:
    """Whether a collector that has no ad of it would have one if it were there."""
    since = record.requested_at if record.joined_at is None else record.joined_at
    return started <= since or now - started >= policy.timings.collector_age


def borne_out(machine: Machine, snapshot: Snapshot, policy: Policy) -> bool:
    """Whether the pool bears out that a machine has ended of which its cloud says so; it counts until then.

    A collector that doesn't answer, or that was started anew and hasn't heard of every machine yet, can't.
    Nor can an ad that doesn't say when it was heard (0): that may have been after the cloud's answer.
    """
    record, collector = machine.record, snapshot.collector
    ours = record.terminate_asked_at is not None or closed_for_good(record)
    if ours or record.joined_at is None:
        return True
    if machine.slots:
        return all(slot.heard > 0 for slot in machine.slots)
    if not isinstance(collector, Known) or unsettled(snapshot, policy):
        return False
    return _vouches(collector.value.started, record, snapshot.now, policy)


def lately(slots: tuple[Slot, ...], now: float, policy: Policy) -> tuple[Slot, ...]:
    """Those of the slots whose ads still count: that are no older than `stale_ad`.

    One that doesn't say when it was heard (0) counts: its collector has it, and keeps none for ever.
    """
    since = now - policy.timings.stale_ad
    for slot in slots:
        if slot.heard < since:
            return tuple(one for one in slots if one.heard >= since or one.heard <= 0)
    return slots


# Seconds: where ads come every few of them, a machine that is slow for once isn't doubted.
_DOUBTED_FIRST = 60.0


def doubted_after(policy: Policy) -> float:
    """From which age on an ad, in seconds, is doubted: two of the pool's update intervals.

    Never later than two thirds of `stale_ad`: there is time to ask the schedds before it is judged.
    """
    timings = policy.timings
    return min(max(_DOUBTED_FIRST, 2 * timings.update_interval), timings.stale_ad * 2 / 3)


def doubted(slots: Sequence[Slot], now: float, policy: Policy) -> bool:
    """Whether these slots' ads, though not too old to count, are older than they should be."""
    return 0 < last_heard(slots) < now - doubted_after(policy)


def doubt(machine: Machine, now: float, policy: Policy) -> Reason | None:
    """Why a machine that has joined and is busy by its ads may be so no more; None where nothing says so."""
    slots = machine.slots
    if machine.phase is not Phase.JOINED or not machine.busy or not doubted(slots, now, policy):
        return None
    usual = spell(policy.timings.update_interval)
    text = f"it was busy, but its last ad is {now - last_heard(slots):.0f} s old, and one comes every {usual}"
    return Reason("doubted", f"{text}: the schedds are asked what runs there")


def last_heard(slots: Sequence[Slot]) -> float:
    """When the collector last heard of them, 0 where nobody says it: never the machine's own clock."""
    return max((slot.heard for slot in slots), default=0.0)


def _jobs_object(
    machine: Machine, snapshot: Snapshot, policy: Policy, jobs: Sequence[RunningJob] | None
) -> Reason | None:
    if jobs is None:
        bound = _silent_from(machine, policy) + max(policy.timings.schedd_patience, longest_lease(snapshot))
        asked = not any(isinstance(s, Known) and s.value.running is None for s in snapshot.schedds.values())
        if asked and snapshot.now >= bound and not unsettled(snapshot, policy):
            return None
        return Reason("jobs-unknown", "not every schedd has said what it runs there")
    anyhow = unsettled(snapshot, policy)
    live = list(dict.fromkeys(job.job_id for job in jobs if anyhow or job.lease_until > snapshot.now))
    if not live:
        return None
    return Reason("leased", f"job {', '.join(live[:3])} still has a lease there")


def _silent_from(machine: Machine, policy: Policy) -> float:
    """When it was last heard of, or was last busy by its ads where it was closed before."""
    record = machine.record
    if _emptied(machine) and record.drain is not None:
        return max(record.drain.accepted_at or 0.0, record.last_claimed_at or 0.0)
    # Of one that never joined nobody knows when it was last heard of: not after its boot's deadline, nor
    # after only its tags were known of it.
    return record.silent_since or last_heard(machine.slots) or _joined_latest(record, policy)


def _joined_latest(record: MachineRecord, policy: Policy) -> float:
    worker = policy.classes.get(record.worker_class)
    latest = record.requested_at + (worker.boot_deadline if worker else policy.timings.schedd_patience)
    return max(latest, record.seen_at or 0.0) if record.adopted else latest


def longest_lease(snapshot: Snapshot) -> float:
    """The longest lease, in seconds from when its schedd was asked, of all jobs that are known to run."""
    longest = 0.0
    for source in snapshot.schedds.values():
        answer = source.last if isinstance(source, Unknown) else source
        if answer is not None:
            leases = (job.lease_until - answer.at for job in answer.value.running or ())
            longest = max(longest, *leases, 0.0)
    return longest
