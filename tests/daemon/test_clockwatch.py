"""The clock on the wall against one that nobody sets."""

import pytest

from updraft.daemon.clockwatch import JUMP, ClockWatch


@pytest.mark.parametrize(("by", "where"), [(3600.0, "3600 s ahead"), (-90.0, "90 s back")])
def test_a_clock_that_is_set_has_jumped(by: float, where: str) -> None:
    times = ClockWatch()
    assert not times.look(1_000_000.0, 5.0)
    assert times.jumped_at is None
    assert times.look(1_000_002.0 + by, 7.0)
    assert times.jumped_at == 1_000_002.0 + by
    assert where in times.reason.text
    assert not times.look(1_000_004.0 + by, 9.0), "and goes on from there"
    assert times.jumped_at == 1_000_002.0 + by


def test_one_that_is_slewed_or_looked_at_late_has_not() -> None:
    times = ClockWatch()
    for wall, steady in ((0.0, 0.0), (2.4, 2.0), (600.0, 598.0), (600.0 + JUMP, 599.0)):
        assert not times.look(wall, steady)
    assert times.jumped_at is None
