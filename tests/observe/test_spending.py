"""What was spent is asked for every half minute, where a budget asks for it; unknown is asked for again."""

import threading

from tests.rigs.snapshots import policy
from updraft.core.model import BudgetPeriod, BudgetScope, Known, Spent, Unknown
from updraft.core.settings import DAY, SpendingLimit
from updraft.errors import LedgerError
from updraft.observe.sources import Asking
from updraft.observe.spending import EVERY, SpendingAsker

NOON = 20_000 * DAY + 43_200
POOL = SpendingLimit(BudgetScope.POOL, "", BudgetPeriod.DAY, 10.0)
BUDGETS = policy(spending=(POOL,))


class Records:
    """Says what it was told to, and remembers when it was asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[float, bool]] = []
        self.says: Spent | LedgerError | None = Spent(NOON, 20_000)
        self.fresh = False

    def __call__(self, now: float, people: bool) -> Spent | None:
        self.asked.append((now, people))
        if isinstance(self.says, LedgerError):
            raise self.says
        return Spent(now, 20_000) if self.fresh else self.says


def test_where_there_are_no_budgets_nobody_is_asked() -> None:
    records = Records()
    assert SpendingAsker(records).ask(policy(), NOON) is None
    assert records.asked == []
    assert SpendingAsker(None).ask(BUDGETS, NOON) is None


def test_an_answer_serves_for_half_a_minute_of_one_day() -> None:
    records = Records()
    records.fresh = True
    asker = SpendingAsker(records)
    first = asker.ask(BUDGETS, NOON)
    assert isinstance(first, Known)
    assert asker.ask(BUDGETS, NOON + EVERY - 1) is first
    asker.ask(BUDGETS, NOON + EVERY)
    asker.ask(BUDGETS, NOON + EVERY - 5)  # a clock that was set back
    midnight = 20_001 * DAY
    asker.ask(BUDGETS, midnight - 1)
    asker.ask(BUDGETS, midnight + 1)
    assert [at for at, _ in records.asked] == [
        NOON,
        NOON + EVERY,
        NOON + EVERY - 5,
        midnight - 1,
        midnight + 1,
    ]


def test_old_records_are_asked_for_again_at_each_look() -> None:
    """A controller that was away: its first look is in the records when the second one begins."""
    records = Records()
    asker = SpendingAsker(records)
    records.says = Spent(NOON - 3600, 20_000)
    assert isinstance(asker.ask(BUDGETS, NOON), Known)
    records.says = fresh = Spent(NOON + 1, 20_000)
    found = asker.ask(BUDGETS, NOON + 2)
    assert isinstance(found, Known)
    assert found.value is fresh


def test_users_are_asked_for_where_they_have_budgets() -> None:
    records = Records()
    asker = SpendingAsker(records)
    asker.ask(BUDGETS, NOON)
    asker.ask(policy(spending=(POOL, SpendingLimit(BudgetScope.USER, "*", BudgetPeriod.DAY, 1.0))), NOON + 1)
    assert [people for _, people in records.asked] == [False, True]


def test_what_is_not_known_says_why_and_is_asked_for_at_each_look() -> None:
    records = Records()
    asker = SpendingAsker(records)
    records.says = LedgerError("the file is damaged")
    failed = asker.ask(BUDGETS, NOON)
    assert isinstance(failed, Unknown)
    assert failed.error.text == "what was spent can't be read: the file is damaged"
    records.says = None
    fresh = asker.ask(BUDGETS, NOON + 2)
    assert isinstance(fresh, Unknown)
    assert "once the daemon's first look is in the records" in fresh.error.text
    records.says = Spent(NOON, 20_000)
    assert isinstance(asker.ask(BUDGETS, NOON + 4), Known)


class Slow(Records):
    """Says nothing until it may."""

    def __init__(self) -> None:
        super().__init__()
        self.may, self.began = threading.Event(), threading.Event()

    def __call__(self, now: float, people: bool) -> Spent | None:
        self.began.set()
        assert self.may.wait(20)
        return super().__call__(now, people)


def test_it_is_read_beside_the_other_sources() -> None:
    records = Slow()
    asker = SpendingAsker(records)
    asker.start(BUDGETS, NOON)
    assert records.began.wait(20)
    assert records.asked == [], "and whoever began it has gone on"
    records.may.set()
    assert isinstance(asker.ask(BUDGETS, NOON + 1), Known)
    assert records.asked == [(NOON, False)]


def test_a_file_that_does_not_answer_is_no_zero_and_its_late_answer_counts() -> None:
    records = Slow()
    asker = SpendingAsker(records, Asking(wait=lambda event, _seconds: event.is_set()))
    late = asker.ask(BUDGETS, NOON)
    assert isinstance(late, Unknown)
    assert late.error.code == "spending-unknown"
    assert "has not answered yet" in late.error.text
    people = policy(spending=(POOL, SpendingLimit(BudgetScope.USER, "*", BudgetPeriod.DAY, 1.0)))
    records.may.set()
    assert next(one for one in threading.enumerate() if one.name == "updraft-ask").join(20) is None
    assert isinstance(asker.ask(people, NOON + 2), Unknown), "users weren't asked for"
    assert isinstance(asker.ask(people, NOON + 4), Unknown | Known)
    for thread in threading.enumerate():
        if thread.name == "updraft-ask":
            thread.join(20)
    assert isinstance(asker.ask(people, NOON + 6), Known)
    assert {one for _, one in records.asked} == {False, True}
