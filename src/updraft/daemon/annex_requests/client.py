"""How a user's `updraft annex` asks the daemon, who can read neither its configuration nor its ledger."""

import contextlib
import os
import socket
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from updraft.config.tables.annexes import SOCKET
from updraft.daemon.annex_requests import wire
from updraft.errors import ProblemFound, UsageError

PLACE = "UPDRAFT_ANNEX_SOCKET"
_PATIENCE = 30.0
_AGAIN = 0.1
# For how long it is asked again by itself: one's own last call may still be ending; a daemon listens for
# others before it acts.
_FOR_A_WHILE = {"busy": 5.0, "starting": _PATIENCE}


def place() -> Path:
    """Where the daemon of this machine listens, as far as a user can tell."""
    return Path(os.environ.get(PLACE) or SOCKET)


def ask(verb: str, *, at: Path | None = None, seconds: float = _PATIENCE, **fields: Any) -> dict[str, Any]:
    """What the daemon answers: for the verbs and their fields see `desk`. Fields that are None are left out.

    Raises UsageError with the daemon's sentence where it refuses, ProblemFound where it can't take it up now,
    none answers, or one that isn't the superuser's.
    """
    where, begun = at or place(), time.monotonic()
    question = {"verb": verb, **{name: value for name, value in fields.items() if value is not None}}
    answer = _asked(where, question, seconds)
    while time.monotonic() < begun + min(seconds, _FOR_A_WHILE.get(str(answer.get("code")), 0.0)):
        time.sleep(_AGAIN)
        answer = _asked(where, question, seconds)
    if answer.get("ok") is True:
        return answer
    raise (UsageError if answer.get("code") == "refused" else ProblemFound)(
        str(answer.get("text", "refused"))
    )


def _asked(where: Path, question: Mapping[str, Any], seconds: float) -> dict[str, Any]:
    try:
        with contextlib.closing(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)) as connection:
            connection.settimeout(seconds)
            connection.connect(str(where))
            if wire.peer(connection) not in (0, os.geteuid()):
                raise ProblemFound(f"what listens at {where} is not run by root: nothing was asked of it")
            with contextlib.suppress(BrokenPipeError):  # refused unread: the answer says why
                wire.send(connection, question, seconds)
            return wire.receive(connection, wire.LONGEST_ANSWER, seconds)
    except wire.MalformedError as error:
        raise ProblemFound(f"the answer of updraft at {where} can't be read: {error}") from error
    except OSError as error:
        raise ProblemFound(
            f"updraft takes no requests for annexes at {where} ({error.strerror or error}): its daemon has "
            "to run, and [annexes] in updraft.toml to allow users annexes of their own"
        ) from error
