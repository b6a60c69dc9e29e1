"""Machines of a simulated pool that say that they have room, and never take a job: workers of a thief's."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from enum import StrEnum

from updraft.condor.base import PoolSlots
from updraft.core.model import Child, DrainMode, Resources, Slot
from updraft.errors import PoolTimeout
from updraft.sim.engine import Engine
from updraft.sim.world.fleet import Worker

ONE = Resources(1, 128, 1024)
_SPELL = 150.0  # seconds of a spell in which one that comes and goes says that it idles
_WORK = 30.0


class Lie(StrEnum):
    """What it says of itself."""

    IDLE = "idle"  # that nothing runs on it
    COMES_AND_GOES = "comes and goes"  # that a job runs now and then
    BUSY = "busy"  # that a small job runs all the time
    HUGE = "huge"  # that it has a thousand times the room that was sold
    CLAIMED = "claimed"  # that all of it is claimed by whoever waits, and will take a job at once


class Liars:
    """Makes the first `count` machines that join `sim` such ones. They don't answer when they are drained."""

    def __init__(self, sim: Engine, count: int, lie: Lie, owners: Sequence[str] = ()) -> None:
        self.ids: set[str] = set()
        self._lie, self._count, self._owners = lie, count, owners
        self._pool, floor = sim.pool, sim.pool.life.floor
        self._slots, self._place, self._drain = sim.pool.slots, floor._place, sim.pool.drain
        self._places = floor.places
        sim.pool.slots = self.slots  # type: ignore[method-assign]
        sim.pool.drain = self.drain  # type: ignore[method-assign]
        floor._place = self.place  # type: ignore[method-assign]

    def place(self, worker: Worker) -> None:
        """The negotiator may match what it likes to these: nothing ever begins there."""
        if len(self.ids) < self._count:
            self.ids.add(worker.id)
        self._place(worker)
        for room in worker.rooms if worker.id in self.ids else ():
            if room.place is not None:
                del self._places[room.place][room]
                if not self._places[room.place]:
                    del self._places[room.place]
                room.place = None

    def drain(self, slots: Sequence[Slot], mode: DrainMode, reason: str, deadline: float) -> None:
        """Silence."""
        if {slot.instance_id for slot in slots} & self.ids:
            raise PoolTimeout("it doesn't answer")
        self._drain(slots, mode, reason, deadline)

    def slots(self, deadline: float) -> PoolSlots:
        """What the collector has, with what these say."""
        seen = self._slots(deadline)
        told = tuple(self._told(slot) if slot.instance_id in self.ids else slot for slot in seen.view.slots)
        return replace(seen, view=replace(seen.view, slots=told))

    def _told(self, slot: Slot) -> Slot:
        now = self._pool._agenda.now
        turn, into = divmod(now, _SPELL + _WORK)
        slot = replace(slot, heard=now)
        if self._lie is Lie.HUGE:
            huge = Resources(*(1000 * one for one in (slot.free.cpus, slot.free.memory, slot.free.disk)))
            return replace(slot, free=huge, total=huge)
        if self._lie is Lie.CLAIMED:
            owners = [f"{owner}@pool" for owner in self._owners]
            children = tuple(Child("Claimed", "Idle", slot.total, owner) for owner in owners)
            return replace(slot, children=children, free=Resources())
        if self._lie is Lie.BUSY or (self._lie is Lie.COMES_AND_GOES and into >= _SPELL):
            return replace(slot, children=(Child("Claimed", "Busy", ONE, "eve@pool"),), job_starts=int(turn))
        return replace(slot, job_starts=int(turn)) if self._lie is Lie.COMES_AND_GOES else slot


def honest(sim: Engine, liars: Collection[str]) -> int:
    """How many other machines of the pool there are now."""
    return sum(one.id not in liars for site in sim.sites.values() for one in site.alive(sim.policy.pool))
