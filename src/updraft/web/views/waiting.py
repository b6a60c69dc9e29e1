"""Jobs that wait: by reason and by how long, each with its remedy; and one group, as `explain` says it."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from updraft.documents import Row
from updraft.watching.sentences import NO_OFFER, asked_for, room_found, why_waiting
from updraft.web.looking import Look, NotThereError, paged

PAGE = 100
OWNERS = 3
"""How many owners are named beside a reason: those with the most jobs."""
ROOM: Mapping[str, str] = {
    "joined": "there is room on machines of the pool: the negotiator has to match them",
    "coming": "their machines are on their way",
    "new": "machines for them are being launched",
}
"""Why jobs wait that find room, by where."""
PASSES = frozenset(
    {
        *(
            "cloud-silent",
            "collector-silent",
            "cooling-down",
            "in-turn",
            "join-pace",
            "no-capacity",
            "no-launches",
        ),
        *("probing", "schedd-silent", "sold-out", "spending-unknown", "too-early", "too-few", "unproven"),
    }
)
"""Codes of what time mends: of the other ones a person has to do something."""
LENGTHS: tuple[tuple[str, float], ...] = (
    ("under 5 minutes", 300.0),
    ("5 minutes to an hour", 3600.0),
    ("an hour to 6 hours", 21600.0),
    ("6 hours to a day", 86400.0),
    ("over a day", float("inf")),
)
CSV = (
    *("key", "owner", "schedd", "first_job", "waiting", "oldest", "waits", "cpus", "memory", "gpus"),
    *("joined", "coming", "new", "unmet", "code", "why", "remedy"),
)


def view(look: Look) -> Row:
    """All groups of which jobs wait, or those of a `reason`, an `owner`, or a `length` of time."""
    rows = group_rows(look)
    reason, owner = look.query.text("reason"), look.query.text("owner")
    length = look.query.choice("length", ("", *(name for name, _ in LENGTHS)))
    chosen = [
        row
        for row in rows
        if (not reason or reason in row["jobs_by"])
        and (not owner or row["owner"] == owner)
        and (not length or length_of(row["waits"]) == length)
    ]
    shown, page = paged(chosen, look.query, PAGE)
    return {
        "looked_at": look.picture.status["daemon"]["looked_at"],
        "jobs": look.picture.status["jobs"],
        "reasons": by_reason(rows),
        "lengths": by_length(rows),
        "chosen": {"reason": reason, "owner": owner, "length": length},
        "page": page,
        "shown": shown,
        "rows": chosen,
    }


def group_rows(look: Look) -> list[Row]:
    """Each group of which jobs wait: those who find no room first, and then who waits longest."""
    at = look.picture.status["daemon"]["looked_at"] or look.now
    rows = [group_row(group, at) for group in look.picture.status["groups"] if group["idle"]]
    return sorted(rows, key=lambda row: (not row["unmet"], -(row["waits"] or 0.0), row["key"]))


def group_row(group: Mapping[str, Any], at: float) -> Row:
    """One group: what it asks for, what room there is, and why the rest has none; `at` is the look's time."""
    request, oldest = group.get("request") or {}, group.get("oldest") or None
    held_back, why = group["held_back"], why_waiting(group)
    code, text, remedy = _first(group, why)
    jobs_by = {where: group[where] for where in ROOM if group[where]}
    if group["unmet"]:
        jobs_by[code] = group["unmet"]
    return {
        "key": group["key"],
        "owner": group.get("owner") or "",
        "schedd": group.get("schedd") or "",
        "first_job": group.get("first_id") or "",
        "waiting": group["idle"],
        "running": group.get("running", 0),
        "oldest": oldest,
        "waits": None if oldest is None else max(0.0, at - oldest),
        "cpus": request.get("cpus"),
        "memory": request.get("memory"),
        "gpus": request.get("gpus"),
        **{part: group[part] for part in ("joined", "coming", "new", "unmet")},
        "code": code,
        "text": text,
        "why": why,
        "remedy": remedy,
        "remedies": list(dict.fromkeys(one["remedy"] for one in held_back if one.get("remedy"))),
        "jobs_by": jobs_by,
    }


def _first(group: Mapping[str, Any], why: list[str]) -> tuple[str, str, str]:
    """The first reason why jobs of the group find no room: code, sentence, remedy."""
    if not group["unmet"]:
        return "", "", ""
    reason = next(iter(group["held_back"]), None)
    if reason is None or (reason["code"] == NO_OFFER and group["refused"]):
        code = NO_OFFER if reason is None else reason["code"]
        return (
            code,
            why[-1] if why else "nothing that can be bought runs them",
            (reason or {}).get("remedy", ""),
        )
    return reason["code"], reason["text"], reason.get("remedy", "")


def by_reason(rows: Iterable[Row]) -> list[Row]:
    """How many jobs wait for which reason, those that need a person first, then the most jobs."""
    found: dict[str, Row] = {}
    by_owner: dict[str, Counter[str]] = {}
    for row in rows:
        for code, jobs in row["jobs_by"].items():
            told = (ROOM[code], "") if code in ROOM else (row["text"], row["remedy"])
            one = found.setdefault(
                code,
                {"code": code, "text": told[0], "remedy": told[1], "jobs": 0, "groups": 0, "waits": None},
            )
            owners = by_owner.setdefault(code, Counter())
            owners[row["owner"]] += jobs
            one["jobs"] += jobs
            one["groups"] += 1
            one["waits"] = max(one["waits"] or 0.0, row["waits"] or 0.0) or None
    for one in found.values():
        most = by_owner[one["code"]].most_common()
        one["owners"], one["more_owners"] = [name for name, _ in most[:OWNERS]], max(0, len(most) - OWNERS)
        one["person"] = one["code"] not in PASSES and one["code"] not in ROOM
    return sorted(found.values(), key=lambda one: (not one["person"], one["code"] in ROOM, -one["jobs"]))


def length_of(waits: float | None) -> str:
    """In which of the lengths this time is."""
    return next(name for name, most in LENGTHS if (waits or 0.0) < most)


def by_length(rows: Iterable[Row]) -> list[Row]:
    """How many jobs are in groups whose first one waits for how long."""
    found = dict.fromkeys((name for name, _ in LENGTHS), 0)
    for row in rows:
        found[length_of(row["waits"])] += row["waiting"]
    return [{"length": name, "jobs": jobs} for name, jobs in found.items()]


def group_view(look: Look) -> Row:
    """One group, by its `key`. Raises NotThereError where none of this visitor's has it."""
    key = look.query.text("key")
    for group in look.picture.status["groups"]:
        if group["key"] == key and may_see(look, group):
            return {
                "looked_at": look.picture.status["daemon"]["looked_at"],
                "group": group_story(look, group),
            }
    raise NotThereError("no jobs of this group wait any more, by the daemon's last look")


def may_see(look: Look, group: Mapping[str, Any]) -> bool:
    """Whether a group is this visitor's business."""
    return look.visitor.operator or group.get("owner") == look.visitor.name


def group_story(look: Look, group: Mapping[str, Any]) -> Row:
    """A group with its sentences, what holds it back, and what the offers have against it."""
    at = look.picture.status["daemon"]["looked_at"] or look.now
    return {
        **group_row(group, at),
        "asked_for": asked_for(group) if group.get("request") else "",
        "room_found": room_found(group),
        "held_back": group["held_back"],
        "refused": group["refused"],
        "evaluable": group.get("evaluable", True),
    }
