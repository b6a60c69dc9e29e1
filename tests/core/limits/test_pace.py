"""How fast machines may join, by what collectors say of themselves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, SMALL
from updraft.core.limits.pace import (
    BUSY,
    CALM,
    ENOUGH,
    FADES,
    FIRST,
    FORGOTTEN,
    QUEUED,
    WINDOW,
    joins_left,
    paced,
    slowed,
)
from updraft.core.model import CollectorLoad, JoinPace, LaunchRecord, LaunchState, LedgerView

ONE = CollectorLoad(told=NOW, started=NOW - 1000, busy=100.0, joined=500, lost=7, dropped=7, queued=60)
TREE = {"c1": ONE, "c2": ONE}
FREE = JoinPace(seen=TREE)
HELD = JoinPace(64, "c1 was busy", NOW, TREE)


def later(
    load: CollectorLoad = ONE, *, after: float = WINDOW, duty: float = 0.2, **more: int
) -> CollectorLoad:
    """Its next word: busy for that part of the time, and so much more of what is counted."""
    counted = {name: getattr(load, name) + number for name, number in more.items()}
    return replace(load, told=load.told + after, busy=load.busy + duty * after, **counted)


def look(pace: JoinPace, *, coming: bool = True, at: float = WINDOW, **loads: CollectorLoad) -> JoinPace:
    return paced(pace, {"c1": later(), "c2": later()} | loads, coming, NOW + at)


SIGNS = [
    ({"duty": BUSY + 0.02}, "c2 was busy 92% of the time"),
    ({"lost": 3}, "c2 lost 3 updates"),
    ({"dropped": 1}, "c2 dropped 1 questions"),
    ({"queued": 1}, "c2 had 61 questions waiting"),
]


@pytest.mark.parametrize(("sign", "why"), SIGNS)
def test_nothing_is_limited_until_there_is_trouble_and_then_half_of_what_was_taken(
    sign: dict[str, float], why: str
) -> None:
    assert look(FREE, c1=later(joined=100)).most is None
    found = look(FREE, c1=later(joined=100), c2=later(joined=40, **sign))  # type: ignore[arg-type]
    assert (found.most, found.why) == (50, why)
    assert "50 are asked for in 10 s" in slowed(found).text


def test_what_was_counted_before_the_last_word_is_over() -> None:
    assert look(FREE, c1=later(joined=900)).most is None


def test_a_peak_that_is_below_what_is_dropped_says_nothing() -> None:
    few = replace(ONE, queued=0)
    assert look(replace(FREE, seen={"c1": few}), c1=replace(later(few), queued=QUEUED - 1)).most is None


def test_a_word_too_soon_after_the_last_one_is_no_news() -> None:
    soon = later(after=WINDOW - 1, duty=1.0, joined=100)
    assert look(FREE, c1=soon) == replace(look(FREE, c1=ONE), calm={"c2": pytest.approx(0.2)})
    assert look(look(FREE, c1=soon), c1=later(duty=1.0, joined=100), at=11).most == 50


def test_trouble_while_nobody_joins_is_not_made_by_joins() -> None:
    drowned = later(duty=1.0)
    assert look(FREE, c1=drowned, coming=False).most is None
    assert look(FREE, c1=drowned, coming=True).most == FIRST


def test_trouble_that_goes_on_is_not_halved_again_and_again() -> None:
    """Those on their way come whatever is decided now: what they show is the same each time."""
    pace, load = FREE, ONE
    for turn in range(1, 6):
        load = later(load, duty=1.0, joined=100)
        pace = paced(pace, {"c1": load, "c2": ONE}, True, NOW + turn * WINDOW)
        assert pace.most == 50


def test_it_grows_up_to_twice_what_is_taken_as_far_as_the_busiest_stays_calm() -> None:
    assert look(HELD, c1=later(joined=63)).most == 126
    assert look(HELD, c1=later(joined=64, duty=CALM * 2 / 3), c2=later(duty=0.5)).most == 76
    assert look(HELD, c1=later(joined=640)).most == 128
    assert look(HELD, c1=later(joined=30)).most == 64
    assert look(HELD, c1=later(joined=63, duty=CALM + 0.01)).most == 64


def test_all_collectors_are_heard_of_before_it_grows() -> None:
    """A child's own ad is older than the top's: its calm is of the time before."""
    once = look(HELD, c1=later(joined=64), c2=ONE)
    assert once.most == 64
    assert look(once, c1=later(later(joined=64), joined=64), at=20).most == 128
    grown = look(HELD, c1=later(joined=64))
    assert (grown.most, grown.calm) == (128, {})


@pytest.mark.parametrize("silent", [{}, {"c1": later(joined=64)}])
def test_of_a_silent_collector_nothing_is_known(silent: dict[str, CollectorLoad]) -> None:
    assert paced(HELD, silent, False, NOW + FADES - 1).most == 64


def test_a_collector_that_is_no_more_is_forgotten() -> None:
    end = FORGOTTEN + 1
    assert paced(HELD, {"c1": later(joined=64 * 362, after=end + WINDOW)}, True, NOW + end).most == 128


def test_a_collector_that_has_just_started_counts_from_there() -> None:
    again = replace(ONE, told=NOW + 5, started=NOW + 3, busy=2.0, joined=200, lost=0)
    once = look(HELD, c1=again, c2=later(joined=64))
    assert once.most == 64
    assert look(once, c1=later(again, joined=70), c2=later(later()), at=20).most == 128


def test_a_limit_that_nothing_speaks_for_any_more_fades() -> None:
    assert look(HELD, coming=False, at=FADES - 1).most == 64
    assert look(HELD, coming=True, at=FADES).most == 64
    assert look(HELD, coming=False, at=FADES).most == 128
    last = look(replace(HELD, most=ENOUGH), coming=False, at=FADES)
    assert (last.most, last.why) == (None, "")
    assert last.seen


def launch(count: int, ago: float, state: LaunchState = LaunchState.ACCEPTED) -> LaunchRecord:
    return LaunchRecord(
        f"K{ago}", "c1", "z1", "small", "on-demand", "w", "img", "g1", count, SMALL, 0.1, NOW - ago, state
    )  # fmt: skip


def test_what_was_asked_for_in_the_last_seconds_is_taken_off() -> None:
    asked = LedgerView((launch(9, WINDOW + 1), launch(5, 3), launch(7, 2, LaunchState.REFUSED)))
    assert joins_left(HELD, asked, NOW) == 59
    assert joins_left(replace(HELD, most=3), asked, NOW) == 0
    assert joins_left(FREE, asked, NOW) is None


loads = st.builds(
    CollectorLoad,
    told=st.floats(NOW, NOW + 60),
    started=st.sampled_from((NOW - 500, NOW - 100)),
    busy=st.floats(0, 500),
    joined=st.integers(0, 10_000),
    lost=st.integers(0, 5),
    dropped=st.integers(0, 5),
    queued=st.integers(0, 60),
)
trees = st.dictionaries(st.sampled_from(("c1", "c2", "c3")), loads)


@given(st.none() | st.integers(FIRST, ENOUGH), trees, trees, st.booleans(), st.floats(0, 9000))
def test_it_never_grows_unasked_nor_falls_below_the_first(
    most: int | None,
    before: dict[str, CollectorLoad],
    now: dict[str, CollectorLoad],
    coming: bool,
    after: float,
) -> None:
    found = paced(JoinPace(most, "it was busy", NOW, before), now, coming, NOW + after)
    assert found.most is None or (found.most >= FIRST and found.why)
    if most is None or found.most == most:
        return
    if found.most is not None and found.most < most:
        assert any(load.told > NOW for load in now.values())
        return
    assert now
    assert found.most is None or found.most <= 2 * most
    for name, load in now.items():
        if name in before and load.told - before[name].told >= WINDOW:
            assert load.lost <= before[name].lost
            assert load.dropped <= before[name].dropped


@given(st.integers(32, 2000), st.integers(0, 30), st.integers(2, 10))
def test_it_settles_where_the_collector_stays_calm_and_nothing_piles_up(
    takes: int, boot: int, times: int
) -> None:
    """Of a collector that takes so many in a window, however large the first burst and however long boots."""
    pace, load = JoinPace(seen={"c": ONE}), ONE
    asked, waiting, queue = [times * takes], 0, []
    turns = 2 * boot + 60
    for turn in range(turns):
        waiting += asked[turn - boot] if turn >= boot else 0
        joined = min(waiting, takes)
        waiting -= joined
        load = later(load, duty=joined / takes, joined=joined)
        pace = paced(pace, {"c": load}, True, NOW + turn * WINDOW)
        asked.append(pace.most or 0)
        queue.append(waiting)
    assert pace.most is not None
    assert CALM * takes * 0.9 - 2 <= pace.most <= max(FIRST, CALM * takes)
    assert queue[-boot - 20 :] == [0] * (boot + 20)
