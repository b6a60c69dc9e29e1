"""Workers' tokens: whose they are, what one says of itself, and the keys that sign them.

A token is HTCondor's (a JWT). Nothing here verifies one: that is the collector's. A key is a file, and its
name is the one that tokens name; a rotated key is `updraft-workers-2` beside `updraft-workers`, and so on.
"""

import base64
import json
import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from updraft.condor.base import OF_MACHINE, WORKER_USER
from updraft.core.machines.handover import ABSENCE
from updraft.errors import PoolError

_BEYOND_NAMES = re.compile(r"[^A-Za-z0-9._-]")
_KEY_BYTES = 64
_SPARE = 300.0  # seconds: a machine looks at its age now and then, and takes time to power off
_HIGHEST = 10**9  # what is behind a dash in a key's name counts up to here


@dataclass(frozen=True, slots=True)
class Claims:
    """The claims of a token; times in seconds since 1970. Nothing of it is secret.

    `expires` None is a token without an end, which updraft never makes.
    """

    identity: str
    id: str
    issued: float
    expires: float | None
    key: str


def life(*, lifetime: float, drain_deadline: float, boot_deadline: float) -> float:
    """For how long the token of a launch is good, in seconds: longer than any machine of it can be there.

    Tokens aren't renewed. A machine counts its lifetime from its boot, which may take until its deadline.
    """
    return boot_deadline + lifetime + drain_deadline + _SPARE


def boot_life(boot_deadline: float) -> float:
    """For how long a token is good, in seconds, that is there to ask for another at the boot.

    As long as a machine may wait for a controller that isn't there.
    """
    return boot_deadline + ABSENCE + _SPARE


def claims(token: str) -> Claims | None:
    """The claims of a token; None for a text that is none."""
    parts = token.strip().split(".")
    if len(parts) != 3:
        return None
    try:
        header, payload = (json.loads(_decoded(part)) for part in parts[:2])
        end = payload.get("exp")
        return Claims(
            str(payload["sub"]),
            str(payload.get("jti", "")),
            float(payload["iat"]),
            None if end is None else float(end),
            str(header.get("kid", "POOL")),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _decoded(part: str) -> bytes:
    return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))


# ------------------------------------------------------------------------------------------------ whose


def user_of(pattern: str, launch: str) -> str:
    """The user part of the identity of a launch; `{launch}` in the pattern is replaced by its key."""
    return pattern.replace("{launch}", _BEYOND_NAMES.sub("-", launch))


def launch_of(identity: str) -> str:
    """The launch (as identities spell it) whose token this identity has; empty where it is no worker's."""
    return _spelled(identity)[0]


def is_of(identity: str, launch: str, instance: str = "") -> bool:
    """May a machine that has shown itself as `identity` say that it is this instance of this launch?

    Of identities that are no worker's nothing is said: a site may let machines in as it likes, and a parent
    collector sees its child's identity only. The token of a launch is that of all its machines.
    """
    shown, machine = _spelled(identity)
    return not shown or (user_of("{launch}", launch) == shown and machine in ("", instance))


def own_user(pattern: str, launch: str, instance: str) -> str:
    """The user part of the identity of one machine. Raises PoolError for an id that no identity can hold."""
    if not instance or _BEYOND_NAMES.search(instance):
        raise PoolError(f"{instance[:100]!r} can't stand in an identity, so it gets no token of its own")
    return f"{user_of(pattern, launch)}{OF_MACHINE}{instance}"


def whose(token: str) -> str:
    """The identity of a token; "" for a text that is none."""
    found = claims(token)
    return found.identity if found else ""


def whole(identity: str) -> str:
    """The identity of the launch that a machine's own identity is of; a launch's is its own."""
    user, _, domain = identity.partition("@")
    return f"{user.partition(OF_MACHINE)[0]}@{domain}"


def is_launchs(identity: str) -> bool:
    """Is this the identity that all machines of a launch have, and no single machine's own?"""
    launch, machine = _spelled(identity)
    return bool(launch) and not machine


def _spelled(identity: str) -> tuple[str, str]:
    """Launch and machine of an identity; a machine only where the token is its own."""
    user = identity.partition("@")[0]
    if not user.startswith(WORKER_USER):
        return "", ""
    launch, _, machine = user.removeprefix(WORKER_USER).partition(OF_MACHINE)
    return launch, machine


# ------------------------------------------------------------------------------------------------ keys


def key_names(folder: Path, base: str) -> list[str]:
    """The keys of this family, the oldest first. None where the folder can't be read."""
    try:
        found = [path.name for path in folder.iterdir() if _number(path.name, base)]
    except OSError:
        return []
    return sorted(found, key=lambda name: _number(name, base))


def newest_key(folder: Path, base: str) -> str:
    """The name of the key that signs now; `base` where none is there, or none can be seen."""
    names = key_names(folder, base)
    return names[-1] if names else base


def make_key(folder: Path, base: str) -> str:
    """Make the next key of this family, readable by root alone; its name. Raises PoolError."""
    names = key_names(folder, base)
    name = f"{base}-{_number(names[-1], base) + 1}" if names else base
    new = folder / f".{name}.new"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        new.unlink(missing_ok=True)
        handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            # Text, because a key with a zero byte in it is cut there by older releases.
            file.write(base64.b64encode(secrets.token_bytes(_KEY_BYTES)))
            file.flush()
            os.fsync(file.fileno())
        new.rename(folder / name)
    except OSError as error:
        raise PoolError(f"the key {folder / name} can't be made ({error.strerror}): run as root") from error
    return name


def drop_keys(folder: Path, names: Iterable[str]) -> None:
    """Remove these keys: what they have signed is good no more. Raises PoolError."""
    for name in names:
        try:
            (folder / name).unlink(missing_ok=True)
        except OSError as error:
            raise PoolError(f"{folder / name} can't be removed ({error.strerror}): run as root") from error


def _number(name: str, base: str) -> int:
    """Which key of its family it is, from 1; 0 for a file that is none."""
    if name == base:
        return 1
    rest = name.removeprefix(f"{base}-")
    if rest == name or not re.fullmatch(r"[1-9][0-9]{0,8}", rest):
        return 0
    return int(rest) if 1 < int(rest) < _HIGHEST else 0
