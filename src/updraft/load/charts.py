"""The figures of load tests over the number of machines, as a file of four plots. Needs matplotlib."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import matplotlib as mpl
from matplotlib.figure import Figure

from updraft.load.figures import MOST_CYCLE, MOST_STATUS, Figures
from updraft.sim.charts import MUTED, SERIES, STYLE, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Of = Callable[[Figures], float | None]


def draw(runs: Sequence[Figures], path: Path) -> None:
    """Write the plots. Raises OSError."""
    save(over_machines(runs), path)


def over_machines(runs: Sequence[Figures]) -> Figure:
    """Seconds, lost ads, memory and descriptors, each over the number of machines."""
    runs = sorted(runs, key=lambda one: one.machines)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 6.4))
        (status, cycle), (memory, descriptors) = figure.subplots(2, 2)
        _line(status, runs, lambda one: one.status, SERIES[0], "median")
        _line(status, runs, lambda one: one.status_longest, SERIES[1], "longest")
        _panel(status, "condor_status of all, seconds", MOST_STATUS)
        _line(cycle, runs, lambda one: one.cycle.seconds if one.cycle else None, SERIES[0], "cycle")
        _line(cycle, runs, lambda one: one.cycle.cpu if one.cycle else None, SERIES[2], "its CPU")
        _panel(cycle, "Negotiation cycle, seconds", MOST_CYCLE)
        for colour, name in zip(SERIES, ("collector", "negotiator", "schedd"), strict=False):
            _line(memory, runs, lambda one, name=name: _memory(one, name), colour, name)
        _panel(memory, "Memory of all such daemons, MiB")
        _line(descriptors, runs, lambda one: float(one.updates.lost), SERIES[1], "lost")
        _line(descriptors, runs, lambda one: float(one.updates.delayed), SERIES[3], "delayed")
        _panel(descriptors, "Ads lost and delayed")
        for axes in (memory, descriptors):
            axes.set_xlabel("machines")
    return figure


def _line(axes: "Axes", runs: Sequence[Figures], of: Of, colour: str, label: str) -> None:
    """The points that are known: what isn't leaves a gap, never a zero."""
    found = [(one.machines, value) for one in runs if (value := of(one)) is not None]
    axes.plot(
        [at for at, _ in found],
        [value for _, value in found],
        marker="o",
        markersize=4,
        color=colour,
        label=label,
    )


def _panel(axes: "Axes", title: str, bound: float | None = None) -> None:
    if bound is not None:
        axes.axhline(bound, color=MUTED, linewidth=1, linestyle=(0, (4, 3)), label="bound")
    axes.set_title(title)
    axes.set_ylim(bottom=0)
    axes.set_xlim(left=0)
    axes.legend(loc="upper left")


def _memory(one: Figures, name: str) -> float:
    return sum(daemon.memory for daemon in one.daemons if daemon.name.split(" ")[0] == name)
