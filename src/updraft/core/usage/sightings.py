"""What one look says of each machine: whether it lives, whether it is in the pool, whose claims it has.

A machine that its cloud leaves out, once it was listed, lives no more; should it be back, it has lived
all the time. What a silent cloud would say isn't known, nor what the pool would while it doesn't answer, is
too young to know of every machine, or has only ads that are older than they should be.
"""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from updraft.core.model import Instance, Known, MachineId, MachineRecord, Plan, Reason, Slot, Snapshot
from updraft.core.model.used import ABSENT, InPool, MachineFacts, Sighting, UserClaim
from updraft.core.settings import Accounting, Policy
from updraft.core.sharing.submitters import group_of

_CLAIMED = ("Claimed", "Preempting")
_ENDED = Reason("ended", "its record says no more")
_VACATE = 120.0  # seconds to save their work that jobs have on our machines, beside their retirement
_Made = tuple[MachineRecord, Instance | None, tuple[Slot, ...], object, Sighting]


class SightingReader:
    """Reads looks; of a machine of which nothing has changed the sighting is the same object as before."""

    def __init__(self) -> None:
        self._made: dict[MachineId, _Made] = {}
        self._policy: Policy | None = None

    def of(
        self, snapshot: Snapshot, plan: Plan, policy: Policy, metered: Iterable[MachineId]
    ) -> dict[MachineId, Sighting]:
        """The sighting of each machine that lives, or ends by this plan, or has ended and is `metered`."""
        last, self._made = self._made if policy == self._policy else {}, {}
        self._policy = policy
        look = _LookIndex(snapshot, policy)
        metered, new = set(metered), {one.key: one for one in plan.records}
        for record in snapshot.ledger.machines:
            key = record.key
            now = new.pop(key, record) if new else record
            if now.ended_at is None or record.ended_at is None or key in metered:
                self._see(key, now, look, last.get(key))
        for key, record in new.items():
            self._see(key, record, look, last.get(key))
        return {key: made[-1] for key, made in self._made.items()}

    def _see(self, key: MachineId, record: MachineRecord, look: "_LookIndex", last: _Made | None) -> None:
        instance, slots = look.instance(key), look.slots.get(key, ())
        lives, knows = look.lives(record, instance), look.knows(record, slots)
        told = (lives, knows)
        if (
            last is not None
            and last[0] is record
            and last[1] is instance
            and last[3] == told
            and len(last[2]) == len(slots)
            and all(one is other for one, other in zip(last[2], slots, strict=True))
        ):
            self._made[key] = last
            return
        facts = look.facts(record)
        pool = in_pool(slots, look.policy) if knows else None
        ended = None if record.ended_at is None else (record.ended_at, record.end or _ENDED)
        self._made[key] = (record, instance, slots, told, Sighting(facts, lives, pool, ended))


class _LookIndex:
    """One look, as its machines are found in it."""

    def __init__(self, snapshot: Snapshot, policy: Policy) -> None:
        self.policy = policy
        self._snapshot = snapshot
        self._owners = {one.name: one.owner for one in snapshot.annexes}
        self._clouds = {
            name: {one.id: one for one in view.machines.value} if isinstance(view.machines, Known) else None
            for name, view in snapshot.clouds.items()
        }
        collector = snapshot.collector
        self._pool = collector.value if isinstance(collector, Known) else None
        self.slots: dict[MachineId, tuple[Slot, ...]] = {}
        for slot in () if self._pool is None else self._pool.slots:
            if slot.instance_id:
                key = slot.machine_id
                self.slots[key] = (*self.slots[key], slot) if key in self.slots else (slot,)

    def instance(self, key: MachineId) -> Instance | None:
        return (self._clouds.get(key[0]) or {}).get(key[1])

    def lives(self, record: MachineRecord, instance: Instance | None) -> bool | None:
        """Whether it lives; None where its cloud doesn't say so."""
        if self._clouds.get(record.cloud) is None or record.ended_at is not None:
            return None
        if instance is None:
            return record.seen_at is None  # what was asked for is there, until it was listed once
        return instance.alive

    def knows(self, record: MachineRecord, slots: tuple[Slot, ...]) -> bool:
        """Whether the pool's word of it is to be believed."""
        if self._pool is None:
            return False
        now, timings = self._snapshot.now, self.policy.timings
        if slots:
            return any(now - slot.heard <= timings.stale_ad for slot in slots)
        return record.joined_at is None or now - self._pool.started >= timings.collector_age

    def facts(self, record: MachineRecord) -> MachineFacts:
        """The facts in its record, and those that the site says of such machines."""
        said, size = self.policy.accounting, record.resources
        annex = record.variant.annex
        score = _score(record.flavor, said)
        billing = self.policy.rule(record.cloud).billing
        return MachineFacts(
            pool=self._snapshot.pool,
            cloud=record.cloud,
            id=record.id,
            region=said.regions.get(record.cloud, ""),
            zone=record.zone,
            flavor=record.flavor,
            market=record.market,
            image=record.image,
            worker_class=record.worker_class,
            annex=annex,
            owner=self._owners.get(annex) or (record.variant.user if annex else ""),
            cores=size.cpus,
            memory=size.memory,
            gpus=size.gpus,
            begin=record.requested_at,
            price=record.price,
            currency=said.currency,
            source=_source(record, said),
            benchmark=said.benchmark if score is not None else "",
            score=score,
            period=billing.period,
            least=billing.least,
        )


def _source(record: MachineRecord, said: Accounting) -> str:
    if record.price is None:
        return ""
    return "site" if record.flavor in said.priced.get(record.cloud, ()) else "cloud"


def _score(flavor: str, said: Accounting) -> float | None:
    return next((score for pattern, score in said.scores.items() if fnmatchcase(flavor, pattern)), None)


# ---------------------------------------------------------------------------------------- what the pool says


def in_pool(slots: tuple[Slot, ...], policy: Policy) -> InPool:
    """The pool's answer about one machine, from all of its slots."""
    if not slots:
        return ABSENT
    claims: dict[UserClaim, list[int]] = {}
    for claim in (claim for slot in slots for claim in _claims(slot, _patience(slot, policy))):
        # Alike claims are one: a machine that is full of one user's jobs has one for each time they began.
        alike = UserClaim(claim.user, claim.group, 0, 0, claim.began, claim.running)
        had = claims.setdefault(alike, [0, 0])
        had[0], had[1] = had[0] + claim.cores, had[1] + claim.gpus
    counted = [slot.begun for slot in slots if slot.begun is not None]
    return InPool(
        joined=True,
        claims=tuple(
            sorted(
                UserClaim(one.user, one.group, cores, gpus, one.began, one.running)
                for one, (cores, gpus) in claims.items()
            )
        ),
        begun=sum(counted) if counted else None,
        started=max(slot.started for slot in slots),
    )


def _patience(slot: Slot, policy: Policy) -> float | None:
    """How long its jobs may run from their begin until a graceful drain takes them; None where unknown."""
    worker = policy.classes.get(slot.kind.split("/", 1)[0])
    return None if worker is None else worker.lifetime + worker.drain_deadline + _VACATE


def _claims(slot: Slot, patience: float | None) -> Iterable[UserClaim]:
    if not slot.partitionable and slot.state in _CLAIMED:
        running = slot.activity != "Idle"
        began = _began(slot.since, slot.retirement, slot.heard, patience)
        name = (slot.user, group_of(slot.user, slot.submitter))
        yield UserClaim(*name, slot.total.cpus, slot.total.gpus, began, running)
    for child in slot.children:
        if child.state in _CLAIMED:
            began = _began(child.since, child.retirement, slot.heard, patience)
            name = (child.user, group_of(child.user, child.submitter))
            size = child.resources
            yield UserClaim(*name, size.cpus, size.gpus, began, child.activity != "Idle")


def _began(since: float, left: float | None, heard: float, patience: float | None) -> float:
    """When a claim's job began: by what is left of its time where that is the machine's; never before the
    claim. 0 where nothing is known."""
    if not since or left is None or patience is None or not 0 <= left <= patience:
        return since
    return max(since, min(heard, heard - (patience - left)))
