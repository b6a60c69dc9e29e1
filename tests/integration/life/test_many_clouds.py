"""One controller, three clouds: two local ones with caps and prices of their own, and an EC2 endpoint."""

import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tests.rigs.clouds.ec2site import IMAGE, EC2Site, install
from tests.rigs.pools.realpool import RealPools, until
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig, Quotas, default_flavors
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.clouds.local.process import LocalCloud
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

JOBS = """\
executable = /bin/sleep
arguments = {seconds}
transfer_executable = false
request_cpus = 2
request_memory = 256
request_disk = 20MB
queue {count}
"""
FAR = "10.78.0.1/22"
SETTINGS = """\
[pool]
name = "demo"
job_lease = "5m"
announce = "1s"

[clouds.near]
driver = "local"
endpoint = "{near}"
prices = {{ medium = 0.05 }}
limits = {{ machines = 2 }}

[clouds.far]
driver = "local"
endpoint = "{far}"
credential_file = "/etc/updraft/far.token"
prices = {{ medium = 0.07 }}

[clouds.amazon]
driver = "ec2"
endpoint = "{ec2}"
region = "eu-west-1"
flavors = ["t3.medium"]
prices = {{ "t3.medium" = 0.10 }}

[classes.worker]
image = {{ near = "{image}", far = "{image}", amazon = "{ami}" }}
flavors = ["medium", "t3.medium"]
idle_limit = "6s"
boot_deadline = "3m"
head_gone_after = "5m"

[limits]
machines = 12

[timings]
cycle = "1s"
cooldown_first = "5s"
"""


@dataclass(frozen=True, slots=True)
class Clouds:
    """The pool on the near cloud, the far one with a machine that isn't updraft's, and the endpoint."""

    pool: RealPool
    far: LocalCloud
    foreign: str
    ec2: EC2Site

    def used(self) -> Counter[str]:
        """How many machines the controller has had of each cloud, by the launches in its ledger."""
        launches = [event for event in self.pool.events() if event["kind"] == "launch"]
        counts: Counter[str] = Counter()
        for event in launches:
            counts[event["detail"]["cloud"]] += len(event["detail"]["ids"])
        return counts

    def standing(self) -> list[dict[str, Any]]:
        """Machines of the pool that the controller shows."""
        return list(self.pool.show("machines")["machines"])


def joined_by_a_cable(near: LocalCloud, far: LocalCloud) -> None:
    """A cable between the networks of two clouds, and a road over it for what is in them."""
    ours, theirs = "172.31.255.1", "172.31.255.2"
    in_near = ["nsenter", "--target", str(near.pid), "--net", "--"]
    in_far = ["nsenter", "--target", str(far.pid), "--net", "--"]
    near_net, far_net = "10.77.0.0/22", "10.78.0.0/22"
    for command in (
        [*in_near, *f"ip link add road type veth peer name road netns {far.pid}".split()],
        [*in_near, *f"ip address add {ours}/30 dev road".split()],
        [*in_far, *f"ip address add {theirs}/30 dev road".split()],
        [*in_near, *["ip", "link", "set", "road", "up"]],
        [*in_far, *["ip", "link", "set", "road", "up"]],
        [*in_near, *f"ip route add {far_net} via {theirs}".split()],
        [*in_far, *f"ip route add {near_net} via {ours}".split()],
        [*in_near, "sysctl", "-qw", "net.ipv4.ip_forward=1"],
        [*in_far, "sysctl", "-qw", "net.ipv4.ip_forward=1"],
    ):
        subprocess.run(command, check=True, capture_output=True)


@pytest.fixture(scope="module")
def clouds(module_pool: RealPools, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clouds]:
    """All of it, up and asked once."""
    home = tmp_path_factory.mktemp("clouds")
    pool = module_pool(Wishes())
    flavors = tuple(replace(f, prices={"on-demand": None}) for f in default_flavors())
    stacks = {pool.image.name: tuple(map(str, pool.image.layers))}
    config = LocalCloudConfig(
        images=stacks, flavors=flavors, network=FAR, quotas=Quotas(3, 6), listed_after_end=3600
    )
    far = process.start(config, home / "far", tie_to_parent=True)
    ec2 = None
    try:
        joined_by_a_cable(pool.cloud, far)
        ec2 = EC2Site(home / "endpoint.log", pool.cloud, bridged=pool.image.name)
        (foreign,) = far.client().run(
            key="foreign", count=1, image=pool.image.name, flavor="medium", zone="zone-a", market="on-demand"
        )
        text = SETTINGS.format(
            near=pool.cloud.config.endpoint,
            far=config.endpoint,
            ec2=ec2.url,
            image=pool.image.name,
            ami=IMAGE,
        )
        token = far.credential_file.read_text()
        put = "umask 077 && mkdir -p /etc/updraft && cat > /etc/updraft/far.token"
        pool.on_head("sh", "-ec", put, stdin=token).check_returncode()
        install(pool, text)
        found = Clouds(pool, far, str(foreign["id"]), ec2)
        until(
            lambda: "DescribeInstances" in {call.action for call in ec2.calls()}, 60, "the clouds are asked"
        )
        yield found
    finally:
        if ec2 is not None:
            ec2.close()
        far.stop()


def finished(pool: RealPool, cluster: int) -> list[dict[str, Any]]:
    """The jobs of this cluster that are complete."""
    rows = pool.history(["ClusterId", "NumJobStarts", "JobStatus"])
    return [row for row in rows if row["ClusterId"] == cluster and row["JobStatus"] == 4]


def back_to_zero(clouds: Clouds) -> None:
    until(lambda: not clouds.standing(), 120, "every machine of the pool is gone")


def test_what_the_cheapest_has_no_room_for_is_bought_at_the_next(clouds: Clouds) -> None:
    pool = clouds.pool
    cluster = pool.submit(JOBS.format(seconds=8, count=6))
    theirs = lambda: [slot for slot in pool.slots() if slot["UpdraftCloud"] == "amazon"]  # noqa: E731
    (slot, *_) = until(theirs, 90, "a worker of the EC2 endpoint joins")
    until(lambda: len(finished(pool, cluster)) == 6, 150, "all jobs complete")
    used = clouds.used()
    # Two by the near cloud's cap, two by the far one's quota of three with a stranger in it, and the rest.
    assert (used["near"], used["far"]) == (2, 2)
    assert used["amazon"] >= 1
    assert {job["NumJobStarts"] for job in finished(pool, cluster)} == {1}
    back_to_zero(clouds)
    strangers = [m["id"] for m in clouds.far.client().machines() if m["state"] == "running"]
    assert strangers == [clouds.foreign], "a machine that isn't the pool's is left alone"
    # A machine of the endpoint is known by the id and the image that it has there.
    made = {one["id"] for one in pool.workers()}
    assert slot["UpdraftInstance"] in made
    assert slot["UpdraftImage"] == IMAGE
    calls = clouds.ec2.calls()
    assert sum(call.count for call in calls if call.action == "RunInstances") == used["amazon"]
    assert "TerminateInstances" in {call.action for call in calls}
    until(lambda: clouds.ec2.ask("standing") == [], 20, "the endpoint has no instance left")
    until(lambda: not pool.slots(), 15, "no ghosts in the collector")


@pytest.mark.extended
def test_a_cloud_that_is_away_in_the_middle_costs_no_job(clouds: Clouds) -> None:
    """Other failures of a cloud among several: tests/daemon/test_clouds.py, in virtual time."""
    pool = clouds.pool
    first = pool.submit(JOBS.format(seconds=12, count=4))
    until(lambda: len(pool.queue("JobStatus == 2")) >= 3, 90, "jobs run, on the far cloud too")
    clouds.far.set_faults(Fault(FaultKind.API_DOWN, lasts=15))
    then = pool.submit(JOBS.format(seconds=2, count=4))
    for cluster in (first, then):
        until(lambda: len(finished(pool, cluster)) == 4, 240, f"all jobs of {cluster} are complete")  # noqa: B023
    assert {job["NumJobStarts"] for job in finished(pool, first)} == {1}, "nothing that ran was ended"
    back_to_zero(clouds)
    asked = {e["subject"]: e["detail"]["asked"] for e in pool.events() if e["kind"].startswith("launch")}
    made = Counter(machine["tags"].get("updraft:launch") for machine in clouds.far.client().machines())
    del made[None]  # the stranger's
    assert all(count <= asked[key] for key, count in made.items()), "nothing was made twice"
    assert not {e["kind"] for e in pool.events()} & {"requeue-jobs", "lost"}
