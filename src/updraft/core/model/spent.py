"""Money: what the records say was spent, and a budget of a day or a month as it stands.

All of it is in the unit of the prices, an estimate at list prices. Days are UTC days.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

HOUR = 3600.0
DAY = 86400.0


class BudgetPeriod(StrEnum):
    """The period of a budget: a UTC day, or a month of such days."""

    DAY = "day"
    MONTH = "month"

    def begin(self, now: float) -> float:
        """When the period begins in which `now` is (POSIX seconds)."""
        at = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        return (at if self is BudgetPeriod.DAY else at.replace(day=1)).timestamp()

    def end(self, now: float) -> float:
        """When the period ends in which `now` is (POSIX seconds)."""
        at = datetime.fromtimestamp(self.begin(now), UTC)
        if self is BudgetPeriod.DAY:
            return at.timestamp() + DAY
        return at.replace(year=at.year + at.month // 12, month=at.month % 12 + 1).timestamp()


class BudgetScope(StrEnum):
    """Whose money a budget is."""

    POOL = "pool"
    CLOUD = "cloud"
    CLASS = "class"
    USER = "user"
    GROUP = "group"
    ANNEXES = "annexes"


@dataclass(frozen=True, slots=True)
class SpentRow:
    """A sum of the records: of the present day, or of the earlier days of its month.

    `cost` is at list prices; `unpriced` are seconds of machines of this `cloud`, `flavor` and `market` whose
    price wasn't known (where there are none, the last two are empty). Of machines: `owner` is whose annex
    they belong to, "" for no annex. Of people: `user` and accounting `group` as the records have them, and
    `idle_cost` is what idled on machines that they used, beside `cost`.
    """

    today: bool
    cost: float
    unpriced: float = 0.0
    cloud: str = ""
    worker_class: str = ""
    flavor: str = ""
    market: str = ""
    owner: str = ""
    user: str = ""
    group: str = ""
    idle_cost: float = 0.0


@dataclass(frozen=True, slots=True)
class Spent:
    """The spending in the records, up to the look `at`: of the UTC `day` (from 1970-01-01) and of its month.

    `machines` are all costs, by where they came up; `people` the parts of them that users are charged with.
    """

    at: float
    day: int
    machines: tuple[SpentRow, ...] = ()
    people: tuple[SpentRow, ...] = ()


@dataclass(frozen=True, slots=True)
class Spending:
    """A budget as it stands at `now`.

    `scope` and `name` say whose it is, `whose` the same in words ("the pool", "class gpu"); `most` may be
    spent in the `period`, and `spent` was; None where that isn't known, and then `why` says why, unless it is
    for want of a price. `burn` is what its machines cost per hour, None where some price isn't known.
    """

    whose: str
    period: BudgetPeriod
    most: float
    spent: float | None
    burn: float | None
    now: float
    scope: BudgetScope = BudgetScope.POOL
    name: str = ""
    why: str = ""

    @property
    def left(self) -> float | None:
        """The money that may still be spent, never less than nothing; None where nobody knows."""
        return None if self.spent is None else max(0.0, self.most - self.spent)

    @property
    def over(self) -> bool:
        """Whether all of it is spent."""
        return self.left == 0

    @property
    def ends(self) -> float:
        """When its period ends, and the next one begins."""
        return self.period.end(self.now)

    @property
    def runs_out(self) -> float | None:
        """When all will be spent at this rate; None where that isn't within the period, or isn't known."""
        if self.left is None or self.burn is None:
            return None
        if self.over:
            return self.now
        if self.burn <= 0:
            return None
        at = self.now + self.left / self.burn * HOUR
        return at if at < self.ends else None
