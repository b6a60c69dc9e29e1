"""Which rules a pool's groups need, and how those that are there differ: pure, whatever the cloud.

What is for IPv6 is needed only where there is IPv6. Neighbour discovery needs no rule: clouds let it through.
HTCondor's daemons share one port since 23.0, and update the collector by TCP: 9618 is all that a pool needs.
A rule counts as there where a single one covers it; two halves of a network that are open each by itself
don't count, and adding the whole does no harm.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_network

from updraft.clouds.networking import ANY, EVERYWHERE, Family, Rule

POOL_PORT = 9618
LOGIN_PORT = 22
# Without "fragmentation needed" (ICMP) and "packet too big" (ICMPv6) large packets vanish in tunnels.
_ALWAYS = (Rule("in", "icmp", (3, 4), EVERYWHERE[0]), Rule("out", ANY, None, EVERYWHERE[0]))
_ALWAYS_IPV6 = (Rule("in", "icmpv6", (2, 0), EVERYWHERE[1]), Rule("out", ANY, None, EVERYWHERE[1]))
_FAMILIES: tuple[Family, ...] = (4, 6)


@dataclass(frozen=True, slots=True)
class Parties:
    """Who is to reach whom, each a network or a group as a rule names it.

    `admins` log in; `workers` are where the pool's machines are; `head` is where the head is. With `ipv6`
    machines have addresses of IPv6, as they have where any of the networks is one.
    """

    admins: tuple[str, ...] = ()
    workers: tuple[str, ...] = ()
    head: tuple[str, ...] = ()
    ipv6: bool = False

    @property
    def families(self) -> tuple[Family, ...]:
        """The kinds of address by which machines reach each other."""
        networks = map(_as_network, (*self.admins, *self.workers, *self.head))
        return _FAMILIES if self.ipv6 or any(isinstance(one, IPv6Network) for one in networks) else (4,)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a group must let through, and what it may besides.

    With `logins` a login port open to some network, but not to everywhere, is let be: nobody has said from
    where people log in.
    """

    needed: tuple[Rule, ...]
    allowed: tuple[Rule, ...] = ()
    logins: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """What is missing, and what lets in more than is needed."""

    missing: tuple[Rule, ...]
    open: tuple[Rule, ...]

    def __bool__(self) -> bool:
        return bool(self.missing or self.open)


@dataclass(frozen=True, slots=True)
class Change:
    """Rules to add, and, after them, rules to take out."""

    add: tuple[Rule, ...]
    remove: tuple[Rule, ...]


def for_head(parties: Parties) -> Wanted:
    """Logins of its admins, the pool's port for its workers, and the way out."""
    families = parties.families
    needed = (
        *_tcp(LOGIN_PORT, parties.admins, families),
        *_tcp(POOL_PORT, parties.workers, families),
        *_always(families),
    )
    allowed = (*_tcp(LOGIN_PORT, parties.admins), *_tcp(POOL_PORT, parties.workers))
    return Wanted(_once(needed), _once(allowed), logins=not parties.admins)


def for_workers(parties: Parties, *, entered: bool) -> Wanted:
    """The pool's port for the head where connections go to workers (`entered`), and the way out.

    Nobody needs to log in to a worker; admins may, straight or from the head.
    """
    families = parties.families
    ways_in = _tcp(POOL_PORT, parties.head, families) if entered else ()
    allowed = (*_tcp(LOGIN_PORT, (*parties.admins, *parties.head)), *_tcp(POOL_PORT, parties.head))
    return Wanted(_once((*ways_in, *_always(families))), _once(allowed), logins=not parties.admins)


def difference(wanted: Wanted, there: Iterable[Rule]) -> Difference:
    """What is missing among these rules, and which of them are more than is wanted, both in order."""
    rules = tuple(there)
    missing = tuple(one for one in wanted.needed if not _covered(one, rules))
    return Difference(missing, tuple(sorted((one for one in rules if _too_open(one, wanted)), key=str)))


def change(wanted: Wanted, there: Iterable[Rule], *, close: bool) -> Change:
    """What to do about it: add what is missing; with `close` also take out what is too open.

    What only a rule that goes has let in is added by itself, and all is added before anything is taken out.
    """
    rules = frozenset(there)
    gone = difference(wanted, rules).open if close else ()
    return Change(difference(wanted, rules - frozenset(gone)).missing, gone)


def covers(wide: Rule, narrow: Rule) -> bool:
    """Whether everything that `narrow` lets through is let through by `wide`."""
    if wide.direction != narrow.direction or wide.protocol not in (ANY, narrow.protocol):
        return False
    if wide.protocol != ANY and not _ports_cover(wide, narrow):
        return False
    return set(narrow.families) <= set(wide.families) and _source_covers(wide.source, narrow.source)


def network(text: str) -> str:
    """A network in its plain form; one address is a network of its own. Raises ValueError."""
    return str(ip_network(text.strip(), strict=False))


def _tcp(port: int, sources: Iterable[str], families: tuple[Family, ...] = _FAMILIES) -> tuple[Rule, ...]:
    """A group is let in by a rule for each family, a network by the one that it is of."""
    return tuple(
        Rule("in", "tcp", (port, port), one, family)
        for one in sources
        for family in (families if _as_network(one) is None else families[:1])
    )


def _always(families: tuple[Family, ...]) -> tuple[Rule, ...]:
    return (*_ALWAYS, *_ALWAYS_IPV6) if 6 in families else _ALWAYS


def _once(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(dict.fromkeys(rules))


def _covered(rule: Rule, by: Iterable[Rule]) -> bool:
    return any(covers(one, rule) for one in by)


def _too_open(rule: Rule, wanted: Wanted) -> bool:
    """Of what goes out nothing is: jobs may fetch what they need from anywhere."""
    fine = (*wanted.needed, *wanted.allowed)
    if rule.direction == "out" or all(_covered(half, fine) for half in rule.halves):
        return False
    login = rule.protocol == "tcp" and rule.ports == (LOGIN_PORT, LOGIN_PORT)
    return not (wanted.logins and login and rule.source not in EVERYWHERE)


def _ports_cover(wide: Rule, narrow: Rule) -> bool:
    if wide.ports is None:
        return True
    if narrow.ports is None:
        return False
    if wide.protocol.startswith("icmp"):
        (kind, code), (wanted_kind, wanted_code) = wide.ports, narrow.ports
        return kind == wanted_kind and code in (-1, wanted_code)
    return wide.ports[0] <= narrow.ports[0] and narrow.ports[1] <= wide.ports[1]


def _source_covers(wide: str, narrow: str) -> bool:
    """Of sources of one family, by which everywhere covers a group's machines too."""
    outer, inner = _as_network(wide), _as_network(narrow)
    if outer is None or inner is None:
        return wide == narrow or wide in EVERYWHERE
    if isinstance(outer, IPv4Network) and isinstance(inner, IPv4Network):
        return inner.subnet_of(outer)
    return isinstance(outer, IPv6Network) and isinstance(inner, IPv6Network) and inner.subnet_of(outer)


def _as_network(source: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(source, strict=False)
    except ValueError:
        return None
