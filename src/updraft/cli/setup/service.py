"""`updraft service`: the systemd unit of the daemon, where no `updraft userdata head` has put it."""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import updraft
from updraft import config
from updraft.app.call import Call
from updraft.cli.output import ago, clock, json_option, say_json
from updraft.cli.watching.documents import daemon_state
from updraft.errors import ConfigError, LedgerError, ProblemFound, UsageError

if TYPE_CHECKING:
    from updraft.config.model import Settings
    from updraft.provision.setup.book import Book
    from updraft.provision.setup.tree import Change, Tree

UNIT = "updraft.service"
STATE = "/var/lib/updraft/service-install"
UNITS = Path("/etc/systemd/system")
# Where the code of this very program is: the interpreter, the libraries, its own.
CODE = (
    Path(sys.executable),
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
    Path(updraft.__file__).parent,
)
SYSTEMD = Path("/run/systemd/system")  # there while systemd is process 1, and only then
LOG = Path("/var/log/updraft.log")
UNWRITABLE = ("/etc", "/usr", "/boot", "/home", "/root")  # to the service, by its unit
USUAL_PROGRAM = "/usr/local/bin/updraft"
USUAL_FILE = Path("/etc/updraft/updraft.toml")
USUAL_MOUNTS = "/etc/updraft /var/lib/updraft"  # whose disks the unit waits for


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
        _needs_systemd()
        _uninstall()
        return
    file = Path(call.file).resolve()
    text = unit_text(file)
    target = str(UNITS / UNIT)
    if dry_run:
        click.echo(f"# {target}\n{text}", nl=False)
        return
    settings = config.load(file)
    check_state_dir(settings.pool.state_dir)
    _needs_systemd()
    check_roots_own(settings, file)
    same = _enabled(target, text, replaces=replaces)
    if now:
        # Of one that runs already, a changed unit is taken up by a restart: its machines stay meanwhile.
        _systemctl("start" if same else "restart", UNIT)
    click.echo(
        f"{UNIT} starts with this machine" + (", and has been started" if now else "; --now starts it now")
    )
    click.echo("to take it back: updraft service install --undo")


def _enabled(target: str, text: str, *, replaces: bool) -> bool:
    """Write the unit and have it start with the machine, both or neither; was it there as it is to be?"""
    from updraft.provision.setup.tree import State, Wanted, compare

    tree = _tree()
    book = tree.book()
    (change,) = compare(tree, book, [Wanted(target, text)])
    if not replaces:
        _refuse_conflict(change)
    back = _write(tree, book, change)
    same = change.state is State.SAME
    click.echo(f"# {target}{' (as it was)' if same else ''}\n{text}", nl=False)
    try:
        _systemctl("daemon-reload")
        _systemctl("enable", UNIT)
    except BaseException:
        back()
        raise
    return same


def _tree() -> "Tree":
    from updraft.provision.setup.tree import Tree

    return Tree(Path("/"), STATE)


def _write(tree: "Tree", book: "Book", change: "Change") -> Callable[[], None]:
    """Write the unit, and note of one that was there whether it was at work; returns what takes it back."""
    from updraft.provision.setup.applying import apply
    from updraft.provision.setup.tree import State

    if change.state is State.SAME:
        return lambda: None
    was = {word: _is(word) for word in ("active", "enabled")} if change.state is State.FOREIGN else {}
    return apply(tree, book, [change], {**book.facts, **was})


def _refuse_conflict(change: "Change") -> None:
    """Raise UsageError where the unit that is there is somebody else's, or the work of `head init`."""
    from updraft.provision.setup import steps
    from updraft.provision.setup.files import UNIT as OF_THE_HEAD
    from updraft.provision.setup.tree import State, Tree

    if change.state is State.FOREIGN and OF_THE_HEAD in Tree().book().files:
        raise UsageError(f"{change.path} was written by `updraft head init`: run that again, it renews it")
    steps.refuse_conflicts([change])


def check_state_dir(state_dir: Path) -> None:
    """Raise UsageError where the service couldn't write to this place."""
    if any(state_dir.is_relative_to(place) for place in UNWRITABLE):
        raise UsageError(
            f"the service may not write to {state_dir}: set pool.state_dir to a place below /var/lib"
        )


def check_roots_own(settings: "Settings", file: Path) -> None:
    """Raise UsageError where somebody but root may change what the service would run or read as root."""
    from updraft.provision.setup.strict import changeable_below, first_changeable

    classes = settings.classes.values()
    layers = [layer.name for one in classes for layer in (*one.layers, *one.offered_layers.values())]
    named = [file.parent / name for name in (*layers, settings.pool.condor_config or "") if name != "inline"]
    program = Path(program_here())
    try:
        for what, why, remedy in (
            ("read", first_changeable([file, *named]), f"put it into {USUAL_FILE.parent}"),
            ("write to", first_changeable([settings.pool.state_dir]), "set pool.state_dir to another place"),
            ("run", first_changeable([program, *CODE]), "install updraft as root, into /opt/updraft say"),
            ("run", next(filter(None, map(changeable_below, CODE)), ""), "install updraft as root"),
        ):
            if why:
                raise UsageError(
                    f"the service would {what} as root what others may change: {why}; {remedy}, or give it "
                    "to root alone (chown root, chmod go-w)"
                )
    except OSError as error:
        raise UsageError(f"whether others may change {error.filename} can't be told: {error}") from error


def unit_text(file: Path) -> str:
    """The one unit that ships, with this program and this configuration where they aren't the usual ones."""
    from updraft.bootstrap.machine import shipped

    program = program_here()
    words = program if file == USUAL_FILE else f"{program} --config {file}"
    for path in (program, str(file), str(_state_dir(file))):
        if any(char.isspace() or char in "%$\\\"'" for char in path):
            raise UsageError(f"systemd can't be told of {path} as it is: use a path of plain letters")
    places = f"{file.parent} {_state_dir(file)}"
    return shipped(UNIT).replace(USUAL_PROGRAM, words).replace(USUAL_MOUNTS, places)


def _state_dir(file: Path) -> Path:
    """Where this configuration keeps its ledger; the usual place while that can't be told."""
    try:
        return Path(os.path.normpath(config.place(file).state_dir.absolute()))
    except ConfigError:
        return Path(config.DEFAULT_STATE_DIR)


def program_here() -> str:
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
    """Take the unit back, and what was before; one that isn't as it was written is somebody else's by now."""
    from updraft.provision.setup.applying import aside, unchanged
    from updraft.provision.setup.applying import undo as take_back

    tree, target = _tree(), str(UNITS / UNIT)
    book = tree.book()
    entry = book.files.get(target)
    if entry is None:
        there = tree.read(target) is not None
        what = f"was not written by `updraft service install`: {_BY_HAND}" if there else "is not there"
        click.echo(f"{target} {what}; nothing to undo")
        return
    if not unchanged(tree, entry, target):
        raise UsageError(f"{target} was changed since it was written: {_BY_HAND}")
    _systemctl("disable", "--now", UNIT)
    take_back(tree, book)
    _systemctl("daemon-reload")
    if tree.read(target) is not None:
        for word, verb in (("enabled", "enable"), ("active", "start")):
            if book.facts.get(word):
                _systemctl(verb, UNIT)
        click.echo(f"{UNIT} was stopped, and {target} is what it was before")
    else:
        click.echo(f"{UNIT} was stopped and {target} removed; machines, ledger and settings stay as they are")
    for path in aside(tree):
        click.echo(f"{path} is what was put aside, and stays there")


_BY_HAND = f"it stays; `systemctl disable --now {UNIT}` ends it"


def _is(word: str) -> bool:
    """Is the unit that is there now active, enabled?"""
    done = subprocess.run(["systemctl", f"is-{word}", "--quiet", UNIT], check=False)
    return done.returncode == 0


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
