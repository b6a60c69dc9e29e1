"""What `--json` prints: a frozen model for each document, from which its JSON Schema and the reference come.

A document is a subclass of `Document`, or a frozen dataclass that is there anyway. The first paragraph of its
docstring says what it is, and a text in the annotation of a field what that is:

    class Head(Document):
        \"\"\"A head.\"\"\"

        cloud: Annotated[str, "Its cloud."]
        class_: Annotated[str, "Its worker class."]

To add a key: add the field, and its value where the document is made. A field with a text, or whose type is a
document, is a promise as long as `version` is 1; others are printed too, and may come and go. `cycle` has
what the daemon writes down at each look, which `plan` and `status` show.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    Self,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from updraft.core.model import Variant

Schema = dict[str, Any]
Row = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]
"""What was a document when it was written into the ledger, and has been read from there: JSON values."""

IN_PLACE: Mapping[str, bool] = {"in place": True}
"""The metadata of a field whose keys stand in the document itself."""
_PLAIN = {str: "string", bool: "boolean", int: "integer", float: "number", Variant: "string"}


class Absent(Enum):
    """What a field is where its key is left out of the document."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True)
class As:
    """In an annotation: what is here as JSON values was made of this; `nullable`: each of it may be null."""

    kind: Any
    nullable: bool = False


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Document:
    """One document, or a part of one: every subclass is a frozen dataclass."""

    def __init_subclass__(cls) -> None:
        dataclass(frozen=True)(cls)

    @classmethod
    def of(cls, *sources: object, **given: Any) -> Self:
        """One whose fields are as given, the others as the first of the sources has them under that name."""
        kind: Any = cls  # a class is hashable, also one of a type variable
        for name, _, _ in _keys(kind):
            has = next((one for one in sources if name not in given and hasattr(one, name)), None)
            given |= {} if has is None else {name: getattr(has, name)}
        return cls(**given)


class LeftOutCloud(Document):
    """A cloud that is left out, since it doesn't answer, or has nothing to tell."""

    cloud: Annotated[str, "Which."]
    text: Annotated[str, "Why."]


def left_out_of(errors: Mapping[str, str]) -> Sequence[LeftOutCloud]:
    """The clouds of these names, each with its sentence."""
    return [LeftOutCloud(name, text) for name, text in errors.items()]


def plain(value: Any) -> Any:
    """A document as JSON values; these as they are."""
    if isinstance(value, Variant):
        return value.text
    if is_dataclass(value):
        return dict(_items(value))
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def _items(document: Any) -> Iterator[tuple[str, Any]]:
    for name, key, in_place in _keys(document.__class__):
        value = getattr(document, name)
        if in_place:
            yield from _items(value)
        elif value is not ABSENT:
            yield key, plain(value)


@cache
def _keys(kind: Any) -> Sequence[tuple[str, str, bool]]:
    """Of each field its name, its key, and whether its own keys stand in its place."""
    return [
        (one.name, one.name.rstrip("_"), one.metadata is not None and bool(one.metadata))
        for one in fields(kind)
    ]


def schema(kind: Any) -> Schema:
    """The JSON Schema of what a type is printed as."""
    origin, of = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _annotated(*of)
    if origin in (Union, UnionType):
        return _union([one for one in of if one is not Absent])
    if origin is Literal:
        return {"enum": list(of)}
    if inspect.isclass(kind) and issubclass(kind, Enum):
        return {"enum": [one.value for one in kind]}
    if is_dataclass(kind) and kind not in _PLAIN:
        return _form(kind)
    if origin is not None and issubclass(origin, Mapping):
        inner = schema(of[1])
        return {"type": "object", **({"additionalProperties": inner} if inner else {})}
    if origin is not None:
        return {"type": "array", "items": schema(of[0]) if len({*of} - {...}) == 1 else {}}
    return {"type": _PLAIN[kind]} if kind in _PLAIN else {}


def _annotated(base: Any, *notes: Any) -> Schema:
    made = schema(base)
    for note in notes:
        if isinstance(note, As):
            made = schema(note.kind)
            if note.nullable:
                made["properties"] = {key: _or_null(one) for key, one in made["properties"].items()}
        elif isinstance(note, str):
            made = {**made, "description": note}
    return made


def _or_null(made: Schema) -> Schema:
    if isinstance(made.get("type"), str) and made["type"] != "object":
        return {**made, "type": [made["type"], "null"]}
    return made if isinstance(made.get("type"), list) else {"anyOf": [made, {"type": "null"}]}


def _union(kinds: Sequence[Any]) -> Schema:
    some = [schema(one) for one in kinds if one is not NoneType]
    made = some[0] if len(some) == 1 else {"anyOf": some}
    return _or_null(made) if NoneType in kinds else made


def _form(kind: Any) -> Schema:
    """The keys that are promised, all of them always there unless they may be absent."""
    hints = get_type_hints(kind, include_extras=True)
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for name, key, in_place in _keys(kind):
        made = schema(hints[name])
        if in_place:
            properties |= made["properties"]
            required += made["required"]
        elif "description" in made:
            properties[key] = made
            required += [] if Absent in get_args(_bare(hints[name])) else [key]
    about = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
    return {
        "type": "object",
        "description": about,
        "properties": properties,
        "required": list(dict.fromkeys(required)),
    }


def _bare(hint: Any) -> Any:
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint
