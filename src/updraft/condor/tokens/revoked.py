"""Tokens that are good no more, as HTCondor's configuration on the head, in a file that is read back.

Two settings do it together. SEC_TOKEN_REVOCATION_EXPR is asked when somebody authenticates with a token: no
new session. DENY_ADVERTISE_* and DENY_READ are asked at each command, also on a session or a connection that
is open: the old ones are worth nothing any more. Both hold from `condor_reconfig` on.
"""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from updraft.condor.base import OF_MACHINE, WORKER_USER
from updraft.errors import PoolError

FILE = "/etc/condor/config.d/93-updraft-revoked.conf"
SESSION = 2 * 86400.0
"""For so long an entry stays after its token's end: a session of HTCondor's lives a day."""

_MARK = "# updraft: "
_HEAD = "# Written by updraft, which reads it. To take all of it back: remove it; condor_reconfig\n"


@dataclass(frozen=True, slots=True)
class Revoked:
    """`identities` maps each to when its token ends anyway (None: not known); `before` is for all at once.

    Every worker's token issued up to `before` (seconds since 1970; 0 for none) is revoked.
    """

    identities: Mapping[str, float | None] = field(default_factory=dict)
    before: int = 0

    def has(self, identity: str, issued: float | None = None) -> bool:
        """Is this token revoked?"""
        return identity in self.identities or (issued is not None and issued <= self.before)


def more(known: Revoked, identities: Mapping[str, float | None], before: int, now: float) -> Revoked:
    """What was revoked and these; without those whose token, and any session of it, has ended long since."""
    kept = {
        name: end
        for name, end in {**known.identities, **identities}.items()
        if not end or end + SESSION > now
    }
    return replace(known, identities=kept, before=max(known.before, before))


def text(revoked: Revoked) -> str:
    """The file. Every line of it is the whole truth: nothing is added at run time."""
    names = sorted(revoked.identities)
    for name in names:
        if not name.isascii() or not name.isprintable() or set(name) & set("\"'\\$, "):
            raise PoolError(f"{name!r} is no identity of a worker")
    lines = [_HEAD, _MARK + json.dumps({"before": revoked.before, "identities": revoked.identities}) + "\n"]
    lines.append(f"SEC_TOKEN_REVOCATION_EXPR = {_expression(names, revoked.before)}\n")
    if names:
        denied = " ".join(who for name in names for who in _everyone(name))
        lines += [f"{setting} = {_so_far(setting)} {denied}\n" for setting in _DENIED]
    return "".join(lines)


# The second is what counts where the first isn't set: what the site denies so far stays denied.
_DENIED = {
    "COLLECTOR.DENY_ADVERTISE_STARTD": ("DENY_ADVERTISE_STARTD", "DENY_DAEMON"),
    "COLLECTOR.DENY_ADVERTISE_MASTER": ("DENY_ADVERTISE_MASTER", "DENY_DAEMON"),
    "COLLECTOR.DENY_READ": ("DENY_READ", "UPDRAFT_NOTHING"),
    # Machines register at a broker by the first, at one of before by the last, and ask there by the second.
    "BROKER.DENY_ADVERTISE_MASTER": ("DENY_ADVERTISE_MASTER", "DENY_DAEMON"),
    "BROKER.DENY_READ": ("DENY_READ", "UPDRAFT_NOTHING"),
    "BROKER.DENY_DAEMON": ("DENY_DAEMON", "UPDRAFT_NOTHING"),
}


def _everyone(name: str) -> tuple[str, ...]:
    """The identity and, of a whole launch, those of its machines' own tokens."""
    user, _, domain = name.partition("@")
    return (name,) if OF_MACHINE in user else (name, f"{user}{OF_MACHINE}*@{domain}")


def _so_far(setting: str) -> str:
    plain, wider = _DENIED[setting]
    return f"$({setting}:$({plain}:$({wider}:)))"


def _expression(names: Sequence[str], before: int) -> str:
    """True for a revoked token, and a truth value for every other: what is neither counts as revoked."""
    those = ", ".join(f'"{name}"' for name in names)
    parts = ["($(SEC_TOKEN_REVOCATION_EXPR:False))", f"(member(sub, {{ {those} }}) =?= true)"]
    if any(OF_MACHINE not in name for name in names):
        launch = f'split(split(sub, "@")[0], "{OF_MACHINE}")[0]'
        parts.append(f'(member(strcat({launch}, "@", split(sub, "@")[1]), {{ {those} }}) =?= true)')
    if before:
        mine = f'substr(sub, 0, {len(WORKER_USER)}) =?= "{WORKER_USER}"'
        parts.append(f"(({mine}) && (iat <= {before}) =!= false)")
    return " || ".join(parts)


def read(path: Path) -> Revoked:
    """What the file says; nothing where there is none. Raises PoolError for one that isn't updraft's."""
    try:
        found = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return Revoked()
    except (OSError, UnicodeDecodeError) as error:
        raise PoolError(f"{path} can't be read: {error}") from error
    for line in found.splitlines():
        if line.startswith(_MARK):
            return _parsed(line.removeprefix(_MARK), path)
    raise PoolError(f"{path} was not written by updraft: move it away")


def _parsed(line: str, path: Path) -> Revoked:
    try:
        doc: dict[str, Any] = json.loads(line)
        ends = {str(name): None if end is None else float(end) for name, end in doc["identities"].items()}
        return Revoked(ends, int(doc["before"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise PoolError(f"the second line of {path} was changed by hand: it can't be read") from error


def write(path: Path, revoked: Revoked) -> None:
    """Write the file, whole or not at all; everyone may read it. Raises PoolError."""
    new = path.with_name(f".{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o644)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text(revoked))
            file.flush()
            os.fsync(file.fileno())
        new.chmod(0o644)
        new.rename(path)
    except OSError as error:
        raise PoolError(f"{path} can't be written ({error.strerror}): run as root on the head") from error
