"""Plots of a report: what really was, and beside it what would have been. Needs matplotlib."""

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from updraft.sim.reports.charts import DAY, HOUR, INK, MINUTE, MUTED, SERIES, STYLE, shortened, thinned
from updraft.sim.reports.month_words import shown
from updraft.sim.world.outcome import Floats, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_BLUE, _ORANGE = SERIES[:2]
REALLY, WOULD = "really", "updraft would have (estimate)"
MOST_REASONS = 8
_LOOK: Any = {**STYLE, "text.parse_math": False}  # users' and clouds' words are no formulas
_STEPS = (10 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR, DAY, 2 * DAY, 7 * DAY)
_TICKS = 9


def over_time(really: Outcome, would: Outcome | None, begins: float) -> Figure:
    """Jobs that wait and cores, over the days; `begins` is the time of the first look (POSIX)."""
    with mpl.rc_context(_LOOK):
        costs = would is not None and bool((would.series.cost > 0).any())
        figure = Figure(figsize=(9.2, 7.8 if costs else 6.0))
        rows = figure.subplots(3 if costs else 2, 1, sharex=True)
        _waiting(rows[0], really, would)
        _cores(rows[1], really, would)
        if would is not None and costs:
            _spent(rows[2], would)
        for axes in rows:
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, max(really.ended, 1.0))
            axes.margins(y=0.08)
        _days(rows[-1], begins, really.ended)
        figure.align_ylabels(rows)
    return figure


def waits(really: Outcome, would: Outcome | None) -> Figure:
    """Which share of the jobs had begun after how long a wait."""
    with mpl.rc_context(_LOOK):
        figure = Figure(figsize=(9.2, 3.5))
        axes = figure.subplots()
        longest = MINUTE
        sides: Sequence[tuple[Outcome | None, str, str]] = ((really, _BLUE, REALLY), (would, _ORANGE, WOULD))
        for made, colour, name in sides:
            if made is None or not len(made.jobs):
                continue
            waited = np.sort(made.jobs.first_start - made.jobs.submitted)
            waited = waited[~np.isnan(waited)]
            part = np.arange(1, len(waited) + 1) / len(made.jobs) * 100
            axes.step(*thinned(np.maximum(waited, 1.0), part), where="post", color=colour, label=name)
            longest = max(longest, float(waited.max(initial=1.0)))
        _log_of_time(axes, longest)
        axes.set_ylim(0, 101)
        axes.set_ylabel("% of the jobs")
        axes.set_title("Jobs that had begun after a wait of at most …")
        if would is not None:
            axes.legend(loc="lower right")
    return figure


def reasons(rows: Iterable[Mapping[str, Any]]) -> Figure:
    """For how many hours, summed over jobs, jobs waited for what."""
    sums: dict[str, float] = {}
    for row in rows:
        sums[row["code"]] = sums.get(row["code"], 0.0) + row["job_hours"]
    largest = sorted(sums.items(), key=lambda one: -one[1])[:MOST_REASONS][::-1]
    with mpl.rc_context(_LOOK):
        figure = Figure(figsize=(9.2, 0.9 + 0.34 * max(2, len(largest))))
        axes = figure.subplots()
        hours = [amount for _, amount in largest]
        axes.barh(range(len(largest)), hours, color=_BLUE, alpha=0.75, height=0.62)
        axes.set_yticks(range(len(largest)), [shortened(shown(code), 28) for code, _ in largest], color=INK)
        for at, amount in enumerate(hours):
            axes.annotate(
                f"{amount:,.1f}", (amount, at), xytext=(4, 0), textcoords="offset points", va="center",
                fontsize=9, color=MUTED,
            )  # fmt: skip
        axes.margins(x=0.12)
        axes.set_ylim(-0.6, max(len(largest), 2) - 0.4)  # a single bar is no wall
        axes.grid(visible=False, axis="y")
        axes.set_title("Hours waited, summed over jobs, by reason")
    return figure


# --------------------------------------------------------------------------------------------- one panel


def _waiting(axes: "Axes", really: Outcome, would: Outcome | None) -> None:
    at, waiting = thinned(really.series.t, really.series.waiting)
    axes.fill_between(at, waiting, step="post", color=_BLUE, alpha=0.45, linewidth=0.6, label=REALLY)
    if would is not None:
        at, waiting = thinned(would.series.t, would.series.waiting)
        axes.step(at, waiting, where="post", color=_ORANGE, linewidth=1.1, label=WOULD)
    axes.set_title("Jobs that wait")
    _legend(axes)


def _cores(axes: "Axes", really: Outcome, would: Outcome | None) -> None:
    series = really.series
    for values, alpha, name in (
        (series.paid, 0.22, "there, really"),
        (series.running, 0.7, "claimed, really"),
    ):
        at, amount = thinned(series.t, values)
        axes.fill_between(at, amount, step="post", color=_BLUE, alpha=alpha, linewidth=0, label=name)
    if would is not None:
        at, amount = thinned(would.series.t, would.series.paid)
        axes.step(at, amount, where="post", color=_ORANGE, label="updraft would have paid for")
    axes.set_title("Cores")
    _legend(axes)


def _spent(axes: "Axes", would: Outcome) -> None:
    series = would.series
    steps = np.maximum(np.diff(series.t, append=max(would.ended, float(series.t[-1]))), 0.0) / HOUR
    at = np.append(series.t, max(would.ended, float(series.t[-1])))
    axes.plot(*thinned(at, np.concatenate(([0.0], np.cumsum(series.cost * steps)))), color=_ORANGE)
    axes.set_title("What updraft would have cost so far (estimate)")


def _legend(axes: "Axes") -> None:
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=3, borderaxespad=0.0)


def _days(axes: "Axes", begins: float, seconds: float) -> None:
    """Ticks at whole hours or days (UTC), at most as many as can be read."""
    step = next((one for one in _STEPS if seconds / one <= _TICKS), math.ceil(seconds / _TICKS / DAY) * DAY)
    first = math.ceil(begins / step) * step
    ticks: Floats = np.arange(first, begins + seconds + 1, step)
    form = "%-d %b" if step >= DAY else "%-d %b %H:%M" if seconds > DAY else "%H:%M"
    axes.set_xticks(list(ticks - begins), [datetime.fromtimestamp(at, UTC).strftime(form) for at in ticks])
    axes.set_xlabel(f"UTC, since {datetime.fromtimestamp(begins, UTC):%-d %B %Y}")


def _log_of_time(axes: "Axes", longest: float) -> None:
    marks = {
        1: "1 s",
        10: "10 s",
        60: "1 min",
        600: "10 min",
        3600: "1 h",
        21600: "6 h",
        86400: "1 d",
        604800: "7 d",
    }
    kept = {at: text for at, text in marks.items() if at <= longest * 2 or at <= MINUTE}
    axes.set_xscale("log")
    axes.set_xticks(list(kept), list(kept.values()))
    axes.minorticks_off()
    axes.set_xlim(1, max(longest * 1.1, MINUTE))
