"""The figures of a report as people read them: what really was, and beside it what would have been."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from updraft.sim.reports.figures import duration, money, share
from updraft.sim.reports.metrics import IDLE

NOT_KNOWN = "not known"
Side = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class FigurePair:
    """A figure of a report: what it is called and means, and its two values; "" without the second side."""

    title: str
    about: str
    really: str
    would: str


def wait(seconds: float | None) -> str:
    """A wait; a dash where there is none."""
    return "–" if seconds is None else duration(seconds)


def at(moment: str) -> str:
    """A moment of the document, as people write it."""
    return moment.replace("T", " ").removesuffix(":00Z").removesuffix("Z") + " UTC"


def cost(side: Side) -> str:
    """What it cost, in the site's currency."""
    return NOT_KNOWN if side["cost"] is None else f"{money(side['cost'])} {side['currency']}".rstrip()


def _number(key: str) -> Callable[[Side], str]:
    return lambda side: f"{side[key]:,}"


def _hours(key: str) -> Callable[[Side], str]:
    return lambda side: f"{side[key]:,.0f}" if side[key] >= 100 else f"{side[key]:.1f}"


def _wait(key: str) -> Callable[[Side], str]:
    return lambda side: wait(side[key])


_FIGURES: Sequence[tuple[str, str, Callable[[Side], str]]] = (
    ("jobs", "that both columns are about", _number("jobs")),
    ("ended", "of these", _number("ended")),
    ("mean wait", "from a job's arrival to its first start, or until the last look", _wait("mean_wait")),
    ("median wait", "half of the jobs waited no longer", _wait("median_wait")),
    ("95 % wait", "95 of 100 jobs waited no longer", _wait("p95_wait")),
    ("longest wait", "of all jobs", _wait("longest_wait")),
    ("core-hours there", "of all machines in the pool", _hours("core_hours_there")),
    ("core-hours claimed", "of these, by jobs", _hours("core_hours_claimed")),
    ("idle", IDLE,
     lambda side: "–" if side["idle_share"] is None else share(side["idle_share"])),
    ("machines", "that there were", _number("machines")),
    ("most cores", "at one time", _number("most_cores")),
    ("cost", "at list prices; really: of updraft's own machines only", cost),
)  # fmt: skip


def figures(told: Mapping[str, Any]) -> list[FigurePair]:
    """The figures of a report's document."""
    would = told["would"]
    return [
        FigurePair(title, about, of(told["really"]), "" if would is None else of(would))
        for title, about, of in _FIGURES
    ]


def shown(text: str) -> str:
    """A stranger's text, fit for a page: what can't be printed is a question mark."""
    return "".join(one if one.isprintable() else "?" for one in text)
