"""Servers as Nova describes them, in the words of the house."""

import hashlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from updraft.clouds.base import (
    TAG_CLASS,
    TAG_GENERATION,
    TAG_IDENTITY,
    TAG_LAUNCH,
    TAG_POOL,
    TAG_RETIRING,
    TAG_VARIANT,
)
from updraft.core.model import CloudState, Instance, variant

Raw = Mapping[str, Any]

TAG_IMAGE = "updraft:image"  # of a machine that boots from a volume, where Nova tells none
TAG_FLOATING = "updraft:floating"  # the network of which the machine is to have an address
LONGEST_DESCRIPTION = 255  # what Neutron takes
LONGEST_LABEL = 60  # what Nova takes as a server's tag, and neither "/" nor "," in it
# A machine that moves, is looked after or whose host is silent is not down: the pool knows whether it works.
STATES: Mapping[str, CloudState] = {
    "BUILD": CloudState.PENDING,
    **dict.fromkeys(
        (
            "ACTIVE",
            "REBOOT",
            "HARD_REBOOT",
            "PASSWORD",
            "REBUILD",
            "RESIZE",
            "VERIFY_RESIZE",
            "REVERT_RESIZE",
            "MIGRATING",
            "RESCUE",
            "UNKNOWN",
        ),
        CloudState.RUNNING,
    ),
    **dict.fromkeys(("SHUTOFF", "PAUSED", "SUSPENDED", "SHELVED", "SHELVED_OFFLOADED"), CloudState.STOPPED),
    "DELETED": CloudState.TERMINATED,
    "SOFT_DELETED": CloudState.TERMINATED,
    "ERROR": CloudState.ERROR,
}
_LEAVING = ("deleting", "soft-deleting")


def label(key: str, value: str) -> str:
    """A tag of the house as a tag of Nova's, by which servers can be listed; a long value by its hash."""
    plain = f"{key}={value}"
    if (
        len(plain) <= LONGEST_LABEL
        and not re.search(r"[/,]", plain)
        and plain.isascii()
        and plain.isprintable()
    ):
        return plain
    digest = hashlib.sha256(value.encode()).hexdigest()
    return f"{key}#{digest}"[:LONGEST_LABEL]


def described(tags: Mapping[str, str]) -> str:
    """Tags of the house as the description of what Neutron keeps, which is the only place that it has.

    Where they are too long for it, it is the pool's name alone.
    """
    whole = " ".join(f"{key}={text}" for key, text in tags.items() if text)
    return whole if len(whole) <= LONGEST_DESCRIPTION else f"{TAG_POOL}={tags[TAG_POOL]}"


def described_of(raw: Raw) -> dict[str, str]:
    """The tags in a description, whatever people wrote beside them."""
    words = str(raw.get("description") or "").split()
    return dict(word.split("=", 1) for word in words if word.startswith("updraft:") and "=" in word)


def tags_of(raw: Raw) -> dict[str, str]:
    """The metadata of a server."""
    return dict(raw.get("metadata") or {})


def state_of(raw: Raw) -> CloudState:
    """Its state; one that nobody knows is taken for running: it counts, and nothing is ended for it."""
    if raw.get("OS-EXT-STS:task_state") in _LEAVING:
        return CloudState.STOPPING
    return STATES.get(_said(raw), CloudState.RUNNING)


def _said(raw: Raw) -> str:
    """The cloud's own word for its state."""
    return str(raw.get("status", "") or "none").upper()[:40]


def is_settled(raw: Raw) -> bool:
    """Whether Nova lets its metadata be changed: not while it is built, and never once it is broken."""
    states = ("active", "paused", "suspended", "stopped")
    return raw.get("OS-EXT-STS:vm_state") in states and state_of(raw) is not CloudState.STOPPING


def instance_of(raw: Raw, tags: Mapping[str, str], cloud: str) -> Instance:
    """The server; `tags` may know more than Nova does yet."""
    image = raw.get("image") or {}
    return Instance(
        id=str(raw["id"]),
        cloud=cloud,
        state=state_of(raw),
        launched_at=moment(raw.get("created")) or 0.0,
        worker_class=tags.get(TAG_CLASS, ""),
        launch_key=tags.get(TAG_LAUNCH, ""),
        generation=tags.get(TAG_GENERATION, ""),
        retiring=TAG_RETIRING in tags,
        zone=raw.get("OS-EXT-AZ:availability_zone") or "",
        flavor=(raw.get("flavor") or {}).get("original_name", ""),
        market="on-demand",
        image=str(image.get("id", "")) or tags.get(TAG_IMAGE, ""),
        address=address_of(raw),
        fault=_fault(raw),
        variant=variant(tags.get(TAG_VARIANT, "")),
        identity=tags.get(TAG_IDENTITY, ""),
        unknown_state="" if _said(raw) in STATES else _said(raw),
    )


def address_of(raw: Raw) -> str:
    """Its own address, IPv4 first; a floating one is the network's and not the machine's."""
    found = [
        (int(one.get("version", 4)), str(one.get("addr", "")))
        for network in (raw.get("addresses") or {}).values()
        for one in network
        if one.get("OS-EXT-IPS:type", "fixed") == "fixed"
    ]
    return min(found, key=lambda one: one[0])[1] if found else ""


def volumes_of(raw: Raw) -> tuple[str, ...]:
    """The volumes that are to end with it."""
    attached = raw.get("os-extended-volumes:volumes_attached") or ()
    return tuple(str(one["id"]) for one in attached if one.get("delete_on_termination"))


def moment(text: object) -> float | None:
    """A time of an answer in epoch seconds; None for what is none."""
    try:
        found = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _fault(raw: Raw) -> str:
    """Nova's own text where the machine is broken."""
    if state_of(raw) is not CloudState.ERROR:
        return ""
    fault = raw.get("fault") or {}
    return str(fault.get("message", "") or f"status {raw.get('status', '')}")[:500]
