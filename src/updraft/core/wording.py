"""Times and durations as sentences have them."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1024)
def spell(length: float) -> str:
    """A duration in seconds in words of the configuration: 5400 is "1h30m"."""
    rest, parts = round(length, 3), []
    for unit, size in (("d", 86400), ("h", 3600), ("m", 60)):
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count:.0f}{unit}")
    if rest or not parts:
        parts.append(f"{rest:g}s")
    return "".join(parts)


def counted(number: int, noun: str) -> str:
    """A number with its noun: "1 machine", "3 machines"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def moment(at: float) -> str:
    """A POSIX time to the second, in UTC: it says the same on every machine whose log it is in."""
    return _moment(int(at))


# The same moments are told of the same machines from decision to decision.
@lru_cache(maxsize=16384)
def _moment(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
