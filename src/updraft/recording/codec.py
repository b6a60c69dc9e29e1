"""Values of the core as JSON and back: only the classes named here are ever made of what a file says.

A dataclass is `{"=": its name, field: value, …}` without the fields that have their default; a mapping is
`{"%": [[key, value], …]}`; an enumeration, a set, a time zone and a matrix have forms of their own. Large
values that were written before are `{"#": number}`: from cycle to cycle most things stay as they are.
"""

import base64
import dataclasses
import hashlib
import json
import math
import zlib
from collections.abc import Mapping
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np

from updraft.core import model, settings
from updraft.core.matching.verdicts import VerdictTable
from updraft.core.model import JobGroup, MachineId, Variant, Verdict, variant
from updraft.core.slots.kinds import problem, problem_ad

MOST_CELLS = 50_000_000
_CLASSES: Mapping[str, type] = {
    name: found
    for module in (model, settings)
    for name, found in vars(module).items()
    if isinstance(found, type) and dataclasses.is_dataclass(found)
}
_ENUMS: Mapping[str, type[StrEnum]] = {
    name: found
    for name, found in vars(model).items()
    if isinstance(found, type) and issubclass(found, StrEnum) and found is not StrEnum
}
_ADS = frozenset({("JobGroup", "ad"), ("Kind", "ad")})
MACHINES = frozenset(
    {
        ("AtWork", "machines"),
        ("Plan", "at_work"),
        ("Questions", "jobs"),
        ("Questions", "machines"),
        ("Untaken", "doubted"),
    }
)
"""Fields that hold the ids of several machines: each is written as a pair of texts."""
_SHARED = frozenset(
    (
        "JobGroup",
        "Slot",
        "Instance",
        "MachineRecord",
        "LaunchRecord",
        "Offer",
        "CloudOffer",
        "Kind",
        "Policy",
        "Spent",
    )
)
_DEFAULTS = {
    name: {
        field.name: field.default if field.default_factory is dataclasses.MISSING else field.default_factory()
        for field in dataclasses.fields(found)
    }
    for name, found in _CLASSES.items()
}


class UnreadableError(ValueError):
    """What a file says is no value of the core."""


def canonical(encoded: Any) -> str:
    """The one text of an encoded value. Its order is that of the encoding, by which values are numbered."""
    return json.dumps(encoded, separators=(",", ":"), allow_nan=False)


class Encoder:
    """Encodes values for one file. `share` numbers large values, and refers to those that were written."""

    def __init__(self, *, share: bool = True) -> None:
        self._share = share
        self._written: dict[bytes, int] = {}

    def encode(self, value: Any) -> Any:
        """The value as JSON's types. TypeError for what no snapshot, policy or plan holds."""
        if isinstance(value, Variant):
            return value.text
        if value is None or (isinstance(value, bool | int | str) and not isinstance(value, StrEnum)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"float": str(value)}
        if isinstance(value, StrEnum):
            return {"enum": [type(value).__name__, value.value]}
        if isinstance(value, tuple | list):
            return [self.encode(item) for item in value]
        return self._whole(value)

    def _whole(self, value: Any) -> Any:
        if isinstance(value, VerdictTable):
            return self._once(self._table(value))
        if isinstance(value, Mapping):
            return {"%": [[self.encode(key), self.encode(inner)] for key, inner in value.items()]}
        if isinstance(value, frozenset):
            return {"set": sorted(self.encode(item) for item in value)}
        if isinstance(value, tzinfo):
            return {"zone": getattr(value, "key", "UTC")}
        name = type(value).__name__
        if name not in _CLASSES:
            raise TypeError(f"{name} is no value of the core")
        made = {"=": name} | {
            field: self.encode(inner) for field, inner in _fields(value, name) if (name, field) not in _ADS
        }
        if isinstance(value, JobGroup) and not value.evaluable:
            made["ad"] = problem_ad(problem(value.ad))  # our own words: the plan tells its owner why
        return self._once(made) if name in _SHARED else made

    def _table(self, table: VerdictTable) -> dict[str, Any]:
        packed = zlib.compress(np.ascontiguousarray(table.copies, dtype="<i4").tobytes(), 1)
        return {
            "table": [
                list(table.groups),
                list(table.kinds),
                base64.b64encode(packed).decode("ascii"),
            ]
        }

    def _once(self, encoded: dict[str, Any]) -> dict[str, Any]:
        if not self._share:
            return encoded
        digest = hashlib.blake2b(canonical(encoded).encode(), digest_size=16).digest()
        number = self._written.get(digest)
        if number is not None:
            return {"#": number}
        self._written[digest] = len(self._written)
        return encoded


def _fields(value: Any, name: str) -> list[tuple[str, Any]]:
    """The fields that don't have their default. A table always counts: an empty one is still a table."""
    return [
        (field, inner)
        for field, default in _DEFAULTS[name].items()
        if isinstance(inner := getattr(value, field), VerdictTable)
        or (inner is not default and inner != default)
    ]


class Decoder:
    """Reads what one `Encoder` wrote, in the same order."""

    def __init__(self) -> None:
        self._read: list[Any] = []

    def decode(self, value: Any) -> Any:
        """The value that was encoded. UnreadableError where it is none; sequences become tuples."""
        if isinstance(value, list):
            return tuple(self.decode(item) for item in value)
        if not isinstance(value, dict):
            return value
        try:
            return self._form(value)
        except (TypeError, KeyError, IndexError, AttributeError, OverflowError, zlib.error) as error:
            raise UnreadableError(f"a value that can't be read: {canonical(value)[:80]}") from error

    def _form(self, value: dict[str, Any]) -> Any:
        if "=" in value:
            return self._instance(value)
        ((form, inner),) = value.items()
        match form:
            case "#":
                return self._read[int(inner)]
            case "%":
                return {self.decode(key): self.decode(item) for key, item in inner}
            case "enum":
                return _ENUMS[inner[0]](inner[1])
            case "set":
                return frozenset(self.decode(item) for item in inner)
            case "zone":
                return UTC if inner == "UTC" else ZoneInfo(inner)
            case "float":
                return float(inner)
            case "table":
                return self._numbered(_table(*inner))
            case _:
                raise UnreadableError(f"a form that is not known: {form[:40]}")

    def _instance(self, value: dict[str, Any]) -> Any:
        name = value["="]
        fields = {field: self.decode(inner) for field, inner in value.items() if field != "="}
        fields = {field: "" for owner, field in _ADS if owner == name} | fields
        fields |= {
            field: type(some)(map(MachineId._make, some))
            for field, some in fields.items()
            if (name, field) in MACHINES and some is not None
        }
        if "variant" in fields:
            fields["variant"] = variant(fields["variant"])
        made = _CLASSES[name](**fields)
        return self._numbered(made) if name in _SHARED else made

    def _numbered(self, made: Any) -> Any:
        self._read.append(made)
        return made


def _table(groups: list[str], kinds: list[str], packed: str) -> VerdictTable:
    cells = len(groups) * len(kinds)
    if cells > MOST_CELLS:
        raise UnreadableError(f"a table of {cells} verdicts")
    raw = zlib.decompressobj().decompress(base64.b64decode(packed), 4 * cells + 1)
    copies = np.frombuffer(raw, dtype="<i4").reshape(len(groups), len(kinds)).astype(np.int32)
    return explained(VerdictTable(groups, kinds, copies, _unsaid), {})


def explained(table: VerdictTable, known: Mapping[tuple[str, str], Verdict]) -> VerdictTable:
    """The table with the whole verdicts that are known; any other is an UnreadableError."""

    def explain(group: int, kind: int) -> Verdict:
        pair = (table.groups[group], table.kinds[kind])
        if pair not in known:
            raise UnreadableError(f"the recording lacks the verdict of {pair[0]} on {pair[1]}")
        return known[pair]

    return VerdictTable(
        table.groups,
        table.kinds,
        table.copies,
        explain,
        {name: at for at, name in enumerate(table.groups)},
        {name: at for at, name in enumerate(table.kinds)},
    )


def _unsaid(group: int, kind: int) -> Verdict:
    raise UnreadableError(f"the recording lacks the verdict of group {group} on kind {kind}")
