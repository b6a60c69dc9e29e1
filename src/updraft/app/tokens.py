"""What `updraft tokens` is made of: what is known of tokens, and how they are ended."""

import time
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from updraft.app.call import Call, who
from updraft.bootstrap.head.identities import OF_MACHINE, WORKER_USER
from updraft.bootstrap.head.userdata import SIGNING_KEY
from updraft.condor.tokens import revoked
from updraft.condor.tokens.revoking import Revoker
from updraft.condor.tokens.workers import drop_keys, key_names, make_key, user_of
from updraft.core.model import LaunchRecord, MachineRecord, Reason
from updraft.documents import Document
from updraft.errors import LedgerError, PoolError, ProblemFound, UsageError
from updraft.ledger import Ledger
from updraft.ledger.reader import Reader, RequestKind
from updraft.ledger.tokens import Issued, all_noted

if TYPE_CHECKING:
    from updraft.config.model import Settings

FILE = Path(revoked.FILE)


class KeyRow(Document):
    """A key that signs workers' tokens."""

    name: Annotated[str, "Its name, which tokens name too."]
    signs: Annotated[bool, "Whether it signs those of new launches."]


KeyRows = Annotated[Sequence[KeyRow], "Those here, the oldest first; empty where they can't be seen."]


class TokenRow(Document):
    """A token that may be in use; never the token itself."""

    launch: Annotated[str, "Its launch; `by-hand-…` for one that `userdata worker --with-token` made."]
    class_: Annotated[str, "The launch's worker class."]
    identity: Annotated[str, "As whom its machines authenticate."]
    id: Annotated[str, "The token's own id (jti); empty where it isn't known."]
    key: Annotated[str, "The name of the key that signed it; empty where it isn't known."]
    issued: Annotated[float | None, "When it was made."]
    expires: Annotated[float | None, "When it ends by itself; null where it isn't known."]
    machines: Annotated[int, "How many machines of the launch live."]
    state: Annotated[Literal["good", "revoked", "over"], "Over: it has ended by itself."]


class TokenList(Document):
    """The tokens that may be in use, the oldest first."""

    tokens: Annotated[Sequence[TokenRow], "One a launch."]
    keys: KeyRows


class Revocation(Document):
    """What was revoked."""

    launches: Annotated[Sequence[str], "The launches."]
    identities: Annotated[Sequence[str], "As whom their machines authenticate."]
    all: Annotated[bool, "Whether every token that was issued until now is revoked."]
    file: Annotated[str, "The file of HTCondor's configuration that says so."]


class Rotation(Document):
    """What became of the keys."""

    new: Annotated[str | None, "The key that was made."] = None
    removed: Annotated[Sequence[str], "Those that were removed."] = ()
    needed: Annotated[Mapping[str, int], "Old keys that stay, and machines of each."] = field(
        default_factory=dict
    )
    revoked: Annotated[Sequence[str], "The launches whose tokens were revoked with it."] = ()
    keys: KeyRows = ()


@dataclass(frozen=True, slots=True)
class KnownTokens:
    """What is known: tokens that were made, other launches, and the machines that live.

    `domain` is the trust domain.
    """

    domain: str
    made: Mapping[str, Issued]
    launches: Mapping[str, LaunchRecord]
    living: Sequence[MachineRecord]
    revoked: revoked.Revoked

    @property
    def machines(self) -> Mapping[str, int]:
        """How many machines of each launch live."""
        return Counter(one.launch_key for one in self.living)

    @property
    def identities(self) -> Mapping[str, str]:
        """The identity of each launch that may still have a token."""
        return {launch: self.identity(launch) for launch in {**self.made, **self.launches, **self.machines}}

    def identity(self, launch: str) -> str:
        """As whom the machines of a launch authenticate, or this one machine: LAUNCH+INSTANCE."""
        launch, machine = _parted(launch)
        made = self.made.get(launch)
        whole = made.identity if made else f"{user_of(WORKER_USER + '{launch}', launch)}@{self.domain}"
        return whole.replace("@", f"{OF_MACHINE}{machine}@", 1) if machine else whole

    def is_of_one(self, launch: str) -> bool:
        """Is one machine meant?"""
        return bool(_parted(launch)[1])

    def named(self, launch: str) -> str:
        """The launch, or this machine of it; UsageError for one of which nothing is known."""
        whole, machine = _parted(launch)
        if whole not in self.identities:
            raise UsageError(f"no launch {whole} is known; `updraft tokens list` names them")
        if machine and machine not in {one.id for one in self.living if one.launch_key == whole}:
            raise UsageError(
                f"launch {whole} has no machine {machine} that lives; `updraft status` names them"
            )
        return launch


def _parted(launch: str) -> tuple[str, str]:
    """Launch and machine; no machine where all of the launch is meant."""
    whole, _, machine = launch.partition(OF_MACHINE)
    return (whole, machine) if machine else (launch, "")


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of workers' tokens in their folder, the oldest first; the last one signs."""

    folder: Path
    names: Sequence[str]


def facts(call: Call) -> KnownTokens:
    """What the ledger knows, and what is revoked."""

    settings = call.settings
    try:
        with Reader(call.place.ledger) as ledger:
            view, made = ledger.view(time.time()), all_noted(ledger, Issued)
    except LedgerError:
        if call.place.ledger.exists():
            raise
        view, made = None, {}
    living = [one for one in (view.machines if view else ()) if one.ended_at is None and one.launch_key]
    launches = {one.key: one for one in (view.launches if view else ())}
    return KnownTokens(_domain(settings), made, launches, living, revoked.read(FILE))


def _domain(settings: "Settings") -> str:
    from updraft.app.wiring import asker

    try:
        return settings.pool.trust_domain or asker(settings)("TRUST_DOMAIN")
    except PoolError:
        return ""


def rows_of(known: KnownTokens, now: float) -> list[TokenRow]:
    """A row for each token that may be in use, the oldest first."""
    rows, alive = [], known.machines
    classes = {one.launch_key: one.worker_class for one in known.living}
    for launch, identity in known.identities.items():
        made, record = known.made.get(launch), known.launches.get(launch)
        at = made.issued if made else record.asked_at if record else None
        machines = alive.get(launch, 0)
        over = made is not None and made.expires <= now
        if not machines and (over or made is None):
            continue
        gone = known.revoked.has(identity, at)
        worker_class = made.worker_class if made else classes[launch]
        rows.append(
            TokenRow(
                launch=launch,
                class_=worker_class,
                identity=identity,
                id=made.id if made else "",
                key=made.key if made else "",
                issued=at,
                expires=made.expires if made else None,
                machines=machines,
                state="revoked" if gone else "over" if over else "good",
            )
        )
    return sorted(rows, key=lambda row: (row.issued or 0.0, row.launch))


def keys_of(call: Call) -> Keys | None:
    """The signing keys of this machine; None where it has none, or they can't be seen."""
    from updraft.app.wiring import asker

    try:
        folder = Path(asker(call.settings)("SEC_PASSWORD_DIRECTORY"))
    except PoolError:
        return None
    names = key_names(folder, SIGNING_KEY)
    return Keys(folder, names) if names else None


# -------------------------------------------------------------------------------------------- to end them


def revoke_now(
    call: Call, known: KnownTokens, launches: Sequence[str], *, everything: bool, drop: Keys | None = None
) -> Revocation:
    """Revoke these launches' tokens (and with `everything` all that were issued until now).

    It is certain when it returns: the collector was seen to refuse one of them. `drop` are keys to remove
    with it. Raises PoolError, or ProblemFound where the collector goes on taking them.
    """
    now, reached = time.time(), _revoker(call)
    made = {one: known.made.get(_parted(one)[0]) for one in launches}
    ends = {known.identity(one): note.expires if note else None for one, note in made.items()}
    new = revoked.more(known.revoked, ends, int(now) if everything else 0, now)
    with reached as revoker:
        revoked.write(FILE, new)
        if drop is not None:
            drop_keys(drop.folder, drop.names)
        revoker.reconfigure()
        still = revoker.taken(launches[:1])
        revoker.forget(list(ends), everything=everything)
    _tell_ledger(call, known, launches, everything)
    if still:
        raise ProblemFound(
            f"{FILE} is written, and the collector still takes {still}: is this its machine? It has to read "
            "that file (LOCAL_CONFIG_DIR), and to be told with condor_reconfig"
        )
    return Revocation(launches, sorted(ends), everything, str(FILE))


def renewed(call: Call, keys: Keys) -> str:
    """Make the next key, and have the collector know it; its name."""
    name = make_key(keys.folder, SIGNING_KEY)
    with _revoker(call) as revoker:
        revoker.reconfigure()
    text = f"{who()} had the key {name} made; launches are signed with it from now on"
    _event(call, name, Reason("key-rotated", text), time.time())
    return name


def finished(call: Call, known: KnownTokens, keys: Keys) -> tuple[list[str], dict[str, int]]:
    """Remove old keys that nobody alive has a token of: those removed, and machines of those that stay."""
    alive: dict[str, int] = {}
    for launch, machines in known.machines.items():
        # Of a launch without a note nobody knows which key it was: it may be any of them.
        made = known.made.get(launch)
        for name in [made.key] if made else keys.names:
            alive[name] = alive.get(name, 0) + machines
    old = keys.names[:-1]
    gone = [name for name in old if not alive.get(name)]
    if gone:
        drop_keys(keys.folder, gone)
        with _revoker(call) as revoker:
            revoker.reconfigure()
    return gone, {name: alive[name] for name in old if alive.get(name)}


def _revoker(call: Call) -> Revoker:
    from updraft.app.wiring import access

    settings = call.settings
    if settings.pool.collector:
        raise UsageError(
            "the head is another machine: run this there, as root, with its updraft.toml; "
            "docs/explanation/security.md has the lines to be written by hand"
        )
    return Revoker(access(settings))


def _tell_ledger(call: Call, known: KnownTokens, launches: Sequence[str], everything: bool) -> None:
    """The events, and the wish that machines go that haven't joined: they never will."""
    name, now, chosen = who(), time.time(), set(launches)
    for launch in launches:
        _event(call, launch, Reason("token-revoked", f"{name} revoked the token of launch {launch}"), now)
    if everything:
        _event(call, "tokens", Reason("token-revoked", f"{name} revoked every worker's token"), now)
    waiting = [one.id for one in known.living if one.joined_at is None and _is_of(one, chosen)]
    if waiting:
        with Ledger(call.place.ledger) as ledger:
            for machine in waiting:
                ledger.request(now, name, RequestKind.DRAIN, machine)


def _is_of(machine: MachineRecord, chosen: Container[str]) -> bool:
    return machine.launch_key in chosen or f"{machine.launch_key}{OF_MACHINE}{machine.id}" in chosen


def _event(call: Call, subject: str, reason: Reason, now: float) -> None:
    if call.place.ledger.exists():
        with Ledger(call.place.ledger) as ledger:
            ledger.event(now, "tokens", subject, reason)
