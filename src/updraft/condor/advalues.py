"""Values of an ad as plain ones. An ad is anybody's text: what is of another kind counts as nothing."""

import math
from enum import Enum
from typing import Any

from updraft.core.model import Resources


def quantities(ad: Any, prefix: str) -> Resources:
    """Cpus, memory, disk and GPUs as the attributes with this prefix say."""
    return Resources(*(integer(ad, prefix + name) for name in ("Cpus", "Memory", "Disk", "GPUs")))


def items(ad: Any, name: str) -> list[Any]:
    """A list; an empty one for anything else."""
    value = ad.get(name)
    return value if isinstance(value, list) else []


def number(value: Any) -> int:
    """A whole number; 0 for anything else."""
    # Nearly all are: a first look at a large pool reads more than a hundred thousand.
    return value if type(value) is int else int(finite(value))


def seconds(value: Any) -> float | None:
    """A finite number; None for anything else."""
    counts = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if counts and math.isfinite(value) else None


def finite(value: Any) -> float:
    """A finite number; 0 for anything else."""
    if isinstance(value, bool | Enum) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0.0
    return float(value)


def integer(ad: Any, name: str) -> int:
    """The attribute as a whole number; 0 for anything else."""
    return number(ad.get(name))


def real(ad: Any, name: str) -> float:
    """The attribute as a finite number; 0 for anything else."""
    return finite(ad.get(name))


def word(value: Any) -> str:
    """A text of at most 512 characters; "" for anything else."""
    return value[:512] if isinstance(value, str) else ""


def text(ad: Any, name: str) -> str:
    """The attribute as such a text."""
    return word(ad.get(name))
