"""`updraft service`: the systemd unit of the daemon, where no `updraft userdata head` has put it."""

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import click

from updraft import config
from updraft.app.call import Call
from updraft.cli.output import ago, clock, json_option, say_json
from updraft.documents import Document
from updraft.documents.cycle import DaemonState
from updraft.errors import LedgerError, ProblemFound
from updraft.ledger.reader import Reader
from updraft.provision.setup import service as unit
from updraft.provision.setup.service import UNIT, UnitState
from updraft.watching.known import daemon_state


@click.group()
def service() -> None:
    """Look after updraft's service on the head."""


@service.command(short_help="Write the systemd unit, and have it start with the machine.")
@click.option("--now", is_flag=True, help="Start it at once, not only at the next boot.")
@click.option("--undo", is_flag=True, help="Stop it and remove the unit. Machines, ledger and settings stay.")
@click.option(
    "--replace", "replaces", is_flag=True, help="Replace a unit that is in the way; undo restores it."
)
@click.option("--dry-run", is_flag=True, help="Show what would be written, and do nothing.")
@click.pass_obj
def install(call: Call, now: bool, undo: bool, replaces: bool, dry_run: bool) -> None:
    """Write the systemd unit, show it, and have it start with the machine. Takes root.

    The unit runs this very updraft with the configuration that is in force here; both are checked first, and
    nobody but root may be able to change them.
    """
    if undo:
        unit.needs_systemd()
        unit.uninstall(click.echo)
        return
    file = Path(call.file).resolve()
    text = unit.unit_text(file)
    if dry_run:
        click.echo(f"# {unit.unit_path()}\n{text}", nl=False)
        return
    settings = config.load(file)
    unit.check_state_dir(settings.pool.state_dir)
    unit.needs_systemd()
    unit.check_roots_own(settings, file)
    same = unit.enabled(text, click.echo, replaces=replaces)
    if now:
        # Of one that runs already, a changed unit is taken up by a restart: its machines stay meanwhile.
        unit.systemctl("start" if same else "restart", UNIT)
    click.echo(
        f"{UNIT} starts with this machine" + (", and has been started" if now else "; --now starts it now")
    )
    click.echo("to take it back: updraft service install --undo")


@service.command(short_help="Is the daemon at work, and does it act?")
@json_option
@click.pass_obj
def status(call: Call, as_json: bool) -> None:
    """Say whether the daemon is at work, since when, when it last looked, and whether it acts or waits.

    Exit code 1 where it isn't at work.
    """
    document = status_document(call, time.time())
    if as_json:
        say_json(document)
    else:
        for line in status_lines(document):
            click.echo(line)
    if not document.daemon or not document.daemon.alive:
        raise ProblemFound("no daemon is at work; `updraft service logs` says what it said last")


class ServiceStatus(Document):
    """The daemon as systemd and the ledger show it."""

    unit: Annotated[UnitState | None, "The unit; null without systemd."]
    daemon: Annotated[DaemonState | None, "The daemon; null where none has ever run."]


def status_document(call: Call, now: float) -> ServiceStatus:
    """What systemd and the ledger say of the daemon. Either may say nothing: then it is None."""
    try:
        with Reader(call.place.ledger) as reader:
            return ServiceStatus(unit.unit_state(), daemon_state(reader, now))
    except LedgerError:  # none yet: it has never run
        return ServiceStatus(unit.unit_state(), None)


def status_lines(document: ServiceStatus) -> list[str]:
    """The same in words."""
    installed, daemon = document.unit, document.daemon
    if installed is None:
        lines = ["systemd is not at work on this machine"]
    elif not installed.installed:
        lines = [f"{UNIT} is not installed; `updraft service install --now` does that"]
    else:
        boot = "starts with the machine" if installed.enabled else "does not start with the machine"
        lines = [f"{UNIT} is {installed.state} and {boot}"]
    if daemon is None or daemon.looked_at is None:
        return [*lines, "no daemon has looked at this pool yet"]
    where = f" on {daemon.host}" if daemon.host else ""
    since = f", since {clock(daemon.since)}" if daemon.since else ""
    lines.append(
        f"the daemon{where} {'runs' if daemon.alive else 'does not run'}{since if daemon.alive else ''}"
    )
    lines.append(f"its last cycle was {ago(daemon.age or 0.0)} ago")
    if daemon.alive:
        why = f": {daemon.standing['text']}" if daemon.standing else ""
        lines.append("it acts" if daemon.acting else f"it waits{why}")
    return lines


@service.command(short_help="Show what the daemon says.")
@click.option("--follow", "-f", is_flag=True, help="Stay, and show what is added; Ctrl-C ends it.")
@click.option(
    "--lines", "-n", default=50, show_default=True, type=click.IntRange(min=0), help="So many at first."
)
def logs(follow: bool, lines: int) -> None:
    """Show what the daemon says: the journal's part of it, or its log file where there is no journal."""
    words = unit.log_command(follow, lines)
    sys.stdout.flush()
    os.execvp(words[0], list(words))  # noqa: S606  # the terminal is the command's
