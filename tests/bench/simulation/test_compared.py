"""The comparison of `make bench`: who beats whom, updraft's own front, and the picture of all."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.bench.rows import Measured, Row, SkippedError, chosen
from tests.bench.simulation import rivals as compared
from tests.bench.simulation.rivals import JUDGED, NAMES, Field, Point, beaten_by, not_worse_than, own_front
from updraft.sim.rivals import RIVALS
from updraft.sim.workloads.sources import made
from updraft.sim.workloads.workload import burst


def ours(cost: float, wait: float, name: str = JUDGED, **others: float) -> Point:
    return Point(name, False, 30.0, cost, wait, wait, **others)  # type: ignore[arg-type]


def theirs(cost: float, wait: float, name: str = "google", **others: float) -> Point:
    return Point(name, True, 60.0, cost, wait, wait, **others)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rival", "counts"),
    [
        (theirs(1.1, 39), True),  # as cheap and as quick: updraft isn't below it in either
        (theirs(1.0, 38), True),
        (theirs(1.1, 38), True),
        (theirs(1.0, 39), True),
        (theirs(1.0, 40), False),  # it pays less, and updraft waits less
        (theirs(1.2, 38), False),  # it waits less, and updraft pays less
        (theirs(1.2, 40), False),
        (theirs(0.5, 1, unfinished=1), False),  # work that wasn't done is no saving
        (ours(1.0, 38, "updraft 2m"), False),  # no rival
    ],
)
def test_a_rival_counts_if_it_pays_no_more_and_waits_no_longer(rival: Point, counts: bool) -> None:
    assert not_worse_than(ours(1.1, 39), [rival]) == ([rival.name] if counts else [])


def test_a_rival_is_beaten_only_in_both() -> None:
    points = [
        ours(1.1, 40, "a"),
        ours(1.3, 20, "b"),
        theirs(1.2, 50, "dear and slow"),
        theirs(1.4, 30, "dear"),
        theirs(1.1, 50, "as cheap"),
        theirs(1.2, 30, "between"),
        theirs(1.0, 99, "undone", unfinished=3),
    ]
    assert beaten_by(points) == {
        "dear and slow": ["a"],
        "dear": ["b"],
        "as cheap": [],
        "between": [],
        "undone": ["a", "b"],
    }


def test_updrafts_front_is_of_its_own_settings_alone() -> None:
    points = [ours(1.3, 20, "b"), ours(1.1, 40, "a"), ours(1.2, 40, "c"), theirs(1.0, 10)]
    assert [one.name for one in own_front(points)] == ["a", "b"]
    assert own_front([ours(1.0, 10, "undone", unfinished=1), ours(1.1, 40, "a")]) == [ours(1.1, 40, "a")]


@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5), st.booleans()), min_size=1, max_size=12))
def test_what_beats_and_what_is_beaten_exclude_each_other(some: list[tuple[int, int, bool]]) -> None:
    points = [
        theirs(cost, wait, f"r{at}") if rival else ours(cost, wait, f"u{at}")
        for at, (cost, wait, rival) in enumerate(some)
    ]
    beaten = beaten_by(points)
    for mine in points:
        if not mine.rival:
            counted = not_worse_than(mine, points)
            assert not any(mine.name in beaten[name] for name in counted)
    front = own_front(points)
    for mine in points:
        if not mine.rival:
            assert any(one.cost <= mine.cost and one.wait <= mine.wait for one in front)


class Played(Field):
    """A field whose simulations are made up."""

    def __init__(self, beside: Path, found: dict[str, Point]) -> None:
        super().__init__(beside, lambda _: None)
        self.found = found
        self.asked: list[str] = []

    def _point(self, trace: str, name: str) -> Point:
        self.asked.append(name)
        return self.found[name]


@pytest.fixture
def found(monkeypatch: pytest.MonkeyPatch) -> dict[str, Point]:
    monkeypatch.setattr(compared, "read", lambda *_: None)
    points = {name: theirs(1.5, 50 + at, name) for at, name in enumerate(NAMES) if name in RIVALS}
    mine = {name: ours(1.1 + at / 100, 40 - at, name) for at, name in enumerate(NAMES) if name not in RIVALS}
    return {**mine, **points}


@pytest.mark.slow
def test_the_row_counts_rivals_and_draws_all_of_them(tmp_path: Path, found: dict[str, Point]) -> None:
    found["csv2"] = theirs(1.0, 1, "csv2")
    found["google"] = theirs(1.0, 1, "google", unfinished=1)
    seen = Played(tmp_path / "figures.json", found).compared("nasa")
    assert seen.value == 1
    assert seen.detail["not_worse_than"][JUDGED] == ["csv2"]
    assert seen.detail["not_beaten"] == ["csv2"]
    assert len(seen.detail["points"]) == len(NAMES)
    text = (tmp_path / "figures-rivals-nasa.svg").read_text()
    for name in NAMES:
        assert (name in text) is (name != "google"), "what wasn't finished has no place in it"


def test_updraft_that_leaves_jobs_undone_is_no_better_than_anyone(
    tmp_path: Path, found: dict[str, Point], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compared, "draw", lambda *_: None)
    found[JUDGED] = ours(0.5, 1, unfinished=1)
    assert Played(tmp_path / "figures.json", found).compared("lcg").value == len(RIVALS)


def test_the_cost_counts_only_at_a_short_wait(tmp_path: Path, found: dict[str, Point]) -> None:
    field = Played(tmp_path / "figures.json", found)
    assert field.over_bound("lcg").value == found[JUDGED].cost
    assert field.asked == [JUDGED], "the others aren't needed for that"
    found[JUDGED] = ours(1.1, 601)
    with pytest.raises(RuntimeError, match="601 s"):
        field.over_bound("lcg")
    found[JUDGED] = ours(1.1, 60, unfinished=2)
    with pytest.raises(RuntimeError, match="2 jobs are undone"):
        field.over_bound("lcg")


def test_all_play_the_same_jobs_each_at_its_own_period() -> None:
    work = made("jobs", burst(12, over=30.0))
    for name in (JUDGED, "google"):
        point = compared.play(name, work)
        assert (point.name, point.rival, point.unfinished) == (name, name in RIVALS, 0)
        assert point.jobs == len(work.arrivals)
        assert point.cost > 1 > 0 < point.wait
        assert point.cycle == (RIVALS[name].cycle if name in RIVALS else compared.CYCLE)


def test_a_trace_that_isnt_there_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UPDRAFT_TRACES", str(tmp_path))
    with pytest.raises(SkippedError, match=r"LCG-2005\.swf\.gz"):
        compared.read("lcg")


def test_rows_that_take_long_come_by_name_alone(tmp_path: Path) -> None:
    quick = Row("quick", "what is quick", 1.0, "s", lambda: Measured(0.5))
    long = Field(tmp_path / "figures.json", lambda _: None).rows()
    table = [quick, *long]
    assert [row.name for row in long] == ["rivals-lcg", "rivals-nasa", "bound-lcg"]
    assert chosen([], table) == [quick]
    assert chosen(["all"], table) == table
    assert chosen(["bound-lcg", "quick"], table) == [quick, long[-1]]
    with pytest.raises(ValueError, match="no such row: slow; there are quick, rivals-lcg"):
        chosen(["slow"], table)


def test_who_waits_many_times_as_long_is_named_beside_the_plot() -> None:
    from updraft.sim.reports.charts import Dot, landscape

    dots = [
        *(Dot(f"d{at}", 1.1 + at / 10, 60.0 + at) for at in range(4)),
        Dot("slow", 1.5, 60_000.0, rival=True),
    ]
    figure = landscape(dots, dots[:1], "jobs")
    (axes,) = figure.axes
    assert "slow (1.50, 1,000 min)" in axes.get_xlabel()
    assert {text.get_text() for text in axes.texts} == {"d0", "d1", "d2", "d3"}
    assert axes.get_ylim()[1] < 10
