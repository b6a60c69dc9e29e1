"""Telling systemd how the daemon is: a datagram to the socket that it names (sd_notify)."""

import os
import socket
from collections.abc import Callable, Mapping

Notify = Callable[[str], None]


def notifier(environment: Mapping[str, str] = os.environ) -> Notify:
    """A function that sends a state ("READY=1"), or does nothing where nobody listens."""
    address = environment.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return lambda _state: None
    where = "\0" + address[1:] if address.startswith("@") else address

    def notify(state: str) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
            try:
                out.connect(where)
                out.send(state.encode())
            except OSError:
                return  # systemd went away or restarts: nothing to be done about it here

    return notify
