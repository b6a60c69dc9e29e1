"""What `updraft.toml` says of money in a day and a month: keys of tables of limits, and [groups.NAME]."""

from collections.abc import Iterator, Mapping
from typing import Annotated

from pydantic import Field

from updraft.config.tables.part import Part
from updraft.core.model import BudgetPeriod, BudgetScope
from updraft.core.settings import SpendingLimit

Money = Annotated[float, Field(ge=0, allow_inf_nan=False)] | None


class Spendable(Part):
    """Budgets of a UTC day and of a month of such days; they hold together, and with `cost_per_hour`."""

    cost_per_day: Money = None
    """What may be spent in a UTC day, at list prices and in their unit. Machines are bought as long as what
    is left of it pays for them, and for those that run, for an hour; once it is spent, nothing is bought here
    until the next day. Where nobody knows what was spent, nothing is bought either."""
    cost_per_month: Money = None
    """The same of a month, from its first day in UTC."""


class GroupLimits(Spendable):
    """Budgets of an accounting group, with the groups below it: [groups.NAME], or [groups."physics.theory"].

    They hold only where groups are trusted (`trust_groups` in [pool]): else a job writes what group it likes.
    What machines cost is charged to users and groups as `updraft usage` does it (`idle_paid_by` in [usage]).
    """


def limits_of(scope: BudgetScope, name: str, per_day: Money, per_month: Money) -> Iterator[SpendingLimit]:
    """The budgets of one table as the core reads them."""
    for period, most in ((BudgetPeriod.DAY, per_day), (BudgetPeriod.MONTH, per_month)):
        if most is not None:
            yield SpendingLimit(scope, name, period, most)


def all_of(scope: BudgetScope, tables: Mapping[str, Spendable]) -> Iterator[SpendingLimit]:
    """The same of all tables of one sort, by their names."""
    for name, table in tables.items():
        yield from limits_of(scope, name, table.cost_per_day, table.cost_per_month)
