"""A worker's old script without the lines that set HTCondor up: that is updraft's own work now.

Only what is plain is left out: whole commands, and here-documents that are written under /etc/condor. A line
that does something else as well stays, and is named.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from updraft.importers.output.report import on_lines

_HERE = re.compile(r"<<-?\s*([\"']?)([A-Za-z_][A-Za-z0-9_]*)\1")
_GOES_ON = re.compile(r"(\\|\||&&)\s*$")
_SEVERAL = re.compile(r";|&&|\|\||\b(then|do|else)\b")
_WRITES = re.compile(r"(>|\btee\b)[^<\n]*(/etc/condor\b|condor_config\b)|/etc/condor/[\w./-]+\s*<<")
_COMMANDS = re.compile(
    r"\bcondor_(store_cred|reconfig|restart|master|on|off)\b"
    r"|\b(usermod|gpasswd)\b.*\bdocker\b.*\bcondor\b"
    r"|\b(service|systemctl|update-rc\.d|chkconfig)\b.*\bcondor\b|/etc/init\.d/condor\b"
)
_REPOSITORY = re.compile(
    r"htcondor.*(sources\.list|apt-key|yum\.repos\.d|\.repo\b)|(apt-key|rpm --import).*htcondor"
)
_INSTALL = re.compile(r"\b(yum|dnf|apt-get|apt|zypper)\b.*?\b(local)?install\b(.*)")
_PACKAGE = re.compile(r"(ht|mini)?condor([-_.=0-9].*|-all.*)?|\S*/(ht)?condor[^/]*\.(rpm|deb)", re.IGNORECASE)
_DOCKER = re.compile(r"\binstall\b.*\bdocker|usermod.*\bdocker\b.*\bcondor\b|gpasswd.*\bdocker\b")
_FETCH = re.compile(r"\bhttp://")


@dataclass(frozen=True, slots=True)
class Script:
    """What is left of a script. `empty` is True where nothing of the site's own is left."""

    text: str = field(repr=False)
    remarks: tuple[str, ...]
    installs_condor: bool
    docker: bool
    empty: bool


@dataclass(frozen=True, slots=True)
class _Block:
    """A command with its continued lines and its here-document; `number` is the line it begins on."""

    number: int
    command: str
    lines: Sequence[str]

    @property
    def span(self) -> range:
        return range(self.number, self.number + len(self.lines))


def without_condor(text: str) -> Script:
    """The script without HTCondor's installation and configuration, and sentences that say what is gone."""
    kept: list[str] = []
    gone: list[int] = []
    doubtful: list[int] = []
    fetches: list[int] = []
    installs = docker = own = False
    for block in _blocks(text.split("\n")):
        kind = _kind(block.command)
        docker = docker or _DOCKER.search(block.command) is not None
        installs = installs or kind == "install"
        if kind and not _mixed(block.command, kind):
            gone += block.span
            kept.append(f": # {_named(block.span)} of the old script: HTCondor is updraft's work")
            continue
        if kind:
            doubtful += block.span
        if _FETCH.search(block.command):
            fetches += block.span
        own = own or _acts(block.command)
        kept += block.lines
    return Script(
        text="\n".join(kept),
        remarks=tuple(_remarks(gone, doubtful, fetches)),
        installs_condor=installs,
        docker=docker,
        empty=not own,
    )


def _blocks(lines: Sequence[str]) -> Iterator[_Block]:
    at = 0
    while at < len(lines):
        end = at
        while _GOES_ON.search(lines[end]) and not lines[at].lstrip().startswith("#") and end + 1 < len(lines):
            end += 1
        command = "\n".join(lines[at : end + 1])
        for found in _HERE.finditer(command if not command.lstrip().startswith("#") else ""):
            stop = next((n for n in range(end + 1, len(lines)) if lines[n].strip() == found[2]), None)
            end = end if stop is None else stop
        yield _Block(at + 1, command, lines[at : end + 1])
        at = end + 1


def _kind(command: str) -> str:
    """What of HTCondor's a command does; empty where it does nothing of the kind."""
    if command.lstrip().startswith("#"):
        return ""
    if _packages(command):
        return "install"
    if _WRITES.search(command):
        return "configuration"
    if _COMMANDS.search(command):
        return "command"
    return "repository" if _REPOSITORY.search(command) else ""


def _packages(command: str) -> list[str]:
    """The packages of HTCondor that a command installs."""
    found = _INSTALL.search(command)
    return [word for word in _words(found[3]) if _PACKAGE.fullmatch(word)] if found else []


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\s;|&]+", text) if word and not word.startswith(("-", "\\"))]


def _mixed(command: str, kind: str) -> bool:
    """True where the line does something besides."""
    if _SEVERAL.search(command):
        return True
    found = _INSTALL.search(command) if kind == "install" else None
    return found is not None and len(_words(found[3])) > len(_packages(command))


def _acts(command: str) -> bool:
    """True for a command that does something: no comment, no mere assignment, no empty line."""
    bare = command.strip()
    return bool(bare) and not bare.startswith("#") and re.fullmatch(r"\w+=.*", bare) is None


def _named(span: Iterable[int]) -> str:
    numbers = list(span)
    return f"line {numbers[0]}" if len(numbers) == 1 else f"lines {numbers[0]}-{numbers[-1]}"


def _remarks(gone: list[int], doubtful: list[int], fetches: list[int]) -> Iterator[str]:
    if gone:
        yield f"what sets HTCondor up was taken out ({on_lines(gone)}): updraft does that"
    if doubtful:
        yield f"HTCondor is set up together with something else ({on_lines(doubtful)}): look there"
    if fetches:
        yield f"something is fetched over http, where nothing proves what it is ({on_lines(fetches)})"
