"""What the forms of JSON documents are made of: see `schemas`."""

from typing import Any

Schema = dict[str, Any]


def form(about: str, /, **properties: Schema) -> Schema:
    """An object with these keys, all of them always there."""
    return {"type": "object", "description": about, "properties": properties, "required": list(properties)}


def listing(of: Schema, what: str = "") -> Schema:
    """A list of such."""
    return {"type": "array", "items": of, "description": what}


def value(kind: str, what: str, *, none: bool = False) -> Schema:
    """A plain value; with `none` it may be null."""
    return {"type": [kind, "null"] if none else kind, "description": what}


VERSION: Schema = {"const": 1, "description": "The version of this form."}
REASON = form(
    "A reason: docs/reference/reasons.md has every code.",
    code=value("string", "Short and stable."),
    text=value("string", "One sentence, for people."),
)
NO_REASON: Schema = {"anyOf": [REASON, {"type": "null"}], "description": "A reason, or null."}
