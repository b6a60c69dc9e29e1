"""The figures of load tests over the number of machines, as a file of plots. Needs matplotlib."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from updraft.load.figures import COLLECTOR_DESCRIPTORS, MOST_CYCLE, MOST_STATUS, Figures
from updraft.sim.reports.charts import MUTED, SERIES, STYLE, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Of = Callable[[Figures], float | None]


def draw(runs: Sequence[Figures], path: Path) -> None:
    """Write the plots. Raises OSError."""
    save(over_machines(runs), path)


def over_machines(runs: Sequence[Figures]) -> Figure:
    """Six panels over the number of machines; what is extrapolated is dashed and says so."""
    runs = sorted(runs, key=lambda one: one.machines)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 9.2))
        (status, cycle), (memory, descriptors), (calls, ads) = figure.subplots(3, 2)
        _line(status, runs, lambda one: one.status, SERIES[0], "median")
        _line(status, runs, lambda one: one.status_longest, SERIES[1], "longest")
        _panel(status, "condor_status of all, seconds", MOST_STATUS)
        _line(cycle, runs, lambda one: one.cycle.seconds if one.cycle else None, SERIES[0], "cycle")
        _line(cycle, runs, lambda one: one.cycle.cpu if one.cycle else None, SERIES[2], "its CPU")
        _panel(cycle, "Negotiation cycle, seconds", MOST_CYCLE)
        for colour, name in zip(SERIES, ("collector", "negotiator", "schedd"), strict=False):
            _line(memory, runs, partial(_memory, name), colour, name)
        _panel(memory, "Memory of all such daemons, MiB")
        _line(descriptors, runs, _descriptors, SERIES[0], "measured")
        _line(descriptors, runs, _extrapolated, SERIES[1], "with real machines (extrapolated)", style="--")
        _panel(descriptors, "Descriptors of a child collector")
        _line(calls, runs, lambda one: one.updates.join_call, SERIES[0], "join")
        _line(calls, runs, lambda one: one.updates.call, SERIES[2], "update")
        _panel(calls, "A machine's call, seconds (median)")
        _line(ads, runs, lambda one: float(one.updates.lost), SERIES[1], "lost")
        _line(ads, runs, lambda one: float(one.updates.delayed), SERIES[3], "delayed")
        _panel(ads, "Ads lost and delayed")
        for axes in (calls, ads):
            axes.set_xlabel("machines")
    return figure


def _line(axes: "Axes", runs: Sequence[Figures], of: Of, colour: str, label: str, style: str = "-") -> None:
    """The points that are known: what isn't leaves a gap, never a zero."""
    found = [(one.machines, value) for one in runs if (value := of(one)) is not None]
    if found:
        at, values = zip(*found, strict=True)
        axes.plot(at, values, style, marker="o", markersize=4, color=colour, label=label)


def _panel(axes: "Axes", title: str, bound: float | None = None) -> None:
    if bound is not None:
        axes.axhline(bound, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="bound")
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(loc="upper left")


def _memory(name: str, one: Figures) -> float:
    return sum(daemon.memory for daemon in one.daemons if daemon.name.split(" ")[0] == name)


def _descriptors(one: Figures) -> float | None:
    found = [daemon.descriptors for daemon in one.daemons if daemon.name.startswith("collector ")]
    return float(max(found)) if found else None


def _extrapolated(one: Figures) -> float | None:
    return one.extrapolated.get(COLLECTOR_DESCRIPTORS)
