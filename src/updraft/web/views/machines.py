"""Machines as lives on a time axis, and one of them with all that happened to it."""

import statistics
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from updraft.documents import Row, plain
from updraft.errors import UsageError
from updraft.watching.machine import life, machine_document
from updraft.web.looking import Look, NotThereError, paged
from updraft.web.views import lives

PAGE = 100
HOURS = ("6", "1", "24")
FILTERS = ("class", "cloud", "flavor")
CSV = (
    *("id", "cloud", "class", "flavor", "zone", "market", "phase", "why", "code", "price", "requested_at"),
    *("joined_at", "busy_at", "deadline", "ended_at", "age", "image", "generation", "launch"),
)
_CONSOLE_LINES = 200


def view(look: Look) -> Row:
    """The machines, filtered by `phase`, `class`, `cloud`, `flavor` and the beginning of an `id`.

    Those of the last day that are gone are among them with `gone`, and failed ones alone with `failed`.
    """
    query, picture = look.query, look.picture
    hours = float(query.choice("hours", HOURS))
    failed, gone = query.choice("failed", ("", "1")), query.choice("gone", ("", "1"))
    every = [*picture.machines, *(picture.gone if gone or failed else ())]
    if failed:
        every = [row for row in every if lives.never_joined(row)]
    wanted = {name: query.text(name) for name in FILTERS}
    phase, begins = query.text("phase"), query.text("id")
    chosen = [
        row
        for row in every
        if all(not value or row[name] == value for name, value in wanted.items())
        and row["id"].startswith(begins)
    ]
    phases = Counter(row["phase"] for row in chosen)
    rows = [told(row) for row in chosen if not phase or row["phase"] == phase]
    rows.sort(key=lambda row: (-row["requested_at"], row["id"]))
    shown, page = paged(rows, query, PAGE)
    if failed:
        shown = [{**row, "console_end": console_end(look, row)} for row in shown]
    begin = look.now - hours * 3600
    return {
        "looked_at": picture.status["daemon"]["looked_at"],
        "total": sum(phases.values()),
        "phases": dict(sorted(phases.items())),
        "choices": {name: sorted({row[name] for row in every}) for name in FILTERS},
        "chosen": {
            **wanted,
            "phase": phase,
            "id": begins,
            "hours": f"{hours:g}",
            "gone": gone,
            "failed": failed,
        },
        "axis": {"begin": begin, "end": look.now, "hours": hours},
        "lives": [lives.drawn(row, begin, look.now) for row in shown],
        "page": page,
        "shown": shown,
        "rows": rows,
    }


def console_end(look: Look, row: Mapping[str, Any]) -> str:
    """The last line of the console that was kept of a machine; "" where there is none."""
    lines = (look.reader.console(row["id"], row["cloud"]) or "").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def told(row: Mapping[str, Any]) -> Row:
    """A machine with its reason as a text and a code."""
    return {
        **row,
        "why": row["reason"]["text"],
        "code": row["reason"]["code"],
        "failed": lives.never_joined(row),
    }


def machine_view(look: Look) -> Row:
    """One machine, by its `id`. Raises NotThereError where there is none that this visitor may see."""
    wanted = look.query.text("id")
    try:
        found = machine_document(look.reader, wanted, look.now)
    except UsageError as error:
        raise NotThereError(str(error) if look.visitor.operator else "you have no such machine") from error
    machine = plain(found.machine)
    if not look.visitor.operator and (machine["cloud"], machine["id"]) not in cores_of(
        look, look.visitor.name
    ):
        raise NotThereError("you have no such machine")
    begin = machine["requested_at"] - 60.0
    console = (found.console or "").splitlines()[-_CONSOLE_LINES:]
    return {
        "looked_at": look.picture.status["daemon"]["looked_at"],
        "machine": told(machine),
        "life": life(found.machine, look.now),
        "drawn": lives.drawn(machine, begin, machine["ended_at"] or look.now),
        "launch": plain(found.launch),
        "events": plain(found.events),
        # A console may hold what other people's jobs wrote.
        "console": console if look.visitor.operator else [],
        "left_out": plain(found.left_out),
        "daemon": plain(found.daemon),
    }


def cores_of(look: Look, user: str) -> Mapping[tuple[str, str], int]:
    """How many cores of which machines (cloud and id) a user has, by the last look that is in the records."""
    if not user:
        return {}
    found: dict[tuple[str, str], int] = {}
    for key, claims in look.pictures.claims().items():
        for one in claims:
            if one.user.partition("@")[0] == user:
                found[key] = found.get(key, 0) + one.cores
    return found


def next_expected(look: Look) -> float | None:
    """When the next machine is expected in the pool, by how long such ones took; None where nobody knows."""
    return min(_expected(look, look.picture.machines), default=None)


def _expected(look: Look, machines: Iterable[Mapping[str, Any]]) -> Iterable[float]:
    for row in machines:
        known = look.picture.boots.get((row["image"], row["flavor"]))
        if row["phase"] in ("requested", "booting") and known:
            yield float(row["requested_at"] + statistics.median(known))
