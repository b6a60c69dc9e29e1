"""One visitor's look: who it is, what was asked for, and the picture that it is answered from."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeVar

from updraft.documents import Row
from updraft.usage.period import ReportPeriod, period
from updraft.web.pictures import PageReader, Picture, Pictures
from updraft.web.visitors import Visitor

C = TypeVar("C", bound=str)
LONGEST_VALUE = 200
_MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])")


class BadQueryError(Exception):
    """What was asked for isn't to be had; the text is a sentence that says what is."""


class NotThereError(Exception):
    """There is no such thing, or it isn't this visitor's; the text is a sentence."""


@dataclass(frozen=True, slots=True)
class Query:
    """The values behind the question mark, each checked when it is asked for."""

    values: Mapping[str, str]

    def text(self, name: str) -> str:
        """A text without blanks around it, "" where it isn't said. Raises BadQueryError for a long one."""
        value = self.values.get(name, "").strip()
        if len(value) > LONGEST_VALUE:
            raise BadQueryError(f"{name} is longer than {LONGEST_VALUE} signs")
        return value

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """A whole number within bounds. Raises BadQueryError for anything else."""
        value = self.text(name)
        if not value:
            return default
        if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
            raise BadQueryError(f"{name} is a whole number from {low} to {high}")
        return int(value)

    def choice(self, name: str, choices: Sequence[C]) -> C:
        """One of these, the first where it isn't said. Raises BadQueryError for any other."""
        value = self.text(name) or choices[0]
        for one in choices:
            if one == value:
                return one
        raise BadQueryError(f"{name} is one of: {', '.join(one for one in choices if one)}")


@dataclass(frozen=True, slots=True)
class Look:
    """What a view is made of. It is used in the thread that reads, and there only."""

    pictures: Pictures
    picture: Picture
    visitor: Visitor
    query: Query
    now: float

    @property
    def reader(self) -> PageReader:
        """The ledger, for what the picture hasn't."""
        return self.pictures.reader()

    @property
    def today(self) -> date:
        """The UTC day that it is."""
        return day_at(self.now)

    @property
    def this_month(self) -> ReportPeriod:
        """This month, up to today."""
        return this_month(self.now)

    def month(self) -> ReportPeriod:
        """The month that was asked for as `month`, else this one up to today. Raises BadQueryError."""
        asked = self.query.text("month")
        if not asked:
            return self.this_month
        if not _MONTH.fullmatch(asked) or not "1970" < asked < "9998":
            raise BadQueryError("month is a month, as in 2026-11")
        return period(asked, None, None, self.today)


def day_at(now: float) -> date:
    """The UTC day of a moment."""
    return datetime.fromtimestamp(now, UTC).date()


def this_month(now: float) -> ReportPeriod:
    """The month of a moment, up to its day."""
    return period(None, None, None, day_at(now))


def last_days(now: float, number: int) -> ReportPeriod:
    """That many days, the last of them that of a moment."""
    return ReportPeriod(day_at(now) - timedelta(days=number - 1), day_at(now))


def paged(rows: Sequence[Row], query: Query, size: int) -> tuple[list[Row], dict[str, Any]]:
    """The rows of the page that was asked for, and which page that is of how many."""
    pages = max(1, -(-len(rows) // size))
    page = min(query.number("page", 1, 1, 100_000), pages)
    shown = list(rows[(page - 1) * size : page * size])
    return shown, {"page": page, "pages": pages, "rows": len(rows), "size": size}
