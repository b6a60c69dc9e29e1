"""Budgets of a day or a month, for people: what was spent of what, and when it will be gone."""

from collections.abc import Iterator, Mapping
from typing import Any

from updraft.cli.output import clock, count
from updraft.documents import Rows
from updraft.documents.cycle import BudgetOver

SHOWN = 20
_NEARLY = 0.8
_EACH = ("user", "annexes")  # of whom there may be many: those of whom nothing is to be said aren't shown


def budget_lines(rows: Rows) -> Iterator[str]:
    """A line for each budget; of users' and annexes' those of which much is spent, or not known."""
    chosen = [row for row in rows if row["scope"] not in _EACH or _odd(row)]
    yield from map(budget_line, chosen[:SHOWN])
    if chosen[SHOWN:]:
        yield f"and {count(len(chosen) - SHOWN, 'more budget')}: `updraft status --json` has them all"


def budget_line(row: Mapping[str, Any]) -> str:
    """One budget: what was spent of what, the rate, when all will be spent, and how many jobs wait for it."""
    spent = "?" if row["spent"] is None else f"{row['spent']:.4g}"
    burn = "price unknown" if row["cost_per_hour"] is None else f"{row['cost_per_hour']:.4g} per hour"
    line = f"budget of {row['whose']}, {row['period']}: {spent} of {row['most']:.4g} spent; {burn}"
    if row["over"]:
        line += f"; spent: nothing is bought until {clock(row['ends'])}"
    elif row["runs_out"] is not None:
        line += f"; all will be spent at {clock(row['runs_out'])}"
    return line + (f"; {count(row['waiting'], 'job')} wait for it" if row["waiting"] else "")


def over_line(budget: BudgetOver, jobs: int) -> str:
    """What a budget that is spent means for so many waiting jobs."""
    waits = "waits" if jobs == 1 else "wait"
    whose = f"the budget of {budget.whose} of the {budget.period} is spent"
    return f"{whose}: {count(jobs, 'job')} {waits} until {clock(budget.ends)}, or for room that is there"


def _odd(row: Mapping[str, Any]) -> bool:
    return row["spent"] is None or row["spent"] >= _NEARLY * row["most"]
