"""The machines of a fast simulation: what the cloud has made, what is in the pool, and who works on it."""

import heapq
from dataclasses import dataclass, field
from itertools import chain

from updraft.core.model import (
    Child,
    DrainMode,
    Kind,
    Resources,
    Slot,
    Verdict,
)
from updraft.sim.world.bought import Bought
from updraft.sim.world.fastqueue import Group

UPDATE_INTERVAL = 300.0  # HTCondor's default: a slot ad that doesn't change is sent so often

Place = tuple[str, Resources]
"""How a slot is matched and what is free of it: slots that are alike in both are as good as one another."""


@dataclass(slots=True, eq=False)
class Claim:
    """A part of a slot that was given to a user; one job after the other may run in it. `run` counts them.

    `idle` and `busy` are how the collector shows it while it waits for a job and while one runs, `shown` the
    one that holds now.
    """

    room: "Room"
    group: Group
    share: Resources
    name: str
    born: float
    idle: Child
    busy: Child
    shown: Child
    job: int = -1
    run: int = 0
    running: bool = False

    def runs(self, running: bool, now: float) -> None:
        """A job runs in it from now on, or none."""
        self.running = running
        self.room.worker.counts(1 if running else -1, now)
        self.shown = self.busy if running else self.idle
        if not running:
            self.job = -1


@dataclass(slots=True, eq=False)
class Room:
    """A partitionable or static slot."""

    name: str
    worker: "Worker"
    free: Resources
    claims: dict[Claim, None] = field(default_factory=dict)
    starts: int = 0
    serial: int = 0
    place: Place | None = None

    def share(self, verdict: Verdict, least: Resources) -> Resources | None:
        """What one more job gets that needs `least`; None where there is no room."""
        kind, free = self.worker.kind, self.free
        if not kind.partitionable:
            return kind.resources if not self.claims and kind.resources.holds(least) else None
        if not free.holds(least):
            return None
        asks = verdict.asks
        if free.memory >= asks.memory and free.disk >= asks.disk:
            return asks
        # As a startd does, the last job gets what is left where that is less than the rounded quantity.
        memory, disk = min(asks.memory, free.memory), min(asks.disk, free.disk)
        return Resources(asks.cpus, memory, disk, min(asks.gpus, free.gpus), asks.custom)


@dataclass(slots=True, eq=False)
class Worker:
    """One machine, from its request to its end. Times are POSIX seconds, None is never.

    `kind` is what its slots really are; slots of one `matched` are alike to every job: those of its kind,
    unless the pool tells them apart. `at_work` counts the jobs that run on it, and `used` the seconds in
    which any did, up to the last time that none did any more.
    """

    id: str
    bought: Bought
    kind: Kind
    asked_at: float
    address: str = ""
    matched: str = ""
    cloud: str = ""
    launch_key: str = ""
    joined_at: float | None = None
    stop_asked_at: float | None = None
    died_at: float | None = None
    drain: DrainMode | None = None
    drain_reason: str = ""
    exited: bool = False
    listed: bool = False
    silent: bool = False
    heard: float = 0.0
    claims: int = 0
    rooms: list[Room] = field(default_factory=list)
    at_work: int = 0
    used: float = 0.0
    _since: float = 0.0

    def __post_init__(self) -> None:
        self.cloud, self.launch_key = self.bought.cloud, self.bought.launch_key
        self.matched = self.kind.key

    @property
    def works(self) -> bool:
        """True while its startd runs."""
        return self.joined_at is not None and self.died_at is None and not self.exited

    @property
    def open(self) -> bool:
        """True while it takes new jobs."""
        return self.works and self.drain is None

    @property
    def busy(self) -> bool:
        """True while anything is claimed, also between two jobs."""
        return self.claims > 0

    def counts(self, sign: int, now: float) -> None:
        """One job more runs on it, or (negative) one less."""
        if not self.at_work:
            self._since = now
        self.at_work += sign
        if not self.at_work:
            self.used += self._worked(now)

    def used_by(self, now: float) -> float:
        """For how many seconds of its life up to now any job has run on it."""
        return self.used + (self._worked(now) if self.at_work else 0.0)

    def _worked(self, now: float) -> float:
        return max(0.0, (now if self.died_at is None else min(now, self.died_at)) - self._since)

    def joins(self, now: float) -> None:
        """Its startd is there."""
        self.joined_at = self.heard = now
        self.rooms = [
            Room(f"slot{number}@{self.id}@sim", self, self.kind.resources)
            for number in range(1, self.kind.slots + 1)
        ]

    def view(self) -> tuple[Slot, ...]:
        """Its slots as the collector shows them."""
        return tuple([self._slot(room) for room in self.rooms])

    def _slot(self, room: Room) -> Slot:
        kind = self.kind
        children = tuple([claim.shown for claim in room.claims])
        state, activity = "Unclaimed", "Idle"
        if children and not kind.partitionable:
            state, activity = "Claimed", children[0].activity
        elif self.drain is not None:
            state, activity = "Drained", "Retiring" if self.busy else "Idle"
        return Slot(
            name=room.name,
            instance_id=self.id,
            cloud=self.cloud,
            kind=kind.key,
            total=kind.resources,
            free=room.free,
            state=state,
            activity=activity,
            heard=self.heard,
            started=self.joined_at or 0.0,
            partitionable=kind.partitionable,
            children=children if kind.partitionable else (),
            job_starts=room.starts,
            draining=self.drain is not None,
            drain_reason=self.drain_reason,
            launch_key=self.launch_key,
            address=self.address,
            accepting=self.drain is None,
            user=children[0].user if children and not kind.partitionable else "",
        )


class Floor:
    """All machines that are in the pool, and the claims on them.

    `places` are the slots that take new jobs and have a core left, by what is free of them. An ad that
    doesn't change is taken up anew once it is `update` seconds old.
    """

    def __init__(self, update: float = UPDATE_INTERVAL) -> None:
        self._update = update
        self.workers: dict[str, Worker] = {}
        self.places: dict[Place, dict[Room, None]] = {}
        self.claimed_cores = 0
        self.booted_cores = 0
        self._children: dict[tuple[Resources, str], tuple[Child, Child]] = {}
        self._shown: dict[str, tuple[Slot, ...]] = {}
        self._stale: dict[Worker, None] = {}
        self._slots: tuple[Slot, ...] | None = ()
        self._updates: list[tuple[float, int, Worker]] = []
        self._count = 0

    # -------------------------------------------------------------------------------------- coming and going

    def add(self, worker: Worker, now: float) -> None:
        """A machine joins the pool."""
        worker.joins(now)
        self.booted_cores += worker.bought.resources.cpus
        self._list(worker, now)

    def stops(self, worker: Worker) -> None:
        """Its startd runs no more; its ads may still be there."""
        self.booted_cores -= worker.bought.resources.cpus
        self._place(worker)

    def unlist(self, worker: Worker) -> None:
        """The collector has no ad of it any more."""
        worker.listed = False
        if self.workers.pop(worker.id, None) is not None:
            del self._shown[worker.id]
            self._stale.pop(worker, None)
            self._slots = None
            self._place(worker)

    def advertises(self, worker: Worker, now: float) -> None:
        """Its startd advertises itself to a collector that may have no ad of it any more."""
        if worker.works and not worker.silent:
            self._list(worker, now)

    def changed(self, worker: Worker, now: float) -> None:
        """Something about its slots is different: the collector hears of it at once, if of anything."""
        if not worker.silent:
            worker.heard = now
        if worker.listed:
            if not worker.silent:
                self._stale[worker] = None
            self._place(worker)

    def _list(self, worker: Worker, now: float) -> None:
        worker.listed = True
        self.workers[worker.id] = worker
        self._shown[worker.id] = ()
        self.changed(worker, now)
        self._await_update(worker)

    # ------------------------------------------------------------------------------------------ what is seen

    def slots(self, now: float) -> tuple[Slot, ...]:
        """What the collector shows."""
        while self._updates and self._updates[0][0] <= now:
            worker = heapq.heappop(self._updates)[2]
            if worker.works and worker.listed and not worker.silent and worker.joined_at is not None:
                if now - worker.heard >= self._update:
                    worker.heard = now - (now - worker.joined_at) % UPDATE_INTERVAL
                    self._stale[worker] = None
                self._await_update(worker)
        if self._stale or self._slots is None:
            for worker in self._stale:
                self._shown[worker.id] = worker.view()
            self._stale.clear()
            self._slots = tuple(chain.from_iterable(self._shown.values()))
        return self._slots

    def _await_update(self, worker: Worker) -> None:
        self._count += 1
        heapq.heappush(self._updates, (worker.heard + self._update, self._count, worker))

    # ----------------------------------------------------------------------------------------------- claims

    def claim(self, room: Room, group: Group, share: Resources, now: float) -> Claim:
        """Give this share of a slot to the group's owner."""
        room.serial += 1
        prefix, _, rest = room.name.partition("@")
        name = f"{prefix}_{room.serial}@{rest}" if room.worker.kind.partitionable else room.name
        pair = self._children.get((share, group.user))
        if pair is None:
            pair = self._children[share, group.user] = (
                Child("Claimed", "Idle", share, group.user),
                Child("Claimed", "Busy", share, group.user),
            )
        made = Claim(room, group, share, name, now, *pair, shown=pair[0])
        room.claims[made] = None
        room.free = room.free - share
        room.worker.claims += 1
        self.claimed_cores += share.cpus
        self.changed(room.worker, now)
        return made

    def release(self, claim: Claim, now: float) -> None:
        """The room is free again."""
        room = claim.room
        del room.claims[claim]
        room.free = room.free + claim.share
        room.worker.claims -= 1
        self.claimed_cores -= claim.share.cpus
        self.changed(room.worker, now)

    def _place(self, worker: Worker) -> None:
        """Put the machine's slots where they now belong."""
        matched, takes = worker.matched, worker.listed and worker.open
        for room in worker.rooms:
            before = room.place
            if takes and room.free.cpus > 0:
                if before is not None and before[1] is room.free:
                    continue
                room.place = (matched, room.free)
                self.places.setdefault(room.place, {})[room] = None
                if before == room.place:
                    continue
            else:
                room.place = None
            if before is not None:
                mates = self.places[before]
                del mates[room]
                if not mates:
                    del self.places[before]


def may_follow(claim: Claim, group: Group, verdict: Verdict) -> bool:
    """Whether a job of `group` may run in this claim after another: it must match, and fit what was given."""
    return verdict.copies > 0 and claim.share.holds(group.request) > 0


__all__ = ["Claim", "Floor", "Room", "Worker", "may_follow"]
