"""What has not changed from look to look is the same object; what is in a list is never another's value."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import NOW, instance, slot
from updraft.core.model import CloudView, CollectorView, Known, Reason, Unknown
from updraft.observe.same import Same, SameSources

pairs = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=6)


@given(st.lists(pairs, max_size=5))
def test_a_list_keeps_its_values_and_its_places(looks: list[list[tuple[int, int]]]) -> None:
    same: Same[list[int]] = Same(lambda one: one[0])
    for look in looks:
        found = [list(one) for one in look]
        made = same.of(found)
        assert [tuple(one) for one in made] == look
        assert len({id(one) for one in made}) == len(look), "one object stands for one thing"


def test_what_is_equal_is_the_object_of_the_last_look() -> None:
    same: Same[list[int]] = Same(lambda one: one[0])
    first = same.of([[1, 1], [2, 2]])
    assert same.of([[1, 1], [2, 2]]) is first
    moved = same.of([[2, 2], [1, 5]])
    assert moved[0] is first[1]
    assert moved[1] == [1, 5]


def test_sources_that_answer_are_compared_and_silent_ones_left() -> None:
    sources = SameSources()

    def look(at: float, heard: float) -> tuple[CollectorView, tuple[object, ...]]:
        slots = (slot("i-1"), replace(slot("i-2"), heard=heard))
        pool = sources.collector(Known(CollectorView(slots, NOW), at))
        cloud = sources.cloud("c1", CloudView(Known((instance("i-1"),), at), Known((), at), Known(None, at)))  # type: ignore[arg-type]
        assert isinstance(pool, Known)
        assert isinstance(cloud.machines, Known)
        assert (pool.at, cloud.machines.at) == (at, at)
        return pool.value, cloud.machines.value

    (first, ones), (second, others) = look(1.0, 5.0), look(2.0, 6.0)
    assert second.slots[0] is first.slots[0]
    assert second.slots[1].heard == pytest.approx(6.0)
    assert others is ones
    gone: Unknown[CollectorView] = Unknown(Reason("timeout", "no answer"), 3.0)
    assert sources.collector(gone) is gone
    assert look(4.0, 6.0)[0].slots[1] is second.slots[1]
