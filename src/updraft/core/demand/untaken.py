"""What is remembered of job groups whose jobs had room that matches and didn't take it, and holds them back.

A machine that nobody takes is idle and goes, and with it the only sign that more of them would not help. So
its group takes part in nothing for a while that doubles each time, unless many more of its jobs run than did
then; and after it with as many jobs as run already, or one where none does, until those that waited then
wait no more.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from updraft.core.demand.filling import Filling
from updraft.core.demand.room import Demand, Room
from updraft.core.machines.entries import Entry
from updraft.core.model import CollectorView, JobGroup, Known, Reason, Snapshot, Untaken
from updraft.core.reasons import counted, moment
from updraft.core.settings import Policy, Timings

CODE = "not-taken"
"""The code of every reason that says so."""
NO_HELP = "more machines would not help"
_MOST = 30  # doublings: no number grows without end


def not_taking(
    here: Filling, space: Room, staying: Sequence[Entry], queue: Demand, snapshot: Snapshot, policy: Policy
) -> dict[str, Reason]:
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
    found: dict[str, Reason] = {}
    for group in late:
        waits = [
            since
            for name in here.placed.get(group.key, {})
            if (owner := space.owner.get(name)) is not None and (since := idle_since.get(owner)) is not None
        ]
        if waits and now - min(waits) >= patience:
            began = max(min(waits), group.oldest)
            found[group.key] = _why_not(now - min(waits), began, snapshot.collector.value, now, patience)
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


def recalled(known: Mapping[str, Untaken], queue: Demand, now: float, timings: Timings) -> dict[str, Untaken]:
    """What of it, by group key, still holds.

    A group is forgotten once no job waits that did then, or its next try had as long as the longest rest. Its
    rest is over where more than twice as many run: between two jobs fewer do, and that is no sign.
    """
    groups = {group.key: group for group in queue.all}
    kept = {}
    for key, one in known.items():
        group = groups.get(key)
        if not one.since <= now <= one.until + timings.cooldown_longest:
            continue
        if group is None and not queue.complete:
            kept[key] = one
        elif group is not None and group.idle > 0 and group.oldest <= one.since:
            taken = now < one.until and group.running > 2 * one.running
            kept[key] = replace(one, until=now) if taken else one
    return kept


def noticed(
    known: Mapping[str, Untaken], seen: Collection[str], queue: Demand, now: float, timings: Timings
) -> dict[str, Untaken]:
    """What is to be remembered now that these groups (`seen`) don't take the room that there is."""
    found = dict(known)
    running = {group.key: group.running for group in queue.all}
    for key in seen:
        last = known.get(key, Untaken(0, now, now))
        if last.until <= now:
            rest = timings.negotiation_patience * 2.0 ** min(last.times + 1, _MOST)
            until = now + min(rest, timings.cooldown_longest)
            found[key] = Untaken(last.times + 1, now, until, max(running[key], last.running))
    return dict(sorted(found.items()))


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
        if one is None:
            found.append((group, count))
        elif now >= one.until:
            most = max(1, group.running)
            found.append((group, min(count, most)))
            if count > most:
                trying[group.key] = (Reason(CODE, f"{_told(one)}: a few machines are tried first"),)
    return found, trying


def _told(one: Untaken) -> str:
    return f"room that matches was not taken, {counted(one.times, 'time')} by {moment(one.since)}"
