"""Finding by halves which of many things fail, where only asking for some of them together shows it.

By itself, so that the processes that read HTCondor's ads don't load all that plans.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")

# What is not told apart by then is taken together. Nothing else is decided meanwhile, and a plan for 10,000
# machines takes about a second.
_QUESTIONS = 100


def failing(
    items: Sequence[T],
    fails: Callable[[Sequence[T]], bool],
    *,
    known: bool = False,
    most: int = _QUESTIONS,
) -> list[T]:
    """Those of `items` that fail, found by halves; `known` where it is known that some do.

    What isn't told apart within `most` questions is taken together. The largest part is always the next to be
    halved, so that it is as little as may be.
    """
    parts = [items] if items and (known or fails(items)) else []
    asked = 1
    while parts and len(parts[-1]) > 1 and asked < most:
        part = parts.pop()
        middle = len(part) // 2
        parts += [half for half in (part[:middle], part[middle:]) if fails(half)]
        parts.sort(key=len)
        asked += 2
    return [one for part in parts for one in part]
