"""What is remembered of job groups whose jobs had room that matches and didn't take it, and holds them back.

A machine that nobody takes is idle and goes, and with it the only sign that more of them would not help. So
its group takes part in nothing for a while that doubles each time, unless many more of its jobs run than did
then; and after it with as many jobs as run already, or one where none does, until those that waited then
wait no more.

Or it is the machine's fault: see `doubts`.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from updraft.core.demand.doubts import Machines, more_doubted
from updraft.core.demand.filling import Filling
from updraft.core.demand.room import Demand, Room
from updraft.core.machines.entries import Entry
from updraft.core.model import (
    CollectorView,
    JobGroup,
    Known,
    MachineId,
    Reason,
    Snapshot,
    Standstill,
    Untaken,
)
from updraft.core.reasons import counted, moment
from updraft.core.settings import Policy, Timings

CODE = "not-taken"
"""The code of every reason that says so."""
NO_HELP = "more machines would not help"
_MOST = 30  # doublings: no number grows without end
_STILL = 256  # groups that are remembered for standing still, those that wait longest


@dataclass(frozen=True, slots=True)
class NotTaken:
    """Why a group's jobs don't take the room that there is, and on which machines that is."""

    reason: Reason
    machines: Machines


def not_taking(
    here: Filling, space: Room, staying: Sequence[Entry], queue: Demand, snapshot: Snapshot, policy: Policy
) -> dict[str, NotTaken]:
    """Groups whose jobs had room that matches, all through the negotiation patience, and didn't take it.

    More machines would not help them: a concurrency limit, MAX_JOBS_RUNNING, or a negotiator that is down.
    """
    if not isinstance(snapshot.collector, Known):
        return {}
    patience, now = policy.timings.negotiation_patience, snapshot.now
    late = [group for group in queue.all if now - group.oldest >= patience and group.key in here.placed]
    if not late:
        return {}
    idle_since = {
        one.key: since for one in staying if not one.busy and (since := one.machine.record.last_claimed_at)
    }
    found: dict[str, NotTaken] = {}
    for group in late:
        owners = (space.owner.get(name) for name in here.placed.get(group.key, {}))
        waits = {
            owner: since
            for owner in owners
            if owner is not None and (since := idle_since.get(owner)) is not None and now - since >= patience
        }
        if waits:
            first = min(waits.values())
            began = max(first, group.oldest)
            why = _why_not(now - first, began, snapshot.collector.value, now, patience)
            found[group.key] = NotTaken(why, tuple(sorted(waits)))
    return found


def _why_not(seconds: float, both_at: float, seen: CollectorView, now: float, patience: float) -> Reason:
    """Why room isn't taken that has been there for so long: by the negotiator's will, or its silence.

    It has refused it only in a cycle that began when the room and the jobs were both there (`both_at`). What
    it says of its cycles is true of the moment when it said so: its ad comes every five minutes
    (NEGOTIATOR_UPDATE_INTERVAL), however many cycles it makes in between.
    """
    ended, began = seen.cycle_ended, seen.cycle_began
    heard = now if seen.cycle_heard is None else seen.cycle_heard
    told = f"what it last said of itself is {now - heard:.0f} s old"
    if ended is not None and heard - ended > patience:
        text = f"the negotiator had finished no cycle for {heard - ended:.0f} s; {told}"
        return Reason("no-negotiation", f"{text}: {NO_HELP}")
    if began is not None and began < both_at:
        text = f"no cycle of the negotiator is known that began and ended in these {seconds:.0f} s of room"
        return Reason("no-negotiation", f"{text}; {told}: {NO_HELP}")
    return Reason(CODE, f"room that matches has not been taken for {seconds:.0f} s: {NO_HELP}")


def recalled(
    known: Mapping[str, Untaken],
    queue: Demand,
    now: float,
    timings: Timings,
    there: Container[MachineId] = (),
) -> dict[str, Untaken]:
    """What of it, by group key, still holds; `there` are the machines whose room may be doubted.

    A group is forgotten once no job waits that did then, or its next try had as long as the longest rest. Its
    rest is over where more than twice as many run: between two jobs fewer do, and that is no sign.
    """
    groups = {group.key: group for group in queue.all}
    kept = {}
    for key, one in known.items():
        group = groups.get(key)
        if not one.since <= now <= one.until + timings.cooldown_longest:
            continue
        doubted = tuple(machine for machine in one.doubted if machine in there)
        if group is None and not queue.complete:
            kept[key] = one
        elif group is not None and group.idle > 0 and group.oldest <= one.since:
            taken = now < one.until and group.running > 2 * one.running
            kept[key] = replace(one, until=now if taken else one.until, doubted=doubted)
    return kept


def noticed(
    known: Mapping[str, Untaken], seen: Mapping[str, Machines], queue: Demand, now: float, timings: Timings
) -> dict[str, Untaken]:
    """What is to be remembered now that these groups (`seen`) don't take the room on these machines."""
    found = dict(known)
    running = {group.key: group.running for group in queue.all}
    for key, machines in seen.items():
        last = known.get(key, Untaken(0, now, now))
        if last.until <= now:
            rest = timings.negotiation_patience * 2.0 ** min(last.times + 1, _MOST)
            until = now + min(rest, timings.cooldown_longest)
            ran = max(running[key], last.running)
            doubted = more_doubted(last.doubted, machines)
            found[key] = Untaken(last.times + 1, now, until, ran, doubted, last.still)
    return dict(sorted(found.items()))


def stood_still(
    memory: Mapping[str, Untaken],
    served: Mapping[str, Machines],
    idle: Container[MachineId],
    queue: Demand,
    snapshot: Snapshot,
    timings: Timings,
) -> dict[str, Untaken]:
    """What is to be remembered now that these groups have room on these machines (`served`), or claims there.

    Where none of their jobs has begun for twice the patience, and through a cycle, these are doubted,
    and the group as well where some of them are `idle`.
    """
    now = snapshot.now
    found = {key: replace(one, still=None) for key, one in memory.items()}
    groups = [group for group in queue.all if group.key in served]
    for group in sorted(groups, key=lambda one: (one.oldest, one.key))[:_STILL]:
        one, machines = memory.get(group.key, Untaken(0, now, now)), served[group.key]
        still = _going_on(one.still, group, now)
        if _passed_over(still, snapshot, timings.negotiation_patience):
            still = Standstill(now, group.idle, group.running, group.oldest)
            if any(machine in idle for machine in machines):
                one = noticed({group.key: one}, {group.key: machines}, queue, now, timings)[group.key]
            else:
                one = one if one.times else replace(one, since=now, until=now)
                one = replace(one, doubted=more_doubted(one.doubted, machines))
        found[group.key] = replace(one, still=still)
    return {key: one for key, one in sorted(found.items()) if one.times or one.doubted or one.still}


def _passed_over(still: Standstill, snapshot: Snapshot, patience: float) -> bool:
    """Did the negotiator have time enough, and a whole cycle, since the group stands still?"""
    waited, seen = snapshot.now - still.since, snapshot.collector
    if waited < 2 * patience or not isinstance(seen, Known):
        return False
    return _why_not(waited, still.since, seen.value, snapshot.now, patience).code == CODE


def _going_on(known: Standstill | None, group: JobGroup, now: float) -> Standstill:
    """How long none of its jobs has begun: from now on, where one has."""
    here = Standstill(now, group.idle, group.running, group.oldest)
    if known is None or not known.since <= now:
        return here
    moved = group.running > known.running or group.idle < known.idle or group.oldest > known.oldest
    return here if moved else replace(here, since=known.since)


def resting(memory: Mapping[str, Untaken], now: float) -> dict[str, Reason]:
    """The groups that nothing is bought for now, and why."""
    return {
        key: Reason(CODE, f"{_told(one)}: {NO_HELP}, and it is tried again at {moment(one.until)}")
        for key, one in memory.items()
        if now < one.until
    }


def allowed(
    counts: Iterable[tuple[JobGroup, int]], memory: Mapping[str, Untaken], now: float
) -> tuple[list[tuple[JobGroup, int]], dict[str, tuple[Reason, ...]]]:
    """How many jobs of each group may have room, and why some that are tried have less than they wait for.

    One that rests takes no room: else more and more would be bought for those that need it.
    """
    found: list[tuple[JobGroup, int]] = []
    trying: dict[str, tuple[Reason, ...]] = {}
    for group, count in counts:
        one = memory.get(group.key)
        if one is None or not one.times:
            found.append((group, count))
        elif now >= one.until:
            # With the machine of then still there, the others' room has to be shown to be taken.
            most = max(1, 2 * (group.running - one.running) if one.doubted else group.running)
            found.append((group, min(count, most)))
            if count > most:
                trying[group.key] = (Reason(CODE, f"{_told(one)}: a few machines are tried first"),)
    return found, trying


def _told(one: Untaken) -> str:
    return f"room that matches was not taken, {counted(one.times, 'time')} by {moment(one.since)}"
