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


HOUR = 3600.0


def test_what_is_noted_tells_a_later_process_of_the_same_boot() -> None:
    first = ClockWatch(boot="a")
    first.look(1000.0, 10.0)
    later = ClockWatch(first.note, boot="a")
    assert not later.look(2000.0, 1010.0)
    assert later.jumped_at is None
    late = ClockWatch(first.note, boot="a")
    assert late.look(2000.0 + HOUR, 1010.0)
    assert late.jumped_at == 2000.0 + HOUR
    assert "3600 s ahead" in late.reason.text
    again = ClockWatch(late.note, boot="a")
    assert not again.look(2002.0 + HOUR, 1012.0), "that was told already"
    assert again.jumped_at == 2000.0 + HOUR, "and is remembered"


@pytest.mark.parametrize(("noted", "boot"), [("a", "b"), ("", ""), ("a", "")])
def test_of_another_boot_nothing_is_known(noted: str, boot: str) -> None:
    first = ClockWatch(boot=noted)
    first.look(1000.0, 10.0)
    later = ClockWatch(first.note, boot=boot)
    assert not later.look(90_000.0, 3.0)
    assert later.jumped_at is None


@pytest.mark.parametrize("odd", [{}, {"offset": "x"}, {"offset": None}, {"offset": float("nan")}])
def test_a_note_that_is_none_is_no_news(odd: dict[str, object]) -> None:
    times = ClockWatch({"boot": "a", **odd}, boot="a")
    assert not times.look(90_000.0, 3.0)
    assert times.jumped_at is None


def test_the_note_changes_only_with_a_jump() -> None:
    times = ClockWatch(boot="a")
    times.look(1000.0, 10.0)
    noted = times.note
    times.look(1002.4, 12.0)
    assert times.note == noted
    times.look(5000.0, 14.0)
    assert times.note != noted


@pytest.mark.parametrize(
    ("ahead", "differs", "where"),
    [
        (None, False, ""),
        (60.0, False, ""),
        (-60.0, False, ""),
        (61.0, True, "ahead of"),
        (-61.0, True, "behind"),
    ],
)
def test_a_clock_that_is_not_the_collectors_is_as_one_that_has_jumped(
    ahead: float | None, differs: bool, where: str
) -> None:
    times = ClockWatch()
    times.look(1000.0, 10.0)
    found = times.compare(1000.0, ahead, 60.0)
    assert (found is not None) is differs
    assert times.jumped_at == (1000.0 if differs else None)
    if found is not None:
        assert found.code == "clock-differs"
        assert f"61 s {where} the collector's" in found.text
