"""The days that a report is about, as they are asked for: a month, or from one day to another."""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from updraft.core.settings import DAY
from updraft.errors import UsageError

EPOCH = date(1970, 1, 1)
_MONTH = re.compile(r"(\d{4})-(\d{2})")
_MOST = date(9998, 12, 31)


@dataclass(frozen=True, slots=True)
class ReportPeriod:
    """UTC days from `first` to `last`, both included."""

    first: date
    last: date

    @property
    def days(self) -> tuple[int, int]:
        """The same as the records count them."""
        return day_number(self.first), day_number(self.last)


def day_number(day: date) -> int:
    """A day as the records count it, from 1970-01-01."""
    return (day - EPOCH).days


def date_of(number: int) -> date:
    """The other way round."""
    return EPOCH + timedelta(days=number)


def moment(at: float) -> str:
    """A moment (POSIX seconds) as ISO 8601 has it, in UTC, to the second."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def midnight(number: int) -> float:
    """When a day begins."""
    return number * DAY


def period(month: str | None, first: str | None, last: str | None, today: date) -> ReportPeriod:
    """What was asked for; without anything, this month. Raises UsageError for what is none."""
    if month is not None:
        if first is not None or last is not None:
            raise UsageError("--month says all days of a month; leave --from and --to out, or say both alone")
        return _month(month)
    begin = today.replace(day=1) if first is None else _day("--from", first)
    end = today if last is None else _day("--to", last)
    if first is None and last is not None:
        begin = end.replace(day=1)
    if begin > end:
        raise UsageError(f"--from {begin} is after --to {end}: say the earlier day first")
    return ReportPeriod(begin, end)


def _month(text: str) -> ReportPeriod:
    found = _MONTH.fullmatch(text)
    year, month = (int(found[1]), int(found[2])) if found else (0, 0)
    if not (EPOCH.year <= year <= _MOST.year and 1 <= month <= 12):
        raise UsageError(f"--month {text} is no month; write it as in --month 2026-11")
    after = date(year + month // 12, month % 12 + 1, 1)
    return ReportPeriod(date(year, month, 1), after - timedelta(days=1))


def _day(option: str, text: str) -> date:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{option} {text} is no day; write it as in {option} 2026-11-01") from error
    if not EPOCH <= day <= _MOST:
        raise UsageError(f"{option} {text}: there are no records of that time")
    return day
