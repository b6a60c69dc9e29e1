"""The users: cores, shares, jobs that wait, and what this month has cost each, of which budget."""

from updraft.documents import Row
from updraft.web.looking import Look, paged
from updraft.web.views import cost

PAGE = 200
CSV = (
    "user",
    "cores",
    "max_cores",
    "part",
    "share",
    "machines",
    "max_machines",
    "waiting",
    "cost",
    "currency",
    "budget",
)


def view(look: Look) -> Row:
    """Who has or wants anything, those with the most cores first."""
    costs = month_costs(look)
    budgets: dict[str, list[Row]] = {}
    for one in cost.budgets(look, "user"):
        budgets.setdefault(one["name"], []).append(one)
    rows = [
        {
            **row,
            **costs.get(row["user"], {"cost": None, "currency": ""}),
            "budgets": budgets.get(row["user"], []),
            "held": bool(row["waiting"] and _at_cap(row)),
            "budget": next(
                (one["most"] for one in budgets.get(row["user"], ()) if one["period"] == "month"), None
            ),
        }
        for row in look.picture.status["users"]
    ]
    shown, page = paged(rows, look.query, PAGE)
    return {
        "looked_at": look.picture.status["daemon"]["looked_at"],
        "month": look.today.strftime("%Y-%m"),
        "budgeted": any(row["budgets"] for row in rows),
        "page": page,
        "shown": shown,
        "rows": rows,
    }


def _at_cap(row: Row) -> bool:
    """Whether a user has as many cores or machines as the limits let."""
    return any(
        row[most] is not None and row[what] >= row[most]
        for what, most in (("cores", "max_cores"), ("machines", "max_machines"))
    )


def month_costs(look: Look) -> dict[str, Row]:
    """What this month has cost, by the bare name of the user; of several currencies the dearest's."""
    report = look.pictures.report("user", look.this_month)
    found: dict[str, Row] = {}
    for row in (report or {"rows": ()})["rows"]:
        name = row["name"].partition("@")[0]
        if row["kind"] != "user" or not name:
            continue
        mine = found.setdefault(name, {"cost": None, "currency": row["currency"]})
        if row["cost"] is not None and row["currency"] == mine["currency"]:
            mine["cost"] = (mine["cost"] or 0.0) + row["cost"]
    return found
