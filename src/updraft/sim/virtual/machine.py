"""A simulated worker: its slots, the claims on them, and how it closes."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from updraft.clouds.fake import FakeInstance
from updraft.core.model import Child, DrainMode, Kind, Resources, Slot
from updraft.sim.virtual.schedd import JobState, SimJob

CLAIM_WORKLIFE = 1200.0  # HTCondor's default: a claim takes no new job after so many seconds
UPDATE_INTERVAL = 300.0  # HTCondor's default: a slot ad that doesn't change is sent so often


@dataclass(slots=True)
class Claim:
    """A slot that was given to a user; it may carry one of the user's jobs after the other."""

    owner: str
    schedd: str
    resources: Resources
    name: str
    born: float
    job: SimJob | None = None

    @property
    def running(self) -> bool:
        """True while a job runs in it, False between two."""
        return self.job is not None and self.job.state is JobState.RUNNING


@dataclass(slots=True)
class SimSlot:
    """A partitionable or static slot of a worker."""

    name: str
    kind: Kind
    free: Resources
    claims: list[Claim] = field(default_factory=list)
    job_starts: int = 0
    serial: int = 0

    def share(self, asks: Resources, least: Resources) -> Resources | None:
        """What one more job gets that takes `asks` and needs `least`; None where there is no room.

        As a startd does, the last job gets what is left where that is less than the rounded quantity.
        """
        if not self.kind.partitionable:
            whole = self.kind.resources
            return whole if not self.claims and whole.holds(least) else None
        if not self.free.holds(least):
            return None
        free = self.free
        return Resources(
            min(asks.cpus, free.cpus),
            min(asks.memory, free.memory),
            min(asks.disk, free.disk),
            min(asks.gpus, free.gpus),
        )

    def claim(self, owner: str, schedd: str, share: Resources, now: float) -> Claim:
        """Give this share to this user."""
        self.serial += 1
        prefix, rest = self.name.split("@", 1)
        name = f"{prefix}_{self.serial}@{rest}" if self.kind.partitionable else self.name
        made = Claim(owner, schedd, share, name, now)
        self.claims.append(made)
        self.free = self.free - share
        return made

    def release(self, claim: Claim) -> None:
        """The room is free again."""
        self.claims.remove(claim)
        self.free = self.free + claim.resources


class SimMachine:
    """The part of an instance that is in the pool, from its first ad on."""

    def __init__(self, cloud: str, instance: FakeInstance, kind: Kind, launch_key: str, now: float) -> None:
        self.cloud = cloud
        self.instance = instance
        self.id = instance.id
        self.launch_key = launch_key
        self.started = now
        self.drain: DrainMode | None = None
        self.drain_reason = ""
        self.exited = False
        self.died_at: float | None = None
        self.silent_since: float | None = None
        self.used = 0.0
        self._busy_since: float | None = None
        self._changed_at = now
        self._seen: tuple[float, tuple[Slot, ...]] | None = None
        self.slots = [
            SimSlot(f"slot{number}@{instance.id}@sim", kind, kind.resources)
            for number in range(1, kind.slots + 1)
        ]

    def claims(self) -> Iterator[tuple[SimSlot, Claim]]:
        """Every claim with its slot."""
        for slot in self.slots:
            for claim in list(slot.claims):
                yield slot, claim

    @property
    def busy(self) -> bool:
        """True while anything is claimed, also between two jobs."""
        return any(slot.claims for slot in self.slots)

    @property
    def works(self) -> bool:
        """True while its startd runs."""
        return self.died_at is None and not self.exited

    @property
    def open(self) -> bool:
        """True while it takes new jobs."""
        return self.works and self.drain is None

    def changed(self, now: float) -> None:
        """Something about its slots is different: the collector hears of it at once."""
        self._changed_at, self._seen = now, None
        running = any(claim.running for _, claim in self.claims())
        if running and self._busy_since is None:
            self._busy_since = now
        elif not running:
            self.settle_use(now)

    def settle_use(self, now: float) -> None:
        """Count the seconds in which at least one job ran, up to now."""
        if self._busy_since is not None:
            self.used += now - self._busy_since
            self._busy_since = None

    def heard(self, now: float) -> float:
        """When its ad last reached the collector."""
        last = min(moment for moment in (now, self.died_at, self.silent_since) if moment is not None)
        rounds = (last - self.started) // UPDATE_INTERVAL
        return max(min(self._changed_at, last), self.started + rounds * UPDATE_INTERVAL)

    def next_update(self, now: float) -> float:
        """When its startd next advertises itself if nothing changes."""
        return self.started + ((now - self.started) // UPDATE_INTERVAL + 1) * UPDATE_INTERVAL

    def view(self, now: float) -> tuple[Slot, ...]:
        """Its slots as the collector shows them."""
        heard = self.heard(now)
        if self._seen is None or self._seen[0] != heard:
            self._seen = (heard, tuple(self._slot(slot, heard) for slot in self.slots))
        return self._seen[1]

    def _slot(self, slot: SimSlot, heard: float) -> Slot:
        children = tuple(
            Child("Claimed", "Busy" if claim.running else "Idle", claim.resources, f"{claim.owner}@sim")
            for claim in slot.claims
        )
        shown = Slot(
            name=slot.name,
            instance_id=self.id,
            cloud=self.cloud,
            kind=slot.kind.key,
            total=slot.kind.resources,
            free=slot.free,
            state="Unclaimed",
            activity="Idle",
            heard=heard,
            started=self.started,
            partitionable=slot.kind.partitionable,
            children=children if slot.kind.partitionable else (),
            job_starts=slot.job_starts,
            draining=self.drain is not None,
            drain_reason=self.drain_reason,
            launch_key=self.launch_key,
            address=f"<{self.instance.address}:9618>",
            accepting=self.drain is None,
        )
        if not slot.kind.partitionable and children:
            return replace(shown, state="Claimed", activity=children[0].activity, user=children[0].user)
        if self.drain is not None:
            return replace(shown, state="Drained", activity="Retiring" if self.busy else "Idle")
        return shown
