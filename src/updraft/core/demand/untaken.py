"""What is remembered of job groups whose jobs had room that matches and didn't take it, and holds them back.

A machine that nobody takes is idle and goes, and with it the only sign that more of them would not help. So
its group takes part in nothing for a while that doubles each time, unless many more of its jobs run than did
then; and after it with as many jobs as run already, or one where none does, until those that waited then
wait no more.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from updraft.core.demand.room import Demand
from updraft.core.model import JobGroup, Reason, Untaken
from updraft.core.reasons import counted, moment
from updraft.core.settings import Timings

CODE = "not-taken"
"""The code of every reason that says so."""
NO_HELP = "more machines would not help"
_MOST = 30  # doublings: no number grows without end


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
