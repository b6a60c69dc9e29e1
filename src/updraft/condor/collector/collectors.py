"""What the collectors of a pool say of themselves: since when they run, and how much they have to do.

The pool's own collector answers for the whole tree: its own ad is made at each question, those of its
children are as old as COLLECTOR_UPDATE_INTERVAL lets them be.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from updraft.condor.advalues import integer, seconds, text, value
from updraft.core.model import CollectorLoad
from updraft.core.slots.kinds import LARGEST
from updraft.errors import PoolError

# Three ads of each machine. `UpdatesLost` itself is of no use: in a child's ad, the collector that has it
# counts under that name how many ads *of the child* were lost.
_LOST = ("UpdatesLost_Master", "UpdatesLost_StartD", "UpdatesLost_Slot")
_JOINED = "UpdatesInitial_Master"
_WANTED = [
    *("Name", "DaemonStartTime", "StatsLastUpdateTime", "StatsLifetime", "MyCurrentTime"),
    *("DaemonCoreDutyCycle", "DroppedQueries", "PendingQueriesPeak", _JOINED, *_LOST),
]


def own_ads(source: Any) -> Sequence[Any]:
    """The ads of all collectors of the tree, as far as they are asked about here."""
    import htcondor2

    return source.query(htcondor2.AdType.Collector, projection=_WANTED)  # type: ignore[no-any-return]


def collector_started(ads: Sequence[Any]) -> float:
    """When the collector started, by its own ad; the youngest of several. PoolError where it doesn't say."""
    starts = [_started(ad) for ad in ads]
    if not starts or not min(starts):
        raise PoolError("the collector doesn't say since when it runs; it has no ad of its own yet")
    return float(max(starts))


def _started(ad: Any) -> int:
    told, lifetime = integer(ad, "StatsLastUpdateTime"), integer(ad, "StatsLifetime")
    if told and lifetime:
        return told - lifetime
    return integer(ad, "DaemonStartTime") or integer(ad, "MyCurrentTime")


def collector_loads(ads: Sequence[Any]) -> Mapping[str, CollectorLoad]:
    """What each has to do, by its name; one whose ad doesn't say when, or how busy it was, is left out:
    nobody waits for its next word.

    RecentDaemonCoreDutyCycle would be of the last 20 minutes (STATISTICS_WINDOW_SECONDS), in which a burst
    doesn't show: from what DaemonCoreDutyCycle says of the whole time, two looks have what was between them.
    """
    found = {}
    for ad in ads:
        told, lifetime = integer(ad, "StatsLastUpdateTime"), integer(ad, "StatsLifetime")
        duty = seconds(value(ad, "DaemonCoreDutyCycle"))
        if told > 0 and lifetime > 0 and duty is not None and 0 <= duty < LARGEST:
            found[text(ad, "Name")] = CollectorLoad(
                told=float(told),
                started=float(_started(ad)),
                busy=duty * lifetime,
                joined=integer(ad, _JOINED),
                lost=sum(integer(ad, name) for name in _LOST),
                dropped=integer(ad, "DroppedQueries"),
                queued=integer(ad, "PendingQueriesPeak"),
            )
    return found
