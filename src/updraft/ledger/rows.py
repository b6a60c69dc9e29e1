"""Records as JSON documents and back."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, fields
from typing import Any

from updraft.core.model import (
    Annex,
    DrainMode,
    DrainRecord,
    LaunchRecord,
    LaunchState,
    MachineId,
    MachineRecord,
    Reason,
    Resources,
    Standstill,
    Untaken,
    variant,
)
from updraft.ledger.secrets import scrubbed, suspicious

_ANNEX_FIELDS = frozenset(field.name for field in fields(Annex))
_LAUNCH_FIELDS = frozenset(field.name for field in fields(LaunchRecord))
_MACHINE_FIELDS = frozenset(field.name for field in fields(MachineRecord))
_RESOURCES = tuple(field.name for field in fields(Resources))
_NESTED = ("drain", "wanted_drain", "end", "let_go", "end_failed")


@contextmanager
def decoding() -> Iterator[None]:
    """A document that can't be read back is damage to the file, as a bad page is."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise sqlite3.DataError(f"a row can't be read: {type(error).__name__}") from error


def dump(document: object) -> str:
    """One compact JSON text; floats that are no JSON numbers are refused."""
    return json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False)


def clean(document: object) -> str:
    """As `dump`, without what looks like a secret."""
    text = dump(document)
    return dump(scrubbed(document)) if suspicious(text) else text


def launch_to_doc(record: LaunchRecord) -> str:
    """The launch as JSON."""
    return clean({**asdict(record), "variant": record.variant.text})


def machine_to_doc(record: MachineRecord) -> str:
    """The machine as JSON."""
    # By hand: `asdict` copies whatever it finds, and thousands of these are written at a look.
    values = {name: getattr(record, name) for name in _MACHINE_FIELDS}
    values["resources"] = {name: getattr(record.resources, name) for name in _RESOURCES}
    values["variant"] = record.variant.text
    for name in _NESTED:
        if values[name] is not None:
            values[name] = asdict(values[name])
    return clean(values)


def annex_to_doc(annex: Annex) -> str:
    """The annex as JSON."""
    return clean(asdict(annex))


def annex_from_doc(doc: str) -> Annex:
    """The annex that `annex_to_doc` wrote."""
    with decoding():
        values = {key: value for key, value in json.loads(doc).items() if key in _ANNEX_FIELDS}
        values["stopped"] = _reason(values["stopped"])
        for name in ("clouds", "flavors", "security_groups"):
            values[name] = tuple(values.get(name, ()))
        return Annex(**values)


def _resources(values: Mapping[str, Any]) -> Resources:
    amounts = {name: value for name, value in values.items() if name != "custom"}
    return Resources(**amounts, custom=tuple((name, amount) for name, amount in values.get("custom", ())))


def launch_from_doc(doc: str) -> LaunchRecord:
    """The launch that `launch_to_doc` wrote."""
    with decoding():
        values = {key: value for key, value in json.loads(doc).items() if key in _LAUNCH_FIELDS}
        values["resources"] = _resources(values["resources"])
        values["state"] = LaunchState(values["state"])
        values["ids"] = tuple(values["ids"])
        values["error"] = _reason(values["error"])
        values["variant"] = variant(values.get("variant", ""))
        return LaunchRecord(**values)


def machine_from_doc(doc: str) -> MachineRecord:
    """The machine that `machine_to_doc` wrote."""
    with decoding():
        values = {key: value for key, value in json.loads(doc).items() if key in _MACHINE_FIELDS}
        values["resources"] = _resources(values["resources"])
        values["drain"] = _drain(values["drain"])
        values["wanted_drain"] = _drain(values["wanted_drain"])
        values["end"] = _reason(values["end"])
        values["let_go"] = _reason(values.get("let_go"))
        values["end_failed"] = _reason(values.get("end_failed"))
        values["variant"] = variant(values.get("variant", ""))
        values["gaps"] = tuple(values.get("gaps", ()))
        values["other_schedds"] = tuple(values.get("other_schedds", ()))
        return MachineRecord(**values)


def at_work_to_doc(machines: Iterable[MachineId]) -> dict[str, list[str]]:
    """Machines, by cloud and id, as a document: the ids of each cloud."""
    found: dict[str, list[str]] = {}
    for cloud, machine in sorted(machines):
        found.setdefault(cloud, []).append(machine)
    return found


def at_work_from_doc(doc: str) -> frozenset[MachineId]:
    """The machines of what `at_work_to_doc` made, as JSON; none of an empty text."""
    with decoding():
        found = json.loads(doc or "{}")
        return frozenset(MachineId(str(cloud), str(one)) for cloud, ids in found.items() for one in ids)


def untaken_to_doc(groups: Mapping[str, Untaken]) -> dict[str, Any]:
    """What is remembered of job groups, by their keys, as a document."""
    return {key: asdict(one) for key, one in groups.items()}


def untaken_from_doc(doc: str) -> dict[str, Untaken]:
    """What `untaken_to_doc` made, as JSON; nothing of an empty text."""
    with decoding():
        return {
            str(key): Untaken(
                int(one["times"]),
                float(one["since"]),
                float(one["until"]),
                int(one["running"]),
                tuple(MachineId(str(cloud), str(machine)) for cloud, machine in one.get("doubted", ())),
                None if one.get("still") is None else Standstill(**one["still"]),
            )
            for key, one in json.loads(doc or "{}").items()
        }


def _reason(value: dict[str, str] | None) -> Reason | None:
    return None if value is None else Reason(**value)


def _drain(value: dict[str, Any] | None) -> DrainRecord | None:
    if value is None:
        return None
    return DrainRecord(**{**value, "mode": DrainMode(value["mode"]), "reason": Reason(**value["reason"])})
