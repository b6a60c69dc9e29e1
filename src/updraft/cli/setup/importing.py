"""`updraft import`: an earlier system's configuration becomes updraft.toml."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import click

from updraft import importers
from updraft.cli.output import console, count
from updraft.importers.output.report import Fate, Report, Row

KEY_COLUMN = 26
STYLES = {
    Fate.TAKEN: "green",
    Fate.SECRET: "yellow",
    Fate.UNKNOWN: "yellow",
    Fate.LOOK: "bold red",
}


@click.command(name="import")
@click.option("--pool", default="", metavar="NAME", help="The pool's name. Default: the old program's.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=click.Path(path_type=Path))
def import_(pool: str, files: tuple[Path, ...]) -> None:
    """Turn an earlier system's configuration into updraft.toml.

    FILE is recognised by its content: an ecm.conf, an elastiq.conf, Cloud Scheduler's cloud_resources.conf
    and cloud_scheduler.conf, or csv2's clouds as JSON or CSV. What goes with it may be named too, in any
    order: ECM's ec2rc.sh, the user-data that ecm.py made for the master, a worker's user-data, elastiq's
    state file, Cloud Scheduler's limits of users and aliases (also found beside cloud_scheduler.conf), csv2's
    group defaults, metadata and aliases.

    updraft.toml is written to standard output. What became of each key is said on standard error: nothing is
    dropped silently. Passwords and keys are left out; in scripts and cloud-config that is best effort: read
    the file before it goes to git.
    """
    made = importers.run(files, pool)
    click.echo(made.toml, nl=False)
    _show(made.report)


def _show(report: Report) -> None:

    out = console(err=True)
    for (file, section), rows in groupby(
        report.rows, key=lambda row: (row.file, row.section if row.file else "")
    ):
        out.print(_title(file, section), style="bold")
        out.print(_rows(rows))
    out.print(_sum(report))


def _title(file: str, section: str) -> str:
    where = file or "What no file says"
    return f"\n{where}, [{section}]" if section and file else f"\n{where}"


def _rows(rows: Iterator[Row]) -> object:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 1, 0, 0), expand=False)
    table.add_column(max_width=KEY_COLUMN, overflow="fold")
    table.add_column(no_wrap=True, min_width=len(Fate.NOT_NEEDED))
    table.add_column(overflow="fold")
    before = ""
    for row in rows:
        key, before = ("" if row.key == before else row.key), row.key
        table.add_row(Text(key), Text(row.fate, style=STYLES.get(row.fate, "")), Text(row.text))
    return table


def _sum(report: Report) -> str:
    parts = [f"{number} {fate}" for fate in Fate if (number := report.count(fate))]
    look = report.count(Fate.LOOK)
    more = f' See to the {count(look, "row")} that say{"s" if look == 1 else ""} "look".' if look else ""
    return f"\n{count(len(report.rows), 'row')}: {', '.join(parts)}.{more}"
