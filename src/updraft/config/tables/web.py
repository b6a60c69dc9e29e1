"""What `updraft.toml` says of the page in a browser: [web]. Nothing is decided by it."""

import ipaddress
import re
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from updraft.config.tables.part import Part
from updraft.config.values.checks import tuple_of_one
from updraft.config.values.units import Duration

_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
# What a proxy or a browser says of itself, and never of a person.
_TAKEN = frozenset({"host", "cookie", "accept", "connection", "content-length", "content-type", "referer"})


def split_listen(text: str) -> tuple[str, int]:
    """The address and the port of a text as in "127.0.0.1:8642" or "[::1]:8642". Raises ValueError."""
    host, _, port = text.rpartition(":")
    address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
    if not address.is_loopback:
        raise ValueError(f"{address} can be reached from elsewhere")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError(f'"{port}" is no port')
    return str(address), int(port)


def _listen(text: str) -> str:
    try:
        if text:
            split_listen(text)
    except ValueError as error:
        raise ValueError(
            f'can\'t be "{text}" ({error}): the page speaks plain HTTP, so write an address of this machine '
            'alone, as in "127.0.0.1:8642", and let a proxy with TLS come by `socket`'
        ) from error
    return text


def _header(name: str) -> str:
    if name and (not _HEADER.fullmatch(name) or name.lower() in _TAKEN):
        raise ValueError(f'"{name}" can\'t be the header with a user\'s name; write "X-Remote-User", say')
    return name


class Web(Part):
    """The page in a browser, of `updraft web`: who may look, and where it is served. It changes nothing."""

    listen: Annotated[str, AfterValidator(_listen)] = "127.0.0.1:8642"
    """Address and port of this machine where the page is served to who comes with a link of `updraft web
    open`. Empty: nowhere. No other address is taken: a proxy with TLS comes by `socket`."""
    socket: Annotated[Path, Field(strict=False)] | None = None
    """A unix socket where the page is served to a proxy on this machine. None: there is none."""
    socket_group: str = ""
    """The group that may connect to `socket`, which is the proxy's. Empty: root alone. Whoever may connect
    can say who looks."""
    user_header: Annotated[str, AfterValidator(_header)] = ""
    """The header in which the proxy says who looks, as in "X-Remote-User". It is believed of what comes by
    `socket`, and nowhere else. Empty: no header is believed, and links are needed there, too."""
    operators: Annotated[tuple[str, ...], BeforeValidator(tuple_of_one)] = ()
    """Users who see all. Others see their own jobs, machines, annexes and cost."""
    session: Annotated[Duration, Field(gt=0)] = 43200.0
    """How long a browser may look that came with a link."""

    @model_validator(mode="after")
    def _served_somewhere(self) -> "Web":
        if not self.listen and self.socket is None:
            raise ValueError("neither listen nor socket is set: nobody could look; leave one of them")
        if self.user_header and self.socket is None:
            raise ValueError("user_header is believed of what comes by a socket: set socket, too")
        return self
