"""One JSON object a line, one line each way: bounded in size and in time.

Whoever is at the other end is known by the kernel's word alone, never by what was sent.
"""

import json
import socket
import struct
import time
from collections.abc import Mapping
from typing import Any, Never

from updraft.errors import ProblemFound

LONGEST_QUESTION = 4096
LONGEST_ANSWER = 1 << 20
_CREDENTIALS = struct.Struct("3i")
_OVERFLOW = 65534
"""What the kernel says of a user whom this namespace has no number for; it is no user."""


class StartingError(ProblemFound):
    """The daemon has just started: who asks again within seconds is answered."""


class MalformedError(Exception):
    """What came is no line of this protocol; the message is a sentence for the other end."""


def peer(connection: socket.socket) -> int | None:
    """The user id of the process at the other end, as it was when it connected; None for nobody of ours."""
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    return int(uid) if 0 <= uid != _OVERFLOW else None


def receive(connection: socket.socket, longest: int, seconds: float) -> dict[str, Any]:
    """The one object that comes within `seconds`, however slowly its bytes do.

    Raises MalformedError for what is too long, too late or none, and OSError where the connection fails.
    """
    return parsed(_line(connection, longest, time.monotonic() + seconds))


def _line(connection: socket.socket, longest: int, end: float) -> bytes:
    data = bytearray()
    while b"\n" not in data:
        left = end - time.monotonic()
        if left <= 0:
            raise MalformedError("the line did not come in time")
        connection.settimeout(left)
        try:
            part = connection.recv(min(65536, longest + 1 - len(data)))
        except TimeoutError as error:
            raise MalformedError("the line did not come in time") from error
        if not part:
            raise MalformedError("the line has no end")
        data += part
        if len(data) > longest:
            raise MalformedError(f"the line is longer than {longest} bytes")
    return bytes(data).partition(b"\n")[0]


def parsed(line: bytes) -> dict[str, Any]:
    """The object that a line holds. Raises MalformedError for any other text."""
    try:
        found = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise MalformedError("the line is no JSON") from error
    if not isinstance(found, dict):
        raise MalformedError("the line is no JSON object")
    return found


def send(connection: socket.socket, document: Mapping[str, Any], seconds: float) -> None:
    """Send one object. Raises OSError where it can't be sent within `seconds`."""
    connection.settimeout(seconds)
    connection.sendall(json.dumps(document, separators=(",", ":"), allow_nan=False).encode() + b"\n")


def _no_number(text: str) -> Never:
    raise ValueError(f"{text} is no number")
