"""Plots of simulations as inline SVG whose colours follow the page they are on. Needs matplotlib."""

import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from updraft.sim.world.outcome import Floats, Outcome

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from updraft.sim.runs import Run

DAY, HOUR, MINUTE = 86400.0, 3600.0, 60.0
FAR = 8.0  # times the median wait: further up hides how the others differ
POINTS = 450  # of a line; more can't be seen on a page
# Each colour as it is on a light page, and the variable of the page's style that it becomes.
INK, MUTED, GRID = "#1f2328", "#59636e", "#d9dfe5"
SERIES = ("#2563a8", "#c2571a", "#2b7a4b", "#7b4ab8", "#b3263b", "#0f7c86", "#85651d", "#6b7280")
VARIABLES: Mapping[str, str] = {
    INK: "--ink",
    MUTED: "--muted",
    GRID: "--grid",
    **{colour: f"--s{number}" for number, colour in enumerate(SERIES)},
}
Box = tuple[float, float, float, float]
_LETTER = 7.0  # pixels of a name's letter on a page of 100 to the inch
# Where a name may stand: right, down and how much of it is left of there, in pixels from its point.
_PLACES = tuple(
    (dx, dy, left)
    for away in (0, 14, 28)
    for dx, dy, left in ((8, 3 + away, 0.0), (8, -14 - away, 0.0), (-8, 3 + away, 1.0), (-8, -14 - away, 1.0),
                         (0, 7 + away, 0.5), (0, -18 - away, 0.5))
)  # fmt: skip
_BLUE, _ORANGE, _GREEN, _PURPLE = SERIES[:4]
STYLE: Any = {  # its type would list every key that there is
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.labelcolor": MUTED,
    "axes.edgecolor": GRID,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.4,
    "figure.constrained_layout.use": True,
}


def course(run: "Run") -> Figure:
    """What went on over time: jobs, cores, machines and the cost, one above the other."""
    outcome = run.outcome
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 8.4))
        rows = figure.subplots(4, 1, sharex=True, height_ratios=(3, 3, 2, 2))
        scale, unit = time_scale(outcome.ended - outcome.begun)
        _jobs(rows[0], outcome, scale)
        _cores(rows[1], outcome, scale)
        _steps(rows[2], outcome, outcome.series.machines, scale, _GREEN, "Machines that are paid for")
        _spent(rows[3], outcome, scale)
        rows[3].set_xlabel(f"{unit} since the first job")
        for axes in rows:
            axes.set_ylim(bottom=0)
            axes.set_xlim(0, max(1e-9, (outcome.ended - outcome.begun) / scale))
            axes.yaxis.set_major_formatter(_short)
        figure.align_ylabels(rows)
    return figure


def waits(runs: Sequence["Run"]) -> Figure:
    """Which share of the jobs had begun after how long a wait, a line for each setting."""
    with mpl.rc_context(STYLE):
        names = [shortened(run.name, 60) for run in runs]
        columns = 2 if max(map(len, names), default=0) > 24 else 4
        below = -(-len(runs) // columns) if len(runs) > 1 else 0
        figure = Figure(figsize=(9.2, 3.4 + 0.22 * below))
        axes = figure.subplots()
        for run, name, colour in zip(runs, names, SERIES, strict=False):
            found = _waited(run.outcome)
            shares = np.arange(1, len(found) + 1) / max(1, len(run.outcome.jobs)) * 100
            at, share = thinned(np.maximum(found, 1.0), shares)
            axes.step(at, share, where="post", color=colour, label=name)
        axes.set_xscale("log")
        _durations(axes, max((float(_waited(run.outcome).max(initial=1.0)) for run in runs), default=1.0))
        axes.set_ylim(0, 101)
        axes.set_ylabel("% of the jobs")
        axes.set_title("Jobs that had begun after a wait of at most …")
        if len(runs) > 1:
            figure.legend(loc="outside lower left", ncols=columns)
    return figure


@dataclass(frozen=True, slots=True)
class Dot:
    """A setting or a rival in a plot of cost and wait: mean wait in seconds, whether jobs were killed."""

    name: str
    cost: float
    wait: float
    rival: bool = False
    killed: bool = False


def costs(runs: Sequence["Run"], best: Sequence[int]) -> Figure:
    """Each setting by its cost and its mean wait; the line joins those that no other beats in both."""
    dots = [
        Dot(run.name, run.metrics.cost, run.metrics.wait_mean, run.setting.rival, run.metrics.killed > 0)
        for run in runs
    ]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 4.6))
        axes = figure.subplots()
        _dots(axes, dots, [dots[index] for index in best])
        axes.set_xlabel("cost")
        axes.set_title(f"Cost and wait: down and left is better{_hollow(dots)}")
        axes.margins(0.14)
        axes.set_ylim(bottom=0)
        amounts = [dot.cost for dot in dots]
        if min(amounts) > 0 and max(amounts) > 5 * min(amounts):
            _factors(axes)
            axes.set_xlabel("cost (each step of the axis is a factor)")
        axes.xaxis.set_major_formatter(_short)
        bound = next((run.bound for run in runs if run.bound), None)
        if bound is not None and bound < 0.5 * min(amounts):
            bound = None  # it would be far from all that there is to see
        if bound is not None:
            _bound(axes, bound)
        if any(dot.rival for dot in dots) or bound is not None:
            _legend_below(figure)
        _named(figure, axes, dots, bound)
    return figure


def landscape(dots: Sequence[Dot], best: Sequence[Dot], title: str) -> Figure:
    """Rivals and settings by their cost ÷ the least possible cost, and their mean wait; both as factors.

    The line joins `best`, updraft's own front. Who waits many times as long as most is named beside the plot.
    """
    longest = FAR * float(np.median([dot.wait for dot in dots]))
    far = [dot for dot in dots if dot.wait > longest]
    dots = [dot for dot in dots if dot.wait <= longest]
    best = [dot for dot in best if dot.wait <= longest]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 5.6))
        axes = figure.subplots()
        _dots(axes, dots, best)
        axes.set_title(f"{title}: down and left is better{_hollow(dots)}")
        axes.margins(0.12)
        _factors(axes)
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0)))
        beyond = (f"{dot.name} ({dot.cost:.2f}, {dot.wait / MINUTE:,.0f} min)" for dot in far)
        above = f"\nabove the plot: {', '.join(beyond)}" if far else ""
        axes.set_xlabel(f"cost ÷ the least possible cost{above}")
        axes.xaxis.set_major_formatter(_short)
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(_short)
        _bound(axes, 1.0)
        _legend_below(figure)
        _named(figure, axes, dots, 1.0)
    return figure


def save(figure: Figure, path: Path) -> None:
    """The figure as a file of its own, in the format that its name says. Raises OSError."""
    with mpl.rc_context(STYLE):
        figure.savefig(path, facecolor="white")


def svg(figure: Figure, name: str) -> str:
    """The figure as an element of a page, its colours variables of the page; `name` keeps its ids apart."""
    out = io.StringIO()
    with mpl.rc_context({**STYLE, "svg.hashsalt": name}):
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(
        r'(<svg[^>]*?) width="[^"]*" height="[^"]*"|(<svg[^>]*?) xmlns:xlink="[^"]*"', r"\1\2", text
    )
    text = re.sub(r"(\d\.\d)\d+", r"\1", text)  # a tenth of a point is less than anyone sees
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r"url\(#", f"url(#{name}-", text)
    text = re.sub(r'href="#', f'href="#{name}-', text)
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, f"var({variable})")
    return text


# --------------------------------------------------------------------------------------------- one panel


def _jobs(axes: "Axes", outcome: Outcome, scale: float) -> None:
    at, running = under_way(outcome)
    axes.plot(*thinned(at / scale, running), color=_BLUE, label="running")
    axes.plot(*thinned(outcome.series.t / scale, outcome.series.waiting), color=_ORANGE, label="waiting")
    axes.set_title("Jobs")
    _legend_above(axes)


def _cores(axes: "Axes", outcome: Outcome, scale: float) -> None:
    series = outcome.series
    for values, alpha, label in ((series.paid, 0.22, "paid for"), (series.running, 0.75, "at work")):
        at, amount = thinned(series.t / scale, values)
        axes.fill_between(at, amount, step="post", color=_BLUE, alpha=alpha, linewidth=0, label=label)
    axes.plot(*thinned(series.t / scale, series.wanted), color=INK, linewidth=0.9, label="asked for")
    axes.set_title("Cores")
    # A backlog may be a hundred times what is ever bought; then what was bought is the matter.
    highest = float(series.paid.max(initial=1)) * 2.5
    if series.wanted.max(initial=0) > highest:
        axes.set_ylim(top=highest)
        axes.set_title("Cores (what is asked for goes beyond the plot)")
    _legend_above(axes)


def _legend_above(axes: "Axes") -> None:
    """What the lines are, in the line of the title: in the plot it would hide something."""
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.97), ncols=3, borderaxespad=0.0)


def _legend_below(figure: Figure) -> None:
    """What the points are, below the plot: in it, it would hide whoever costs and waits most."""
    figure.legend(loc="outside lower left", ncols=3)


def _steps(
    axes: "Axes", outcome: Outcome, values: Floats | np.ndarray, scale: float, colour: str, title: str
) -> None:
    at, amount = thinned(outcome.series.t / scale, values)
    axes.fill_between(at, amount, step="post", color=colour, alpha=0.25, linewidth=0)
    axes.step(at, amount, where="post", color=colour)
    axes.set_title(title)


def _spent(axes: "Axes", outcome: Outcome, scale: float) -> None:
    series = outcome.series
    steps = np.diff(series.t, append=outcome.ended) / HOUR
    spent = np.concatenate(([0.0], np.cumsum(series.cost * np.maximum(steps, 0.0))))
    at = np.append(series.t, outcome.ended) / scale
    axes.plot(*thinned(at, spent), color=_PURPLE)
    axes.set_title("Cost so far")


def _dots(axes: "Axes", dots: Sequence[Dot], best: Sequence[Dot]) -> None:
    """Updraft's and rivals' points, and the steps from one of the best to the next."""
    axes.plot(
        [dot.cost for dot in best], [dot.wait / MINUTE for dot in best],
        color=_BLUE, linewidth=1.2, alpha=0.6, drawstyle="steps-post", zorder=1,
    )  # fmt: skip
    for rival, marker, colour, label in ((False, "o", _BLUE, "updraft"), (True, "D", _ORANGE, "rivals")):
        some = [dot for dot in dots if dot.rival is rival]
        axes.scatter(
            [dot.cost for dot in some], [dot.wait / MINUTE for dot in some],
            marker=marker, s=42, zorder=2, linewidths=1.6, edgecolors=colour, label=label,
            facecolors=["none" if dot.killed else colour for dot in some],
        )  # fmt: skip
    axes.set_ylabel("mean wait, minutes")


def _hollow(dots: Sequence[Dot]) -> str:
    return "; hollow: jobs were killed" if any(dot.killed for dot in dots) else ""


def _factors(axes: "Axes") -> None:
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.xaxis.set_minor_locator(NullLocator())


def _bound(axes: "Axes", bound: float) -> None:
    axes.axvline(bound, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="least possible cost")


def _named(figure: Figure, axes: "Axes", dots: Sequence[Dot], bound: float | None) -> None:
    """Names beside the points, where they hide neither a point nor each other nor the line of the bound."""
    figure.draw_without_rendering()  # before that nobody knows where a point is on the page
    at = [(dot.cost, dot.wait / MINUTE) for dot in dots]
    spots = [tuple(spot) for spot in axes.transData.transform(at)]
    taken = [(x - 5.0, y - 5.0, x + 5.0, y + 5.0) for x, y in spots]
    if bound is not None:
        x = float(axes.transData.transform((bound, 0.0 if axes.get_yscale() == "linear" else 1.0))[0])
        taken.append((x - 1.0, axes.bbox.y0, x + 1.0, axes.bbox.y1))
    inside = axes.bbox
    for index in sorted(range(len(dots)), key=lambda one: spots[one]):
        name = shortened(dots[index].name)
        (x, y), wide = spots[index], _LETTER * len(name)
        boxes = [
            (x + dx - wide * left, y + dy, x + dx + wide * (1 - left), y + dy + 11)
            for dx, dy, left in _PLACES
        ]
        box = min(boxes, key=lambda one: _hidden(one, taken, (inside.x0, inside.y0, inside.x1, inside.y1)))
        taken.append(box)
        axes.annotate(
            name, at[index], xytext=((box[0] - x) * 72 / figure.dpi, (box[1] - y) * 72 / figure.dpi),
            textcoords="offset points", fontsize=8.5, color=INK, va="bottom",
            arrowprops={"arrowstyle": "-", "color": MUTED, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 3},
        )  # fmt: skip


def _hidden(box: Box, taken: Sequence[Box], page: Box) -> float:
    """How much of other things a name in this box would hide, or of itself beyond the plot."""
    x0, y0, x1, y1 = box
    both = sum(
        max(0.0, min(x1, b[2]) - max(x0, b[0])) * max(0.0, min(y1, b[3]) - max(y0, b[1])) for b in taken
    )
    seen = max(0.0, min(x1, page[2]) - max(x0, page[0])) * max(0.0, min(y1, page[3]) - max(y0, page[1]))
    return both + 3 * ((x1 - x0) * (y1 - y0) - seen)


# ---------------------------------------------------------------------------------------------- figures


def under_way(outcome: Outcome) -> tuple[Floats, Floats]:
    """How many jobs were between their first start and their end, at each cycle of the controller."""
    jobs, at = outcome.jobs, outcome.series.t
    starts = np.sort(jobs.first_start[~np.isnan(jobs.first_start)])
    ends = np.sort(jobs.ended[~np.isnan(jobs.ended)])
    running = np.searchsorted(starts, at, "right") - np.searchsorted(ends, at, "right")
    return at, running.astype(np.float64)


def _waited(outcome: Outcome) -> Floats:
    waited = outcome.jobs.first_start - outcome.jobs.submitted
    return np.sort(waited[~np.isnan(waited)])


def thinned(at: Floats, values: Floats | np.ndarray) -> tuple[Floats, Floats]:
    """No more points than can be seen: of each stretch the least and the greatest, in their order."""
    values = np.asarray(values, dtype=np.float64)
    if len(at) <= POINTS * 2:
        return at, values
    chosen: list[int] = [0]
    for part in np.array_split(np.arange(len(at)), POINTS):
        chosen += sorted({int(part[values[part].argmin()]), int(part[values[part].argmax()])})
    chosen.append(len(at) - 1)
    index = np.unique(chosen)
    return at[index], values[index]


def time_scale(seconds: float) -> tuple[float, str]:
    """The unit of a time axis so long: its seconds and its name."""
    if seconds > 3 * DAY:
        return DAY, "days"
    return (HOUR, "hours") if seconds > 3 * HOUR else (MINUTE, "minutes")


def _durations(axes: "Axes", longest: float) -> None:
    marks = {
        1: "1 s",
        10: "10 s",
        60: "1 min",
        600: "10 min",
        3600: "1 h",
        6 * 3600: "6 h",
        DAY: "1 d",
        7 * DAY: "7 d",
    }
    shown = {at: text for at, text in marks.items() if at <= longest * 2 or at <= 60}
    axes.set_xticks(list(shown), list(shown.values()))
    axes.minorticks_off()
    axes.set_xlim(1, max(longest * 1.1, 60))


def shortened(name: str, most: int = 44) -> str:
    """A name for a plot."""
    return name if len(name) <= most else name[: most - 1] + "…"


def _short(value: float, _place: float) -> str:
    for size, letter in ((1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            return f"{value / (1e6 if letter == 'M' else 1e3):g}{letter}"
    return f"{value:g}"
