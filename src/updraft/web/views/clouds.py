"""The clouds: what each says, what is in use of what, and what rests after failures."""

from collections.abc import Iterator

from updraft.documents import Row
from updraft.watching.sentences import state_words
from updraft.web.looking import Look
from updraft.web.views import cost

OFFERS_SHOWN = 12
TROUBLED = ("silent", "not-ending", "resting")
"""The states of a cloud that need a person."""
CSV = (
    *("name", "state", "words", "machines", "max_machines", "cores", "max_cores", "memory", "max_memory"),
    *(
        "cost_per_hour",
        "max_cost_per_hour",
        "machines_left",
        "cores_left",
        "foreign_machines",
        "foreign_cores",
    ),
    *("priority", "error_code", "error_text"),
)
WHAT = ("machines", "cores", "memory", "cost_per_hour")


def view(look: Look) -> Row:
    """Each cloud with its state in words, its budgets, what it sells, and the rests."""
    status = look.picture.status
    rows = [cloud_row(row, look.now) for row in status["clouds"]]
    rows.sort(key=lambda row: row["state"] not in TROUBLED)
    for row in rows:
        row["budgets"] = cost.budgets(look, "cloud", name=row["name"])
        row["offers"] = offers(look, row["name"])
    return {
        "looked_at": status["daemon"]["looked_at"],
        "cooldowns": [{**one, "probing": one["until"] <= look.now} for one in status["cooldowns"]],
        "sources": silent_sources(status, look.now),
        "rows": rows,
    }


def offers(look: Look, cloud: str) -> Row:
    """What a cloud sells that the pool's classes take, the cheapest core first; as of when; what rests."""
    note = look.reader.noted(f"offers {cloud}") or {"at": None, "rows": []}
    resting = {one["key"]: one for one in look.picture.status["cooldowns"] if one["until"] > look.now}
    rows = [
        {**row, "rests": resting.get("/".join((cloud, row["zone"], row["flavor"], row["market"])))}
        for row in note["rows"]
    ]
    return {"at": note["at"], "number": len(rows), "rows": rows[:OFFERS_SHOWN]}


def cloud_row(row: Row, now: float) -> Row:
    """One cloud: its state in words, each limit and quota with what is in use of it."""
    error = row["last_error"] or {}
    return {
        **{
            name: row[name]
            for name in ("name", "state", "priority", "unknown_prices", "phases", "last_error")
        },
        "words": state_words(row, row["disabled"], now),
        "disabled": row["disabled"],
        **{what: row.get(what) for what in WHAT},
        **{f"max_{what}": row["limits"].get(what) for what in WHAT},
        **{f"{what}_left": left for what, left in row["quota_left"].items()},
        **{f"foreign_{what}": number for what, number in row["foreign"].items()},
        "quotas": list(_quotas(row)),
        "error_code": error.get("code", ""),
        "error_text": error.get("text", ""),
        "error_at": error.get("at"),
    }


def _quotas(row: Row) -> Iterator[Row]:
    """Each quota that is known: what is in use of it by us and by others, and how much it is in all."""
    for what in ("machines", "cores"):
        left = row["quota_left"].get(what)
        if left is not None:
            ours, others = row[what], row["foreign"].get(what) or 0
            most = ours + others + left
            part = (ours + others) / most if most else 1.0
            yield {"what": what, "ours": ours, "others": others, "left": left, "most": most, "part": part}


def silent_sources(status: Row, now: float) -> list[Row]:
    """The sources that don't answer, since when and why: of a cloud all that it doesn't say, together."""
    found: dict[tuple[str, str], Row] = {}
    for name, source in status["sources"].items():
        if source["state"] != "unknown":
            continue
        of, _, what = name.partition(": ")
        text = (source.get("error") or {}).get("text", "")
        one = found.setdefault((of, text), {"name": of, "since": source["since"], "text": text, "what": []})
        one["since"] = min(one["since"], source["since"])
        one["what"] += [what] if what else []
    return [{**one, "for": max(0.0, now - one["since"])} for one in found.values()]
