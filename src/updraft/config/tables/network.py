"""What `updraft.toml` says of who is where: the networks that the pool's security groups are opened for."""

import ipaddress
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator

from updraft.config.tables.part import Part
from updraft.config.values.checks import tuple_of_one

_WIDEST = {4: 8, 6: 16}


def checked_network(text: str) -> str:
    """A network or an address, in its plain form. Raises ValueError for a name, and for half the world."""
    try:
        found = ipaddress.ip_network(text.strip(), strict=False)
    except ValueError as error:
        raise ValueError(f'"{text}" is no network; write it as in "192.0.2.0/24", or one address') from error
    if found.prefixlen < _WIDEST[found.version]:
        widest = f"/{_WIDEST[found.version]}"
        raise ValueError(f'"{text}" is nearly everywhere; name the networks that are meant, {widest} at most')
    return str(found)


Networks = Annotated[
    tuple[Annotated[str, AfterValidator(checked_network)], ...], BeforeValidator(tuple_of_one)
]


class Network(Part):
    """Who is where, for `updraft network` and `updraft head launch`; nothing else reads it."""

    admins: Networks = ()
    """From where people log in to the head by SSH, as in ["192.0.2.0/24"]."""
    workers: Networks = ()
    """Where workers are that are not in the head's own cloud: from there they reach the head."""
    head: Networks = ()
    """Where the head is, as workers see it, if it isn't a machine that `updraft head launch` made in their
    own cloud."""
