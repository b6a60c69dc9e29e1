"""Of what a run fails with, only what it fails by is kept, after no more tries than are allowed."""

from collections.abc import Callable, Collection, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.chaos.shrinking import shrunk

PLENTY = 10_000


def failing_by(guilty: Collection[int], tried: list[list[int]]) -> Callable[[Sequence[int]], bool]:
    """A run that fails where all of `guilty` are in it; each try is noted."""

    def fails(items: Sequence[int]) -> bool:
        tried.append(list(items))
        return set(guilty) <= set(items)

    return fails


@pytest.mark.parametrize(
    "guilty", [{0}, {63}, {31}, {3, 40}, {0, 63}, {10, 11, 12}, {1, 20, 21, 50, 62}], ids=str
)
def test_what_it_fails_by_is_found_in_its_order(guilty: set[int]) -> None:
    assert shrunk(range(64), failing_by(guilty, []), PLENTY) == sorted(guilty)


@given(
    st.integers(1, 40).flatmap(lambda n: st.tuples(st.just(n), st.sets(st.integers(0, n - 1), min_size=1)))
)
def test_whatever_it_fails_by_nothing_else_is_kept(case: tuple[int, set[int]]) -> None:
    count, guilty = case
    assert shrunk(range(count), failing_by(guilty, []), PLENTY) == sorted(guilty)


def test_where_any_of_two_suffices_one_is_kept() -> None:
    few = shrunk(range(32), lambda items: 5 in items or 25 in items, PLENTY)
    assert few in ([5], [25])


def test_where_everything_is_needed_all_is_kept() -> None:
    assert shrunk(range(8), failing_by(range(8), []), PLENTY) == list(range(8))


def test_where_only_odd_numbers_of_them_fail_none_can_be_left_out_alone() -> None:
    few = shrunk(range(9), lambda items: len(items) % 2 == 1, PLENTY)
    assert len(few) % 2 == 1, "what is kept was seen to fail"


@pytest.mark.parametrize("most", [0, 1, 2, 5, 24])
def test_there_are_no_more_tries_than_are_allowed(most: int) -> None:
    tried: list[list[int]] = []
    few = shrunk(range(200), failing_by({3, 77, 150, 199}, tried), most)
    assert len(tried) == most
    assert {3, 77, 150, 199} <= set(few), "what is kept was seen to fail"


def test_what_is_kept_when_the_tries_are_used_up_is_the_last_that_failed() -> None:
    tried: list[list[int]] = []
    few = shrunk(range(64), failing_by({3, 40}, tried), 6)
    assert few == [one for one in tried if {3, 40} <= set(one)][-1]


def test_two_dozen_tries_find_one_of_five_hundred() -> None:
    tried: list[list[int]] = []
    assert shrunk(range(500), failing_by({321}, tried)) == [321]
    assert len(tried) <= 24


def test_it_never_tries_nothing_at_all() -> None:
    tried: list[list[int]] = []
    shrunk(range(20), failing_by((), tried), PLENTY)
    assert all(tried)


@pytest.mark.parametrize("items", [[], [1]])
def test_one_or_none_is_not_tried(items: list[int]) -> None:
    tried: list[list[int]] = []
    assert shrunk(items, failing_by(items, tried)) == items
    assert tried == []
