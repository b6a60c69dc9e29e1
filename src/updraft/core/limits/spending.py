"""Budgets of money for a UTC day or month: what they leave, what is warned of, and what stops a purchase.

What was spent is an estimate at list prices, and where the price of some machine isn't known, nobody knows
what is left: then nothing is bought under a budget, as under a limit per hour. A machine that is bought runs
on after a budget is spent, so a purchase commits an hour: what runs and what is bought have to be paid for
that hour, all together, of what is left of this period, and beyond its end of the whole of the next.
"""

from collections.abc import Iterable
from datetime import UTC, datetime

from updraft.core.limits.ceilings import MANY
from updraft.core.model import Offer, Reason
from updraft.core.model.spent import HOUR, Spending

NEARLY = 0.8
"""The part of a budget that is warned of."""
SPENT, LOW, UNKNOWN = "budget-spent", "budget-low", "spending-unknown"
HELD = frozenset({SPENT, LOW, UNKNOWN})
"""The codes of what a budget holds back, but for prices that aren't known."""


def affordable(standing: Spending, offer: Offer, part: float = 1.0) -> tuple[int, Reason | None]:
    """How many machines of this offer a budget leaves, of the price of each of which a `part` counts, and
    what stops more."""
    if offer.price is None:
        text = f"the price of {offer.key} isn't known, and {standing.whose} has a budget: set it under prices"
        return 0, Reason("price-unknown", text)
    if (stop := unknown(standing)) is not None:
        return 0, stop
    if standing.over:
        return 0, spent(standing)
    if offer.price * part <= 0:
        return MANY, None
    fit = int((_per_hour(standing) + 1e-9) / (offer.price * part))
    text = f"{said(standing)}: what is left pays for no more machines for an hour"
    return max(0, fit), Reason(LOW, text)


def _per_hour(standing: Spending) -> float:
    """The cost per hour that may be added to what runs, so that all of it can be paid for the next hour."""
    assert standing.left is not None  # noqa: S101
    assert standing.burn is not None  # noqa: S101  # `unknown` was asked before
    now = min(1.0, (standing.ends - standing.now) / HOUR)
    most = standing.left / now
    if now < 1.0:
        most = min(most, standing.most / (1.0 - now))
    return most - standing.burn


def unknown(standing: Spending) -> Reason | None:
    """Why nobody knows what is left of a budget: then nothing is bought under it. None where it is known."""
    if standing.left is not None and standing.burn is not None:
        return None
    if standing.why:
        return Reason(UNKNOWN, f"{_beginning(standing)}, and {standing.why}: nothing is bought")
    text = f"{standing.whose} has a budget, and had a machine whose price isn't known: set it under prices"
    return Reason("price-unknown", text)


def spent(standing: Spending) -> Reason:
    """Why nothing is bought under a budget that is spent."""
    return Reason(SPENT, f"{said(standing)}: nothing is bought until {_moment(standing.ends)}")


def warning(standing: Spending) -> Reason | None:
    """The warning about a budget that is spent, nearly spent or not known; None of others."""
    if standing.over:
        return spent(standing)
    if (why := unknown(standing)) is not None:
        return why
    if standing.spent is None or standing.spent < NEARLY * standing.most:
        return None
    out = standing.runs_out
    when = "" if out is None else f", and will have spent all at {_moment(out)} at this rate"
    return Reason("budget-nearly-spent", f"{said(standing)}{when}")


def holds(standing: Spending, reasons: Iterable[Reason]) -> bool:
    """Whether this budget is one of what holds a purchase back, by these reasons."""
    return any(one.code in HELD and one.text.startswith(_beginning(standing)) for one in reasons)


def said(standing: Spending) -> str:
    """A budget and what was spent of it, in words."""
    has = "nobody knows what" if standing.spent is None else f"{standing.spent:.4g}"
    return f"{_beginning(standing)}, and has spent {has}"


def _beginning(standing: Spending) -> str:
    return f"{standing.whose} may spend {standing.most:.4g} a {standing.period}"


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
