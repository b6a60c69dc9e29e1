"""Budgets of a day or a month, as `status`, `explain` and `check` tell of them."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.test_verbs import SETTINGS, Capture, ledger_of, run
from tests.rigs.forms import validate
from tests.rigs.snapshots import NOW, group, policy, snapshot
from updraft.cli.schemas import FORMS
from updraft.cli.watching.budgets import SHOWN, budget_line, budget_lines
from updraft.cli.watching.explain import ExplainedJobs, group_document, job_story
from updraft.core.model import BudgetPeriod, BudgetScope, Known, Spent, SpentRow
from updraft.core.plan import plan
from updraft.core.settings import DAY, SpendingLimit
from updraft.daemon.report import document

LIMITS = (
    SpendingLimit(BudgetScope.POOL, "", BudgetPeriod.MONTH, 10.0),
    SpendingLimit(BudgetScope.CLASS, "default", BudgetPeriod.DAY, 100.0),
)
SEEN = snapshot(
    groups=[group(idle=12)],
    spent=Known(Spent(NOW, int(NOW // DAY), (SpentRow(False, 10.0), SpentRow(True, 2.0))), NOW),
)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "updraft.toml").write_text(SETTINGS)
    monkeypatch.setenv("UPDRAFT_CONFIG", str(tmp_path / "updraft.toml"))
    monkeypatch.setenv("TZ", "UTC")
    return tmp_path


def told() -> list[dict[str, Any]]:
    """The rows of the budgets in what the daemon writes down."""
    doc, _ = document(SEEN, plan(SEEN, policy(spending=LIMITS)), standing=None, timings={}, generation=1)
    return list(doc["spending"])


def test_status_says_what_was_spent_and_who_waits(site: Path, capsys: Capture) -> None:
    rows = told()
    assert [(row["spent"], row["over"], row["waiting"]) for row in rows] == [
        (12.0, True, 12),
        (0.0, False, 0),
    ]
    with ledger_of(site) as ledger:
        ledger.save_cycle({"spending": rows}, NOW)
    shown = json.loads(run(capsys, "status", "--json")[1])
    validate(shown, FORMS["status"])
    assert shown["spending"] == rows
    out = " ".join(run(capsys, "status")[1].split())
    assert "budget of the pool, month: 12 of 10 spent; 0 per hour; spent: nothing is bought until" in out
    assert "12 jobs wait for it" in out
    assert "budget of class default, day: 0 of 100 spent; 0 per hour" in out


def test_explain_says_until_when_the_jobs_wait() -> None:
    made = plan(SEEN, policy(spending=LIMITS))
    found = group_document(group(idle=12), SEEN, made)
    [budget] = found.budgets
    assert (budget.whose, budget.period, budget.ends) == ("the pool", "month", 31 * DAY)
    told = "\n".join(str(one) for one in job_story(ExplainedJobs([], [found], [], []), NOW))
    assert "held back: the pool may spend 10 a month, and has spent 12: nothing is bought until" in told
    assert "what would change that: the next day or month; or a larger `cost_per_day`" in told
    assert "the budget of the pool of the month is spent: 12 jobs wait until" in told


def test_of_many_users_those_are_shown_of_whom_there_is_something_to_say() -> None:
    row = {**told()[0], "scope": "user", "over": False, "runs_out": None, "waiting": 0, "most": 10.0}
    rows = [{**row, "whose": f"user u{at}", "spent": spent} for at, spent in enumerate((1.0, 8.0, None))]
    assert [line.split(",")[0] for line in budget_lines(rows)] == ["budget of user u1", "budget of user u2"]
    many = list(budget_lines([rows[1]] * (SHOWN + 2)))
    assert many[-1] == "and 2 more budgets: `updraft status --json` has them all"


def test_what_is_not_known_is_not_shown_as_nothing() -> None:
    row = {**told()[1], "spent": None, "cost_per_hour": None}
    assert budget_line(row).startswith("budget of class default, day: ? of 100 spent; price unknown")
    soon = {**told()[1], "spent": 90.0, "cost_per_hour": 5.0, "runs_out": NOW + 7200}
    assert "90 of 100 spent; 5 per hour; all will be spent at " in budget_line(soon)
