"""Values of an ad as plain ones. An ad is anybody's text: what is of another kind counts as nothing.

Everything that is read of an ad is read here. Nothing here raises, whatever the ad says, and every number is
within bounds in which sums and products of many are still exact.
"""

import math
from collections.abc import Iterable, Sequence
from enum import Enum
from typing import Any

from updraft.core.model import Resources, of_amounts
from updraft.core.slots.kinds import LARGEST, RESOURCES

_MOST_PARTS = 10_000


def value(ad: Any, name: str) -> Any:
    """The attribute as the ClassAd library gives it; None where there is none, or none that it can give.

    A text that isn't UTF-8 (a file's name on an old disk) comes as the library would write it down.
    """
    try:
        return ad.get(name)
    except Exception:  # its errors are of many kinds, and each is of this one attribute
        return _written(ad, name)


def has(ad: Any, name: str) -> bool:
    """Whether there is such an attribute. (`in` asks the library for its value, and raises as that does.)"""
    try:
        ad.lookup(name)
    except KeyError:
        return False
    return True


def _written(ad: Any, name: str) -> str | None:
    try:
        written = str(ad.lookup(name))
    except Exception:
        return None
    return written[1:-1] if written[:1] == written[-1:] == '"' and len(written) > 1 else None


def quantities(ad: Any, prefix: str, custom: Sequence[str] = ()) -> Resources:
    """Cpus, memory, disk, GPUs and these custom resources as the attributes with this prefix say."""
    return resources([value(ad, prefix + name) for name in (*RESOURCES, *custom)], custom)


def resources(values: Iterable[Any], custom: Sequence[str] = ()) -> Resources:
    """Cpus, memory, disk, GPUs and these custom resources, which are sorted, as these values say.

    There is none of what is less than nothing.
    """
    return of_amounts([max(0, number(one)) for one in values], [name.lower() for name in custom])


def odd_quantities(ad: Any, prefix: str, custom: Sequence[str] = ()) -> str:
    """Which of these attributes is a number that no machine has, in words; empty where all are sound."""
    for name in (*RESOURCES, *custom):
        said = value(ad, prefix + name)
        if isinstance(said, int | float) and not isinstance(said, bool | Enum) and not 0 <= said < LARGEST:
            return f"{prefix}{name} is {said:g}"
    return ""


def items(ad: Any, name: str) -> list[Any]:
    """A list; an empty one for anything else."""
    found = value(ad, name)
    return found if isinstance(found, list) else []


def number(value: Any) -> int:
    """A whole number; 0 for anything else."""
    # Nearly all are: a first look at a large pool reads more than a hundred thousand.
    if type(value) is int and -LARGEST < value < LARGEST:
        return value
    return int(finite(value))


def seconds(value: Any) -> float | None:
    """A finite number; None for anything else."""
    return float(value) if _counts(value) else None


def finite(value: Any) -> float:
    """A finite number; 0 for anything else."""
    return float(value) if _counts(value) else 0.0


def _counts(value: Any) -> bool:
    if isinstance(value, bool | Enum) or not isinstance(value, int | float):
        return False
    return math.isfinite(value) and -LARGEST < value < LARGEST


def integer(ad: Any, name: str) -> int:
    """The attribute as a whole number; 0 for anything else."""
    return number(value(ad, name))


def real(ad: Any, name: str) -> float:
    """The attribute as a finite number; 0 for anything else."""
    return finite(value(ad, name))


def word(value: Any) -> str:
    """A text of at most 512 characters; "" for anything else."""
    return value[:512] if isinstance(value, str) else ""


def text(ad: Any, name: str) -> str:
    """The attribute as such a text."""
    return word(value(ad, name))


def list_of_texts(ad: Any, name: str) -> tuple[str, ...]:
    """The parts of the attribute, a text with commas, 10,000 at most; none of anything else."""
    found = value(ad, name)
    parts = found.split(",", _MOST_PARTS)[:_MOST_PARTS] if isinstance(found, str) else []
    return tuple(part.strip()[:512] for part in parts if part.strip())
