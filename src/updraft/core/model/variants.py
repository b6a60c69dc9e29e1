"""Machines of a class that differ from their like because a job, or the class, wants them so.

A variant is written as text wherever a machine is known by more than our memory: in its tags, in its ad, in
the ledger. The plain machine of a class is the variant "".
"""

from dataclasses import dataclass, fields
from urllib.parse import parse_qsl, urlencode


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """How a machine differs from the plain one of its class; what is empty doesn't differ.

    `image` and `network` are booted instead of the class's; `label` is the VMType that it advertises; `user`
    is the only one whose jobs it takes; `layers` are names of layers that the site offers, comma-separated;
    `keep_alive` (whole seconds, as text) replaces the class's idle limit. `annex` is the name of the annex
    that it was launched for, `groups` are the security groups of that annex, comma-separated.
    """

    image: str = ""
    network: str = ""
    label: str = ""
    user: str = ""
    layers: str = ""
    keep_alive: str = ""
    annex: str = ""
    groups: str = ""

    @property
    def text(self) -> str:
        """`image=…&user=…` with only what differs, each value quoted as in a URL; "" for the plain one."""
        return urlencode([(one.name, value) for one in fields(self) if (value := getattr(self, one.name))])


PLAIN = Variant()


def variant(text: str) -> Variant:
    """The variant that was written so. Raises ValueError for what none was written as."""
    known = {one.name for one in fields(Variant)}
    pairs = parse_qsl(text, strict_parsing=True, max_num_fields=len(known)) if text else []
    if len(dict(pairs)) != len(pairs) or not set(dict(pairs)) <= known:
        raise ValueError(f"{text[:80]!r} is no variant of a class")
    return Variant(**dict(pairs))
