"""Pydantic's errors in our words: which key, and what to write instead."""

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from updraft.config.known import known_keys
from updraft.config.lines import KeyPath

Fault = tuple[KeyPath, str]

PLAIN: Mapping[str, str] = {
    "string_type": "is not a text; put it in quotes",
    "int_type": "is not a whole number; write it without quotes, as in 3",
    "int_parsing": "is not a whole number; write it without quotes, as in 3",
    "float_parsing": "is not a number; write it without quotes, as in 1.5",
    "finite_number": "is not a finite number; write a plain one, as in 20, or leave the key out",
    "float_type": "is not a number; write it without quotes, as in 1.5",
    "int_from_float": "is not a whole number; write it without a fraction, as in 3",
    "bool_type": "is neither true nor false",
    "bool_parsing": "is neither true nor false",
    "dataclass_type": "is not a table; write it as [{key}]",
    "model_type": "is not a table; write it as [{key}]",
    "model_attributes_type": "is not a table; write it as [{key}]",
    "mapping_type": "is not a table; write it as [{key}]",
    "dict_type": "is not a table; write it as [{key}]",
    "path_type": "is not a path; put it in quotes",
    "tuple_type": 'is not a list; write it as in ["a", "b"]',
    "too_short": "is empty; it needs at least one entry",
}


def faults_of(error: ValidationError, model: type[BaseModel], more: Sequence[str] = ()) -> Iterator[Fault]:
    """Every fault of a failed validation of `model`, one for each key: its path, and what to write.

    `more` are keys that its outermost table may have besides.
    """
    for detail in _without_echoes(error.errors()):
        where = _where(detail)
        if detail["type"] == "extra_forbidden":
            known = known_keys(model, where[:-1])
            yield where, _unknown_key(where, [*known, *(more if len(where) == 1 else ())])
        else:
            yield where, "".join(_what(detail, where))


def _where(detail: ErrorDetails) -> KeyPath:
    return tuple(part for part in detail["loc"] if not _is_type_name(part))


def _is_type_name(part: str | int) -> bool:
    """Pydantic puts the branch of a union and the marker of a mapping's key into the path."""
    return isinstance(part, str) and bool(
        re.fullmatch(r"str|int|constrained-int|literal\[.*|.*mapping\[.*|\[key\]|.*function-.*", part)
    )


def _without_echoes(details: list[ErrorDetails]) -> Iterator[ErrorDetails]:
    """One error for each key: a union reports one for each of its branches."""
    seen: set[KeyPath] = set()
    for detail in details:
        where = _where(detail)
        if where not in seen or detail["type"] == "extra_forbidden":
            seen.add(where)
            yield detail


def _what(detail: ErrorDetails, where: KeyPath) -> Iterator[str]:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        yield "is missing; it has no default"
    elif kind == "value_error":
        yield str(context["error"])
    elif kind in PLAIN:
        yield PLAIN[kind].format(key=".".join(str(part) for part in where))
    elif kind.startswith(("greater_than", "less_than")):
        yield f"{detail['input']} is out of range; it {_bound(kind, context)}"
    elif kind == "literal_error":
        yield f'"{detail["input"]}" is not possible; it is one of {context["expected"]}'
    else:
        yield detail["msg"]


def _bound(kind: str, context: Mapping[str, object]) -> str:
    words = {
        "greater_than": f"must be more than {context.get('gt')}",
        "greater_than_equal": f"must be at least {context.get('ge')}",
        "less_than": f"must be less than {context.get('lt')}",
        "less_than_equal": f"must be at most {context.get('le')}",
    }
    return words[kind]


def _unknown_key(where: KeyPath, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(str(where[-1]), known, n=1, cutoff=0.6)
    if near:
        return f'there is no such key; did you mean "{near[0]}"?'
    return f"there is no such key; here may stand {', '.join(known)}"
