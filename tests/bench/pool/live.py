"""A real pool on the local cloud grows by single jobs and by a burst, and shrinks to nothing again."""

import datetime
import json
import random
import re
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.rows import Measured, p95, spread
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool, Wishes, bring_up

SINGLES = 20
BURST = 6
SEED = 7
IDLE_LIMIT = 10.0
LOG = "/home/alice/bench.log"
PROGRAM = "/home/alice/until"

# The timings are updraft's own defaults; each machine has one core, so that each job needs another one.
SETTINGS = """\
[pool]
name = "{pool}"
job_lease = "5m"

[clouds.{cloud}]
driver = "local"
endpoint = "{endpoint}"

[classes.worker]
image = "{image}"
flavors = ["small"]
idle_limit = "10s"
boot_deadline = "3m"
head_gone_after = "5m"

[limits]
machines = 40
"""
UNTIL = """\
#!/bin/sh
left=$(( $1 - $(date +%s) ))
[ $left -le 0 ] || exec sleep $left
"""
JOB = """\
executable = {program}
arguments = {end}
request_cpus = 1
request_memory = 128
request_disk = 1024
should_transfer_files = yes
log = {log}
queue {count}
"""
READ_LEDGER = """\
import json, sqlite3
rows = sqlite3.connect("file:/var/lib/updraft/ledger.sqlite?mode=ro", uri=True)
read = lambda table: [json.loads(doc) for (doc,) in rows.execute("SELECT doc FROM " + table)]
print(json.dumps({"launches": read("launches"), "machines": read("machines")}))
"""
EVENT = re.compile(
    r"^(?P<code>000|001|005) \((?P<job>\d+\.\d+)\.\d+\) (?P<at>\d{4}-\d\d-\d\d[T ][\d:.]+)Z? (?P<text>.*)$",
    re.M,
)
HOST = re.compile(r"<([\d.]+):")
EVENTS = {"000": "submitted", "001": "started", "005": "ended"}


@dataclass(frozen=True, slots=True)
class Job:
    """A job by its event log: when it was in the queue, where it ran, and when it ended (POSIX seconds)."""

    id: str
    submitted: float
    address: str = ""
    ended: float | None = None


@dataclass(frozen=True, slots=True)
class Story:
    """All that was seen of one run of the pool."""

    singles: tuple[Job, ...]
    burst: tuple[Job, ...]
    calls: tuple[float, ...]  # when each condor_submit of a single job was begun
    launches: tuple[Mapping[str, Any], ...]
    machines: tuple[Mapping[str, Any], ...]
    instances: tuple[Mapping[str, Any], ...]
    status_s: tuple[float, ...]


def play(image: Image, folder: Path, say: Callable[[str], None]) -> Story:
    """Bring the pool up, submit, wait for the end of all machines, and take everything down again."""
    precise = {"DEFAULT_USERLOG_FORMAT_OPTIONS": "ISO_DATE SUB_SECOND UTC"}
    pool = bring_up(image, folder, say, Wishes(settings=SETTINGS, head_settings=precise))
    try:
        _wait(lambda: pool.show("status")["daemon"]["acting"], 60, "the controller acts")
        pool.on_head("sh", "-c", f"cat > {PROGRAM} && chmod 755 {PROGRAM}", user="alice", stdin=UNTIL)
        say(f"Submitting {SINGLES} jobs one by one, and {BURST} at once.")
        chance = random.Random(SEED)
        first = time.time()
        # All end late enough to find each its own machine, and not all at the same moment.
        ends = [first + 4 * SINGLES + 30 + 1.5 * number for number in range(SINGLES + 1)]
        calls = []
        for end in ends[:-1]:
            calls.append(time.time())
            pool.submit(JOB.format(program=PROGRAM, end=int(end), log=LOG, count=1))
            time.sleep(chance.uniform(2.0, 4.5))
        pool.submit(JOB.format(program=PROGRAM, end=int(ends[-1]), log=LOG, count=BURST))
        _wait(lambda: len(pool.workers("running")) >= SINGLES + BURST, 90, "all machines run")
        statuses = tuple(_status_times(pool))
        say("All machines are there; the jobs end, and the machines go.")
        _wait(lambda: not pool.workers("pending", "running", "stopping"), 240, "all machines are gone")
        return _story(pool, tuple(calls), statuses)
    finally:
        pool.cloud.stop()


def _status_times(pool: RealPool, times: int = 7) -> list[float]:
    """`updraft status` on the head, entering its namespaces included."""
    taken = []
    for _ in range(times):
        begun = time.perf_counter()
        pool.updraft("status").check_returncode()
        taken.append(time.perf_counter() - begun)
    return taken


def _story(pool: RealPool, calls: tuple[float, ...], statuses: tuple[float, ...]) -> Story:
    jobs = parse(pool.on_head("cat", LOG).stdout)
    read = pool.on_head("python3", "-c", READ_LEDGER)
    ledger = json.loads(read.stdout)
    order = sorted(jobs, key=lambda job: tuple(map(int, job.id.split("."))))
    return Story(
        singles=tuple(order[:SINGLES]),
        burst=tuple(order[SINGLES:]),
        calls=calls,
        launches=tuple(sorted(ledger["launches"], key=lambda launch: launch["asked_at"])),
        machines=tuple(ledger["machines"]),
        instances=tuple(pool.workers()),
        status_s=statuses,
    )


def parse(log: str) -> list[Job]:
    """The jobs of an event log. ValueError where a job was started twice: then nothing can be told apart."""
    found: dict[str, dict[str, Any]] = {}
    for event in EVENT.finditer(log):
        job = found.setdefault(event["job"], {})
        what = EVENTS[event["code"]]
        if what in job:
            raise ValueError(f"job {event['job']} was {what} twice")
        moment = datetime.datetime.fromisoformat(event["at"].replace(" ", "T"))
        job[what] = moment.replace(tzinfo=datetime.UTC).timestamp()
        if what == "started" and (host := HOST.search(event["text"])):
            job["address"] = host[1]
    return [
        Job(name, job["submitted"], job.get("address", ""), job.get("ended")) for name, job in found.items()
    ]


def _wait(condition: Callable[[], bool], seconds: float, what: str) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            raise TimeoutError(f"{what}: not within {seconds:.0f} s")
        time.sleep(0.5)


# ------------------------------------------------------------------------------------------------ the rows


def launch_requested(story: Story) -> Measured:
    """From a job's own submit event to the launch for it, as the ledger has it.

    The n-th job is paired with the n-th machine that was asked for: there are exactly as many.
    """
    asked = _asked(story)
    waits = [at - job.submitted for job, at in zip(story.singles, asked, strict=False)]
    whole = [at - call for call, at in zip(story.calls, asked, strict=False)]
    detail = {
        "from_submit_event_s": spread(waits),
        "from_begin_of_condor_submit_s": spread(whole),
        "all": waits,
    }
    return Measured(p95(waits), detail)


def _asked(story: Story) -> list[float]:
    asked = [launch["asked_at"] for launch in story.launches for _ in range(launch["count"])]
    wanted = len(story.singles) + len(story.burst)
    if len(asked) != wanted:
        raise AssertionError(f"{len(asked)} machines were asked for, {wanted} jobs were submitted")
    return asked


def slot_joined(story: Story) -> Measured:
    """From the launch to the daemon's first look that saw the slot: up to a cycle later than it was there."""
    alone = set(_asked(story)[: len(story.singles)])
    boots = [
        (m["requested_at"], m["joined_at"] - m["requested_at"]) for m in story.machines if m["joined_at"]
    ]
    if len(boots) < len(story.singles) + len(story.burst):
        raise AssertionError(f"only {len(boots)} machines joined")
    groups = {
        "one_by_one_s": [took for at, took in boots if at in alone],
        "at_once_s": [took for at, took in boots if at not in alone],
    }
    took = [seconds for _, seconds in boots]
    detail: dict[str, Any] = {name: spread(values) for name, values in groups.items() if values}
    return Measured(
        statistics.median(took), {**detail, "all_s": spread(took), "seen_by": "the daemon's look"}
    )


def machine_gone(story: Story) -> Measured:
    """From the end of a machine's last job and its idle limit to the cloud's own word that it is gone."""
    last: dict[str, float] = {}
    for job in (*story.singles, *story.burst):
        if job.ended is None:
            raise AssertionError(f"job {job.id} has not ended")
        last[job.address] = max(job.ended, last.get(job.address, 0.0))
    gone = {one["address"]: one["times"]["terminated"] for one in story.instances}
    waits = [gone[address] - ended - IDLE_LIMIT for address, ended in last.items()]
    if len(waits) != len(gone):
        raise AssertionError(f"{len(gone)} machines, but jobs ran on {len(waits)} of them")
    return Measured(
        p95(waits), {"after_idle_limit_s": spread(waits), "idle_limit_s": IDLE_LIMIT, "all": waits}
    )
