"""What a user wants to know: my jobs and why they wait, my machines and annexes, my cost this month."""

from updraft.documents import Row
from updraft.web.looking import BadQueryError, Look
from updraft.web.views import annexes, cost, machines, users, waiting
from updraft.web.visitors import NAME

CSV = waiting.CSV


def view(look: Look) -> Row:
    """The visitor's own; an operator may look at any `user`'s."""
    name = look.visitor.name
    if look.visitor.operator:
        name = look.query.text("user") or name
        if name and not NAME.fullmatch(name):
            raise BadQueryError("user is the bare name of a user, as the jobs' owner has it")
    rows = [row for row in waiting.group_rows(look) if name and row["owner"] == name]
    on_their_way = any(row["coming"] or row["new"] for row in rows)
    status, cores_of = look.picture.status, machines.cores_of(look, name)
    mine = [
        {**machines.told(row), "cores": cores}
        for row in look.picture.machines
        if (cores := cores_of.get((row["cloud"], row["id"])))
    ]
    return {
        "looked_at": status["daemon"]["looked_at"],
        "user": name,
        "share": next((row for row in status["users"] if row["user"] == name), None),
        "reasons": waiting.by_reason(rows),
        "waiting": sum(row["waiting"] for row in rows),
        "expected_at": machines.next_expected(look) if on_their_way else None,
        "on_their_way": on_their_way,
        "machines": mine[:100],
        "machines_total": len(mine),
        "annexes": [row for row in annexes.rows(look) if name and row["owner"] == name],
        "cost": users.month_costs(look).get(name),
        "budgets": cost.budgets(look, "user", "annex", name=name) if name else [],
        "month": look.today.strftime("%Y-%m"),
        "rows": rows,
    }
