"""A pool on an EC2 endpoint: from condor_submit through the EC2 API and cloud-init to output, and to zero.

The endpoint's instances are machines of the local cloud: `tests/rigs/clouds/ec2server.py`. The head
reaches it as any head reaches its cloud: by address, with the credentials of a profile.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.rigs.clouds.ec2site import IMAGE, EC2Site, install, settings
from tests.rigs.pools.realpool import RealPools, until
from updraft.demo.pool import USER, RealPool, Wishes

COUNT = 3
JOBS = f"""\
executable = /bin/sh
arguments = "-c 'sleep 3; echo made by $(Process)'"
transfer_executable = false
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
output = out.$(Process)
log = jobs.log
request_cpus = 1
request_memory = 256
request_disk = 20MB
queue {COUNT}
"""


@dataclass(frozen=True, slots=True)
class Site:
    """A real pool and the EC2 endpoint that it buys at."""

    pool: RealPool
    ec2: EC2Site


@pytest.fixture
def site(real_pool: RealPools, tmp_path: Path) -> Iterator[Site]:
    """The controller is put on the EC2 endpoint as an owner would: configuration, credentials, restart."""
    pool = real_pool(Wishes())
    ec2 = EC2Site(tmp_path / "endpoint.log", pool.cloud, bridged=pool.image.name)
    try:
        install(pool, settings(ec2.url))
        until(lambda: "DescribeInstances" in {call.action for call in ec2.calls()}, 40, "the cloud is asked")
        yield Site(pool, ec2)
    finally:
        ec2.close()


def test_from_submit_through_the_ec2_api_to_the_output_and_back_to_zero(site: Site) -> None:
    pool, ec2 = site.pool, site.ec2
    pool.submit(JOBS)
    (slot, *_) = until(pool.slots, 60, "a worker joins")
    until(lambda: len(pool.history(["ClusterId"])) == COUNT, 120, "all jobs complete")
    for process in range(COUNT):
        assert pool.on_head("cat", f"out.{process}", user=USER).stdout == f"made by {process}\n"
    assert {job["NumJobStarts"] for job in pool.history(["NumJobStarts"])} == {1}

    until(lambda: not pool.workers("pending", "running", "stopping"), 90, "back to zero")
    made = {one["id"] for one in pool.workers()}
    assert slot["UpdraftInstance"] in made, "a machine is known by the id that the endpoint gave it"
    assert {slot["UpdraftCloud"], slot["UpdraftImage"]} == {"cloud", IMAGE}
    calls = ec2.calls()
    launches = [call for call in calls if call.action == "RunInstances"]
    assert sum(call.count for call in launches) == len(made)
    assert "TerminateInstances" in {call.action for call in calls}
    until(lambda: ec2.ask("standing") == [], 20, "the endpoint has no instance left")
    until(lambda: not pool.slots(), 15, "no ghosts in the collector")
    kinds = {event["kind"] for event in pool.events()}
    assert "launch" in kinds
    assert not kinds & {"requeue", "lost"}


def test_an_instance_that_dies_under_a_job_gives_it_back(site: Site) -> None:
    pool = site.pool
    pool.submit(JOBS.replace("sleep 3", "sleep 20").replace(f"queue {COUNT}", "queue 1"))

    def starts() -> int:
        """As the job's own log has them."""
        log = pool.on_head("cat", "jobs.log", user=USER).stdout
        return len(re.findall(r"^001 ", log, re.MULTILINE))

    until(starts, 60, "the job runs")
    (first,) = pool.workers("running")
    pool.cloud.client().crash(first["id"])
    until(lambda: starts() == 2, 60, "the job runs again")
    kinds = {event["kind"] for event in pool.events() if event["subject"] == first["id"]}
    assert {"forget", "requeue-jobs", "gone"} <= kinds
    until(lambda: len(pool.history(["ClusterId"])) == 1, 60, "the job is complete")
    assert [job["ExitCode"] for job in pool.history(["ExitCode"])] == [0]
    assert pool.on_head("cat", "out.0", user=USER).stdout == "made by 0\n"
