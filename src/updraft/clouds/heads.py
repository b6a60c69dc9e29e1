"""What a head is launched with where workers aren't: a driver's settings for it, and how people log in.

See `clouds.cloud.Driver`: where a driver says nothing of heads, `PlainHeads` is what holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from updraft.errors import UsageError


@dataclass(frozen=True, slots=True)
class HeadPlace:
    """What was asked for a head: the id of its security group, its role, the cloud's key pair that opens it.

    "" is none. `private` is without an address that is reached from outside; `floating` is the network that
    such an address is to be of, where the cloud hands them out apart.
    """

    group: str = ""
    role: str = ""
    key_name: str = ""
    private: bool = False
    floating: str = ""


class HeadTraits(Protocol):
    """What a driver says of heads on its cloud."""

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """The driver's settings of a cloud (`own`) as a head needs them. UsageError where it can't be."""

    def login(self, machine: str, address: str, user: str) -> str:
        """The command that logs this user in."""


class PlainHeads:
    """A cloud that has nothing to choose."""

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """The same for all machines."""
        refuse(place, ("role", "key_name", "private", "floating"))
        return own

    def login(self, machine: str, address: str, user: str) -> str:
        """By SSH."""
        return f"ssh {user}@{address}"


_WORDS = {
    "role": "gives machines no roles, so that --role has no meaning; put credentials on the head instead",
    "key_name": "has no key pairs, so that --key has no meaning; --ssh-key FILE lets the first user in",
    "private": "has no public addresses to leave away, so that --private has no meaning",
    "floating": "has no floating addresses, so that --floating-network has no meaning",
}


def refuse(place: HeadPlace, kinds: tuple[str, ...]) -> None:
    """Raises UsageError where one of these was asked for: the cloud has no such thing."""
    for kind in kinds:
        if getattr(place, kind):
            raise UsageError(f"this cloud {_WORDS[kind]}")
