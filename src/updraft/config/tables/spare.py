"""Room kept ready, as the file says it: how much, for which jobs, on which days and hours."""

import re
from datetime import tzinfo
from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import BeforeValidator, Field, model_validator

from updraft.config.tables.part import Part
from updraft.config.values.units import Size
from updraft.core import settings as core
from updraft.core.model import Resources

_MIB = 1024 * 1024
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_CLOCK = re.compile(r"([01]?[0-9]|2[0-4]):([0-5][0-9])")


def weekdays(value: object) -> object:
    """ "mon-fri", "sat", "mon,wed" or "daily" as numbers, Monday being 0; ValueError otherwise."""
    text = value.strip().lower() if isinstance(value, str) else ""
    if text == "daily":
        return core.EVERY_DAY
    found: set[int] = set()
    for piece in text.split(","):
        first, _, last = (word.strip() for word in piece.partition("-"))
        if first not in _DAYS or (last and last not in _DAYS):
            raise ValueError(f'{value!r} names no weekdays; write "daily", "mon-fri" or "sat,sun"')
        begin, end = _DAYS.index(first), _DAYS.index(last or first)
        found.update(day % 7 for day in range(begin, end + 1 if end >= begin else end + 8))
    return frozenset(found)


def clock(value: object) -> object:
    """ "08:30" as seconds after midnight; ValueError otherwise."""
    match = _CLOCK.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None or (seconds := int(match[1]) * 3600 + int(match[2]) * 60) > core.DAY:
        raise ValueError(f'{value!r} is no time of day; write it as in "08:30", at most "24:00"')
    return float(seconds)


def time_zone(value: object) -> object:
    """The name of a time zone as the zone; ValueError otherwise."""
    try:
        return ZoneInfo(value) if isinstance(value, str) and value else ZoneInfo("")
    except (ValueError, KeyError, OSError) as error:
        raise ValueError(f'{value!r} is no time zone; write one as in "Europe/Rome" or "UTC"') from error


class Spare(Part):
    """Room that is kept ready for jobs that are yet to come: an entry of `spare` in [classes.NAME]."""

    model_config = Part.model_config | {"arbitrary_types_allowed": True}

    jobs: Annotated[int, Field(ge=1)]
    """How many such jobs could start at once. A count."""
    cpus: Annotated[int, Field(ge=1)] = 1
    """What one of them asks for: cores."""
    memory: Size = Field(default="1GiB", validate_default=True)
    """What one of them asks for: memory, with its unit."""
    disk: Size = Field(default="1GiB", validate_default=True)
    """What one of them asks for: disk, with its unit."""
    gpus: Annotated[int, Field(ge=0)] = 0
    """What one of them asks for: GPUs."""
    days: Annotated[frozenset[int], BeforeValidator(weekdays)] = Field(default="daily", validate_default=True)
    """The days: "daily", "mon-fri", "sat,sun"."""
    begin: Annotated[float, BeforeValidator(clock)] = Field(default="00:00", validate_default=True)
    """From when on these days."""
    end: Annotated[float, BeforeValidator(clock)] = Field(default="24:00", validate_default=True)
    """Until when. At or before `begin`: on the following day."""
    zone: Annotated[tzinfo, BeforeValidator(time_zone)] = Field(default="UTC", validate_default=True)
    """The time zone of `begin` and `end`, as in "Europe/Rome"."""

    @model_validator(mode="after")
    def _some_day(self) -> "Spare":
        if not self.days:
            raise ValueError('days is empty; write "daily" or leave it out')
        return self

    def as_core(self) -> core.Spare:
        """The same as the core reads it."""
        request = Resources(self.cpus, self.memory // _MIB, self.disk // 1024, self.gpus)
        return core.Spare(self.jobs, request, self.days, self.begin, self.end, self.zone)
