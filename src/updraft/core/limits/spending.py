"""Budgets of money for a UTC day or month: what is left, when it will be spent, and what that stops.

What was spent is an estimate at list prices, and where the price of some machine isn't known, nobody knows
what is left: then nothing is bought under a budget, as under a limit per hour. A machine that is bought runs
on after a budget is spent, so no more are bought than what is left pays for, all together, for an hour.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from updraft.core.limits.ceilings import MANY
from updraft.core.model import Offer, Reason

NEARLY = 0.8
"""The part of a budget that is warned of."""
HOUR = 3600.0


class BudgetPeriod(StrEnum):
    """What a budget is for."""

    DAY = "day"
    MONTH = "month"

    def end(self, now: float) -> float:
        """When the period ends in which `now` is (POSIX seconds): a UTC day, or a month of such days."""
        at = datetime.fromtimestamp(now, UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        if self is BudgetPeriod.DAY:
            return at.timestamp() + 24 * HOUR
        return at.replace(year=at.year + at.month // 12, month=at.month % 12 + 1, day=1).timestamp()


@dataclass(frozen=True, slots=True)
class Spending:
    """A budget as it stands at `now`.

    `whose` it is, in words ("the pool", "class gpu"); `most` may be spent in the `period`, and `spent` was;
    None where that isn't known. `burn` is what its machines cost per hour, None where some price isn't known.
    """

    whose: str
    period: BudgetPeriod
    most: float
    spent: float | None
    burn: float | None
    now: float

    @property
    def left(self) -> float | None:
        """What may still be spent, never less than nothing; None where nobody knows."""
        return None if self.spent is None else max(0.0, self.most - self.spent)

    @property
    def over(self) -> bool:
        """Whether all of it is spent."""
        return self.left == 0

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
        return at if at < self.period.end(self.now) else None


def affordable(standing: Spending, offer: Offer) -> tuple[int, Reason | None]:
    """How many machines of this offer a budget leaves, and what stops more."""
    if offer.price is None:
        text = f"the price of {offer.key} isn't known, and {standing.whose} has a budget: set it under prices"
        return 0, Reason("price-unknown", text)
    if standing.left is None or standing.burn is None:
        text = (
            f"{standing.whose} has a budget, and had a machine whose price isn't known: set it under prices"
        )
        return 0, Reason("price-unknown", text)
    if standing.over:
        return 0, spent(standing)
    if offer.price <= 0:
        return MANY, None
    fit = int((standing.left - standing.burn + 1e-9) / offer.price)
    text = f"{_said(standing)}: what is left pays for no more machines for an hour"
    return max(0, fit), Reason("budget-low", text)


def spent(standing: Spending) -> Reason:
    """Why nothing is bought under a budget that is spent."""
    until = _moment(standing.period.end(standing.now))
    return Reason("budget-spent", f"{_said(standing)}: nothing is bought until {until}")


def warning(standing: Spending) -> Reason | None:
    """What is to be said of a budget of which much is spent; None of others."""
    if standing.over:
        return spent(standing)
    if standing.spent is None or standing.spent < NEARLY * standing.most:
        return None
    out = standing.runs_out
    when = "" if out is None else f", and will have spent all at {_moment(out)} at this rate"
    return Reason("budget-nearly-spent", f"{_said(standing)}{when}")


def _said(standing: Spending) -> str:
    has = "nobody knows what" if standing.spent is None else f"{standing.spent:.4g}"
    return f"{standing.whose} may spend {standing.most:.4g} a {standing.period}, and has spent {has}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
