"""`updraft simulate`: what would these jobs have cost, and how long would people have waited?"""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from updraft.app.call import Call
from updraft.app.terminal import plain_streams
from updraft.cli.output import Column, console, count, is_narrow, json_option, say_json, table
from updraft.garbage import look_seldom

if TYPE_CHECKING:
    from updraft.sim.runs import Run
    from updraft.sim.workloads.sources import Workload

COLUMNS_AT_MOST = 3  # settings beside each other; more are below each other


_OPTIONS = (
    click.option(
        "--config",
        "file",
        metavar="PATH",
        help="The configuration. Default: as for other verbs, else an example.",
    ),
    click.option(
        "--example",
        is_flag=True,
        help="Take the example's offers and settings, whatever configuration is here.",
    ),
    click.option(
        "--offers", metavar="FILE", help="What the clouds sell, as `updraft offers --json` writes it."
    ),
    click.option(
        "--compare",
        metavar="FILE…",
        multiple=True,
        help="Simulate these configurations beside each other. WORKLOAD comes first.",
    ),
    click.option(
        "--sweep",
        metavar="KEY=A,B,…",
        multiple=True,
        help="Try these values of a setting: idle_limit=2m,10m,40m. Several sweeps are combined.",
    ),
    click.option(
        "--rivals", metavar="NAMES", help="Simulate other systems' rules too: names joined by commas, or all."
    ),
    click.option("--limit-jobs", metavar="N", type=click.IntRange(min=1), help="Only the first N jobs."),
    click.option(
        "--days", metavar="A:B", help="Only jobs that arrive from day A up to day B, counted from 0."
    ),
    click.option(
        "--memory", metavar="SIZE", help="Memory for each core of a job that doesn't say it. Default: 1GiB."
    ),
    click.option(
        "--memory-unit",
        metavar="UNIT/OF",
        help="What a trace tells memory in: B, KiB, MiB or GiB, /core or /job. Default: KiB/core.",
    ),
    click.option(
        "--skip-bad-lines",
        is_flag=True,
        help="Leave out, count and name lines and jobs that can't be read. Otherwise one is an error.",
    ),
    click.option(
        "--no-split",
        is_flag=True,
        help="Leave out jobs that no machine holds. Otherwise they become jobs of one core.",
    ),
    click.option(
        "--cycle",
        metavar="TIME",
        help="Time between two looks of the controller. Default: as the daemon's own, timings.cycle.",
    ),
    click.option(
        "--boot",
        metavar="TIME",
        help="How long machines take to join (median). Default: as a cloud's settings say, else 90s.",
    ),
    click.option(
        "--failures",
        metavar="PART",
        type=click.FloatRange(0, 1, max_open=True),
        default=0.0,
        help="Part of the machines that never join, from 0 to 1. Default: 0.",
    ),
    click.option(
        "--interruptions",
        metavar="RATE",
        type=click.FloatRange(min=0),
        default=0.0,
        help="How often an hour a spot machine is taken away. Default: 0.",
    ),
    click.option(
        "--seed",
        metavar="N",
        type=int,
        default=0,
        help="Where chance begins: the same seed gives the same result. Default: 0.",
    ),
)


def _choices(command: Callable[..., None]) -> Callable[..., None]:
    """The options that say what is simulated, in the order of the table above."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@click.command()
@click.argument("workload")
@click.argument("more", nargs=-1, metavar="[FILE…]")
@_choices
@click.option("--report", metavar="FILE", help="Write a page with figures and plots (HTML).")
@json_option
@click.pass_obj
def simulate(
    call: Call, /, workload: str, more: tuple[str, ...], as_json: bool, report: str | None, **options: object
) -> None:
    """Let a workload arrive in simulated time, and say what it costs and how long jobs wait.

    The decisions are the daemon's own. No cloud and no pool is asked, except a schedd for its history.

    WORKLOAD is one of these. FILE… are further configurations for --compare.

    \b
        FILE           a trace (Standard Workload Format), a pool's history (condor_history
                       -jsonl, -json or -long), gzipped or not, or a recipe for jobs (.toml)
        gen:NAME?K=V   made-up jobs: gen:bursts, gen:days, gen:tails, 'gen:lcg?jobs=20000&seed=1'
                       (in quotes: to a shell, ? and & mean something else)
        'schedd:NAME?days=30'   what a schedd of the pool has finished with; without NAME, all
    """
    from updraft.app.simulation import SimulationRequest

    asked = SimulationRequest.of(workload, more, call.asked, options)
    page = None
    if report is not None:
        from updraft.sim.reports.page import place_for

        page = place_for(report, asked.reads())
    settings = asked.settings()
    jobs = asked.fitted(asked.workload(), settings)
    conditions = asked.conditions(jobs.begins, settings[0].policy)
    from updraft.sim import runs

    with _progress(len(settings)) as tell:
        look_seldom()
        made = runs.run_all(jobs, settings, conditions, tell)
    document = runs.document(jobs, conditions, made)
    if page is not None:
        from updraft.sim.reports.page import page as drawn
        from updraft.sim.reports.page import write

        write(drawn(jobs, conditions, made), page)
    if as_json:
        say_json(document)
    else:
        _show(jobs, made, page)


@contextmanager
def _progress(settings: int) -> Iterator[Callable[[str, float], None]]:
    """A bar for each setting on stderr, where someone watches."""
    if not sys.stderr.isatty():
        yield lambda _name, _share: None
        return
    from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeElapsedColumn

    name = TextColumn("{task.description}", markup=False)
    columns = (name, BarColumn(), TaskProgressColumn(), TimeElapsedColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console(err=True), transient=True) as bars, plain_streams():

        def tell(name: str, share: float) -> None:
            if name not in tasks:
                place = f" ({len(tasks) + 1} of {settings})" if settings > 1 else ""
                tasks[name] = bars.add_task(f"{name}{place}", total=1.0)
            bars.update(tasks[name], completed=share)

        yield tell


def _show(jobs: "Workload", made: Sequence["Run"], page: Path | None) -> None:
    from updraft.sim.reports.figures import FIGURES, duration

    out = console()
    hours = f"{jobs.core_seconds / 3600:,.0f} core-hours"
    click.echo(f"{jobs.name}: {count(len(jobs.arrivals), 'job')}, {hours}, arriving in {duration(jobs.span)}")
    for note in jobs.notes:
        click.echo(f"  {note}")
    for why, number in jobs.left_out.items():
        click.echo(f"  left out: {number} jobs that {why}")
    click.echo()
    figures = [one for one in FIGURES if one.main]
    if len(made) <= COLUMNS_AT_MOST and not (len(made) > 2 and is_narrow(out)):
        columns = [Column(""), *(Column(run.name, right=True) for run in made)]
        rows = [[one.title, *(one.of(run.metrics) for run in made)] for one in FIGURES]
    else:
        if is_narrow(out):
            figures = [one for one in figures if one.narrow]
        columns = [
            Column("setting", wide=True),
            *(Column(one.title, right=True, wide=True) for one in figures),
        ]
        rows = [[run.name, *(one.of(run.metrics) for one in figures)] for run in made]
    out.print(table(columns, rows))
    _conclude(made, page)


def _why_unfinished(run: "Run") -> str:
    joined = run.outcome.machines.joined_at
    if len(joined) and all(math.isnan(at) for at in joined.tolist()):
        machines = count(len(joined), "machine")
        late = "boots take longer than boot_deadline lets them (--boot), or all fail (--failures)"
        return f"none of its {machines} joined: {late}"
    return "its limits or its offers are too small for them"


def _conclude(made: Sequence["Run"], page: Path | None) -> None:
    from updraft.sim.runs import best

    if len(made) > 1:
        names = [made[index].name for index in best(made)]
        listed = "; ".join(names) or "none can be said to, since none has finished every job"
        click.echo(f"\nno other costs less and waits less: {listed}")
    for run in made:
        left = run.metrics.jobs - run.metrics.completed
        if left:
            click.echo(f"{run.name}: {count(left, 'job')} not finished; {_why_unfinished(run)}")
    if page is not None:
        click.echo(f"\nreport: {page}")
