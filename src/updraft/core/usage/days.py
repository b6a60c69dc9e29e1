"""UTC days, as the records count them: from 1970-01-01, each of 86,400 seconds."""

import math
from collections.abc import Iterator

from updraft.core.model.used import Day
from updraft.core.settings import DAY


def day_of(at: float) -> Day:
    """The day of a moment (POSIX seconds)."""
    return math.floor(at / DAY)


def days(begin: float, end: float) -> Iterator[tuple[Day, float, float]]:
    """A time cut at the ends of days: each day with its part of it; nothing where `end` isn't later."""
    while begin < end:
        day = day_of(begin)
        part = min(end, (day + 1) * DAY)
        yield day, begin, part
        begin = part
