"""`updraft pool load`: how many machines does this configuration carry?"""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from updraft.cli.endings import clean_up_after_signals
from updraft.cli.output import Column, console, json_option, say_json, table
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.load.figures import Figures, Real


def _numbers(_context: click.Context, _option: click.Parameter, value: str) -> tuple[int, ...]:
    """Positive whole numbers joined by commas."""
    parts = value.split(",")
    if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
        raise click.BadParameter(f'"{value}" is no list of whole numbers joined by commas, such as 500,2000')
    return tuple(int(part) for part in parts)


def _span(_context: click.Context, _option: click.Parameter, value: str) -> float:
    """The seconds of a duration, as updraft.toml takes it."""
    from updraft.config.values import units

    try:
        length = units.seconds(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error
    if length < 1:
        raise click.BadParameter(f"{value} is too short: at least 1s")
    return length


_OPTIONS: Sequence[tuple[tuple[str, ...], dict[str, Any]]] = (
    (
        ("--machines",),
        {
            "callback": _numbers,
            "default": "500",
            "show_default": True,
            "metavar": "N,…",
            "help": "How many simulated machines. Several numbers are tried in turn, each on a new head.",
        },
    ),
    (
        ("--updates-every",),
        {
            "callback": _span,
            "default": "5m",
            "show_default": True,
            "metavar": "TIME",
            "help": "Time between two updates of a machine; a tenth more or less, by chance.",
        },
    ),
    (
        ("--join-rate",),
        {
            "type": click.FloatRange(min=0.1),
            "default": 25.0,
            "show_default": True,
            "metavar": "RATE",
            "help": "Machines that join in a second, each over a session of its own.",
        },
    ),
    (
        ("--loss-rate",),
        {
            "type": click.FloatRange(min=0, max=60),
            "default": 0.0,
            "show_default": True,
            "metavar": "PART",
            "help": "Part of the machines that vanishes in an hour without a word; others replace them.",
        },
    ),
    (
        ("--jobs",),
        {
            "type": click.IntRange(min=0),
            "default": 10_000,
            "show_default": True,
            "help": "Idle jobs in the schedd. Each group is tried on every slot, and none takes it.",
        },
    ),
    (
        ("--groups",),
        {
            "type": click.IntRange(min=1, max=1000),
            "default": 100,
            "show_default": True,
            "help": "Job groups that these jobs are of.",
        },
    ),
    (
        ("--seconds",),
        {
            "type": click.FloatRange(min=1),
            "metavar": "SECONDS",
            "help": "How long it goes on after the last join. Default: until every machine has updated.",
        },
    ),
    (
        ("--children",),
        {
            "type": click.IntRange(min=0),
            "help": "Child collectors of our own configuration. Default: one for 1,250 machines, at least 2.",
        },
    ),
    (
        ("--config", "file"),
        {
            "type": click.Path(exists=True, dir_okay=False, path_type=Path),
            "metavar": "FILE",
            "help": "The head's configuration that is to be proven, instead of our own.",
        },
    ),
    (
        ("--real",),
        {
            "type": click.IntRange(min=0),
            "default": 0,
            "show_default": True,
            "metavar": "N",
            "help": "Real startds beside the simulated machines, each with a job.",
        },
    ),
    (
        ("--seed",),
        {"type": int, "default": 0, "show_default": True, "help": "Where chance begins."},
    ),
    (
        ("--plot",),
        {
            "type": click.Path(dir_okay=False, path_type=Path),
            "metavar": "FILE",
            "help": "Draw the figures over the number of machines (SVG).",
        },
    ),
    (
        ("--store",),
        {
            "type": click.Path(file_okay=False, path_type=Path),
            "help": "Directory of machine images. Default: /var/lib/updraft/local.",
        },
    ),
)


def _choices(command: Callable[..., None]) -> Callable[..., None]:
    """The options, in the order of the table above."""
    for names, settings in reversed(_OPTIONS):
        command = click.option(*names, **settings)(command)
    return command


@click.command()
@_choices
@json_option
def load(plot: Path | None, store: Path | None, as_json: bool, **asked: Any) -> None:
    """Prove a head's configuration before money is spent on machines.

    Starts a real head on this machine (collectors, negotiator, schedd) and lets thousands of simulated
    machines join and update with HTCondor's own protocol. Says what was lost, how long condor_status and a
    negotiation cycle take, and what each daemon needs. Ends by itself; Ctrl-C leaves nothing behind. The exit
    code is 1 where something gives out. Needs root and mmdebstrap.
    """
    from updraft.load.runs import prove, wish_of

    _check(plot)
    wish = wish_of(**asked)
    clean_up_after_signals()

    def say(text: str) -> None:
        click.echo(text, err=True)

    runs, startds = prove(wish, store, say)
    show(runs, startds, plot, as_json=as_json)
    if any(one.gives_out for one in runs):
        click.get_current_context().exit(1)


def _check(plot: Path | None) -> None:
    """UsageError, before anything is started, where it can't come to an end."""
    if os.geteuid() != 0:
        raise UsageError("a head of namespaces and mounts can only be started by root: use sudo")
    if plot is None:
        return
    if plot.suffix != ".svg" or not plot.parent.is_dir():
        raise UsageError(f"{plot} can't be drawn: name an .svg file in a directory that is there")
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise UsageError("plots need matplotlib, run: pip install matplotlib") from error


def show(runs: "Sequence[Figures]", startds: "Real | None", plot: Path | None, *, as_json: bool) -> None:
    """Print the figures, and draw them where that was asked for."""
    from updraft.load import words
    from updraft.load.figures import document

    if plot is not None:
        from updraft.load import charts

        charts.draw(runs, plot)
    if as_json:
        say_json(document(runs, startds))
        return
    columns = [Column("machines", wide=True), *(Column(str(one.machines), right=True) for one in runs)]
    console().print(table(columns, words.rows(runs)))
    for text in words.sentences(runs, startds):
        click.echo(text)
