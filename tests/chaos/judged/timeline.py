"""All that was written down in a run, as one file in the order of time."""

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from tests.chaos.judged.evidence import Deed
from tests.chaos.judged.judging import Finding

NAME = "timeline"
Entry = tuple[float, str, str]
"""When, who says so, and what: what has no time of its own goes with the line before it."""
# 2026-11-24T07:44:53.123456Z of updraft, 2026-11-24 07:44:53 of event logs, 11/24/26 07:44:53.123 of HTCondor
_ISO = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d(?:\.\d+)?)")
_HTCONDOR = re.compile(r"(\d\d)/(\d\d)/(\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?)")
_AT = re.compile(r'^\{"at": ([0-9.]+)')
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")
_WITHIN = 60  # characters of a line in which its time stands


def moment(line: str) -> float | None:
    """The time that a log's line begins with, None where it begins with none. Clocks are in UTC."""
    head = line[:_WITHIN]
    if found := _AT.match(head):
        return float(found[1])
    try:
        if found := _HTCONDOR.match(head):
            day = f"20{found[3]}-{found[1]}-{found[2]}"
            return datetime.fromisoformat(f"{day} {found[4]}").replace(tzinfo=UTC).timestamp()
        if found := _ISO.search(head):
            return datetime.fromisoformat(f"{found[1]} {found[2]}").replace(tzinfo=UTC).timestamp()
    except ValueError:
        return None
    return None


def entries(who: str, lines: Iterable[str]) -> Iterator[Entry]:
    """A log's lines with their times; those before the first that has one are left out."""
    at: float | None = None
    for line in lines:
        at = moment(line) or at
        if at is not None:
            yield at, who, _ESCAPES.sub("", line.rstrip("\n"))


def of_deeds(deeds: Iterable[Deed]) -> Iterator[Entry]:
    """When what was done on purpose began, and when it ended."""
    for deed in deeds:
        whom = " ".join(word for word in (deed.what, deed.machine, deed.job, deed.failed) if word)
        yield deed.begun, "CHAOS", f"begins: {whom}"
        if deed.ended > deed.begun:
            yield deed.ended, "CHAOS", f"ends: {whom}"


def of_findings(findings: Iterable[Finding]) -> Iterator[Entry]:
    """What must never happen, where it did."""
    for one in findings:
        yield one.at, "FINDING", f"{one.rule}: {one.text}"


def write(folder: Path, more: Iterable[Entry]) -> None:
    """Write `timeline` into a folder, of all logs below it and what is said besides."""
    found = list(more)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name != NAME and not path.name.endswith((".json", ".sqlite")):
            with path.open(errors="replace") as file:
                found += entries(str(path.relative_to(folder)), file)
    found.sort(key=lambda entry: entry[0])
    with (folder / NAME).open("w") as file:
        for at, who, text in found:
            file.write(f"{datetime.fromtimestamp(at, UTC):%H:%M:%S.%f}"[:-3] + f" {who}: {text}\n")
