"""How fast machines may join, where a collector of the tree says odd things: its ad costs itself."""

from typing import Any

import classad2
import pytest

from updraft.condor.collector.collectors import collector_loads
from updraft.core.limits.pace import after_look
from updraft.core.model import CollectorView, JoinPace, Known, LedgerView

NUMBERS = ("told", "lifetime", "duty", "joined", "lost", "dropped", "queued")
NAMES = dict(
    zip(
        NUMBERS,
        (
            *("StatsLastUpdateTime", "StatsLifetime", "DaemonCoreDutyCycle", "UpdatesInitial_Master"),
            *("UpdatesLost_Slot", "DroppedQueries", "PendingQueriesPeak"),
        ),
        strict=True,
    )
)
VALUES = (
    *('"text"', "error", "undefined", "-1", "-1e300", "1e300", "9223372036854775807", "true", "{1}", "0"),
    *('real("NaN")', 'real("INF")'),
)


def ad(name: str, at: float, busy: float, joined: int, odd: tuple[str, str] | None = None) -> Any:
    """A collector's ad that it sent `at` seconds after its start, of which it was at work for `busy`."""
    made = classad2.ClassAd(
        {
            "Name": name, "StatsLastUpdateTime": int(1000 + at), "StatsLifetime": int(at),
            "DaemonCoreDutyCycle": busy / at, "UpdatesInitial_Master": joined,
        }
    )  # fmt: skip
    if odd is not None:
        made[NAMES[odd[0]]] = classad2.ExprTree(odd[1])
    return made


def pace_after(pace: JoinPace, at: float, *ads: Any) -> JoinPace:
    view = CollectorView((), 0.0, None, None, collector_loads(ads))
    return after_look(pace, Known(view, at), LedgerView(), 1000 + at)


@pytest.mark.parametrize("which", NUMBERS)
@pytest.mark.parametrize("said", VALUES)
def test_one_that_says_odd_things_keeps_nobody_from_slowing_down_and_growing_again(
    which: str, said: str
) -> None:
    """`c` has trouble, then is calm: what is asked for goes down and up, whatever the other one says."""
    alone, beside = JoinPace(), JoinPace()
    looks = [(100, 5.0, 100), (110, 15.0, 180), (120, 16.0, 200), (130, 17.0, 260), (140, 18.0, 400)]
    found = []
    for at, busy, joined in looks:
        sane = ad("c", at, busy, joined)
        strange = ad("odd", at, 1.0, 1, (which, said))
        alone, beside = pace_after(alone, at, sane), pace_after(beside, at, sane, strange)
        found.append((alone.most, beside.most))
    assert [one for one, _ in found][1] == 40
    assert found[-1][0] is not None
    assert found[-1][0] > 40
    assert [other for _, other in found] == [one for one, _ in found]
