"""The page of a report: one HTML file with its figures and plots, which loads nothing from anywhere."""

from collections.abc import Mapping
from typing import Any

from updraft import __version__
from updraft.sim.reports.figures import share
from updraft.sim.reports.month import Found
from updraft.sim.reports.month_words import NOT_KNOWN, at, cost, figures, shown, wait
from updraft.sim.reports.page import environment, needs_installed, text_of

Told = Mapping[str, Any]


def page(told: Told, found: Found) -> str:
    """The whole page as HTML; `told` is the report's document, `found` what that was made of."""
    needs_installed()
    from updraft.sim.reports import month_charts as charts
    from updraft.sim.reports.charts import svg

    would = None if found.would is None else found.would.outcome
    html = environment()
    html.filters |= {"wait": wait, "shown": shown, "moment": at}
    return html.from_string(text_of("month.html")).render(
        version=__version__,
        told=told,
        tiles=_tiles(told),
        figures=figures(told),
        course=svg(charts.over_time(found.really, would, found.past.first), "course"),
        waits=svg(charts.waits(found.really, would), "waits") if told["really"]["jobs"] else "",
        reasons=svg(charts.reasons(told["waits"]), "reasons") if told["waits"] else "",
    )


def _tiles(told: Told) -> list[tuple[str, str, str]]:
    """What is read first: each figure, and beside it the other one."""
    really, would, jobs = told["really"], told["would"], told["jobs"]

    def beside(value: str) -> str:
        return f"with updraft {value} (estimate)"

    def pair(key: str) -> str:
        return "" if would is None else beside(wait(would[key]))

    spent = cost(really)
    return [
        (
            "jobs arrived",
            f"{jobs['arrived']:,}",
            f"{jobs['ended']:,} ended, {jobs['failed']:,} of them failed",
        ),
        ("mean wait", wait(really["mean_wait"]), pair("mean_wait")),
        ("95 % waited at most", wait(really["p95_wait"]), pair("p95_wait")),
        (
            "idle cores",
            "–" if really["idle_share"] is None else share(really["idle_share"]),
            "" if would is None or would["idle_share"] is None else beside(share(would["idle_share"])),
        ),
        (
            "cost",
            spent if spent != NOT_KNOWN else "?",
            beside(cost(would)) if would is not None else "of updraft's own machines (estimate)",
        ),
    ]
