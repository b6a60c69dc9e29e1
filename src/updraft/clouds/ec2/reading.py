"""Instances as EC2 describes them, in the words of the house."""

import email
import re
import zlib
from collections.abc import Mapping
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

STATES: Mapping[str, CloudState] = {
    "pending": CloudState.PENDING,
    "running": CloudState.RUNNING,
    "shutting-down": CloudState.STOPPING,
    "stopping": CloudState.STOPPING,
    "stopped": CloudState.STOPPED,
    "terminated": CloudState.TERMINATED,
    "error": CloudState.ERROR,
}
# How a worker's configuration, in its user-data, says whose it is.
ATTRIBUTES: Mapping[str, str] = {
    "UpdraftPool": TAG_POOL,
    "UpdraftIdentity": TAG_IDENTITY,
    "UpdraftClass": TAG_CLASS,
    "UpdraftLaunch": TAG_LAUNCH,
    "UpdraftGeneration": TAG_GENERATION,
    "UpdraftVariant": TAG_VARIANT,
}
_LINE = re.compile(r'^\s*(Updraft[A-Za-z]+) = "([^"\\\n]*)"\s*$', re.MULTILINE)
_PLAIN_ENDS = ("Client.UserInitiatedShutdown", "Client.InstanceInitiatedShutdown", "")
_LARGEST = 1024 * 1024


def tags_of(raw: Mapping[str, Any]) -> dict[str, str]:
    """The tags of an instance."""
    return {tag["Key"]: tag.get("Value", "") for tag in raw.get("Tags", ())}


def state_of(raw: Mapping[str, Any]) -> CloudState:
    """Its state; one that nobody knows is taken for running: it counts, and nothing is ended for it."""
    return STATES.get(_said(raw), CloudState.RUNNING)


def _said(raw: Mapping[str, Any]) -> str:
    """The cloud's own word for its state."""
    return str(raw.get("State", {}).get("Name", "") or "none")[:40]


def counts(raw: Mapping[str, Any]) -> bool:
    """Whether it counts against a quota of machines."""
    return state_of(raw) is not CloudState.TERMINATED


def instance_of(raw: Mapping[str, Any], tags: Mapping[str, str], cloud: str) -> Instance:
    """The instance; `tags` may know more than the listing shows yet."""
    state = state_of(raw)
    return Instance(
        id=raw["InstanceId"],
        cloud=cloud,
        state=state,
        launched_at=raw["LaunchTime"].timestamp() if raw.get("LaunchTime") else 0.0,
        worker_class=tags.get(TAG_CLASS, ""),
        launch_key=tags.get(TAG_LAUNCH, ""),
        generation=tags.get(TAG_GENERATION, ""),
        retiring=TAG_RETIRING in tags,
        zone=raw.get("Placement", {}).get("AvailabilityZone", ""),
        flavor=raw.get("InstanceType", ""),
        market="spot" if raw.get("InstanceLifecycle") == "spot" else "on-demand",
        image=raw.get("ImageId", ""),
        address="" if state is CloudState.TERMINATED else raw.get("PrivateIpAddress", "") or "",
        fault=_fault(raw, state),
        variant=variant(tags.get(TAG_VARIANT, "")),
        identity=tags.get(TAG_IDENTITY, ""),
        unknown_state="" if _said(raw) in STATES else _said(raw),
    )


def _fault(raw: Mapping[str, Any], state: CloudState) -> str:
    """The cloud's own text where it was the cloud that ended the machine."""
    if state in (CloudState.PENDING, CloudState.RUNNING):
        return ""
    reason = raw.get("StateReason") or {}
    if reason.get("Code", "") in _PLAIN_ENDS:
        return ""
    return str(reason.get("Message", "") or reason.get("Code", ""))[:500]


def claims_in(user_data: bytes) -> dict[str, str]:
    """The tags that a worker's user-data stands for; empty for anything that isn't a worker's of ours."""
    found = {ATTRIBUTES[name]: value for name, value in _LINE.findall(_text(user_data)) if name in ATTRIBUTES}
    return found if {TAG_POOL, TAG_LAUNCH} <= set(found) else {}


def _text(user_data: bytes) -> str:
    raw = _unpacked(user_data)
    if raw[:200].lower().startswith((b"content-type: multipart", b"mime-version")):
        parts = [part.get_payload(decode=True) for part in email.message_from_bytes(raw).walk()]
        raw = b"\n".join(_unpacked(part) for part in parts if isinstance(part, bytes))
    return raw.decode("utf-8", "replace")


def _unpacked(raw: bytes) -> bytes:
    """What was compressed; nothing where it can't be read."""
    if raw[:2] != b"\x1f\x8b":
        return raw
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(raw, _LARGEST)
    except zlib.error:
        return b""
