"""Leaving happenings out of a script that fails until none can be left out: delta debugging.

After Zeller and Hildebrandt, Simplifying and Isolating Failure-Inducing Input (2002). Runs with real parts
don't always go the same way: what still failed once is believed.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrunk(items: Sequence[T], fails: Callable[[Sequence[T]], bool], most: int = 24) -> list[T]:
    """The fewest of `items`, in their order, with which it was seen to fail, after at most so many tries.

    With all of them it is known to fail.
    """
    kept, parts, tried = list(items), 2, 0
    while len(kept) > 1 and tried < most:
        size = -(-len(kept) // parts)
        for at in range(0, len(kept), size):
            rest = [*kept[:at], *kept[at + size :]]
            if tried >= most:
                return kept
            tried += 1
            if rest and fails(rest):
                kept, parts = rest, max(2, parts - 1)
                break
        else:
            if size == 1:
                return kept
            parts = min(len(kept), parts * 2)
    return kept
