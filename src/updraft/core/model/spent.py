"""Money: what the records say was spent, and a budget of a day or a month as it stands.

All of it is in the unit of the prices, an estimate at list prices. Days are UTC days.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from functools import cached_property, lru_cache
from math import fsum

HOUR = 3600.0
DAY = 86400.0


class BudgetPeriod(StrEnum):
    """The period of a budget: a UTC day, or a month of such days."""

    DAY = "day"
    MONTH = "month"

    def begin(self, now: float) -> float:
        """When the period begins in which `now` is (POSIX seconds)."""
        day = int(now // DAY)
        return day * DAY if self is BudgetPeriod.DAY else _month_of(day)[0]

    def end(self, now: float) -> float:
        """When the period ends in which `now` is (POSIX seconds)."""
        day = int(now // DAY)
        return (day + 1) * DAY if self is BudgetPeriod.DAY else _month_of(day)[1]


@lru_cache(maxsize=4)  # it is asked for each budget at each decision
def _month_of(day: int) -> tuple[float, float]:
    """When the month of this UTC day (from 1970-01-01) begins and ends."""
    first = datetime.fromtimestamp(day * DAY, UTC).replace(day=1)
    following = first.replace(year=first.year + first.month // 12, month=first.month % 12 + 1)
    return first.timestamp(), following.timestamp()


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


@dataclass(frozen=True)  # without slots, for what it remembers
class Spent:
    """The spending in the records, up to the look `at`: of the UTC `day` (from 1970-01-01) and of its month.

    `machines` are all costs, by where they came up; `people` the parts of them that users are charged with.
    """

    at: float
    day: int
    machines: tuple[SpentRow, ...] = ()
    people: tuple[SpentRow, ...] = ()

    @cached_property
    def sums(self) -> dict[tuple[BudgetScope, BudgetPeriod, str, bool], float]:
        """What was summed of it before: by scope, period and name, and whether users pay for idle cores."""
        return {}

    @cached_property
    def by_payer(self) -> Mapping[BudgetScope, Mapping[str, list[SpentRow]]]:
        """The same rows by whose they are: a user's by the account, without its domain, all groups together.

        Many decisions are made by one of these, and of each many budgets are asked for.
        """
        found: dict[BudgetScope, dict[str, list[SpentRow]]] = {scope: {} for scope in BudgetScope}
        for row in self.machines:
            found[BudgetScope.POOL].setdefault("", []).append(row)
            found[BudgetScope.CLOUD].setdefault(row.cloud, []).append(row)
            found[BudgetScope.CLASS].setdefault(row.worker_class, []).append(row)
            found[BudgetScope.ANNEXES].setdefault(row.owner, []).append(row)
        for row in self.people:
            found[BudgetScope.GROUP].setdefault(row.group, []).append(row)
        for row in _whatever_group(self.people):
            found[BudgetScope.USER].setdefault(row.user.partition("@")[0], []).append(row)
        return found


def _whatever_group(rows: Iterable[SpentRow]) -> Iterable[SpentRow]:
    """Rows of people, those of one user in several groups together."""
    found: dict[SpentRow, list[SpentRow]] = {}
    for row in rows:
        found.setdefault(replace(row, cost=0.0, unpriced=0.0, idle_cost=0.0, group=""), []).append(row)
    for whose, each in found.items():
        yield replace(
            whose,
            cost=fsum([row.cost for row in each]),
            unpriced=fsum([row.unpriced for row in each]),
            idle_cost=fsum([row.idle_cost for row in each]),
        )


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
