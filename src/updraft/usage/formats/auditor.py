"""Who used what, as AUDITOR takes it: a JSON list of records, as its `/records` has them posted.

AUDITOR multiplies a number of cores with a time. Claims on a machine come and go, so each user's time on it
is told as if that one had had the whole machine for as long as comes to the same. A record has an id of its
own for each user, machine and day: posted again it is refused, not counted twice.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, TextIO

from updraft.usage.period import date_of, moment

_FORBIDDEN = re.compile(r'[/()"<>\\{}\x00-\x1f]')  # signs that AUDITOR takes in no text


def records(days: Iterable[dict[str, Any]], site: str) -> Iterator[dict[str, Any]]:
    """The record of each user on a machine and day; none of less than a second."""
    for day in days:
        if day["cores"] <= 0:
            continue
        seconds = round(day["user_core_seconds"] / day["cores"])
        if seconds > 0:
            yield _record(day, site, int(day["began"]), seconds)


def _record(day: dict[str, Any], site: str, start: int, seconds: int) -> dict[str, Any]:
    who = hashlib.sha256(f"{day['user']}\0{day['grp']}".encode()).hexdigest()[:12]
    machine = f"{day['pool']}-{day['cloud']}-{day['instance']}-{int(day['asked'])}"
    score = [] if day["score"] is None else [{"name": _text(day["benchmark"]), "value": day["score"]}]
    meta = {
        "site_id": [_text(site)],
        "user_id": [_text(day["user"]) or "unknown"],
        "group_id": [_text(day["grp"]) or "none"],
        "cloud": [_text(day["cloud"])],
        "flavor": [_text(day["flavor"])],
        "note": ["estimate, not the bill"],
    }
    return {
        "record_id": _text(f"updraft-{machine}-{date_of(day['day'])}-{who}"),
        "meta": meta,
        "components": [
            {"name": "Cores", "amount": day["cores"], "scores": score},
            {"name": "Memory", "amount": day["memory"], "scores": []},
        ],
        "start_time": moment(start),
        "stop_time": moment(start + seconds),
        "runtime": seconds,
    }


def write(found: Iterable[dict[str, Any]], out: TextIO) -> None:
    """All records as one JSON list, a record a line."""
    out.write("[")
    for number, record in enumerate(found):
        out.write(f"{',' if number else ''}\n{json.dumps(record)}")
    out.write("\n]\n")


def _text(text: str) -> str:
    return _FORBIDDEN.sub("_", text)[:256]
