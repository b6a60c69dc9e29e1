"""The clouds: what each says, what is in use of what, and what rests after failures."""

from updraft.documents import Row
from updraft.watching.sentences import state_words
from updraft.web.looking import Look

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
    """Each cloud with its state in words, and the rests."""
    status = look.picture.status
    rows = [cloud_row(row, look.now) for row in status["clouds"]]
    return {
        "looked_at": status["daemon"]["looked_at"],
        "cooldowns": [{**one, "probing": one["until"] <= look.now} for one in status["cooldowns"]],
        "sources": silent_sources(status, look.now),
        "rows": rows,
    }


def cloud_row(row: Row, now: float) -> Row:
    """One cloud: its state in words, each limit with what is in use of it."""
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
        "error_code": error.get("code", ""),
        "error_text": error.get("text", ""),
        "error_at": error.get("at"),
    }


def silent_sources(status: Row, now: float) -> list[Row]:
    """The sources that don't answer, since when and why."""
    return [
        {
            "name": name,
            "since": source["since"],
            "for": max(0.0, now - source["since"]),
            "text": (source.get("error") or {}).get("text", ""),
        }
        for name, source in status["sources"].items()
        if source["state"] == "unknown"
    ]
