"""When the credentials of a project end, as far as Keystone says it.

What a token is told with says what it was asked for with (Keystone's `render_token`): an application
credential or a trust, each of which has an end that its owner may ask for, restricted or not (the Identity
API's "Show application credential details" and OS-TRUST's "Get trust"); or a password, whose end is that of
`password_expires_at`. A token in the configuration ends itself. Where access rules let a credential ask for
nothing of the kind, nobody knows.
"""

import math
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from updraft.clouds.openstack.client import IDENTITY, Connection
from updraft.clouds.openstack.errors import Garbled
from updraft.errors import CloudError

AGAIN = 3600.0
"""Seconds from one question to the next: they are changed by people."""


class Credentials:
    """When those of one connection end; asked now and then, whenever `look` is called."""

    def __init__(self, connection: Connection, clock: Callable[[], float] = time.monotonic) -> None:
        self._connection = connection
        self._clock = clock
        self._asked = -math.inf
        self.end: float | None = None
        """Unix time; None where they don't end, or nobody says it."""

    def look(self) -> None:
        """Ask where it is time to. What can't be had leaves what was known: nothing else waits for it."""
        if self._clock() - self._asked < AGAIN:
            return
        self._asked = self._clock()
        with suppress(CloudError), self._connection.translate("asking when the credentials end"):
            self.end = self._found()

    def _found(self) -> float | None:
        token = self._connection.token()
        if self._connection.token_given:
            return moment(token.get("expires_at"))
        if (own := token.get("application_credential")) is not None:
            path = f"/users/{_id(token['user'])}/application_credentials/{_id(own)}"
            return self._of(path, "application_credential")
        if (trust := token.get("OS-TRUST:trust")) is not None:
            return self._of(f"/OS-TRUST/trusts/{_id(trust)}", "trust")
        return moment(token.get("user", {}).get("password_expires_at"))

    def _of(self, path: str, what: str) -> float | None:
        told = self._connection.get(IDENTITY, path).get(what)
        if not isinstance(told, Mapping):
            raise Garbled(f"the answer holds no {what}")
        return moment(told.get("expires_at"))


def _id(one: Mapping[str, Any]) -> str:
    return quote(str(one["id"]), safe="")


def moment(said: object) -> float | None:
    """Unix time of what Keystone says, which is UTC with or without a Z; None where it says none.

    Raises Garbled for anything that is no time.
    """
    if said is None:
        return None
    try:
        at = datetime.fromisoformat(str(said))
    except ValueError as error:
        raise Garbled(f"{str(said)[:50]!r} is no time") from error
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
