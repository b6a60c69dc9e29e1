"""Whether a document has its promised form. That the form is JSON Schema itself is asked once."""

from collections.abc import Mapping
from typing import Any

from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

_ready: dict[int, Validator] = {}


def validate(document: object, form: Mapping[str, Any]) -> None:
    """Raises jsonschema.ValidationError where it has not, SchemaError where the form is none."""
    ready = _ready.get(id(form))
    if ready is None:
        kind = validator_for(form)
        kind.check_schema(form)
        ready = _ready[id(form)] = kind(form)  # which holds the form: no other gets its id
    ready.validate(document)
