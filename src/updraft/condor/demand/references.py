"""What a job's expressions refer to, read from their texts: nothing is evaluated.

The ClassAd library can say it too, but not of an attribute that refers to itself, and where each of forty
attributes names the next one twice it takes for ever.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from updraft.core.matching.expressions import KEYWORDS, SCOPES, WORD, tokens
from updraft.core.slots.terms import OWN_REQUIREMENTS

_LONGEST = 16_384
_OTHERS = frozenset({"target", "other"})


@dataclass(frozen=True, slots=True)
class References:
    """`outside` are the names that the job's requirements and requests lead to and that its ad doesn't have.

    `circles` are attributes that refer to themselves, directly or by way of others.
    """

    outside: frozenset[str]
    circles: tuple[str, ...]


def references(ad: Any) -> References:
    """What the requirements and requests of this ad lead to. Raises nothing for any ad."""
    there = {name.lower(): name for name in ad}
    outside: dict[str, str] = {}
    circles: dict[str, None] = {}
    done: set[str] = set()
    above: dict[str, None] = {}
    # Depth first, without recursion: chains are as long as strangers make them.
    todo = [(low, False) for low in sorted(there, reverse=True) if _asks(low)]
    while todo:
        low, leaving = todo.pop()
        if leaving:
            del above[low]
            done.add(low)
        elif low in above:
            circles[there[low]] = None
        elif low not in done:
            above[low] = None
            todo.append((low, True))
            for name in mentioned(str(ad.lookup(there[low]))):
                if name.lower() in there:
                    todo.append((name.lower(), False))
                else:
                    outside.setdefault(name.lower(), name)
    return References(frozenset(outside.values()), tuple(circles))


def _asks(low: str) -> bool:
    return low in ("requirements", OWN_REQUIREMENTS.lower()) or low.startswith("request")


@lru_cache(maxsize=20_000)
def mentioned(text: str) -> tuple[str, ...]:
    """The attributes of the same ad that an expression names; none of one that is too long to be read."""
    if len(text) > _LONGEST:
        return ()
    parts = tokens(text)
    found: dict[str, None] = {}
    for at, part in enumerate(parts):
        quoted = part[0] == "'" and len(part) > 2
        low = part.strip("'").lower()
        if not (quoted or WORD.match(part)) or ((low in KEYWORDS or low in SCOPES) and not quoted):
            continue
        if parts[at + 1 : at + 2] == ["("] and not quoted:
            continue
        before = [one.lower() for one in parts[max(0, at - 2) : at]]
        # What stands behind a point is the other side's, or an attribute of something within the ad.
        if before[-1:] == ["."] and (before[0] not in SCOPES or before[0] in _OTHERS):
            continue
        found[part.strip("'")] = None
    return tuple(found)
