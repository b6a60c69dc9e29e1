"""What a cloud may do with security groups: the values, and the contract of that part.

As everywhere in this room nothing waits, nothing is tried again, and only `CloudError`s are raised. What
ought to be in a group is not a driver's business: see `rules`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from ipaddress import ip_network
from typing import Literal, Protocol, runtime_checkable

from updraft.clouds.base import TAG_POOL

TAG_ROLE = "updraft:role"
"""Of a security group: whose machines it is for, "head" or "worker"."""

Direction = Literal["in", "out"]
Family = Literal[0, 4, 6]
BOTH: Family = 0
ANY = "any"
EVERYWHERE = ("0.0.0.0/0", "::/0")
_GROUP, _LIST = "group:", "list:"


@dataclass(frozen=True, slots=True)
class Rule:
    """What a group lets through: nothing else is.

    `protocol` is "tcp", "udp", "icmp", "icmpv6", another's number, or "any". `ports` are the first and the
    last, None for all; of ICMP they are type and code (-1: every code). `source` is who is at the other end,
    also of what goes out: a network as 192.0.2.0/24, `group:ID` for the machines of a group, `list:ID` for a
    list of networks that the cloud keeps. `family` is of groups and lists alone: by which kind of address
    they are let through, 4, 6 or BOTH; a network's own tells it, and leaves it at 4.
    """

    direction: Direction
    protocol: str
    ports: tuple[int, int] | None
    source: str
    family: Family = 4

    def __str__(self) -> str:
        way = "from" if self.direction == "in" else "to"
        by = " (IPv6)" if self.family == 6 else ""
        return f"{self.direction} {self.protocol} {_ports(self)} {way} {_who(self.source)}{by}"

    @property
    def families(self) -> tuple[Family, ...]:
        """The kinds of address that it is for."""
        try:
            return (6,) if ip_network(self.source, strict=False).version == 6 else (4,)
        except ValueError:
            return (4, 6) if self.family == BOTH else (self.family,)

    @property
    def halves(self) -> "tuple[Rule, ...]":
        """The same as rules that are for one kind of address each."""
        return tuple(replace(self, family=one) for one in self.families) if self.family == BOTH else (self,)


def _ports(rule: Rule) -> str:
    if rule.ports is None:
        return "all" if rule.protocol == ANY else "all ports"
    first, last = rule.ports
    if rule.protocol.startswith("icmp"):
        return f"type {first}" if last < 0 else f"type {first} code {last}"
    return str(first) if first == last else f"{first}-{last}"


def _who(source: str) -> str:
    if source in EVERYWHERE:
        return f"everywhere ({source})"
    return source.replace(_GROUP, "group ", 1).replace(_LIST, "list ", 1)


def group_source(group: str) -> str:
    """The machines of this group as the other end of a rule."""
    return _GROUP + group


@dataclass(frozen=True, slots=True)
class Group:
    """A security group with its rules; `tags` are those that updraft wrote."""

    id: str
    name: str
    rules: frozenset[Rule]
    tags: Mapping[str, str] = field(default_factory=dict)

    @property
    def pool(self) -> str:
        """The pool whose updraft made it; "" where it was made by somebody else."""
        return self.tags.get(TAG_POOL, "")


@runtime_checkable
class Networking(Protocol):
    """The security groups of one cloud; `tests/clouds/network_conformance.py` holds every driver to it."""

    def show(self, wanted: str) -> Group | None:
        """The group with this id or name where machines are launched; None for none."""

    def make(self, name: str, tags: Mapping[str, str]) -> Group:
        """A new group: nothing comes in, and everything may go out. BadRequest where the name is taken."""

    def allow(self, group: str, rules: Iterable[Rule]) -> None:
        """Add these rules to the group with this id; one that is there already is success.

        A cloud that knows only rules of groups for BOTH families adds that for one, and shows it so.
        """

    def revoke(self, group: str, rules: Iterable[Rule]) -> None:
        """Take these rules out, each exactly as `show` told it; one that isn't there is success."""

    def remove(self, group: str) -> None:
        """Delete the group; one already gone is success. BadRequest while anything uses it."""

    def ipv6(self) -> bool:
        """Whether machines that are launched as the settings say get IPv6 addresses, alone or too."""

    def address(self, machine: str) -> str:
        """Where this machine is reached from outside, a name or an IP address; "" while it has none."""
