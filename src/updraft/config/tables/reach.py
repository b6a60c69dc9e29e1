"""What `updraft.toml` says of how the pool reaches a class's workers."""

import ipaddress
import re
from typing import Annotated, Literal

from pydantic import AfterValidator, model_validator

from updraft.config.tables.part import Part

BROKER = re.compile(r"([A-Za-z0-9.\-]+(:[0-9]{1,5})?(\?sock=[A-Za-z0-9_-]+)?)?")


def checked_broker(address: str) -> str:
    """A broker's address; empty stands for the head's own."""
    if not BROKER.fullmatch(address):
        raise ValueError(f'"{address}" is no broker; write "host:port", or "host:port?sock=name"')
    return address


def checked_forwarding(host: str) -> str:
    """An address, or the word that has the cloud asked for it."""
    if host != "metadata":
        try:
            ipaddress.ip_address(host)
        except ValueError as error:
            raise ValueError(f'"{host}" is no address; write one, or "metadata"') from error
    return host


class Reached(Part):
    """The keys of a worker class that say how its machines are reached."""

    reach: Literal["direct", "ccb", "forwarded"] = "direct"
    """How the pool connects to its machines. "direct": at their own addresses. "ccb": nothing can connect to
    them, because they are behind NAT or a firewall; they keep a connection to a broker open. "forwarded":
    connections to another address, a public or floating one, reach them."""
    ccb: Annotated[str, AfterValidator(checked_broker)] = ""
    """The broker, with `reach = "ccb"`. Empty: the one that `updraft userdata head` gives the head."""
    forwarding_host: Annotated[str, AfterValidator(checked_forwarding)] = "metadata"
    """The address to advertise, with `reach = "forwarded"`. "metadata": the public one that the cloud's
    metadata tells each machine when it boots; without one the boot fails."""

    @model_validator(mode="after")
    def _one_way(self) -> "Reached":
        if self.ccb and self.reach != "ccb":
            raise ValueError('ccb names a broker, and reach is not "ccb"')
        if self.forwarding_host != "metadata" and self.reach != "forwarded":
            raise ValueError('forwarding_host names an address, and reach is not "forwarded"')
        return self
