"""Who looks: by a link that was good once, by the session that it began, or by a proxy's word.

A link and a session are a name and times under a key that only the ledger's owner can read. The key outlives
the page's process, so that sessions do; which links were used is remembered by the process, so that a link
from before its start is none any more.
"""

import base64
import hashlib
import hmac
import json
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from updraft.errors import LedgerError

KEY_FILE = "web.key"
LINK_LIVES = 300.0
COOKIE = "updraft"
MOST_TEXT = 1024
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]{0,63}")
"""What a user may be called here: the bare name, as the schedd has it for the jobs' owner."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who may look: `name` is "" for an operator who came with a link for nobody in particular."""

    name: str
    operator: bool


def kept_key(state_dir: Path) -> bytes:
    """The key beside the ledger; made now where there is none. Raises LedgerError."""
    path = state_dir / KEY_FILE
    try:
        fresh = path.with_name(f".{KEY_FILE}.{os.getpid()}")
        if not path.exists():
            fresh.touch(mode=0o600)
            fresh.write_text(secrets.token_hex(32), encoding="ascii")
            try:
                os.link(fresh, path)  # never in place of one that another process has just made
            except FileExistsError:
                pass
            finally:
                fresh.unlink()
        return known_key(state_dir)
    except OSError as error:
        raise LedgerError(f"{path} can't be written ({error.strerror}): run as the ledger's owner") from error


def known_key(state_dir: Path) -> bytes:
    """The key that is there. Raises LedgerError where there is none, or who calls may not read it."""
    path = state_dir / KEY_FILE
    try:
        key = bytes.fromhex(path.read_text(encoding="ascii").strip())
    except FileNotFoundError as error:
        raise LedgerError(f"there is no {path} yet: start the page with `updraft web`") from error
    except OSError as error:
        raise LedgerError(
            f"{path} can't be read ({error.strerror}): call this as the ledger's owner"
        ) from error
    except ValueError as error:
        raise LedgerError(f"{path} is damaged: remove it, and start `updraft web` anew") from error
    if len(key) < 32:
        raise LedgerError(f"{path} is damaged: remove it, and start `updraft web` anew")
    return key


def link(key: bytes, user: str, now: float) -> str:
    """What opens the page once, for LINK_LIVES seconds: for this user, or with "" for an operator."""
    return _signed(
        key, "link", {"who": user, "at": now, "until": now + LINK_LIVES, "one": secrets.token_hex(8)}
    )


class Visitors:
    """Who may look, by the key. `started` is when this process began, `session` how long one lasts."""

    def __init__(self, key: bytes, operators: tuple[str, ...], session: float, started: float) -> None:
        self._key = key
        self._operators = frozenset(operators)
        self._session = session
        self._started = started
        self._used: dict[str, float] = {}

    def called(self, name: str) -> Visitor | None:
        """The visitor of this name; None for what is no name."""
        return Visitor(name, name in self._operators) if NAME.fullmatch(name) else None

    def opened(self, text: str, now: float) -> str | None:
        """The session that a link begins, as a cookie's text; None for a link that isn't good or was used."""
        said = _read(self._key, "link", text, now)
        if said is None or said["at"] < self._started or said["one"] in self._used:
            return None
        self._used = {one: until for one, until in self._used.items() if until > now} | {
            said["one"]: said["until"]
        }
        return _signed(self._key, "session", {"who": said["who"], "until": now + self._session})

    def of_session(self, text: str, now: float) -> Visitor | None:
        """Whose session this is; None for one that isn't good."""
        said = _read(self._key, "session", text, now)
        if said is None:
            return None
        return self.called(said["who"]) if said["who"] else Visitor("", operator=True)

    @property
    def session(self) -> int:
        """How many seconds a session lasts."""
        return int(self._session)


def _signed(key: bytes, what: str, said: dict[str, Any]) -> str:
    body = base64.urlsafe_b64encode(json.dumps(said).encode()).decode().rstrip("=")
    return f"{body}.{_seal(key, what, body)}"


def _seal(key: bytes, what: str, body: str) -> str:
    return hmac.new(key, f"{what} {body}".encode(), hashlib.sha256).hexdigest()


def _read(key: bytes, what: str, text: str, now: float) -> dict[str, Any] | None:
    body, _, seal = text.partition(".")
    if len(text) > MOST_TEXT or not text.isascii() or not hmac.compare_digest(_seal(key, what, body), seal):
        return None
    # It is our own: nobody else can seal it.
    said: dict[str, Any] = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    return said if said["until"] > now else None
