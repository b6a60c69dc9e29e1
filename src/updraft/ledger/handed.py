"""Which machines were given tokens of their own, and for which key. Never a token itself."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from updraft.ledger.reader import Queries
from updraft.ledger.store import Ledger

_PREFIX = "handed:"


@dataclass(frozen=True, slots=True)
class HandedToken:
    """What is remembered of a machine's own token; times in seconds since 1970. `key` is the fingerprint of
    the key that it was sealed to."""

    cloud: str
    machine: str
    launch: str
    key: str
    identity: str
    at: float
    expires: float


def note(ledger: Ledger, one: HandedToken) -> None:
    """Write down that a machine is given its token, before it is."""
    ledger.note(_PREFIX + one.machine, asdict(one), one.at)


def handed_to(ledger: Queries, machine: str) -> HandedToken | None:
    """The token that this machine was given, if it was."""
    doc = ledger.noted(_PREFIX + machine)
    return None if doc is None else HandedToken(**doc)


def handed(ledger: Queries) -> Mapping[str, HandedToken]:
    """The tokens that were given, by the machine's instance id."""
    return {machine: HandedToken(**doc) for machine, doc in ledger.all_noted(_PREFIX).items()}
