"""May a machine that has booted have its own token? What a launch's user-data hold is good for asking alone.

Whoever has read the user-data can ask, too. So a machine is answered once, for one key, before its boot
deadline, where the cloud lists it as one of that launch, and where it shows that key: at the address that the
cloud shows (or that is forwarded to it), or, where nobody can call it, on its console.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from updraft.core.model import CloudView, Instance, Known, MachineRecord, Reason

ABSENCE = 1800.0
"""Seconds for which a machine that boots waits for a controller that isn't there, beside its deadline."""

UNSHOWN = 60.0
"""Seconds after which a machine of a cloud of which no console has shown a key is believed without."""


def fair_deadline(requested_at: float, allowed: float, longest: float, began: float) -> float:
    """When a machine has had `allowed` seconds to join, while a controller was there that could let it in.

    `began` is when this controller began to act: a machine that was asked for before has them from then on,
    but not beyond its longest boot and ABSENCE. Times in seconds.
    """
    plain = requested_at + allowed
    if began <= requested_at:
        return plain
    return max(plain, min(began + allowed, requested_at + longest + ABSENCE))


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """A machine asks: the fingerprint of its `key`, and of whom it says to be a machine.

    All of it is a word but `shown`, the launch whose token the collector has seen (as identities spell it).
    """

    key: str
    instance: str
    launch: str
    shown: str


@dataclass(frozen=True, slots=True)
class Handed:
    """That a machine was given its own token, for which `key`, and when."""

    key: str
    at: float


@dataclass(frozen=True, slots=True)
class Give:
    """Give the machine on `cloud` its token; `unseen` where nothing has shown that it is this machine."""

    cloud: str
    unseen: bool = False


@dataclass(frozen=True, slots=True)
class Call:
    """First ask at this address, which its cloud shows, which key is there."""

    cloud: str
    address: str


@dataclass(frozen=True, slots=True)
class Read:
    """First read on its console which keys it has shown there."""

    cloud: str
    machine: str


@dataclass(frozen=True, slots=True)
class Witness:
    """Where a machine shows its key, and what was found there.

    `address` is where it is called: "" for the one that its cloud shows, None where nobody can call it, so
    that its console is read. `found` are the keys that were shown, None where nobody has looked yet. Of a
    console: `proven` is whether one of that cloud has ever shown a key, `asked_for` for how many seconds this
    machine's token has been asked for, `contested` whether by several keys.
    """

    address: str | None = ""
    found: frozenset[str] | None = None
    proven: bool = False
    asked_for: float = 0.0
    contested: bool = False


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be said yet."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Refuse:
    """No, whatever comes."""

    reason: Reason


Decision = Give | Call | Read | Wait | Refuse


def decide(
    asked: TokenRequest,
    *,
    clouds: Mapping[str, CloudView],
    records: Mapping[str, MachineRecord],
    handed: Handed | None,
    witness: Witness,
    boot_deadline: float,
    began: float,
    now: float,
) -> Decision:
    """The answer to a request. `records` are the ledger's of machines by instance id, `handed` is of this
    one.

    `boot_deadline` is the class's, in seconds; `began` is when this controller began to act.
    """
    record = records.get(asked.instance)
    late = record is not None and now > fair_deadline(
        record.requested_at, boot_deadline, boot_deadline, began
    )
    refused = _refused(asked, record, handed, late=late)
    if refused is not None:
        return Refuse(refused)
    listed = _listed(asked.instance, clouds)
    if listed is None or record is None:
        return Wait(Reason("not-listed", f"no cloud lists {asked.instance} yet as a machine of this pool"))
    if not listed.alive:
        return Refuse(Reason("ended", f"{asked.instance} has ended, its cloud says"))
    if listed.launch_key not in ("", asked.launch):
        return Refuse(of_another(asked))
    if handed is not None:  # to this key, which was looked at then
        return Give(listed.cloud)
    if witness.address is None:
        return _by_its_console(asked, listed, witness)
    address = witness.address or listed.address
    if not address:
        return Wait(Reason("no-address", f"its cloud shows no address of {asked.instance} yet"))
    return _by_its_address(asked, listed.cloud, address, witness.found)


def _refused(
    asked: TokenRequest, record: MachineRecord | None, handed: Handed | None, *, late: bool
) -> Reason | None:
    """Why this can never be, by what was known before anybody looked."""
    if asked.shown != asked.launch:
        return of_another(asked)
    if handed is not None and handed.key != asked.key:
        return Reason("handed", f"{asked.instance} was given its token before, for another key")
    if record is None:
        return None
    if record.launch_key != asked.launch:
        return of_another(asked)
    if record.ended_at is not None:
        return Reason("ended", f"{asked.instance} has ended")
    if record.joined_at is not None and handed is None:
        return Reason("joined", f"{asked.instance} is in the pool already, with another token")
    if late:
        return Reason("too-late", f"{asked.instance} asks for its token after its boot deadline")
    return None


def of_another(asked: TokenRequest) -> Reason:
    """Why who asks with another launch's token gets nothing."""
    return Reason("other-launch", f"{asked.instance} is no machine of the launch whose token was shown")


def _listed(instance: str, clouds: Mapping[str, CloudView]) -> Instance | None:
    """The machine of this id; None also where two clouds have one."""
    known = [view.machines.value for view in clouds.values() if isinstance(view.machines, Known)]
    found = [one for machines in known for one in machines if one.id == instance and one.tagged]
    return found[0] if len(found) == 1 else None


def _by_its_address(asked: TokenRequest, cloud: str, address: str, found: frozenset[str] | None) -> Decision:
    if found is None:
        return Call(cloud, address)
    if not found:
        text = f"nobody answers at {address}, where {asked.instance} should, on port 9618"
        return Wait(Reason("no-answer", f"{text}: the head must reach its workers there"))
    if asked.key not in found:
        text = f"somebody asks for the token of {asked.instance} with another key than is at {address}"
        return Refuse(Reason("elsewhere", text))
    return Give(cloud)


def _by_its_console(asked: TokenRequest, listed: Instance, witness: Witness) -> Decision:
    """A console may be late to show anything: so nobody is refused by what it doesn't show."""
    found = witness.found
    if found is None:
        return Read(listed.cloud, asked.instance)
    if asked.key in found:
        return Give(listed.cloud)
    if found:
        text = f"somebody asks for the token of {asked.instance} with another key than its console shows"
        return Wait(Reason("elsewhere", text))
    if witness.proven:
        return Wait(Reason("unshown", f"the console of {asked.instance} doesn't show its key yet"))
    if witness.contested:
        text = f"several keys ask for the token of {asked.instance}, and its console shows none"
        return Wait(Reason("contested", text))
    if witness.asked_for < UNSHOWN:
        return Wait(Reason("unshown", f"the console of {asked.instance} shows no key yet"))
    return Give(listed.cloud, unseen=True)
