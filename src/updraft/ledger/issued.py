"""Which tokens were made: for which launch and class, until when. Never a token itself."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass

from updraft.ledger.reader import Queries
from updraft.ledger.store import Ledger

_PREFIX = "token:"


@dataclass(frozen=True, slots=True)
class Issued:
    """What is remembered of a launch's token; times in seconds since 1970. `id` is the token's own (jti)."""

    launch: str
    worker_class: str
    identity: str
    id: str
    key: str
    issued: float
    expires: float


def note(ledger: Ledger, one: Issued) -> None:
    """Write down that a token was made."""
    ledger.note(_PREFIX + one.launch, asdict(one), one.issued)


def issued_for(ledger: Queries, launch: str) -> Issued | None:
    """The token that was made for this launch, if one was."""
    doc = ledger.noted(_PREFIX + launch)
    return None if doc is None else Issued(**doc)


def issued(ledger: Queries) -> Mapping[str, Issued]:
    """The tokens that were made, by launch."""
    return {launch: Issued(**doc) for launch, doc in ledger.all_noted(_PREFIX).items()}


def expiries(ledger: Queries) -> Mapping[str, float]:
    """When the token of each launch ends, in seconds since 1970."""
    return {launch: one.expires for launch, one in issued(ledger).items()}
