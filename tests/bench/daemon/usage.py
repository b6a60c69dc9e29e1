"""The records of what was used: a report of 1,000,000 machine-days, and what a cycle pays for them.

`python -m tests.bench.daemon.usage report|cycle FOLDER` prints what it measured as JSON. The report is a
whole process, `updraft usage --by user --month`, on a ledger with 33,333 machines on each of 30 days, half of
them with two users; the last day isn't over. The cycles are those of `whole`, 1,000 machines of which every
second one is full of jobs.
"""

import json
import random
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from tests.bench.daemon import whole
from tests.bench.rows import Measured, Row, spread
from updraft.app import serving
from updraft.condor.process.judge import Judge
from updraft.core.model.used import Booking
from updraft.core.settings import DAY
from updraft.garbage import look_seldom
from updraft.ledger import Ledger
from updraft.ledger.usage_sums import sum_up

MACHINES, DAYS, FIRST = 33_333, 30, 20_758  # the first of November 2026
USERS, GROUPS, CLOUDS, FLAVORS = 200, 20, 10, 10
RUNS, CYCLES = 5, 30
TOML = """\
[pool]
name = "crowd"
state_dir = "{folder}"

[clouds.c1]
driver = "fake"

[classes.general]
image = "image-1"
"""


def fill(folder: Path) -> float:
    """Write the records; how many seconds the last of the sums of a day took."""
    took = 0.0
    with Ledger(folder / "ledger.sqlite") as ledger, ledger._writing() as rows:
        write_machines(rows, MACHINES, FIRST)
        for day in range(FIRST, FIRST + DAYS):
            write_day(rows, day, MACHINES)
            if day < FIRST + DAYS - 1:
                begun = time.perf_counter()
                sum_up(rows, day, over=True)
                took = time.perf_counter() - begun
        ledger.book(Booking((FIRST + DAYS) * DAY - 1))
    return took


def write_machines(rows: sqlite3.Connection, number: int, day: int) -> None:
    """So many machines, on ten clouds, of ten flavors and five classes, asked for on that day."""
    rows.executemany(
        "INSERT INTO usage_machines (id, cloud, instance, pool, region, zone, flavor, market, image, "
        "class, annex, owner, cores, memory, gpus, asked) "
        "VALUES (?, ?, ?, 'crowd', '', 'z1', ?, 'on-demand', 'img', ?, '', '', 8, 16384, 0, ?)",
        [
            (n, f"c{n % CLOUDS}", f"i-{n:08x}", f"flavor-{n % FLAVORS}", f"class-{n % 5}", day * DAY)
            for n in range(1, number + 1)
        ],
    )


def write_day(rows: sqlite3.Connection, day: int, number: int) -> None:
    """A whole day of each of the machines up to this number, half of them with two users."""
    rng = random.Random(day)
    begin, end = day * DAY, (day + 1) * DAY
    machines, users = [], []
    for n in range(1, number + 1):
        shares = [(rng.randrange(USERS), rng.randrange(1, 5)) for _ in range(1 + n % 2)]
        parts = {f"user{who}@pool": cores * DAY for who, cores in shares}
        machines.append((day, n, begin, end, DAY, DAY, DAY, sum(parts.values())))
        users += [(day, n, who, f"group{hash(who) % GROUPS}", used) for who, used in parts.items()]
    rows.executemany(
        "INSERT INTO usage_days VALUES (?, ?, ?, ?, ?, ?, ?, 0, 0, ?, 0, 7.2, 0, 3, 0, 0.3, 'EUR', 'site', "
        "'', NULL, '', '')",
        machines,
    )
    rows.executemany("INSERT INTO usage_users VALUES (?, ?, ?, ?, ?, 0, 2, 0)", users)


def report(folder: Path) -> dict[str, Any]:
    """Whole processes, by user and by cloud, and the size of the file."""
    sums = fill(folder)
    (folder / "updraft.toml").write_text(TOML.format(folder=folder))
    found: dict[str, Any] = {"sum_up_a_day_s": round(sums, 3)}
    for by in ("user", "cloud"):
        command = [sys.executable, "-m", "updraft.cli.main", "--config", str(folder / "updraft.toml")]
        command += ["usage", "--by", by, "--month", "2026-11", "--format", "json"]
        taken = []
        for _ in range(RUNS):
            begun = time.perf_counter()
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            taken.append(time.perf_counter() - begun)
            document = json.loads(done.stdout)
            if sum(row["machine_days"] for row in document["totals"]) != MACHINES * DAYS:
                raise AssertionError("the report has other records than were written")
        found[f"by_{by}_s"] = spread(taken)
    found["ledger_mib"] = round((folder / "ledger.sqlite").stat().st_size / 2**20, 1)
    return found


def cycle(folder: Path) -> dict[str, Any]:
    """Cycles with the records timed within each: what they add to the rest, in per cent."""
    with ExitStack() as stack:
        ledger = stack.enter_context(Ledger(folder / whole.LEDGER))
        judge = stack.enter_context(Judge())
        pool = whole.CrowdPool()
        stack.callback(pool.close)
        now = time.time()
        with ledger.together():
            drivers = {name: whole.cloud(name, ledger, now) for name in whole.crowd.CLOUDS}
        controller = whole.daemon(ledger, drivers, pool, judge)
        spent = [0.0]
        _timed(controller._usage, "look", spent)
        _timed(ledger, "book", spent)
        look_seldom()
        controller.cycle()
        first, taken, shares = spent[0], [], []
        for _ in range(CYCLES):
            spent[0] = 0.0
            took, _ = whole.timed(controller.cycle)
            taken.append(took)
            shares.append(100 * spent[0] / (took - spent[0]))
    return {
        "first_s": round(first, 4),
        "cycle_s": spread(taken),
        "share_percent": spread(shares),
        "median_percent": round(statistics.median(shares), 2),
    }


def _timed(owner: Any, name: str, spent: list[float]) -> None:
    real: Callable[..., Any] = getattr(owner, name)

    def timed(*arguments: Any) -> Any:
        took, value = whole.timed(real, *arguments)
        spent[0] += took
        return value

    setattr(owner, name, timed)


def in_a_process(what: str, folder: Path) -> dict[str, Any]:
    """What was measured. Raises RuntimeError where that failed."""
    folder.mkdir()
    command = [sys.executable, "-m", __name__, what, str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip()[-1000:])
    return dict(json.loads(done.stdout))


def rows(folder: Path) -> list[Row]:
    """The rows of the records."""

    def of_report() -> Measured:
        seen = in_a_process("report", folder / "usage-report")
        return Measured(seen["by_user_s"]["median"], seen)

    def of_cycle() -> Measured:
        seen = in_a_process("cycle", folder / "usage-cycle")
        return Measured(seen["median_percent"], seen)

    what = "`updraft usage --by user --month`, 1,000,000 machine-days"
    slower = "what a cycle pays for the records of what was used, 1,000 machines"
    return [
        Row("usage-report", what, 1.0, "s", of_report),
        Row("usage-cycle", f"{slower}: of the rest of it", 5.0, "%", of_cycle),
    ]


if __name__ == "__main__":
    serving.start_log("json")
    print(json.dumps({"report": report, "cycle": cycle}[sys.argv[1]](Path(sys.argv[2]))))
