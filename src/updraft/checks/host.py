"""What is to be known of this machine: versions, the configuration file, the state directory, the daemon."""

import os
import platform
import shutil
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from updraft import __version__
from updraft.checks.finding import Area, Finding
from updraft.config.model import Settings
from updraft.config.values.units import spell
from updraft.core.machines.cooldowns import CLOUD_ERROR, NEVER_JOINED
from updraft.core.model import MachineRecord
from updraft.daemon.election import WATCHES
from updraft.documents.cycle import DaemonState
from updraft.errors import LedgerError
from updraft.ledger.identity import Host, elsewhere, found

HERE = Area("here")
LITTLE_ROOM = 1 << 30
NO_ROOM = 100 << 20
NEWEST_PYTHON = (3, 14)
FAILED_ENDS = (NEVER_JOINED, CLOUD_ERROR)
BOOT_FAILED = "updraft-boot: FAILED"  # what a worker's boot says on its console
_SHOWN = 3
_CONSOLE_LINES = 3
_CONSOLE_LETTERS = 240
_START = "start it: `updraft service install --now`, or `updraft run` in a terminal"


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """What the ledger says. `daemon` is None where there is no ledger; `error` why it can't be read.

    `failed` are the machines of the last day that never joined,
    the latest first, each with the end of its console. `warnings` are codes and sentences of its last look,
    `not_ending` the machines that their clouds did not end when they were told to. `unseen` is how many
    machines of each cloud were given their tokens within the last day without a sign that they were these.
    """

    daemon: DaemonState | None = None
    failed: Sequence[tuple[MachineRecord, str]] = ()
    warnings: Sequence[tuple[str, str]] = ()
    not_ending: Sequence[MachineRecord] = ()
    unseen: Mapping[str, int] = field(default_factory=dict)
    error: str = ""


def versions() -> Iterator[Finding]:
    """updraft and Python."""
    text = f"updraft {__version__}, Python {platform.python_version()}"
    if tuple(map(int, platform.python_version_tuple()[:2])) > NEWEST_PYTHON:
        newest = ".".join(map(str, NEWEST_PYTHON))
        yield HERE.warning("versions", f"{text}: a newer Python than was tried", f"use Python {newest}")
    else:
        yield HERE.ok("versions", text)


def configuration(file: Path, settings: Settings) -> Iterator[Finding]:
    """The file is right, and only its owner may change it."""
    mode = file.stat().st_mode
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        yield HERE.warning(
            "configuration",
            f"{file} may be changed by others than its owner, who thereby are root of the pool",
            f"chmod go-w {file}",
        )
    else:
        classes, clouds = ", ".join(settings.classes), ", ".join(settings.clouds)
        yield HERE.ok("configuration", f"{file} is right: class {classes} on {clouds}")
    limits = settings.limits
    if limits.machines is limits.cores is limits.memory is limits.cost_per_hour is None:
        caps = [one.max for one in settings.classes.values()]
        if any(cap is None for cap in caps):
            yield HERE.warning(
                "limits",
                "nothing limits how much is bought but the clouds' own quotas",
                "write machines, cores or cost_per_hour into [limits]",
            )


def state_dir(path: Path) -> Iterator[Finding]:
    """The state directory can be written, and its disk has room."""
    there = next(one for one in (path, *path.parents) if one.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        yield HERE.problem(
            "state directory",
            f"{path} can't be written by this user",
            f"run as the owner of {there}, or set state_dir in [pool]",
        )
        return
    free = shutil.disk_usage(there).free
    text = f"{free / (1 << 30):.1f} GiB are free in {path}"
    if free < NO_ROOM:
        yield HERE.problem("disk", text, "make room: without it nothing is launched")
    elif free < LITTLE_ROOM:
        yield HERE.warning("disk", text, "make room before the ledger has none")
    else:
        yield HERE.ok("disk", text)


def identity(path: Path, here: Host) -> Iterator[Finding]:
    """This host is the one that the pool's identity was made for."""
    try:
        known = found(path)
    except LedgerError as error:
        yield HERE.problem("identity", str(error), "see docs/howto/head.md, another host")
        return
    if known is None:
        yield HERE.ok("identity", "none yet: the daemon makes it at its first start")
        return
    why = elsewhere(known, here)
    if why is None:
        blind = "; it says nothing by which a copy of it could be told" if here == Host() else ""
        yield HERE.ok("identity", f"this host is the head of the pool (identity {known.pool}){blind}")
    else:
        yield HERE.problem("identity", why.text, "see docs/howto/head.md, another host")


def daemon(facts: LedgerFacts) -> Iterator[Finding]:
    """A daemon looks at the pool, and acts."""
    if facts.error:
        yield HERE.problem("ledger", facts.error, "see docs/howto/troubleshooting.md, the ledger")
        yield HERE.skipped("daemon", "the ledger, in which it says that it lives, can't be read")
        return
    seen = facts.daemon
    if seen is None or seen.looked_at is None:
        yield HERE.problem("daemon", "no daemon has ever run with this configuration", _START)
    elif not seen.alive:
        host = f" on {seen.host}" if seen.host else ""
        yield HERE.problem("daemon", f"no daemon is at work; the last{host} looked {_ago(seen)}", _START)
    elif seen.standing and seen.standing["code"] == WATCHES.code:
        yield HERE.ok("daemon", f"looked {_ago(seen)}; {WATCHES.text}; `updraft report` tells what it saw")
    elif not seen.acting and seen.standing:
        yield HERE.warning(
            "daemon",
            f"it runs and doesn't act: {seen.standing['text']}",
            "wait, or stop the controller that is named, if it shouldn't be there",
        )
    else:
        yield HERE.ok("daemon", f"process {seen.pid} on {seen.host} looked {_ago(seen)}")


def boots(facts: LedgerFacts) -> Iterator[Finding]:
    """Machines of the last day that never joined, with what they said at the end."""
    if facts.daemon is None:
        yield HERE.skipped("boots", "there is no ledger, so nothing is known of machines that didn't join")
        return
    if not facts.failed:
        yield HERE.ok("boots", "every machine of the last day that was to join has joined, or still may")
        return
    for record, console in facts.failed[:_SHOWN]:
        end = record.end.text if record.end else "it never joined"
        said = last_words(console)
        said = f"; its console ends: {said}" if said else "; it left no console"
        yield HERE.warning(
            f"boot of {record.id}",
            f"{end} ({record.image}, {record.flavor}){said}",
            f"updraft explain {record.id} shows all of its console",
        )
    more = len(facts.failed) - _SHOWN
    if more > 0:
        yield HERE.warning("boots", f"{more} more machines never joined", "updraft machines --all")


def never_joined(records: Sequence[MachineRecord]) -> list[MachineRecord]:
    """Those of these machines that ended without having joined, the latest first."""
    failed = [one for one in records if one.end is not None and one.end.code in FAILED_ENDS]
    return sorted(failed, key=lambda one: one.requested_at, reverse=True)


def not_ended(records: Sequence[MachineRecord]) -> list[MachineRecord]:
    """Those of these machines that stay although their clouds were told to end them."""
    return [one for one in records if one.ended_at is None and one.end_failed is not None]


def ends(facts: LedgerFacts, cloud: str, now: float) -> Iterator[Finding]:
    """Machines that this cloud did not end when it was told to: they stay, and are paid for."""
    area, records = Area(f"cloud {cloud}"), [one for one in facts.not_ending if one.cloud == cloud]
    for record in records[:_SHOWN]:
        since = record.end_failed_at or record.terminate_asked_at or now
        why = record.end_failed.text if record.end_failed else ""
        yield area.problem(
            f"end of {record.id}",
            f"{cloud} has not ended it for {spell(round(max(0.0, now - since)))}, and it costs on: {why}",
            "let the credentials of this cloud end machines, or end it there by hand; it is asked again",
        )
    more = len(records) - _SHOWN
    if more > 0:
        yield area.problem("ends", f"{more} more machines that it does not end", "updraft machines")


def last_words(console: str) -> str:
    """What a console says of the failure, in one line: the boot's own line, else its last lines."""
    lines = ["".join(filter(str.isprintable, line)).strip() for line in console.splitlines()]
    lines = [line for line in lines if line]
    own = [line for line in lines if BOOT_FAILED in line]
    return " | ".join(own[-1:] or lines[-_CONSOLE_LINES:])[-_CONSOLE_LETTERS:]


def _ago(seen: DaemonState) -> str:
    return f"{spell(round(seen.age or 0.0))} ago"
