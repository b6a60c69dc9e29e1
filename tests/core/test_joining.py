"""How many machines may join at once, by what collectors say of themselves."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from updraft.core.joining import BUSY, CALM, FIRST, QUEUED, CollectorLoad, JoinPace, paced

CALM_ONE = CollectorLoad(started=100.0, duty=0.2)
TREE = {"c1": CALM_ONE, "c2": CALM_ONE}
PACE = JoinPace(64, "")

loads = st.builds(
    CollectorLoad,
    started=st.sampled_from((100.0, 200.0)),
    duty=st.floats(0, 1),
    lost=st.integers(0, 5),
    dropped=st.integers(0, 5),
    queued=st.integers(0, 60),
)
trees = st.dictionaries(st.sampled_from(("c1", "c2", "c3")), loads)


def after(joining: int = 64, **of_c2: float) -> JoinPace:
    return paced(PACE, joining, TREE, TREE | {"c2": replace(CALM_ONE, **of_c2)})


def test_it_doubles_while_all_collectors_have_room() -> None:
    assert after().at_once == 128
    assert "has room" in after().why


def test_what_was_not_used_has_shown_nothing() -> None:
    assert after(joining=63).at_once == 64


@pytest.mark.parametrize(
    ("sign", "why"),
    [
        ({"duty": BUSY + 0.01}, "busy 91%"),
        ({"lost": 3}, "lost 3 updates"),
        ({"dropped": 1}, "dropped 1 questions"),
        ({"queued": QUEUED}, "40 questions waiting"),
    ],
)
def test_a_sign_of_trouble_at_one_collector_halves_it(sign: dict[str, float], why: str) -> None:
    assert after(**sign).at_once == 32
    assert why in after(**sign).why
    assert after(**sign).why.startswith("c2")


def test_what_was_lost_long_ago_is_over() -> None:
    old = {"c1": replace(CALM_ONE, lost=500, dropped=9)}
    assert paced(PACE, 64, old, old).at_once == 128


def test_between_calm_and_busy_it_stays() -> None:
    assert after(duty=CALM + 0.1).at_once == 64


@pytest.mark.parametrize("now", [None, {}, {"c1": CALM_ONE}])
def test_of_a_silent_collector_nothing_is_known(now: dict[str, CollectorLoad] | None) -> None:
    assert paced(PACE, 64, TREE, now).at_once == 64


def test_a_collector_that_has_just_started_counts_from_there() -> None:
    again = {"c1": CALM_ONE, "c2": CollectorLoad(started=200.0, duty=0.1)}
    before = TREE | {"c2": replace(CALM_ONE, lost=7)}
    assert paced(PACE, 64, before, again).at_once == 64
    assert paced(PACE, 64, again, again).at_once == 128


@given(st.integers(FIRST, 10_000), st.integers(0, 10_000), trees, st.none() | trees)
def test_it_never_grows_unasked_nor_falls_below_the_first(
    at_once: int, joining: int, before: dict[str, CollectorLoad], now: dict[str, CollectorLoad] | None
) -> None:
    found = paced(JoinPace(at_once, ""), joining, before, now)
    assert FIRST <= found.at_once <= 2 * at_once
    assert found.why
    if found.at_once > at_once:
        assert now
        assert joining >= at_once
        assert all(load.duty <= CALM for load in now.values())
        assert all(before[name].started == load.started for name, load in now.items())


@given(st.integers(FIRST, 5000))
def test_it_settles_around_what_the_collectors_take(most: int) -> None:
    """A collector that loses updates above `most` joins at once is driven to at least half of that."""
    pace, seen = JoinPace(FIRST, ""), CALM_ONE
    for _ in range(40):
        lost = seen.lost + (pace.at_once > most)
        now = replace(seen, lost=lost)
        pace, seen = paced(pace, pace.at_once, {"c": seen}, {"c": now}), now
    assert most / 2 < pace.at_once <= 2 * most
