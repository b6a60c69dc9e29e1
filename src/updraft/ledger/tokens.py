"""Which tokens were made for launches, and which were given to single machines. Never a token itself."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import ClassVar, TypeVar

from updraft.ledger.reader import Queries
from updraft.ledger.store import Ledger


@dataclass(frozen=True, slots=True)
class Issued:
    """What is remembered of a launch's token; times in seconds since 1970. `id` is the token's own (jti)."""

    PREFIX: ClassVar = "token:"
    launch: str
    worker_class: str
    identity: str
    id: str
    key: str
    issued: float
    expires: float


@dataclass(frozen=True, slots=True)
class HandedToken:
    """What is remembered of a machine's own token; times in seconds since 1970. `key` is the fingerprint of
    the key that it was sealed to; `unseen` whether nothing has shown that this is the machine's."""

    PREFIX: ClassVar = "handed:"
    cloud: str
    machine: str
    launch: str
    key: str
    identity: str
    at: float
    expires: float
    unseen: bool = False


_Token = TypeVar("_Token", Issued, HandedToken)


def note(ledger: Ledger, one: Issued | HandedToken) -> None:
    """Write down that a token was made for a launch, or is given to a machine; the latter before it is."""
    whose, at = (one.launch, one.issued) if isinstance(one, Issued) else (one.machine, one.at)
    ledger.note(one.PREFIX + whose, asdict(one), at)


def noted(ledger: Queries, kind: type[_Token], whose: str) -> _Token | None:
    """The token that was made for this launch, or given to this machine, if one was."""
    doc = ledger.noted(kind.PREFIX + whose)
    return None if doc is None else kind(**doc)


def all_noted(ledger: Queries, kind: type[_Token]) -> Mapping[str, _Token]:
    """All tokens of this kind, by launch or by the machine's instance id."""
    return {whose: kind(**doc) for whose, doc in ledger.all_noted(kind.PREFIX).items()}


def expiries(ledger: Queries) -> Mapping[str, float]:
    """When the token of each launch ends, in seconds since 1970."""
    return {launch: one.expires for launch, one in all_noted(ledger, Issued).items()}
