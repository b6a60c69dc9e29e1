"""Values with units: durations as "40m" or "1h30m", sizes as "4GiB". A number without a unit is refused."""

from typing import Annotated

import durationpy
from pydantic import BeforeValidator, ByteSize, TypeAdapter, ValidationError

from updraft.core.reasons import spell
from updraft.errors import UsageError

__all__ = ["LONGEST", "Duration", "Size", "is_number", "seconds", "size", "sized", "spell"]

LONGEST = 10 * 365 * 86400.0


def seconds(value: object) -> float:
    """A duration with a unit, in seconds. Raises ValueError that says how to write it."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('is not a duration; write it with a unit, as in "40m" or "1h30m"')
    text = str(value).strip()
    if is_number(text):
        shown = f'"{text}"' if isinstance(value, str) else text
        raise ValueError(f'{shown} has no unit; write "{text}m" for minutes or "{text}s" for seconds')
    try:
        length: float = durationpy.from_str(text).total_seconds()
    except (durationpy.DurationError, ValueError, OverflowError) as error:
        raise ValueError(f'"{text}" is not a duration; write it as in "40m", "1h30m" or "7d"') from error
    if length < 0:
        raise ValueError(f'"{text}" is negative; a duration is at least "0s"')
    if length > LONGEST:
        raise ValueError(f'"{text}" is more than ten years; is the unit right?')
    return length


def sized(value: object) -> object:
    """A size with a unit, as pydantic's ByteSize reads it. Raises ValueError where the unit is missing."""
    text = str(value).strip()
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ValueError('is not a size; write it with a unit, as in "4GiB"')
    if is_number(text):
        raise ValueError(f'{text} has no unit; write "{text}GiB" or "{text}MiB"')
    return text


def is_number(text: str) -> bool:
    """True for text that is a bare number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


Duration = Annotated[float, BeforeValidator(seconds)]
Size = Annotated[ByteSize, BeforeValidator(sized)]


def size(option: str, text: str) -> int:
    """A size that was given with a unit, in MiB. Raises UsageError that names the option for what is none."""
    try:
        return int(TypeAdapter(Size).validate_python(text)) >> 20
    except ValidationError as error:
        what = error.errors()[0]["msg"].removeprefix("Value error, ")
        raise UsageError(f"{option} {text}: {what}; write it as in 2GiB") from error
