"""What a demo shows while it runs, live at a terminal or in plain lines elsewhere; the table at its end."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from updraft.core.model import (
    Action,
    Adopt,
    Disown,
    Drain,
    DrainMode,
    Forget,
    Launch,
    Phase,
    RequeueJobs,
    Terminate,
    Undrain,
)

PHASES = {
    Phase.REQUESTED: "cyan",
    Phase.BOOTING: "blue",
    Phase.JOINED: "green",
    Phase.DRAINING: "yellow",
    Phase.ENDING: "magenta",
    Phase.LOST: "red",
    Phase.FAILED: "red",
}
DECISIONS_SHOWN = 8
PLAIN_EVERY = 10.0  # seconds between two plain lines that only count


@dataclass(frozen=True, slots=True)
class ShownDecision:
    """Something that was decided: `at` seconds after the start, and one sentence."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Scene:
    """One moment of a demo. `elapsed` is in seconds since its start; `decisions` are all so far."""

    title: str
    elapsed: float
    waiting: int
    running: int
    completed: int
    phases: Mapping[Phase, int] = field(default_factory=dict)
    decisions: Sequence[ShownDecision] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class Closing:
    """What a demo ends with. Times are in seconds; `used` are machine-seconds in which a job ran."""

    jobs: int
    completed: int
    launched: int
    paid: float
    used: float
    median_wait: float | None
    killed: int
    left: int

    @property
    def good(self) -> bool:
        """True if it went as it must: all done, none killed, nothing left behind."""
        return self.completed == self.jobs and self.killed == 0 and self.left == 0


class Stage:
    """Shows scenes: redraws in place at a terminal, else prints a line where something is new."""

    def __init__(self, console: Console, *, live: bool | None = None) -> None:
        self._console = console
        self._live = (
            Live(
                console=console,
                transient=True,
                auto_refresh=False,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            if _wants(console, live)
            else None
        )
        self._told = 0
        self._counted_at = -PLAIN_EVERY

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live:
            self._live.stop()

    def show(self, scene: Scene) -> None:
        """Show this moment."""
        if self._live:
            self._live.update(drawing(scene), refresh=True)
            return
        new = scene.decisions[self._told :]
        self._told = len(scene.decisions)
        for decision in new:
            self._say(decision.at, decision.text)
        if scene.elapsed - self._counted_at >= PLAIN_EVERY:
            self._counted_at = scene.elapsed
            self._say(scene.elapsed, _counts(scene))

    def _say(self, at: float, text: str) -> None:
        self._console.print(f"{at:6.0f} s  {text}", markup=False, soft_wrap=True)


def drawing(scene: Scene) -> RenderableType:
    """The whole picture of one moment."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold", min_width=10)
    table.add_column(justify="right", min_width=4)
    table.add_column(overflow="ellipsis", no_wrap=True)
    jobs = (("waiting", scene.waiting, "yellow"), ("running", scene.running, "green"))
    for name, count, style in (*jobs, ("completed", scene.completed, "dim")):
        table.add_row(name, str(count), _bar(count, style))
    table.add_row("", "", "")
    for phase, style in PHASES.items():
        count = scene.phases.get(phase, 0)
        if count or phase not in (Phase.LOST, Phase.FAILED):
            table.add_row(str(phase), str(count), _bar(count, style, "■ "))
    lines = [
        Text(f"{decision.at:6.0f} s  {decision.text}", overflow="ellipsis", no_wrap=True)
        for decision in scene.decisions[-DECISIONS_SHOWN:]
    ]
    lines += [Text("")] * (DECISIONS_SHOWN - len(lines))
    foot = Text(scene.note, style="dim")
    title = Text(f"{scene.title} · {scene.elapsed:.0f} s")
    return Panel(Group(table, Text(""), *lines, foot), title=title, title_align="left")


def closing_table(closing: Closing, title: str = "what it came to") -> Table:
    """The closing table of a demo."""
    wait = "none started" if closing.median_wait is None else f"{closing.median_wait:.0f} s"
    share = f" ({closing.used / closing.paid:.0%} of what was paid)" if closing.paid else ""
    rows = (
        ("jobs", str(closing.jobs), True),
        ("completed", str(closing.completed), closing.completed == closing.jobs),
        ("machines launched", str(closing.launched), True),
        ("machine-seconds paid", f"{closing.paid:.0f}", True),
        ("machine-seconds used", f"{closing.used:.0f}{share}", True),
        ("median wait from submission to start", wait, closing.median_wait is not None),
        ("jobs killed", str(closing.killed), closing.killed == 0),
        ("machines left", str(closing.left), closing.left == 0),
    )
    table = Table(title=title, show_header=False, title_justify="left")
    for name, value, good in rows:
        table.add_row(name, Text(value, style="" if good else "bold red"))
    return table


def sentence(action: Action) -> str:
    """An action with its reason, in one line."""
    match action:
        case Launch(offer=offer, count=count):
            what = f"launch {count} × {offer.flavor} in {offer.cloud}/{offer.zone}"
        case Drain(machine=machine, mode=DrainMode.EMPTY):
            what = f"drain {machine} if it is empty"
        case Drain(machine=machine):
            what = f"drain {machine}, its jobs go on"
        case Undrain(machine=machine):
            what = f"undrain {machine}"
        case Terminate(machines=machines):
            what = f"terminate {_some(machines)}"
        case Adopt(machine=machine):
            what = f"adopt {machine}"
        case Disown(machine=machine):
            what = f"disown {machine}"
        case RequeueJobs(jobs=jobs, machine=machine):
            what = f"requeue {len(jobs)} jobs of {machine or f'{action.schedd} that were left on hold'}"
        case Forget(machine=machine):
            what = f"forget {machine}"
    return f"{what}: {action.reason.text}"


def _some(machines: Sequence[str]) -> str:
    return ", ".join(machines) if len(machines) <= 2 else f"{machines[0]} and {len(machines) - 1} more"


def _counts(scene: Scene) -> str:
    phases = ", ".join(f"{count} {phase}" for phase, count in scene.phases.items() if count) or "none"
    return (
        f"jobs: {scene.waiting} waiting, {scene.running} running, {scene.completed} completed; "
        f"machines: {phases}"
    )


def _bar(count: int, style: str, sign: str = "█", most: int = 60) -> Text:
    return Text(sign * min(count, most), style=style)


def _wants(console: Console, live: bool | None) -> bool:
    return console.is_terminal if live is None else live
