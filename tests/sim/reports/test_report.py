"""The page of a simulation, and the figures that it and the terminal show.

matplotlib is imported where it is tested: it takes longer than all tests here to collect.
"""

import math
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from tests.rigs.sim.outcomes import outcome, run
from updraft.documents import plain
from updraft.errors import UsageError
from updraft.sim.conditions import Conditions
from updraft.sim.reports import page as report
from updraft.sim.reports.figures import duration, money, share
from updraft.sim.runs import best, document
from updraft.sim.workloads.sources import made
from updraft.sim.workloads.workload import burst

JOBS = made(
    "jobs <b>&</b>.swf", burst(40), notes=["a note"], left_out={"have no run time": 3}, sha256="ab" * 32
)


class Page(HTMLParser):
    """Collects what a page would load, its ids, and whether its tags match."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.ids: list[str] = []
        self.used: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("meta", "br", "use", "path", "link"):
            self.open.append(tag)
        self._look(tag, attrs)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._look(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "use"):
            assert self.open.pop() == tag

    def _look(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "action", "data"):
                self.loads += [] if (value or "").startswith("#") else [str(value)]
                self.used.append(str(value).removeprefix("#"))
            if name == "id":
                self.ids.append(str(value))
            if value and (found := re.search(r"url\(#([^)]+)\)", value)):
                self.used.append(found[1])
        assert tag not in ("script", "iframe", "object", "embed", "img", "link")


def parsed(text: str) -> Page:
    page = Page()
    page.feed(text)
    assert page.open == []
    return page


@pytest.mark.slow
def test_a_page_loads_nothing_and_its_parts_are_its_own() -> None:
    runs = [run("a"), run("static", rival=True, wait=10.0, price=1.0)]
    text = report.page(JOBS, Conditions(), runs)
    page = parsed(text)
    assert page.loads == []
    assert "@import" not in text
    assert len(page.ids) == len(set(page.ids))
    assert set(page.used) <= set(page.ids)
    assert "jobs &lt;b&gt;&amp;&lt;/b&gt;.swf" in text
    assert "<b>&</b>.swf" not in text
    assert text.count("<svg") == 2 + len(runs)  # cost and wait, waits, and what went on in each


@pytest.mark.slow
def test_a_page_follows_the_light() -> None:
    text = report.page(JOBS, Conditions(), [run()])
    assert "prefers-color-scheme: dark" in text
    drawn = "".join(re.findall(r"<svg.*?</svg>", text, re.DOTALL))
    assert "var(--ink)" in drawn
    fixed = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", drawn))
    assert not fixed, "a colour that isn't the page's would vanish on the other background"
    light, dark = text.split("prefers-color-scheme: dark")
    for name in set(re.findall(r"var\((--\w+)\)", text)):
        assert f"{name}:" in light
        assert f"{name}:" in dark


@pytest.mark.slow
def test_a_page_says_what_was_simulated() -> None:
    text = report.page(JOBS, Conditions(cycle=30.0), [run()])
    for expected in (
        "a note",
        "3 jobs that have no run time",
        "ab" * 32,
        "30s",
        "1 × c8 (spot)",
        "mean wait",
    ):
        assert expected in text


@pytest.mark.slow
def test_many_settings_make_a_page_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MOST_COURSES", 1)
    runs = [run(f"setting {n}", wait=10.0 * n, price=0.1 + 0.01 * n) for n in range(14)]
    text = report.page(JOBS, Conditions(), runs)
    assert "6 more settings are in the table only" in text
    assert "13 more settings are not drawn" in text
    assert all(
        f"<th>setting {n}</th>" in text or f'<th class="best">setting {n}</th>' in text for n in range(14)
    )


def test_the_legend_hides_no_point() -> None:
    from updraft.sim.reports.charts import costs

    figure = costs([run("a"), run("b", rival=True)], [0])
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert figure.axes[0].get_legend() is None
    assert not legend.get_window_extent().overlaps(figure.axes[0].bbox)


def test_settings_that_left_jobs_are_never_the_best() -> None:
    runs = [run("cheap", price=0.01, wait=1.0, unfinished=3), run("fine"), run("dear", price=9.0, wait=90.0)]
    assert best(runs) == [1]


def test_a_page_is_written_wholly_or_not_at_all(tmp_path: Path) -> None:
    target = tmp_path / "r.html"
    report.write("<html>", target)
    assert target.read_text() == "<html>"
    with pytest.raises(UsageError, match="can't be written"):
        report.write("<html>", tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["r.html"]


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(UsageError, match=r"pip install jinja2 matplotlib"):
        report.needs_installed()


def test_a_document_has_no_number_that_json_has_not() -> None:
    found = document(JOBS, Conditions(), [run(unfinished=40)])
    values = plain(found)["settings"][0]["metrics"].values()
    assert all(value is None or math.isfinite(value) for value in values)


# ------------------------------------------------------------------------------------------------ figures


def test_a_long_line_keeps_its_peaks_and_ends() -> None:
    from updraft.sim.reports.charts import thinned

    at = np.arange(100_000.0)
    values = np.zeros(100_000)
    values[54_321], values[77_777] = 9.0, -4.0
    fewer_at, fewer = thinned(at, values)
    assert len(fewer) < 2000
    assert (fewer.max(), fewer.min()) == (9.0, -4.0)
    assert (fewer_at[0], fewer_at[-1]) == (0.0, 99_999.0)
    assert np.all(np.diff(fewer_at) > 0)
    short = np.arange(5.0)
    assert thinned(short, short)[0] is short


def test_jobs_under_way_are_counted_between_start_and_end() -> None:
    from updraft.sim.reports.charts import under_way

    at, running = under_way(outcome(jobs=3, wait=60.0))
    assert dict(zip(at, running, strict=True))[120.0] == 2  # started at 60 and at 120, none has ended
    assert running[-1] == 0


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "0.0s"),
        (9.96, "10.0s"),
        (59.0, "59s"),
        (3599.9, "1h"),
        (3725, "1h2m"),
        (172800, "2d"),
        (90000, "1d1h"),
    ],
)
def test_durations(seconds: float, said: str) -> None:
    assert duration(seconds) == said


def test_what_is_no_number_is_a_dash() -> None:
    assert duration(math.nan) == share(math.nan) == "–"
    assert money(12345.6) == "12,346"


def test_time_axes() -> None:
    from updraft.sim.reports.charts import time_scale

    assert [time_scale(s)[1] for s in (600, 86400, 864000)] == ["minutes", "hours", "days"]
