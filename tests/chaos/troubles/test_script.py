"""Scripts are drawn from their seed alone: what is left out of one changes nothing else of it."""

from collections import Counter
from dataclasses import replace

import pytest

from tests.chaos.running import DEEDS
from tests.chaos.troubles.script import KINDS, NAMES, SHORT, Happening, Side, side_of, written

SEED = 7
LONG = 3000.0
ROUNDED = 0.06  # seconds: a script has tenths
DEAR = {kind.name for kind in KINDS if kind.dear}


def endless(script: tuple[Happening, ...]) -> list[Happening]:
    """The same happenings, whatever the end of the run makes of how long they last."""
    return [replace(one, lasts=0.0) for one in script]


def test_the_same_seed_gives_the_same_script() -> None:
    assert written(SEED, SHORT) == written(SEED, SHORT)


def test_another_seed_gives_another_script() -> None:
    assert endless(written(SEED, SHORT)) != endless(written(SEED + 1, SHORT))


def test_numbers_that_are_left_out_change_nothing_else() -> None:
    whole = written(SEED, SHORT)
    left_out = {0, 3, whole[-1].number}
    assert written(SEED, SHORT, without=left_out) == tuple(x for x in whole if x.number not in left_out)


def test_a_number_that_there_is_not_leaves_nothing_out() -> None:
    assert written(SEED, SHORT, without=(100_000,)) == written(SEED, SHORT)


def test_only_some_kinds_come_when_they_would_have_come_among_all() -> None:
    kinds = ("jobs-short", "lost-answer")
    some = written(SEED, LONG, only=kinds)
    assert {one.what for one in some} == set(kinds)
    assert some == tuple(one for one in written(SEED, LONG) if one.what in kinds)


def test_numbers_are_left_out_of_some_kinds_too() -> None:
    some = written(SEED, SHORT, only=("jobs-short",))
    assert written(SEED, SHORT, ("jobs-short",), (some[1].number,)) == (some[0], *some[2:])


def test_no_kind_at_all_is_an_empty_script() -> None:
    assert written(SEED, SHORT, only=()) == ()


@pytest.mark.parametrize(("short", "long"), [(60.0, SHORT), (SHORT + 1, LONG)])
def test_a_shorter_run_begins_as_a_longer_one_of_the_same_kinds(short: float, long: float) -> None:
    first, whole = written(SEED, short), written(SEED, long)
    assert endless(first) == endless(whole)[: len(first)]
    assert whole[len(first)].at >= short, "nothing of the shorter time is missing"
    for one, same in zip(first, whole, strict=False):
        assert one.lasts == pytest.approx(min(same.lasts, short - one.at), abs=ROUNDED)


def test_all_is_over_when_the_time_is() -> None:
    assert all(0 <= one.at < SHORT and one.at + one.lasts <= SHORT + ROUNDED for one in written(SEED, SHORT))


def test_happenings_are_numbered_in_the_order_of_time() -> None:
    script = written(SEED, LONG)
    assert [one.number for one in script] == list(range(len(script)))
    assert [one.at for one in script] == sorted(one.at for one in script)


def test_happenings_last_as_long_as_their_kind_may() -> None:
    kinds = {kind.name: kind for kind in KINDS}
    for one in written(SEED, LONG):
        if one.at < LONG - 100:  # later ones end with the run
            assert kinds[one.what].least <= one.lasts <= kinds[one.what].most


def test_dear_kinds_come_in_long_runs_only() -> None:
    assert DEAR, "there are some"
    for seed in range(40):
        assert not DEAR & {one.what for one in written(seed, SHORT)}
    assert {one.what for seed in range(40) for one in written(seed, SHORT + 1)} >= DEAR


def test_every_kind_comes_sooner_or_later() -> None:
    assert {one.what for one in written(SEED, 20 * LONG)} == set(NAMES)


def test_jobs_come_most_often_and_every_side_comes() -> None:
    sides = Counter(side_of(one.what) for one in written(SEED, LONG))
    assert set(sides) == set(Side)
    assert sides.most_common(1)[0][0] is Side.JOBS


def test_each_happening_has_a_number_of_its_own_to_draw_from() -> None:
    draws = [one.draw for one in written(SEED, LONG)]
    assert len(set(draws)) == len(draws)


def test_no_two_kinds_have_one_name() -> None:
    assert len(set(NAMES)) == len(NAMES)


def test_every_kind_has_a_deed_and_every_deed_a_kind() -> None:
    assert sorted(DEEDS) == sorted(NAMES)


def test_every_kind_is_of_a_side_and_others_are_of_none() -> None:
    assert {name: side_of(name) for name in NAMES} == {kind.name: kind.side for kind in KINDS}
    with pytest.raises(KeyError):
        side_of("sunshine")
