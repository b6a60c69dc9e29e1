"""Budgets of a day or a month: warned of at 80 %, nothing bought at 100 %, and unknown is not zero."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import offer
from updraft.core.limits.ceilings import MANY
from updraft.core.limits.spending import affordable, holds, warning
from updraft.core.model import BudgetPeriod, Spending

NOON = datetime(2026, 11, 25, 12, tzinfo=UTC).timestamp()
HALF = Spending("the pool", BudgetPeriod.DAY, 100.0, 50.0, 5.0, NOON)
SMALL = offer("small")  # 0.1 an hour


def at(year: int, month: int, day: int) -> float:
    return datetime(year, month, day, tzinfo=UTC).timestamp()


def test_days_and_months_end_in_utc() -> None:
    assert BudgetPeriod.DAY.end(NOON) == at(2026, 11, 26)
    assert BudgetPeriod.MONTH.end(NOON) == at(2026, 12, 1)
    assert BudgetPeriod.MONTH.end(at(2026, 12, 31)) == at(2027, 1, 1)
    assert BudgetPeriod.DAY.end(at(2026, 11, 25)) == at(2026, 11, 26), "midnight is of the day that begins"


def test_when_it_will_be_spent() -> None:
    assert HALF.runs_out == NOON + 10 * 3600
    assert replace(HALF, burn=4.0).runs_out is None, "the day is over before"
    assert replace(HALF, period=BudgetPeriod.MONTH, burn=4.0).runs_out == NOON + 12.5 * 3600
    assert replace(HALF, burn=0.0).runs_out is None
    assert replace(HALF, spent=100.0).runs_out == NOON
    assert replace(HALF, burn=None).runs_out is None


def test_what_is_warned_of() -> None:
    assert warning(HALF) is None
    nearly = warning(replace(HALF, spent=80.0))
    assert nearly is not None
    assert nearly.code == "budget-nearly-spent"
    assert nearly.text == (
        "the pool may spend 100 a day, and has spent 80, and will have spent all at 2026-11-25 16:00 UTC at "
        "this rate"
    )
    over = warning(replace(HALF, spent=100.0, burn=0.0))
    assert over is not None
    assert over.code == "budget-spent"
    assert over.text.endswith("nothing is bought until 2026-11-26 00:00 UTC")
    unknown = warning(replace(HALF, spent=None))
    assert unknown is not None
    assert unknown.code == "price-unknown"


def test_no_more_is_bought_than_an_hour_of_all_is_paid_for() -> None:
    count, reason = affordable(replace(HALF, spent=94.0), SMALL)
    assert count == 10, "6 are left, of which those that run take 5"
    assert reason is not None
    assert reason.code == "budget-low"
    assert affordable(replace(HALF, spent=96.0), SMALL)[0] == 0
    count, reason = affordable(replace(HALF, spent=100.0), SMALL)
    assert (count, reason and reason.code) == (0, "budget-spent")
    assert affordable(HALF, replace(SMALL, price=0.0)) == (MANY, None)
    assert affordable(replace(HALF, spent=100.0), replace(SMALL, price=0.0))[0] == 0


def test_an_hour_that_reaches_into_the_next_day_is_paid_by_both() -> None:
    """A tenth of the hour is today's, nine tenths are paid for by all of tomorrow's."""
    late = replace(HALF, now=at(2026, 11, 26) - 360, spent=99.9, burn=0.0)
    assert affordable(late, SMALL)[0] == 10
    assert affordable(replace(late, burn=0.5), SMALL)[0] == 5
    assert affordable(replace(late, most=0.45, spent=0.0), SMALL)[0] == 5
    assert affordable(late, SMALL, part=0.5)[0] == 20, "where half of each is somebody else's"


def test_which_budget_holds_back_is_told_by_its_reason() -> None:
    over = replace(HALF, spent=100.0)
    _, why = affordable(over, SMALL)
    assert why is not None
    assert holds(over, [why])
    assert not holds(replace(over, whose="class gpu"), [why])
    assert not holds(replace(over, most=10.0), [why])
    assert not holds(over, [])


@pytest.mark.parametrize(
    ("standing", "sold"),
    [
        (HALF, replace(SMALL, price=None)),
        (replace(HALF, spent=None), SMALL),
        (replace(HALF, burn=None), SMALL),
    ],
)
def test_unknown_is_not_zero(standing: Spending, sold: object) -> None:
    count, reason = affordable(standing, sold)  # type: ignore[arg-type]
    assert (count, reason and reason.code) == (0, "price-unknown")


@given(st.floats(0, 1e6), st.floats(0, 2e6), st.floats(0, 1e4), st.floats(0.001, 1e3))
def test_what_is_bought_can_be_paid_for_an_hour(most: float, spent: float, burn: float, price: float) -> None:
    standing = Spending("the pool", BudgetPeriod.MONTH, most, spent, burn, NOON)
    count, _ = affordable(standing, replace(SMALL, price=price))
    assert count >= 0
    if count:
        assert spent + burn + count * price <= most * (1 + 1e-9) + 1e-6
