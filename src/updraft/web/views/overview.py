"""All at one glance: acting or waiting, how old the picture is, what needs a person, and sums of the rest."""

from collections import Counter
from collections.abc import Iterable, Iterator
from urllib.parse import urlencode

from updraft.documents import Row, plain
from updraft.watching.sentences import daemon_line
from updraft.watching.words import ago, count
from updraft.web.looking import Look
from updraft.web.views import clouds, cost, lives
from updraft.web.views.waiting import by_length, by_reason, group_rows

PATIENCE = 600.0
"""How long jobs may wait for a reason that only a person can mend, in seconds, before a person is told."""
EVENTS, EVENTS_READ = 10, 300
CONSOLES = "the end of their consoles, which that list has"
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
        "budgets": cost.budgets(look),
        "limits": limits(look),
        "clouds": [clouds.cloud_row(row, look.now) for row in status["clouds"]],
        "classes": status["classes"],
        "requests": status["requests"],
        "events": runs(plain(event) for event in reversed(look.reader.events(limit=EVENTS_READ)))[:EVENTS],
        "rows": list(needs(look, reasons, failed)),
    }


def needs(look: Look, reasons: list[Row], failed: int) -> Iterator[Row]:
    """What needs a person: what it is, what is known of it, what helps, and where more is."""
    status = look.picture.status
    daemon = status["daemon"]
    if not daemon["alive"]:
        yield _need("no daemon is at work", daemon_line(daemon), "`updraft service status`", "log")
    yield from _clouds(look)
    yield from _budgets(look)
    for one in reasons:
        if one["person"] and (one["waits"] or 0.0) >= PATIENCE:
            whose = ", ".join(one["owners"]) + (
                f" and {one['more_owners']} more" if one["more_owners"] else ""
            )
            what = f"{count(one['jobs'], 'job')} of {whose} waiting, the longest for {ago(one['waits'])}"
            yield _need(what, one["text"], one["remedy"], f"waiting?reason={one['code']}")
    if failed:
        yield from _failed(look)
    for warning in status["warnings"]:
        yield _need("warning", warning["text"], "", "log?kind=warning")


def _clouds(look: Look) -> Iterator[Row]:
    """Sources that don't answer, and clouds that are in trouble: each cloud once."""
    status, silent = look.picture.status, set()
    for row in status["clouds"]:
        if row["state"] in clouds.TROUBLED:
            cloud = clouds.cloud_row(row, look.now)
            text = cloud["error_text"] or (row["silent"] or {}).get("reason", {}).get("text", "")
            silent.add(f"cloud {row['name']}")
            yield _need(f"cloud {row['name']}: {cloud['words']}", text, "`updraft check`", "clouds")
    for source in clouds.silent_sources(status, look.now):
        if source["name"] not in silent:
            yield _need(f"{source['name']} does not answer", source["text"], "`updraft check`", "clouds")


def _budgets(look: Look) -> Iterator[Row]:
    """Budgets that are spent, or will be before their time is over."""
    for row in cost.budgets(look):
        if row["over"] or row["exceeds"]:
            what = f"this {row['period']}'s budget of {row['whose']}"
            most = f"{row['most']:,.2f}"
            remedy = f"a larger `cost_per_{row['period']}`, or fewer or cheaper machines"
            if row["over"]:
                yield _need(f"{what} is spent", f"all of {most}", remedy, "cost")
            else:
                text = f"as it runs now, {row['projected']:,.2f} of {most}"
                yield _need(f"{what} will be spent before its end", text, remedy, "cost")


def _failed(look: Look) -> Iterator[Row]:
    """The machines of the last day that never joined, by cloud."""
    found: dict[str, Counter[str]] = {}
    for row in filter(lives.never_joined, look.picture.gone):
        found.setdefault(row["cloud"], Counter())[row["reason"]["text"]] += 1
    for cloud, texts in sorted(found.items()):
        what = "1 machine has" if texts.total() == 1 else f"{texts.total()} machines have"
        view = f"machines?failed=1&{urlencode({'cloud': cloud})}"
        text = texts.most_common(1)[0][0]
        yield _need(f"{what} never joined on {cloud} in the last day", text, CONSOLES, view)


def runs(events: Iterable[Row]) -> list[Row]:
    """Events, newest first; of one kind that follow each other as one: how many, and since when."""
    found: list[Row] = []
    for event in events:
        if (
            found
            and (found[-1]["kind"], found[-1]["code"]) == (event["kind"], event["code"])
            and _many(event)
        ):
            found[-1]["times"] += 1
            found[-1]["same"] &= found[-1]["text"] == event["text"]
            found[-1]["first"] = event["at"]
        else:
            found.append({**event, "times": 1, "first": event["at"], "same": True})
    return found


def _many(event: Row) -> bool:
    """Whether it is of a kind that comes in numbers, and of which one is like another."""
    return bool(event["kind"] in ("joined", "drain", "gone"))


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
