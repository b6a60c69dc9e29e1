"""Budgets of a day or a month: warned of at 80 %, nothing bought at 100 %, and unknown is not zero."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.rigs.snapshots import offer
from updraft.core.limits.ceilings import MANY
from updraft.core.limits.spending import BudgetPeriod, Spending, affordable, warning

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
    assert warning(replace(HALF, spent=None)) is None


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
