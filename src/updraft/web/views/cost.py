"""What it costs: now, today, this month and to its end, by whom, of which budget; paid against used cores."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from updraft.documents import Row
from updraft.usage import NOT_THE_BILL
from updraft.usage.report import By
from updraft.web.ahead import SHORTEST
from updraft.web.looking import Look, last_days

HOUR = 3600.0
BY: tuple[By, ...] = ("user", "group", "annex", "cloud", "class", "flavor")
DAYS = (str(SHORTEST), "92", "366")
CSV = (
    *("kind", "name", "currency", "cost", "idle_cost", "billed", "used_core_hours", "paid_core_hours"),
    *(
        "idle_core_hours",
        "unknown_core_hours",
        "efficiency",
        "jobs",
        "lost_core_hours",
        "unpriced_machine_hours",
    ),
)


def view(look: Look) -> Row:
    """The sums, and a month's report `by` something, as `updraft usage` has it."""
    by = look.query.choice("by", BY)
    month = look.month()
    report = look.pictures.report(by, month)
    return {
        "looked_at": look.picture.status["daemon"]["looked_at"],
        "note": NOT_THE_BILL,
        "chosen": {"by": by, "month": month.first.strftime("%Y-%m"), "days": look.query.choice("days", DAYS)},
        "months": months(look),
        "sums": sums(look),
        "budgets": budgets(look),
        "report": report,
        "days": days(look),
        "rows": [] if report is None else report["rows"],
    }


def days(look: Look) -> list[Row]:
    """Each of the last `days`: cost, and cores paid and used, on an average of the day."""
    found = look.pictures.daily(last_days(look.now, int(look.query.choice("days", DAYS))))
    return [{**row, **_cores(row, look)} for row in found or ()]


def _cores(row: Mapping[str, Any], look: Look) -> Row:
    """The average number of cores of a day; of today by the hours that it has had."""
    hours = 24.0
    if row["day"] == look.today.isoformat():
        hours = max(1 / 60, look.now % 86400 / HOUR)
    return {
        "paid_cores": round(row["paid_core_hours"] / hours, 3),
        "used_cores": round(row["used_core_hours"] / hours, 3),
    }


def budgets(look: Look, *scopes: str, name: str = "") -> list[Row]:
    """The budgets, those that end soonest first: what is spent, and by the end of its time as it runs now.

    Of these `scopes` only, where some are named, and of this `name`. What nobody knows is None.
    """
    rows = [
        _budget(row, look.now)
        for row in look.picture.status["spending"]
        if (not scopes or row["scope"] in scopes) and (not name or row["name"] == name)
    ]
    return sorted(rows, key=lambda row: (-(row["projected_part"] or 0.0), row["whose"], row["period"]))


def _budget(row: Mapping[str, Any], now: float) -> Row:
    spent, rate, most = row["spent"], row["cost_per_hour"], row["most"]
    projected = None
    if spent is not None and rate is not None:
        projected = spent + rate * max(0.0, row["ends"] - now) / HOUR
    return {
        **row,
        "projected": projected,
        "part": _part(spent, most),
        "projected_part": _part(projected, most),
        "exceeds": row["over"] or (projected is not None and projected > most),
    }


def _part(number: float | None, most: float) -> float | None:
    if number is None:
        return None
    return number / most if most else float(number > 0)


def sums(look: Look) -> list[Row]:
    """Now, today, this month and its projection, by currency; a figure that isn't known is None.

    The projection is what this month has cost, and what runs now until its end.
    """
    machines = look.picture.status["machines"]
    # What the days of the plots were asked for: a month's are among them.
    month = look.this_month.first.isoformat()
    found = [row for row in look.pictures.daily(last_days(look.now, SHORTEST)) or () if row["day"] >= month]
    if not found:
        return []
    monthly = [row for row in budgets(look, "pool") if row["period"] == "month"]
    after = (look.today.replace(day=1) + timedelta(days=32)).replace(day=1)
    left = (after - look.today).days * 24 - look.now % 86400 / HOUR
    rows = []
    for currency in sorted({one["currency"] for one in found}):
        mine = [one for one in found if one["currency"] == currency]
        so_far = _sum(mine, "cost")
        rows.append(
            {
                "currency": currency,
                "per_hour": machines["cost_per_hour"],
                "unknown_prices": machines["unknown_prices"],
                "today": _sum([one for one in mine if one["day"] == look.today.isoformat()], "cost"),
                "month": so_far,
                "projected": None if so_far is None else so_far + machines["cost_per_hour"] * left,
                "idle": _sum(mine, "idle_cost"),
                "unpriced_machine_hours": _sum(mine, "unpriced_machine_hours"),
                "efficiency": _efficiency(mine),
                "budget": monthly[0]["most"] if monthly else None,
            }
        )
    return rows


def _sum(rows: list[Row], name: str) -> float | None:
    """The sum of what is known; None where nothing is, 0 where there is nothing."""
    known = [row[name] for row in rows if row[name] is not None]
    return None if rows and not known else sum(known)


def _efficiency(rows: list[Row]) -> float | None:
    paid = sum(row["paid_core_hours"] - row["unknown_core_hours"] for row in rows)
    return min(1.0, sum(row["used_core_hours"] for row in rows) / paid) if paid > 0 else None


def months(look: Look) -> list[str]:
    """The last thirteen months, this one first."""
    found, day = [], look.today.replace(day=1)
    for _ in range(13):
        found.append(day.strftime("%Y-%m"))
        day = (day - timedelta(days=1)).replace(day=1)
    return found
