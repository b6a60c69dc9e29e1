"""`updraft report` of a month with 10,000 jobs a day: what it takes, and how much memory.

`python -m tests.bench.simulation.monthly FOLDER [PER_DAY]` prints what it measured as JSON: whole processes,
each with its own processor time and its largest resident memory. The record is as a daemon writes it, with a
look each minute and the jobs that have ended each five: bursts of a user's jobs by day and by night, on a
cluster that has them wait. Once updraft acted in these days, so that the report tells what was; once it only
watched, so that what it would have done is simulated besides.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from tests.bench.rows import Measured, Row
from tests.rigs.sim.pastweeks import OFFERS, fields, job
from updraft.condor.support.history import RECORDED
from updraft.core.settings import DAY
from updraft.recording.pool_record import PoolRecord

PER_DAY, DAYS, USERS = 10_000, 31, 40
FIRST = 20_727 * DAY  # the first of October 2026
HOUR, LOOK, ASKED = 3600.0, 60.0, 300.0
WAIT, RUN = 900.0, 1800.0  # seconds, at the middle
MEBIBYTE = 1024 * 1024
_OFFERS = json.dumps([asdict(one) for one in OFFERS])
TOML = """\
[pool]
name = "month"
state_dir = "{folder}"
act = {act}

[clouds.c1]
driver = "fake"

[classes.general]
image = "image-1"
"""


def fill(folder: Path, per_day: int, *, acts: bool) -> int:
    """Write the record; the number of jobs."""
    jobs = sorted(_jobs(per_day), key=lambda one: float(one["CompletionDate"]))
    (folder / "updraft.toml").write_text(TOML.format(folder=folder, act=str(acts).lower()))
    over = np.array([one["CompletionDate"] for one in jobs])
    asked = np.arange(FIRST + ASKED, FIRST + DAYS * DAY + 1, ASKED)
    places = np.searchsorted(over, asked).tolist()
    with PoolRecord(folder / "record.sqlite") as record:
        for first, last, at in zip([0, *places], places, asked.tolist(), strict=False):
            record.add_jobs("head", RECORDED, [fields(one) for one in jobs[first:last]], [], at)
        with record._writing() as rows:
            rows.executemany("INSERT INTO looks VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", _looks(jobs, acts=acts))
            rows.execute("INSERT INTO offers VALUES ('c1', ?, ?)", (FIRST, _OFFERS))
    return places[-1]


def _jobs(per_day: int) -> Iterator[dict[str, Any]]:
    """Bursts of a user's jobs, at any hour; all of them end within the month."""
    chance = random.Random(1)
    number, last = 0, FIRST + (DAYS - 1) * DAY
    while number < per_day * DAYS:
        arrived = chance.uniform(FIRST + 60, last)
        user = f"user{chance.randrange(USERS)}"
        for _ in range(chance.randrange(1, max(2, per_day // 20))):
            started = arrived + chance.expovariate(1 / WAIT)
            ended = started + min(6 * HOUR, RUN * chance.lognormvariate(0.0, 0.8))
            cpus = chance.choice((1, 1, 1, 4))
            yield job(number, arrived, started, ended, Owner=user, RequestCpus=cpus, Cmd=f"/home/{user}/run")
            number += 1


def _looks(jobs: list[dict[str, Any]], *, acts: bool) -> Iterator[tuple[float, ...]]:
    """A look each minute, as many cores as are claimed and a tenth more."""
    at = np.arange(FIRST, FIRST + DAYS * DAY, LOOK)
    counts = {name: np.sort([float(one[name]) for one in jobs]) for name in ("QDate", "JobStartDate")}
    counts["CompletionDate"] = np.array([float(one["CompletionDate"]) for one in jobs])
    came, began, over = (np.searchsorted(each, at) for each in counts.values())
    for moment, waits, runs in zip(
        at.tolist(), (came - began).tolist(), (began - over).tolist(), strict=True
    ):
        claimed = round(1.75 * runs)
        yield (
            moment,
            acts,
            waits,
            runs,
            claimed + round(1.75 * waits),
            claimed,
            claimed * 11 // 10 + 1,
            5,
            5,
        )


def measure(folder: Path, per_day: int = PER_DAY) -> dict[str, Any]:
    """Both reports, each by a process of its own; the page is drawn, too."""
    found: dict[str, Any] = {}
    for name, acts in (("acted", True), ("watched", False)):
        (folder / name).mkdir()
        begun = time.perf_counter()
        number = fill(folder / name, per_day, acts=acts)
        print(f"{number} jobs written in {time.perf_counter() - begun:.0f} s", file=sys.stderr)
        found[name] = _report(folder / name, number)
    return found


def _report(folder: Path, number: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "updraft.cli.main", "--config", str(folder / "updraft.toml")]
    command += ["report", "--month", "2026-10", "--html", str(folder / "page.html"), "--json"]
    with (folder / "told.json").open("w") as told:
        begun = time.perf_counter()
        child = subprocess.Popen(command, stdout=told)
        _, status, used = os.wait4(child.pid, 0)
        took = time.perf_counter() - begun
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"updraft report ended with {child.returncode}")
    document = json.loads((folder / "told.json").read_text())
    if document["jobs"]["arrived"] != number:
        raise AssertionError(f"the report tells of {document['jobs']['arrived']} jobs, not of {number}")
    return {
        "jobs": number,
        "seconds": round(took, 2),
        "processor_s": round(used.ru_utime + used.ru_stime, 2),
        "memory_mib": round(used.ru_maxrss * 1024 / MEBIBYTE, 1),
        "record_mib": round((folder / "record.sqlite").stat().st_size / MEBIBYTE, 1),
        "page_kib": round((folder / "page.html").stat().st_size / 1024, 1),
    }


def rows(folder: Path) -> list[Row]:
    """The rows of the report."""
    seen: dict[str, Any] = {}

    def of(side: str, what: str) -> Callable[[], Measured]:
        def measured() -> Measured:
            if not seen:
                (folder / "monthly").mkdir()
                seen.update(measure(folder / "monthly"))
            return Measured(seen[side][what], seen[side])

        return measured

    what = "`updraft report --html` of a month, 10,000 jobs a day"
    return [
        Row("report", f"{what}, where it acted: processor time", 10.0, "s", of("acted", "processor_s")),
        Row("report-memory", f"{what}: resident memory, at most", 1024.0, "MiB", of("acted", "memory_mib")),
        Row(
            "report-watched",
            f"{what}, simulated too: processor time",
            None,
            "s",
            of("watched", "processor_s"),
        ),
        Row(
            "report-watched-memory",
            f"{what}, simulated too: memory",
            1024.0,
            "MiB",
            of("watched", "memory_mib"),
        ),
    ]


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), *map(int, sys.argv[2:3]))))
