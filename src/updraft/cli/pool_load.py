"""`updraft pool load`: how many machines does this configuration carry?"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from updraft.cli.output import Column, console, json_option, say_json, table
from updraft.errors import UsageError

if TYPE_CHECKING:
    from updraft.load.figures import Figures, Real

_SPARE = 30.0  # seconds beyond one interval, so that every machine has updated


class Numbers(click.ParamType):
    """Positive whole numbers joined by commas."""

    name = "numbers"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, ...]:
        """The numbers; a usage error where they are none."""
        if isinstance(value, tuple):
            return value
        parts = str(value).split(",")
        if not all(part.strip().isdigit() and int(part) > 0 for part in parts):
            self.fail(f"{value!r} is no list of whole numbers joined by commas, such as 500,2000", param, ctx)
        return tuple(int(part) for part in parts)


class Span(click.ParamType):
    """A duration, as updraft.toml takes it, in seconds."""

    name = "time"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The seconds; a usage error where it is no duration."""
        from updraft.config import units

        if isinstance(value, float):
            return value
        try:
            return units.seconds(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


@click.command()
@click.option(
    "--machines",
    type=Numbers(),
    default="500",
    show_default=True,
    metavar="N,…",
    help="How many simulated machines; several numbers are tried in turn, each on a new head.",
)
@click.option(
    "--updates-every",
    type=Span(),
    default="5m",
    show_default=True,
    metavar="TIME",
    help="Time between two updates of a machine; a tenth more or less by chance.",
)
@click.option(
    "--join-rate",
    type=click.FloatRange(min=0, min_open=True),
    default=25.0,
    show_default=True,
    metavar="RATE",
    help="Machines that join in a second, each over a session of its own.",
)
@click.option(
    "--loss-rate",
    type=click.FloatRange(min=0),
    default=0.0,
    show_default=True,
    metavar="PART",
    help="Part of the machines that vanishes in an hour and is replaced.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=0),
    default=10_000,
    show_default=True,
    help="Idle jobs in the schedd. No simulated slot takes any; each is tried for all.",
)
@click.option(
    "--groups",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    help="Job groups that these jobs are of.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=1),
    default=None,
    metavar="SECONDS",
    help="How long it goes on after the last join. Default: one interval of updates and 30 s.",
)
@click.option(
    "--children",
    type=click.IntRange(min=0),
    default=None,
    help="Child collectors of our own configuration. Default: one for each 1,250 machines.",
)
@click.option(
    "--config",
    "file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    default=None,
    help="The head's configuration to be proven, instead of our own.",
)
@click.option(
    "--real",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="N",
    help="Real startds beside the simulated ones, each with a job.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Where chance begins.")
@click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    metavar="FILE",
    help="Draw the figures over the number of machines (SVG).",
)
@click.option(
    "--store",
    type=click.Path(file_okay=False, path_type=Path),
    default=None,
    help="Directory of machine images. Default: /var/lib/updraft/local.",
)
@json_option
def load(  # noqa: PLR0913  # one argument for each option
    machines: tuple[int, ...],
    updates_every: float,
    join_rate: float,
    loss_rate: float,
    jobs: int,
    groups: int,
    seconds: float | None,
    children: int | None,
    file: Path | None,
    real: int,
    seed: int,
    plot: Path | None,
    store: Path | None,
    as_json: bool,
) -> None:
    """Prove a head's configuration before money is spent on machines.

    Starts a real head on this machine (collectors, negotiator, schedd) and lets thousands of simulated machines join
    and update with HTCondor's own protocol. Says what was lost, how long condor_status and a
    negotiation cycle take, and what each daemon needs. Ends by itself; Ctrl-C leaves nothing behind. Exit code 1
    where something gives out. Needs root and mmdebstrap.
    """
    from updraft.cli.demo import clean_up_after_signals
    from updraft.clouds.local.layers import DEFAULT_STORE
    from updraft.demo.pool import find_or_build
    from updraft.load.runs import Wish, run_all
    from updraft.load.schedule import Load

    _check(plot)
    if file is not None and children is not None:
        raise UsageError("--children is for our own configuration; the file of --config says its own")
    lasting = updates_every * 1.1 + _SPARE if seconds is None else seconds
    wish = Wish(
        machines=machines,
        load=Load(max(machines), updates_every, 0.1, join_rate, loss_rate, lasting, seed),
        groups=groups, jobs=jobs, children=children, real=real,
        config=None if file is None else file.read_text(),
    )  # fmt: skip
    clean_up_after_signals()

    def say(text: str) -> None:
        click.echo(text, err=True)

    runs, startds = run_all(wish, find_or_build(store or DEFAULT_STORE, say), say)
    show(runs, startds, plot, as_json=as_json)
    if any(one.gives_out for one in runs):
        raise SystemExit(1)


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
        raise UsageError("plots need matplotlib: pip install 'updraft[report]'") from error


def show(runs: "Sequence[Figures]", startds: "Real | None", plot: Path | None, *, as_json: bool) -> None:
    """Print the figures, and draw them where that was asked for."""
    from updraft.load.figures import document

    if plot is not None:
        from updraft.load import charts

        charts.draw(runs, plot)
    if as_json:
        say_json(document(runs, startds))
        return
    from updraft.load import words

    out = console()
    columns = [Column("machines", wide=True), *(Column(str(one.machines), right=True) for one in runs)]
    out.print(table(columns, words.rows(runs)))
    for text in words.sentences(runs, startds):
        click.echo(text)
