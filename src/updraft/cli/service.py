"""`updraft service`: the systemd unit of the daemon, where no `updraft userdata head` has put it."""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from updraft import config
from updraft.cli.documents import daemon_state
from updraft.cli.main import Call
from updraft.cli.output import ago, clock, json_option, say_json
from updraft.errors import LedgerError, ProblemFound, UsageError

UNIT = "updraft.service"
UNITS = Path("/etc/systemd/system")
SYSTEMD = Path("/run/systemd/system")  # there while systemd is process 1, and only then
LOG = Path("/var/log/updraft.log")
UNWRITABLE = ("/etc", "/usr", "/boot", "/home", "/root")  # to the service, by its unit
USUAL_PROGRAM = "/usr/local/bin/updraft"
USUAL_FILE = Path("/etc/updraft/updraft.toml")


@click.group()
def service() -> None:
    """Look after updraft's service on the head."""


@service.command(short_help="Write the systemd unit, and have it start with the machine.")
@click.option("--now", is_flag=True, help="Start it at once, not only at the next boot.")
@click.option("--undo", is_flag=True, help="Stop it and remove the unit. Machines, ledger and settings stay.")
@click.option("--dry-run", is_flag=True, help="Show what would be written, and do nothing.")
@click.pass_obj
def install(call: Call, now: bool, undo: bool, dry_run: bool) -> None:
    """Write the systemd unit, show it, and have it start with the machine. Takes root.

    The unit runs this very updraft with the configuration that is in force here; both are checked first.
    """
    if undo:
        _needs_systemd()
        _uninstall()
        return
    text = unit_text(Path(call.file).resolve())
    if dry_run:
        click.echo(f"# {UNITS / UNIT}\n{text}", nl=False)
        return
    state_dir = config.load(call.file).pool.state_dir
    if any(state_dir.is_relative_to(place) for place in UNWRITABLE):
        raise UsageError(
            f"the service may not write to {state_dir}: set pool.state_dir to a place below /var/lib"
        )
    _needs_systemd()
    target = UNITS / UNIT
    before = target.read_text(encoding="utf-8") if target.exists() else None
    target.write_text(text, encoding="utf-8")
    click.echo(f"# {target}{' (as it was)' if before == text else ''}\n{text}", nl=False)
    _systemctl("daemon-reload")
    _systemctl("enable", UNIT)
    if now:
        # Of one that runs already, a changed unit is taken up by a restart: its machines stay meanwhile.
        _systemctl("restart" if before != text else "start", UNIT)
    click.echo(
        f"{UNIT} starts with this machine" + (", and has been started" if now else "; --now starts it now")
    )
    click.echo("to take it back: updraft service install --undo")


def unit_text(file: Path) -> str:
    """The one unit that ships, with this program and this configuration where they aren't the usual ones."""
    from updraft.bootstrap.machine import shipped

    program = _program()
    words = program if file == USUAL_FILE else f"{program} --config {file}"
    if any(char.isspace() or char in "%$\\\"'" for char in f"{program}{file}"):
        raise UsageError(f"systemd can't be told of {file} as it is: use a path of plain letters")
    return shipped(UNIT).replace(USUAL_PROGRAM, words)


def _program() -> str:
    """The program that runs now, by a path that stays."""
    beside = Path(sys.executable).parent / "updraft"
    found = shutil.which("updraft")
    if found and (not beside.is_file() or Path(found).resolve() == beside.resolve()):
        return str(Path(found).absolute())  # perhaps a link to it, in a better known place
    if beside.is_file():
        return str(beside)
    raise UsageError(
        "the program `updraft` is not on the PATH; install it with pip, then call it by its name"
    )


def _uninstall() -> None:
    target = UNITS / UNIT
    if not target.exists():
        click.echo(f"{target} is not there: nothing to undo")
        return
    _systemctl("disable", "--now", UNIT)
    target.unlink()
    _systemctl("daemon-reload")
    click.echo(f"{UNIT} was stopped and {target} removed; machines, ledger and settings stay as they are")


def has_systemd() -> bool:
    """Is systemd at work on this machine?"""
    return SYSTEMD.is_dir() and shutil.which("systemctl") is not None


def _needs_systemd() -> None:
    if not has_systemd():
        raise ProblemFound("systemd is not at work on this machine; have what is run `updraft run` instead")
    if os.geteuid() != 0:
        raise UsageError("only root may change the services of this machine; run it with sudo")


def _systemctl(*words: str) -> str:
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ProblemFound(f"`systemctl {' '.join(words)}` failed: {last}")
    return done.stdout


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
    if not document["daemon"] or not document["daemon"]["alive"]:
        raise ProblemFound("no daemon is at work; `updraft service logs` says what it said last")


def status_document(call: Call, now: float) -> dict[str, Any]:
    """What systemd and the ledger say of the daemon. Either may say nothing: then it is None."""
    from updraft.ledger.reader import Reader

    try:
        with Reader(call.place.ledger) as reader:
            daemon: dict[str, Any] | None = daemon_state(reader, now)
    except LedgerError:  # none yet: it has never run
        daemon = None
    return {"unit": _unit_state(), "daemon": daemon}


def _unit_state() -> dict[str, Any] | None:
    if not has_systemd():
        return None
    done = subprocess.run(
        ["systemctl", "show", UNIT, "--property=LoadState,ActiveState,UnitFileState"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    return {
        "installed": found.get("LoadState") == "loaded",
        "enabled": found.get("UnitFileState") == "enabled",
        "state": found.get("ActiveState", "unknown"),
    }


def status_lines(document: dict[str, Any]) -> list[str]:
    """The same in words."""
    unit, daemon = document["unit"], document["daemon"]
    if unit is None:
        lines = ["systemd is not at work on this machine"]
    elif not unit["installed"]:
        lines = [f"{UNIT} is not installed; `updraft service install --now` does that"]
    else:
        boot = "starts with the machine" if unit["enabled"] else "does not start with the machine"
        lines = [f"{UNIT} is {unit['state']} and {boot}"]
    if daemon is None or daemon["looked_at"] is None:
        return [*lines, "no daemon has looked at this pool yet"]
    where = f" on {daemon['host']}" if daemon["host"] else ""
    since = f", since {clock(daemon['since'])}" if daemon["since"] else ""
    lines.append(
        f"the daemon{where} {'runs' if daemon['alive'] else 'does not run'}{since if daemon['alive'] else ''}"
    )
    lines.append(f"its last cycle was {ago(daemon['age'])} ago")
    if daemon["alive"]:
        why = f": {daemon['standing']['text']}" if daemon["standing"] else ""
        lines.append("it acts" if daemon["acting"] else f"it waits{why}")
    return lines


@service.command(short_help="Show what the daemon says.")
@click.option("--follow", "-f", is_flag=True, help="Stay, and show what is added; Ctrl-C ends it.")
@click.option(
    "--lines", "-n", default=50, show_default=True, type=click.IntRange(min=0), help="So many at first."
)
def logs(follow: bool, lines: int) -> None:
    """Show what the daemon says: the journal's part of it, or its log file where there is no journal."""
    words = log_command(follow, lines)
    sys.stdout.flush()
    os.execvp(words[0], list(words))  # noqa: S606  # the terminal is the command's


def log_command(follow: bool, lines: int) -> Sequence[str]:
    """The command that shows the log. Raises ProblemFound where there is none."""
    if has_systemd() and shutil.which("journalctl"):
        tail = ["--follow"] if follow else ["--no-pager"]
        return ["journalctl", f"--unit={UNIT}", f"--lines={lines}", *tail]
    if LOG.exists():
        return ["tail", f"--lines={lines}", *(["--follow=name", "--retry"] if follow else []), str(LOG)]
    raise ProblemFound(
        f"there is no journal and no {LOG} on this machine; what the daemon did is in `updraft events`"
    )
