"""What tells a pool from others of its name, and its controller's host from a copy of it.

A name is chosen by people, and two pools may have one: by chance, by a copied configuration, or because a
head's disk was cloned. So a pool has an identity, made once and kept in a file beside the ledger, which
survives a ledger that is lost. With it stands which host it was made on. A clone brings the file along and is
another host all the same: there nothing is done until a person says that this is the head now.

Where the cloud has told the host its id, the identity is made from that and the directory, so that the same
head finds it again although all that was kept is lost. What else a host says isn't unique enough: firmware
comes with made-up UUIDs, and containers share their host's. There it is drawn by lot.

A cloud tells its instances their ids, and a hypervisor its guests a UUID (DMI, `product_uuid`); neither is
on the disk that is copied, but for cloud-init's note of the former, which it writes anew on another instance.
"""

import hashlib
import json
import os
import re
import uuid
from dataclasses import dataclass, replace
from pathlib import Path

from updraft.core.model import Reason
from updraft.errors import LedgerError

_FILE = "identity"
_FORM = re.compile(r"[0-9a-f]{12}")
_INSTANCE_ID = Path("var/lib/cloud/data/instance-id")
_DMI_UUID = Path("sys/class/dmi/id/product_uuid")
_LONGEST = 256


@dataclass(frozen=True, slots=True)
class Host:
    """A machine in the words of its cloud and of its firmware; "" where one says nothing."""

    instance: str = ""
    dmi: str = ""

    def known_as(self, other: "Host") -> bool:
        """Whether this may be that host: what both say of themselves is alike.

        Of a host that has never said anything any may be that.
        """
        pairs = ((self.instance, other.instance), (self.dmi, other.dmi))
        both = [mine == theirs for mine, theirs in pairs if mine and theirs]
        return all(both) and (bool(both) or self == Host())


@dataclass(frozen=True, slots=True)
class Identity:
    """A pool's identity, the name of its controller, and the host that they were made for."""

    pool: str
    controller: str
    host: Host = Host()


def this_host(root: Path = Path("/")) -> Host:
    """The machine that this runs on. Reading the firmware's word takes root."""
    return Host(_line(root / _INSTANCE_ID), _line(root / _DMI_UUID).lower())


def well_formed(identity: str) -> bool:
    """Whether this can be a pool's identity; a tag may say anything."""
    return _FORM.fullmatch(identity) is not None


def found(state_dir: Path) -> Identity | None:
    """What is kept there; None where nothing is, or this user may not look. Raises LedgerError."""
    path = state_dir / _FILE
    try:
        doc = json.loads(path.read_text(encoding="utf-8"))
        kept = Identity(doc["pool"], doc["controller"], Host(doc["instance_id"], doc["dmi_uuid"]))
        if not (well_formed(kept.pool) and well_formed(kept.controller)):
            raise ValueError("these are no identities")
    except (FileNotFoundError, PermissionError):
        return None
    except OSError as error:
        raise LedgerError(f"{path} can't be read ({error.strerror}): run as its owner") from error
    except (ValueError, KeyError, TypeError) as error:
        raise LedgerError(
            f"{path}, which tells this pool from others of its name, is damaged ({error}): put back a copy, "
            "or say `updraft adopt --take-over --identity` with the identity in the tags of its machines"
        ) from error
    return kept


def kept(state_dir: Path, host: Host, said: str = "") -> Identity:
    """What is kept there; made now where nothing is, as `said` if others know the pool by that already.

    Raises LedgerError.
    """
    known = found(state_dir)
    if known is None:
        return _write(state_dir, Identity(said or _first(state_dir, host), _fresh(), host))
    learned = Host(known.host.instance or host.instance, known.host.dmi or host.dmi)
    if learned != known.host and known.host.known_as(host):
        return _write(state_dir, replace(known, host=learned))
    return known


def controller_in(state_dir: Path, known: Identity) -> str:
    """The name of the controller that keeps its state in this directory, where this identity is kept.

    A copy of the directory on the same host is another controller, which waits for the first.
    """
    return hashlib.sha256(f"{known.controller} {state_dir.resolve()}".encode()).hexdigest()[:12]


def take_over(state_dir: Path, host: Host, pool: str = "") -> Identity:
    """From now on this host is the pool's: of the kept identity, or of `pool`. Raises LedgerError.

    Its controller is a new one, so that a copy of it elsewhere isn't taken for it.
    """
    known = found(state_dir) if not pool else None
    return _write(
        state_dir, Identity(pool or (known.pool if known else _first(state_dir, host)), _fresh(), host)
    )


def elsewhere(known: Identity, host: Host) -> Reason | None:
    """Why a controller on this host may not act; None where it is the one that the identity was made for."""
    if known.host.known_as(host):
        return None
    then, now = _words(known.host), _words(host)
    return Reason(
        "another-host",
        f"this host ({now}) is not the pool's head ({then}), so it only reports: if that one is gone for "
        "good, stop this controller, say `updraft adopt --take-over`, and start it again",
    )


def _words(host: Host) -> str:
    names = (("instance", host.instance), ("DMI UUID", host.dmi))
    return ", ".join(f"{name} {text}" for name, text in names if text) or "which says nothing of itself"


def _first(state_dir: Path, host: Host) -> str:
    """A pool's identity where none is kept."""
    if not host.instance:
        return _fresh()
    said = json.dumps([host.instance, host.dmi, str(state_dir.absolute())])
    return hashlib.sha256(said.encode()).hexdigest()[:12]


def _fresh() -> str:
    return uuid.uuid4().hex[:12]


def _line(path: Path) -> str:
    try:
        with path.open(encoding="ascii", errors="replace") as file:
            text = file.read(_LONGEST).strip()
    except OSError:
        return ""
    return "".join(letter for letter in text if letter.isprintable())


def _write(state_dir: Path, known: Identity) -> Identity:
    path = state_dir / _FILE
    fresh = path.with_suffix(".new")
    doc = {
        "pool": known.pool,
        "controller": known.controller,
        "instance_id": known.host.instance,
        "dmi_uuid": known.host.dmi,
    }
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        # A file beside it first: a crash in between must not leave half an identity.
        with fresh.open("w", encoding="utf-8") as file:
            file.write(json.dumps(doc, indent=2) + "\n")
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except OSError as error:
        raise LedgerError(
            f"{path} can't be written ({error.strerror}): run as the owner of {state_dir}"
        ) from error
    return known
