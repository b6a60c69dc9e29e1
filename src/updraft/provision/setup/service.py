"""The systemd unit of the daemon, written and taken back where no `updraft userdata head` has put it."""

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import updraft
from updraft import config
from updraft.bootstrap.machine import shipped
from updraft.config.model import Settings
from updraft.documents import Document
from updraft.errors import ConfigError, ProblemFound, UsageError
from updraft.provision.setup import steps
from updraft.provision.setup.applying import apply, aside, unchanged
from updraft.provision.setup.applying import undo as take_back
from updraft.provision.setup.book import Book
from updraft.provision.setup.files import UNIT as OF_THE_HEAD
from updraft.provision.setup.strict import changeable_below, first_changeable
from updraft.provision.setup.tree import Change, State, Tree, Wanted, compare

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


def unit_path() -> str:
    """Where the unit is."""
    return str(UNITS / UNIT)


def enabled(text: str, say: Callable[[str], None], *, replaces: bool) -> bool:
    """Write the unit, show it, and have it start with the machine, all or nothing; was it there as it is?

    Raises UsageError where another's is in the way, ProblemFound where systemd refuses.
    """
    tree, target = _tree(), unit_path()
    book = tree.book()
    (change,) = compare(tree, book, [Wanted(target, text)])
    if not replaces:
        _refuse_conflict(change)
    back = _write(tree, book, change)
    same = change.state is State.SAME
    shown = text.removesuffix("\n")
    say(f"# {target}{' (as it was)' if same else ''}\n{shown}")
    try:
        systemctl("daemon-reload")
        systemctl("enable", UNIT)
    except BaseException:
        back()
        raise
    return same


def _tree() -> Tree:
    return Tree(Path("/"), STATE)


def _write(tree: Tree, book: Book, change: Change) -> Callable[[], None]:
    """Write the unit, and note of one that was there whether it was at work; returns what takes it back."""
    if change.state is State.SAME:
        return lambda: None
    was = {word: _is(word) for word in ("active", "enabled")} if change.state is State.FOREIGN else {}
    return apply(tree, book, [change], {**book.facts, **was})


def _refuse_conflict(change: Change) -> None:
    """Raise UsageError where the unit that is there is somebody else's, or the work of `head init`."""
    if change.state is State.FOREIGN and OF_THE_HEAD in Tree().book().files:
        raise UsageError(f"{change.path} was written by `updraft head init`: run that again, it renews it")
    steps.refuse_conflicts([change])


def check_state_dir(state_dir: Path) -> None:
    """Raise UsageError where the service couldn't write to this place."""
    if any(state_dir.is_relative_to(place) for place in UNWRITABLE):
        raise UsageError(
            f"the service may not write to {state_dir}: set pool.state_dir to a place below /var/lib"
        )


def check_roots_own(settings: Settings, file: Path) -> None:
    """Raise UsageError where somebody but root may change what the service would run or read as root."""
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


def uninstall(say: Callable[[str], None]) -> None:
    """Take the unit back, and what was before; one that isn't as it was written is somebody else's by now."""
    tree, target = _tree(), unit_path()
    book = tree.book()
    entry = book.files.get(target)
    if entry is None:
        there = tree.read(target) is not None
        what = f"was not written by `updraft service install`: {_BY_HAND}" if there else "is not there"
        say(f"{target} {what}; nothing to undo")
        return
    if not unchanged(tree, entry, target):
        raise UsageError(f"{target} was changed since it was written: {_BY_HAND}")
    systemctl("disable", "--now", UNIT)
    take_back(tree, book)
    systemctl("daemon-reload")
    if tree.read(target) is not None:
        for word, verb in (("enabled", "enable"), ("active", "start")):
            if book.facts.get(word):
                systemctl(verb, UNIT)
        say(f"{UNIT} was stopped, and {target} is what it was before")
    else:
        say(f"{UNIT} was stopped and {target} removed; machines, ledger and settings stay as they are")
    for path in aside(tree):
        say(f"{path} is what was put aside, and stays there")


_BY_HAND = f"it stays; `systemctl disable --now {UNIT}` ends it"


def _is(word: str) -> bool:
    """Is the unit that is there now active, enabled?"""
    done = subprocess.run(["systemctl", f"is-{word}", "--quiet", UNIT], check=False)
    return done.returncode == 0


def has_systemd() -> bool:
    """Is systemd at work on this machine?"""
    return SYSTEMD.is_dir() and shutil.which("systemctl") is not None


def needs_systemd() -> None:
    """Raise ProblemFound where systemd isn't at work here, UsageError where it wouldn't obey."""
    if not has_systemd():
        raise ProblemFound("systemd is not at work on this machine; have what is run `updraft run` instead")
    if os.geteuid() != 0:
        raise UsageError("only root may change the services of this machine; run it with sudo")


def systemctl(*words: str) -> str:
    """What `systemctl` says to these words. Raises ProblemFound where it refuses."""
    done = subprocess.run(["systemctl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ProblemFound(f"`systemctl {' '.join(words)}` failed: {last}")
    return done.stdout


class UnitState(Document):
    """A unit of systemd."""

    installed: Annotated[bool, "It is there."]
    enabled: Annotated[bool, "It starts with the machine."]
    state: Annotated[str, "As systemd calls it."]


def unit_state() -> UnitState | None:
    """Whether the unit is installed and starts with the machine, and its state; None without systemd."""
    if not has_systemd():
        return None
    done = subprocess.run(
        ["systemctl", "show", UNIT, "--property=LoadState,ActiveState,UnitFileState"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = dict(line.split("=", 1) for line in done.stdout.splitlines() if "=" in line)
    enabled = found.get("UnitFileState") == "enabled"
    return UnitState(found.get("LoadState") == "loaded", enabled, found.get("ActiveState", "unknown"))


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
