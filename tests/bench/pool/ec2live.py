"""A real pool whose cloud is an EC2 endpoint: jobs come one by one, and `updraft check` finds all in order.

The endpoint is moto's, in the local cloud's network; its instances are machines of that cloud, and the daemon
runs on the head as on any site.
"""

import json
import random
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.pool import live
from tests.bench.rows import Measured, p95, spread
from tests.rigs.clouds.ec2site import FLAVOR, EC2Site, Seen, install, settings
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool, Wishes, bring_up

SINGLES = 20
CHECKS = 5
JOB = """\
executable = /bin/sleep
arguments = 600
transfer_executable = false
request_cpus = 2
request_memory = 512
request_disk = 1024
should_transfer_files = yes
log = {log}
queue
"""


@dataclass(frozen=True, slots=True)
class EC2Story:
    """All that was seen of one run."""

    jobs: tuple[live.Job, ...]
    calls: tuple[Seen, ...]
    check_s: tuple[float, ...]
    findings: tuple[dict[str, Any], ...]


def play(image: Image, folder: Path, say: Callable[[str], None]) -> EC2Story:
    """Bring the pool up, look whether all is in order, submit, and take everything down."""
    precise = {"DEFAULT_USERLOG_FORMAT_OPTIONS": "ISO_DATE SUB_SECOND UTC"}
    pool = bring_up(image, folder, say, Wishes(head_settings=precise))
    site: EC2Site | None = None
    try:
        site = EC2Site(folder / "endpoint.log", pool.cloud, bridged=pool.image.name)
        install(pool, settings(site.url))
        live._wait(lambda: bool(site.calls()), 60, "the daemon asks the endpoint")
        live._wait(lambda: pool.show("status")["daemon"]["acting"], 60, "the controller acts")
        say("Looking whether everything is in order.")
        live._wait(lambda: all(one["state"] == "ok" for one in look(pool)[1]) or None, 30, "all in order")
        looks = [look(pool) for _ in range(CHECKS)]
        say(f"Submitting {SINGLES} jobs one by one, each for a machine of its own ({FLAVOR}).")
        chance = random.Random(live.SEED)
        for number in range(SINGLES):
            pool.submit(JOB.format(log=live.LOG))
            say_count = number + 1
            time.sleep(chance.uniform(2.0, 4.5))
        live._wait(lambda: len(asked(site.calls())) >= say_count, 60, "all machines are asked for")
        return EC2Story(
            tuple(live.parse(pool.on_head("cat", live.LOG).stdout)),
            tuple(site.calls()),
            tuple(took for took, _ in looks),
            tuple(looks[-1][1]),
        )
    finally:
        if site is not None:
            site.close()
        pool.cloud.stop()


def look(pool: RealPool) -> tuple[float, list[dict[str, Any]]]:
    """How long `updraft check` takes on the head, entering its namespaces included, and what it finds."""
    begun = time.perf_counter()
    done = pool.updraft("check", "--json")
    took = time.perf_counter() - begun
    return took, list(json.loads(done.stdout)["findings"])


def asked(calls: "tuple[Seen, ...] | list[Seen]") -> list[float]:
    """When each machine was asked for."""
    return [call.at for call in calls if call.action == "RunInstances" for _ in range(call.count)]


# ------------------------------------------------------------------------------------------------ the rows


def launch_asked(story: EC2Story) -> Measured:
    """From a job's own submit event to the RunInstances call as it reaches the endpoint."""
    jobs = sorted(story.jobs, key=lambda job: job.submitted)
    calls = asked(story.calls)
    if len(calls) != len(jobs):
        raise AssertionError(f"{len(calls)} machines were asked for, {len(jobs)} jobs were submitted")
    waits = [at - job.submitted for job, at in zip(jobs, calls, strict=True)]
    return Measured(p95(waits), {"from_submit_event_s": spread(waits), "all": waits})


def check(story: EC2Story) -> Measured:
    """The slowest of some checks."""
    states = [one["state"] for one in story.findings]
    detail = {
        "check_s": spread(story.check_s),
        "lines": len(states),
        "median_s": statistics.median(story.check_s),
    }
    if set(states) != {"ok"}:
        raise AssertionError([one for one in story.findings if one["state"] != "ok"])
    return Measured(max(story.check_s), detail)
