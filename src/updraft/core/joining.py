"""How many machines may be joining at once: as many as the collectors take, which they themselves tell.

Each join costs a collector a fresh session, so that a burst can drown it, and with it the updates of those
that are there already. What it takes is not known beforehand: it is tried, twice as many at a time, and
halved at the first sign that it was too much. Two looks at each collector's own ad are compared.

Nothing calls this yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass

FIRST = 16
"""Machines that may always join at once: no collector has trouble with so few."""

BUSY, CALM = 0.9, 0.6
"""Duty cycles: a collector that is above the first falls behind, one below the second has room."""

QUEUED = 40
"""Questions that waited at once: at 50 (COLLECTOR_QUERY_WORKERS_PENDING) the next are dropped."""


@dataclass(frozen=True, slots=True)
class CollectorLoad:
    """One look at a collector's own ad; counts are since it started (DaemonStartTime).

    `duty` is its RecentDaemonCoreDutyCycle (0 to 1), `lost` UpdatesLost, `dropped` DroppedQueries,
    `queued` the most questions that waited at once (PendingQueriesPeak of the recent past).
    """

    started: float
    duty: float
    lost: int = 0
    dropped: int = 0
    queued: int = 0


@dataclass(frozen=True, slots=True)
class JoinPace:
    """So many machines may be on their way into the pool at once, and why so many."""

    at_once: int
    why: str


def paced(
    pace: JoinPace,
    joining: int,
    before: Mapping[str, CollectorLoad],
    now: Mapping[str, CollectorLoad] | None,
) -> JoinPace:
    """The pace after another look at all collectors of the tree, `joining` machines having been on their way.

    Never less than FIRST. It grows only where it was made use of and every collector, seen twice since it
    started, has room: of one that doesn't answer (`now` is None, or lacks one of `before`) nothing is known.
    """
    if not now or before.keys() - now.keys():
        return JoinPace(pace.at_once, "a collector doesn't tell how it is")
    for name, load in sorted(now.items()):
        if trouble := _trouble(before.get(name), load):
            return JoinPace(max(pace.at_once // 2, FIRST), f"{name} {trouble}")
    unknown = [name for name, load in now.items() if not _same(before.get(name), load)]
    if unknown:
        return JoinPace(pace.at_once, f"{min(unknown)} has just started")
    busiest = max(load.duty for load in now.values())
    if joining < pace.at_once or busiest > CALM:
        return JoinPace(pace.at_once, f"the busiest collector is at {busiest:.0%}")
    return JoinPace(max(2 * pace.at_once, FIRST), f"the busiest collector is at {busiest:.0%} and has room")


def _same(before: CollectorLoad | None, now: CollectorLoad) -> bool:
    return before is not None and before.started == now.started


def _trouble(before: CollectorLoad | None, now: CollectorLoad) -> str:
    """What shows that a collector has too much to do; what it counted before its last look is over."""
    if now.duty > BUSY:
        return f"is busy {now.duty:.0%} of the time"
    if now.queued >= QUEUED:
        return f"had {now.queued} questions waiting"
    if before is None or before.started != now.started:
        return ""
    if now.lost > before.lost:
        return f"lost {now.lost - before.lost} updates"
    return f"dropped {now.dropped - before.dropped} questions" if now.dropped > before.dropped else ""
