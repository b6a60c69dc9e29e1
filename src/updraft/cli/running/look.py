"""`plan` and `run`: one live look, and the loop of them."""

import os
from pathlib import Path
from typing import Any

import click

from updraft.app.call import Call
from updraft.app.look import looked
from updraft.cli.output import Column, console, json_option, log_option, say_json, table, waiting
from updraft.errors import ConfigAbsent, ProblemFound


@click.command()
@json_option
@click.pass_obj
def plan(call: Call, as_json: bool) -> None:
    """Look once at pool, clouds and ledger, and show what would be done and why. Nothing is done.

    The sources that don't answer are named: nothing is planned from what isn't known.
    """
    from updraft.daemon import report

    with waiting("looking at the pool and the clouds"), looked(call) as (_, snapshot, decided):
        document, _ = report.document(snapshot, decided, standing=None, timings={}, generation=1)
    if as_json:
        say_json(document)
        return
    show_plan(document)


def show_plan(document: dict[str, Any]) -> None:
    """The plan for people: what isn't known, the actions, and who waits for what."""
    from updraft.cli.watching.status import group_table, source_table

    out = console()
    silent = source_table(document["sources"], document["at"])
    if silent is not None:
        out.print(silent)
        out.print()
    if document["actions"]:
        rows = [(action["what"], action["text"], action["reason"]["code"]) for action in document["actions"]]
        out.print(table([Column("would"), Column("what and why", wide=True), Column("reason")], rows))
    elif silent is not None:
        out.print("nothing is planned from what isn't known; `updraft check` says why, and what to do")
    else:
        out.print("nothing to do")
    groups = [group for group in document["groups"] if group["idle"]]
    if groups:
        out.print()
        out.print(group_table(groups))
    for warning in document["warnings"]:
        out.print(f"\nwarning: {warning['text']}")


@click.command()
@log_option
@click.option(
    "--record",
    "record",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write every decision into files in this folder, for `updraft replay`.",
)
@click.pass_obj
def run(call: Call, log_form: str, record: Path | None) -> None:
    """Run the daemon in the foreground, until SIGTERM or Ctrl-C. Machines stay when it stops.

    SIGHUP takes up a changed configuration; machines of an older one finish their work and are replaced. A
    second daemon for the same pool, on whatever host, waits until the first is gone.
    """
    from updraft.app.serving import run_daemon

    try:
        run_daemon(call.file, log_form, record)
    except ConfigAbsent as error:
        if not os.environ.get("NOTIFY_SOCKET"):
            raise
        # Its disk may come later: a service manager starts it again after this, and not after a wrong call.
        raise ProblemFound(str(error)) from error
