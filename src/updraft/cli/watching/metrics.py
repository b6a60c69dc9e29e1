"""`metrics`: figures for Prometheus, and alarms, from the ledger alone."""

from pathlib import Path

import click

from updraft.app.call import Call
from updraft.cli.output import log_option
from updraft.errors import UsageError


@click.command()
@click.option(
    "--listen",
    metavar="HOST:PORT",
    help="Answer there. Default: as [monitoring] says, 127.0.0.1:9877 unless it does.",
)
@click.option(
    "--textfile",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write them once into this file (*.prom) of node_exporter's textfile collector; - is stdout.",
)
@log_option
@click.pass_obj
def metrics(call: Call, listen: str | None, textfile: Path | None, log_form: str) -> None:
    """Serve figures for Prometheus at /metrics, and tell people of alarms, until SIGTERM or Ctrl-C.

    It reads what the daemon writes down, and works on without it: that no daemon is at work is the first
    alarm. Who is told is `notify` in [monitoring]. With --textfile it writes the figures once, and tells
    nobody. docs/howto/monitoring.md says how to set it up.
    """
    if listen is not None and textfile is not None:
        raise UsageError("--listen and --textfile are two ways of telling; use one of them")
    from updraft.app.watching.monitoring import as_text, run_metrics, write_once

    settings = call.settings
    if textfile is None:
        run_metrics(settings, listen, log_form)
    elif str(textfile) == "-":
        click.echo(as_text(settings), nl=False)
    else:
        write_once(settings, textfile)
