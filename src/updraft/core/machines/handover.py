"""May a machine that has booted have its own token? What a launch's user-data hold is good for asking alone.

Whoever has read the user-data can ask, too. So a machine is answered once, for one key, before its boot
deadline, where the cloud lists it as one of that launch, and where what answers at the address that the cloud
shows holds the key.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from updraft.core.model import CloudView, Instance, Known, MachineRecord, Reason


@dataclass(frozen=True, slots=True)
class Asked:
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
    """Give the machine on `cloud` its token."""

    cloud: str


@dataclass(frozen=True, slots=True)
class Call:
    """First ask at this address, which its cloud shows, which key is there."""

    cloud: str
    address: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Nothing can be said yet."""

    reason: Reason


@dataclass(frozen=True, slots=True)
class Refuse:
    """No, whatever comes."""

    reason: Reason


Decision = Give | Call | Wait | Refuse


def decide(
    asked: Asked,
    *,
    clouds: Mapping[str, CloudView],
    records: Mapping[str, MachineRecord],
    handed: Handed | None,
    found: str | None,
    witnessed: bool,
    boot_deadline: float,
    now: float,
) -> Decision:
    """What to answer. `records` are the ledger's of machines by instance id, `handed` is of this one.

    `found` is the key at the machine's address: None where nobody was called, "" where nobody answered.
    `witnessed` False is for machines that can't be called, behind a broker or another address.
    """
    record = records.get(asked.instance)
    refused = _refused(asked, record, handed, boot_deadline, now)
    if refused is not None:
        return Refuse(refused)
    listed = _listed(asked.instance, clouds)
    if listed is None or record is None:
        return Wait(Reason("not-listed", f"no cloud lists {asked.instance} yet as a machine of this pool"))
    if not listed.alive:
        return Refuse(Reason("ended", f"{asked.instance} has ended, its cloud says"))
    if listed.launch_key not in ("", asked.launch):
        return Refuse(_of_another(asked))
    if not witnessed:
        return Give(listed.cloud)
    if not listed.address:
        return Wait(Reason("no-address", f"its cloud shows no address of {asked.instance} yet"))
    return _by_what_was_found(asked, listed, found)


def _refused(
    asked: Asked, record: MachineRecord | None, handed: Handed | None, boot_deadline: float, now: float
) -> Reason | None:
    """Why this can never be, by what was known before anybody looked."""
    if asked.shown != asked.launch:
        return _of_another(asked)
    if handed is not None and handed.key != asked.key:
        return Reason("handed", f"{asked.instance} was given its token before, for another key")
    if record is None:
        return None
    if record.launch_key != asked.launch:
        return _of_another(asked)
    if record.ended_at is not None:
        return Reason("ended", f"{asked.instance} has ended")
    if record.joined_at is not None and handed is None:
        return Reason("joined", f"{asked.instance} is in the pool already, with another token")
    if now - record.requested_at > boot_deadline:
        return Reason("too-late", f"{asked.instance} asks for its token after its boot deadline")
    return None


def _of_another(asked: Asked) -> Reason:
    return Reason("other-launch", f"{asked.instance} is no machine of the launch whose token was shown")


def _listed(instance: str, clouds: Mapping[str, CloudView]) -> Instance | None:
    """The machine of this id; None also where two clouds have one."""
    known = [view.machines.value for view in clouds.values() if isinstance(view.machines, Known)]
    found = [one for machines in known for one in machines if one.id == instance and one.tagged]
    return found[0] if len(found) == 1 else None


def _by_what_was_found(asked: Asked, listed: Instance, found: str | None) -> Decision:
    if found is None:
        return Call(listed.cloud, listed.address)
    if not found:
        text = f"nobody answers at {listed.address}, where its cloud shows {asked.instance}, on port 9618"
        return Wait(Reason("no-answer", f"{text}: the head must reach its workers there"))
    if found != asked.key:
        text = f"somebody asks for the token of {asked.instance} with another key than is at {listed.address}"
        return Refuse(Reason("elsewhere", text))
    return Give(listed.cloud)
