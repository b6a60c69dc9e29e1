"""Machines whose room is doubted: by their own word jobs would fit there, and none takes it.

What a machine says of itself may be a lie: that it idles, that jobs come and go, that it has a claim that
waits for a job. So its word frees it of nothing here. What counts is what the schedds say of each group: that
it has had room for long, through a whole cycle of the negotiator, and none of its jobs has begun. Then the
machines that the room was on are none for that group, and others are bought: with caution where they idled
(`untaken`), as ever where they had work besides. That holds until the jobs that waited then wait no more.

One that a group doubts which has taken others' room since is no room for anybody while it idles.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from updraft.core.demand.filling import Filling
from updraft.core.demand.room import Demand, Room
from updraft.core.machines.entries import Entry
from updraft.core.model import MachineId, Reason, Untaken
from updraft.core.reasons import counted
from updraft.core.sharing.submitters import short, user_of

Machines = tuple[MachineId, ...]
"""Machines by cloud and id."""

ROOM_IN_DOUBT = "room-in-doubt"
"""The code of a warning of such a machine."""
_DOUBTED = 64  # machines that one group may doubt


def more_doubted(known: Machines, found: Iterable[MachineId]) -> Machines:
    """Both. The first ones stay: where it is more than so many, it isn't theirs."""
    return tuple(dict.fromkeys((*known, *found)))[:_DOUBTED]


def barred(memory: Mapping[str, Untaken], space: Room) -> dict[str, frozenset[str]]:
    """The bins that are no room for a group, by their keys: those of machines that it doubts."""
    doubting = {key: one.doubted for key, one in memory.items() if one.doubted}
    bins: dict[MachineId, list[str]] = {machine: [] for machines in doubting.values() for machine in machines}
    for item in space.joined if doubting else ():
        owner = space.owner.get(item.key)
        if owner in bins:
            bins[owner].append(item.key)
    return {
        key: frozenset(name for machine in machines for name in bins[machine])
        for key, machines in doubting.items()
    }


def at_fault(memory: Mapping[str, Untaken], queue: Demand, staying: Iterable[Entry]) -> dict[MachineId, int]:
    """Machines that are no room for anybody, each with how many groups say so.

    Such a group didn't take this machine's room, more of its jobs run now than ever did then, and the machine
    idles as it did. What it says of itself takes it out of here alone, not out of what that group doubts.
    """
    running = {group.key: group.running for group in queue.all}
    since: dict[MachineId, list[float]] = {}
    for key, one in memory.items():
        if one.times and running.get(key, 0) > one.running:
            for machine in one.doubted:
                since.setdefault(machine, []).append(one.since)
    found = {}
    for entry in staying if since else ():
        at = entry.machine.record.last_claimed_at
        told = [moment for moment in since.get(entry.key, ()) if at is not None and at <= moment]
        if told and not entry.busy:
            found[entry.key] = len(told)
    return found


def serving(
    here: Filling,
    claimed: Mapping[str, int],
    space: Room,
    staying: Sequence[Entry],
    queue: Demand,
    since: float,
) -> dict[str, Machines]:
    """The machines that have room for each group's jobs, or claims that wait for some: of groups that have
    waited since then, and of machines that had joined by then.
    """
    late = [group for group in queue.all if group.oldest <= since]
    late = [group for group in late if group.key in here.placed or claimed.get(group.key)]
    if not late:
        return {}
    old = {one.key for one in staying if (one.machine.record.joined_at or math.inf) <= since}
    waiting: dict[str, set[MachineId]] = {}
    for one in staying if claimed else ():
        for child, _ in one.claims:
            waiting.setdefault(short(child.user), set()).add(one.key)
    found = {}
    for group in late:
        on = {space.owner.get(name) for name in here.placed.get(group.key, {})}
        if claimed.get(group.key):
            on |= waiting.get(short(user_of(group)), set()) | waiting.get(group.owner, set())
        machines = tuple(sorted(old.intersection(on)))
        if machines:
            found[group.key] = machines
    return found


def doubters(memory: Mapping[str, Untaken]) -> dict[MachineId, int]:
    """The machines that are doubted, each with how many groups do."""
    return dict(Counter(machine for one in memory.values() for machine in one.doubted))


def in_doubt_of(found: Reason, groups: int) -> Reason:
    """The reason shown for a machine that so many groups doubt."""
    who = counted(groups, "group")
    return Reason(
        found.code, f"{found.text}; it is no room for {who} of jobs that match and don't begin there"
    )


def fault(machine: str, groups: int) -> Reason:
    """The warning of one that is at fault."""
    who = counted(groups, "group")
    return Reason(
        ROOM_IN_DOUBT,
        f"machine {machine} says that it has room: jobs of {who} that match begin elsewhere and not there. "
        f"It counts as no room; `updraft terminate {machine}` ends it",
    )
