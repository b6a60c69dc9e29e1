"""All at one glance: acting or waiting, how old the picture is, what needs a person, and sums of the rest."""

from collections.abc import Iterator

from updraft.documents import Row, plain
from updraft.watching.sentences import daemon_line
from updraft.web.looking import Look
from updraft.web.views import clouds, cost, lives
from updraft.web.views.waiting import by_length, by_reason, group_rows

PATIENCE = 600.0
"""How long jobs may wait for a reason that only a person can mend, in seconds, before a person is told."""
EVENTS = 10
CSV = ("what", "text", "remedy", "view")


def view(look: Look) -> Row:
    """The overview; its rows are what needs a person."""
    picture = look.picture
    status = picture.status
    groups = group_rows(look)
    failed = sum(map(lives.never_joined, picture.gone))
    reasons = by_reason(groups)
    return {
        "pool": status["pool"],
        "looked_at": status["daemon"]["looked_at"],
        "daemon": status["daemon"],
        "line": daemon_line(status["daemon"]),
        "jobs": status["jobs"],
        "machines": {
            **status["machines"],
            "busy": sum(map(lives.is_busy, picture.machines)),
            "failed_today": failed,
        },
        "reasons": reasons,
        "lengths": by_length(groups),
        "sums": cost.sums(look),
        "limits": limits(look),
        "clouds": [clouds.cloud_row(row, look.now) for row in status["clouds"]],
        "classes": status["classes"],
        "requests": status["requests"],
        "events": [plain(event) for event in reversed(look.reader.events(limit=EVENTS))],
        "rows": list(needs(look, reasons, failed)),
    }


def needs(look: Look, reasons: list[Row], failed: int) -> Iterator[Row]:
    """What needs a person: what it is, what is known of it, what helps, and where more is."""
    status = look.picture.status
    daemon = status["daemon"]
    if not daemon["alive"]:
        yield _need("no daemon is at work", daemon_line(daemon), "`updraft service status`", "log")
    for source in clouds.silent_sources(status, look.now):
        yield _need(f"{source['name']} does not answer", source["text"], "`updraft check`", "clouds")
    for row in status["clouds"]:
        cloud = clouds.cloud_row(row, look.now)
        if row["state"] in ("not-ending", "resting"):
            yield _need(
                f"cloud {row['name']}: {cloud['words']}", cloud["error_text"], "`updraft check`", "clouds"
            )
    for one in reasons:
        if one["person"] and (one["waits"] or 0.0) >= PATIENCE:
            yield _need(
                f"{one['jobs']} jobs wait", one["text"], one["remedy"], f"waiting?reason={one['code']}"
            )
    if failed:
        what = "1 machine has never joined" if failed == 1 else f"{failed} machines have never joined"
        yield _need(f"{what} in the last day", "", "the end of its console", "machines?failed=1")
    for warning in status["warnings"]:
        yield _need("warning", warning["text"], "", "log?kind=warning")


def _need(what: str, text: str, remedy: str, view: str) -> Row:
    return {"what": what, "text": text, "remedy": remedy, "view": view}


def limits(look: Look) -> list[Row]:
    """Each ceiling with what is in use of it, the fullest first: of pool, clouds and classes, and budgets."""
    status = look.picture.status
    found = [
        {"of": f"cloud {row['name']}", "what": what, "used": row.get(what), "most": row["limits"].get(what)}
        for row in status["clouds"]
        for what in clouds.WHAT
    ]
    for row in status["classes"]:
        name = f"class {row['name']}"
        found.append({"of": name, "what": "machines", "used": row["machines"], "most": row["max"]})
        found.append({"of": name, "what": "cores", "used": row["cores"], "most": row.get("max_cores")})
    for what, most in look.picture.cycle.get("limits", {}).items():
        found.append({"of": "the pool", "what": what, "used": _used(status, what), "most": most})
    for row in status["spending"]:
        what = f"cost this {row['period']}"
        found.append({"of": row["whose"], "what": what, "used": row["spent"], "most": row["most"]})
    known = [one for one in found if one["most"] is not None and one["used"] is not None]
    for one in known:
        one["part"] = one["used"] / one["most"] if one["most"] else float(one["used"] > 0)
    return sorted(known, key=lambda one: (-one["part"], one["of"], one["what"]))


def _used(status: Row, what: str) -> float | None:
    """What all clouds together have of something."""
    found = [row.get(what) for row in status["clouds"]]
    return None if None in found else sum(found)
