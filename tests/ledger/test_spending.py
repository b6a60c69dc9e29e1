"""What was spent of a day and a month: as `updraft usage` says it, up to the last look."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.rigs.usage import ALICE, FACTS, FIRST, THIRD, busy, november, over
from updraft.core.model import SpentRow
from updraft.core.settings import DAY
from updraft.core.usage.booking import turn
from updraft.core.usage.days import day_of
from updraft.errors import LedgerError
from updraft.ledger import Ledger
from updraft.ledger.spending import SpendingRecords, spent
from updraft.ledger.usage_sums import sum_up

THEN = THIRD.begin + 7200.0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Ledger(tmp_path / "ledger.db") as ledger:
        november(ledger)
    return tmp_path / "ledger.db"


def test_machines_by_where_they_were_today_and_before(path: Path) -> None:
    found = spent(path, THEN, people=False)
    assert found is not None
    assert (found.at, found.day, found.people) == (THEN, day_of(THEN), ())
    rows = {(row.today, row.cloud, row.owner): row for row in found.machines}
    assert rows.keys() == {(False, "here", ""), (False, "there", ""), (True, "here", "alice")}
    before, unpriced = rows[False, "here", ""], rows[False, "there", ""]
    assert before.cost == pytest.approx(0.72)
    assert (before.unpriced, before.flavor) == (0, "")
    assert (unpriced.cost, unpriced.unpriced) == (0, pytest.approx(3600.0))
    assert (unpriced.flavor, unpriced.market) == ("large", "spot"), "so that a price may be found for it"
    assert rows[True, "here", "alice"].cost == pytest.approx(0.72), "which only the meters have"


def test_people_are_charged_as_the_report_charges_them(path: Path) -> None:
    found = spent(path, THEN, people=True)
    assert found is not None
    rows = {(row.today, row.user, row.group): (row.cost, row.idle_cost) for row in found.people}
    assert rows == {
        (False, "alice@pool", "physics"): (pytest.approx(0.18, abs=1e-3), pytest.approx(0.3, abs=1e-3)),
        (False, "bob@pool", ""): (pytest.approx(0.09, abs=1e-3), pytest.approx(0.15, abs=1e-3)),
        (True, "alice@pool", "physics"): (pytest.approx(0.36, abs=1e-3), pytest.approx(0.36)),
    }


def test_another_month_has_none_of_it(path: Path) -> None:
    found = spent(path, FIRST + 40 * DAY, people=True)
    assert found is not None
    assert found.machines == found.people == ()
    assert found.at == THEN


def test_time_of_which_nobody_knows_counts_as_paid(tmp_path: Path) -> None:
    """A machine that was over when a controller came back: until when it lived nobody can say."""
    begin = FIRST + 3600.0
    facts = replace(FACTS, begin=begin)
    with Ledger(tmp_path / "ledger.db") as ledger:
        meters, books = turn(ledger.meters(), {facts.key: busy(facts, ALICE)}, begin)
        ledger.book(books)
        end = begin + 3600.0
        ended = {facts.key: over(facts, end)}
        _, books = turn(meters, ended, end)
        ledger.book(books)
    found = spent(tmp_path / "ledger.db", end, people=True)
    assert found is not None
    assert [row for row in found.machines if row.cost] == [
        SpentRow(True, pytest.approx(0.36), 0, "here", "default")
    ]
    assert sum(row.cost + row.idle_cost for row in found.people) == 0, "and to nobody"


def test_before_the_first_look_nothing_is_known(tmp_path: Path) -> None:
    Ledger(tmp_path / "ledger.db").close()
    assert spent(tmp_path / "ledger.db", FIRST, people=True) is None
    with pytest.raises(LedgerError):
        spent(tmp_path / "none.db", FIRST, people=True)


def test_what_is_booked_back_for_an_earlier_day_counts_at_the_next_reading(path: Path) -> None:
    """As of machines that a controller finds which lost its ledger, or was away."""
    records = SpendingRecords(path)
    first = records(THEN, True)
    assert records(THEN, True) == first
    day = day_of(FIRST)
    with Ledger(path) as ledger, ledger._writing() as rows:
        rows.execute("UPDATE usage_days SET cost = cost + 1 WHERE day = ? AND machine = 1", (day,))
        sum_up(rows, day, over=True)
    found = records(THEN, True)
    assert found == spent(path, THEN, people=True)
    assert first is not None
    assert found is not None
    assert sum(row.cost for row in found.machines) == pytest.approx(sum(r.cost for r in first.machines) + 1)
    assert sum(row.cost for row in found.people) > sum(row.cost for row in first.people)
    assert records(THEN, False) == spent(path, THEN, people=False), "users are asked for, or not"
    assert records(FIRST + 40 * DAY, True) == spent(path, FIRST + 40 * DAY, people=True)
