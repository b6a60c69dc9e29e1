"""Machines of a class that differ from their like because a job, or the class, wants them so.

A variant is written as text wherever a machine is known by more than our memory: in its tags, in its ad, in
the ledger. The plain machine of a class is the variant "".
"""

from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import parse_qsl, urlencode

_WRITTEN = ("image", "network", "label", "user", "layers", "keep_alive", "annex", "groups")


@dataclass(frozen=True, slots=True, order=True)
class Variant:
    """How a machine differs from the plain one of its class; what is empty doesn't differ. The plain one is
    false.

    `image` and `network` are booted instead of the class's; `label` is the VMType that it advertises; `user`
    is the only one whose jobs it takes; `layers` are names of layers that the site offers, comma-separated;
    `keep_alive` (whole seconds, as text) replaces the class's idle limit. `annex` is the name of the annex
    that it was launched for, `groups` are the security groups of that annex, comma-separated. `unreadable` is
    what a tag said that nobody can read: how that machine differs isn't known then, and all else is empty.

    `text` is how it is written: `image=…&user=…` with only what differs, each value quoted as in a URL; ""
    for the plain one, and an unreadable one as it is.
    """

    image: str = ""
    network: str = ""
    label: str = ""
    user: str = ""
    layers: str = ""
    keep_alive: str = ""
    annex: str = ""
    groups: str = ""
    unreadable: str = ""
    text: str = field(init=False, repr=False, compare=False, default="")

    def __post_init__(self) -> None:
        said = [(name, value) for name in _WRITTEN if (value := getattr(self, name))]
        object.__setattr__(self, "text", self.unreadable or urlencode(said))

    def __hash__(self) -> int:
        return hash(self.text)

    def __bool__(self) -> bool:
        return self.text != ""

    def __str__(self) -> str:
        return self.text


PLAIN = Variant()


@lru_cache(maxsize=4096)
def variant(text: str) -> Variant:
    """The variant that was written so; an unreadable one for what none was written as. Tags are input."""
    try:
        pairs = parse_qsl(text, strict_parsing=True, max_num_fields=len(_WRITTEN)) if text else []
        values = dict(pairs)
        if len(values) == len(pairs) and values.keys() <= set(_WRITTEN):
            return Variant(**values)
    except ValueError:
        pass
    return Variant(unreadable=text)
