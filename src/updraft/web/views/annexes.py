"""The annexes: machines that were asked for by hand, with their leases."""

from updraft.documents import Row
from updraft.watching.annexes import rows_of
from updraft.watching.sentences import size, stands
from updraft.web.looking import Look

CSV = (
    "name",
    "owner",
    "for_all",
    "worker_class",
    "size",
    "joined",
    "since",
    "until",
    "left_seconds",
    "stands",
)


def view(look: Look) -> Row:
    """Every annex that isn't forgotten."""
    return {"looked_at": look.picture.status["daemon"]["looked_at"], "rows": rows(look)}


def rows(look: Look) -> list[Row]:
    """Each annex with its size, its state and its lease in words."""
    return [
        {
            **{
                name: row[name]
                for name in ("name", "owner", "for_all", "worker_class", "since", "until", "instances")
            },
            "size": size(row),
            "joined": row["look"]["joined"] if row["look"] else 0,
            "left_seconds": max(0.0, row["until"] - look.now),
            "stands": stands(row),
            "held": bool(row["look"] and row["look"]["state"] == "held"),
        }
        for row in rows_of(look.reader)
    ]
