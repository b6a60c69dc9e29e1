"""The life of jobs on a real pool: from no machine to all done to no machine, and not one job killed."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.rigs.pools.controlling import LONG_AT_FIRST, await_done, let_end, waiters
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.base import TAG_POOL
from updraft.demo.pool import USER, RealPool, Wishes

MIXED = """\
executable = /bin/sh
arguments = "-c 'sleep {seconds}; echo made by $(Process); hostname > where'"
transfer_executable = false
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
output = out.$(Cluster).$(Process)
transfer_output_files = where
transfer_output_remaps = "where = where.$(Cluster).$(Process)"
log = jobs.log
request_cpus = {cpus}
request_memory = {memory}
request_disk = 20MB
queue {count}
"""
# What a job's log says when something else than its own end ended it: evicted, shadow exception, held,
# remote error, disconnected, reconnect failed.
KILLED = frozenset({"004", "007", "012", "021", "022", "024"})


def job_log(pool: RealPool) -> list[tuple[str, str]]:
    """(event number, job id) of each event in the user's log."""
    text = pool.on_head("cat", "jobs.log", user=USER).stdout
    found = re.findall(r"^(\d{3}) \((\d+)\.(\d+)\.\d+\)", text, re.MULTILINE)
    return [(number, f"{int(cluster)}.{int(process)}") for number, cluster, process in found]


def done_without_harm(pool: RealPool, count: int) -> None:
    """All of so many jobs ran once, from start to end, and the log tells of no other end."""
    jobs = pool.history(["ClusterId", "ProcId", "JobStatus", "ExitCode", "NumJobStarts", "JobRunCount"])
    assert len(jobs) == count
    assert {(j["JobStatus"], j["ExitCode"], j["NumJobStarts"], j["JobRunCount"]) for j in jobs} == {
        (4, 0, 1, 1)
    }
    events = job_log(pool)
    assert not [event for event in events if event[0] in KILLED]
    ids = {f"{j['ClusterId']}.{j['ProcId']}" for j in jobs}
    for number in ("000", "001", "005"):
        assert Counter(job for kind, job in events if kind == number) == Counter(ids)


def all_done(pool: RealPool, count: int, deadline: float) -> None:
    """Wait until so many jobs have left the queue."""
    until(lambda: len(pool.history(["ClusterId"])) >= count, deadline, f"{count} jobs done", every=1)


def nobody_left(pool: RealPool, deadline: float) -> None:
    """Wait until each machine has been terminated and the pool knows of none."""
    until(lambda: not pool.workers("pending", "running", "stopping"), deadline, "all machines terminated")
    until(lambda: not pool.slots(), 10, "the collector without slots")
    until(lambda: not pool.show("machines")["machines"], 10, "updraft without machines")
    masters = pool.on_head("condor_status", "-master", "-af", "Name").stdout.split()
    assert len(masters) == 1, f"masters besides the head's: {masters}"


def stories(events: Iterable[dict[str, Any]], ids: Iterable[str]) -> dict[str, list[str]]:
    """The kinds of event of each machine, in order."""
    kinds: dict[str, list[str]] = {one: [] for one in ids}
    for event in events:
        if event["subject"] in kinds:
            kinds[event["subject"]].append(event["kind"])
    return kinds


def in_order(wanted: Iterable[str], kinds: Iterable[str]) -> bool:
    """Do the wanted ones occur in this order, whatever is between them?"""
    rest = iter(kinds)
    return all(one in rest for one in wanted)


def a_whole_life(pool: RealPool) -> None:
    """From zero machines to all jobs done to zero machines."""
    assert pool.workers() == []
    assert pool.slots() == []
    pool.submit(MIXED.format(seconds=3, cpus=1, memory="300MB", count=10))
    pool.submit(MIXED.format(seconds=5, cpus=4, memory="3GB", count=2))
    all_done(pool, 12, 90)
    nobody_left(pool, 60)
    done_without_harm(pool, 12)
    outputs = pool.on_head(
        "sh", "-c", "cat out.*.* | sort | uniq -c; cat where.*.* | wc -l", user=USER
    ).stdout
    assert re.findall(r"(\d+) made by (\d+)", outputs) == [
        ("2" if number in "01" else "1", number) for number in "0123456789"
    ]
    assert outputs.split()[-1] == "12"
    machines = pool.workers()
    assert 1 < len(machines) <= 8
    told = stories(pool.events(), (machine["id"] for machine in machines))
    for story in told.values():
        assert in_order(("joined", "drain", "terminate", "gone"), story), told
    what_was_used(pool, 12, len(machines))


def what_was_used(pool: RealPool, jobs: int, machines: int) -> None:
    """The records have each machine, and the user's jobs on them."""
    seen = pool.show("usage", "--from", "2026-01-01")
    (total,) = seen["totals"]
    assert total["machine_days"] >= machines
    assert total["jobs"] >= jobs
    assert 0 < total["used_core_hours"] <= total["paid_core_hours"]
    assert total["doubtful_core_hours"] == 0
    users = {row["name"].partition("@")[0] for row in seen["rows"] if row["kind"] == "user"}
    assert users == {USER}


def launches(pool: RealPool) -> list[dict[str, Any]]:
    return [event for event in pool.events() if event["kind"] == "launch"]


# As an image is whose logs have been taken out, folders and all, before it was made.
NO_LOGS = "#cloud-config\nbootcmd: [[rm, -rf, /var/log/condor]]\n"


@pytest.fixture(scope="module")
def shared(module_pool: Callable[..., RealPool]) -> RealPool:
    return module_pool(Wishes(settings=settings(worker={"idle_limit": "3s", "layers": [NO_LOGS]})))


def test_from_no_machine_to_all_jobs_done_to_no_machine(shared: RealPool) -> None:
    """The first of this file: nothing has been in its pool yet."""
    pool = shared
    version = pool.on_head("condor_version").stdout
    assert "CondorVersion: 25." in version
    a_whole_life(pool)
    asked_for = launches(pool)
    assert {event["code"] for event in asked_for} == {"demand"}
    asked = sum(event["detail"]["asked"] for event in asked_for)
    assert asked == len(pool.workers()), (
        "each machine is explained by a launch, and each launch made its machines"
    )


def test_the_same_with_an_older_release(real_pool: Callable[..., RealPool]) -> None:
    pool = real_pool(suite="trixie")
    assert "CondorVersion: 23.9" in pool.on_head("condor_version").stdout
    a_whole_life(pool)


def test_jobs_of_a_worker_that_dies_run_again(shared: RealPool) -> None:
    """Long before their lease is over (5 min here), which is what their shadows would wait for."""
    pool = shared
    until(lambda: not pool.workers("pending", "running", "stopping"), 60, "no machine is there")
    wish = "requirements = TARGET.TotalSlotCpus == 2\nqueue"
    text = MIXED.format(seconds=LONG_AT_FIRST, cpus=1, memory="300MB", count=2).replace("queue", wish)
    cluster = pool.submit(text)

    def running() -> list[dict[str, Any]]:
        found = pool.queue("JobStatus == 2")
        return found if len(found) == 2 else []

    jobs = until(running, 60, "two jobs running")
    (victim,) = {job["RemoteHost"].split("@")[1] for job in jobs}
    assert [machine["id"] for machine in pool.workers("running")] == [victim]
    (host,) = {slot["Machine"] for slot in pool.slots()}
    pool.cloud.client().crash(victim)
    until(lambda: [m for m in pool.workers("terminated") if m["id"] == victim], 10, "the cloud's word")
    word = time.monotonic()

    def ads() -> list[str]:
        constraint = f'Machine == "{host}"'
        return pool.on_head(
            "condor_status", "-any", "-af", "MyType", "Name", "-constraint", constraint
        ).stdout.split()

    # The cloud is asked for it by its id, twice, 10 s apart.
    until(lambda: not ads(), 25, f"condor_status without any ad of {host}")
    until(
        lambda: not pool.queue(f'JobStatus == 2 && regexp("@{victim}@", RemoteHost)'),
        60 - (time.monotonic() - word),
        "the jobs of the dead worker back in the queue",
    )
    until(lambda: not pool.queue(f"ClusterId == {cluster}"), 120, "both are done")
    # Shadows are the schedd's to count; a job's starts are lost with a shadow that had not told of them yet.
    rows = pool.history(["ClusterId", "JobStatus", "ExitCode", "NumShadowStarts", "LastRemoteHost"])
    ended = [row for row in rows if row["ClusterId"] == cluster]
    assert [(job["JobStatus"], job["ExitCode"], job["NumShadowStarts"]) for job in ended] == [(4, 0, 2)] * 2
    assert all(victim not in job["LastRemoteHost"] for job in ended)
    told = stories(pool.events(), [victim])[victim]
    assert in_order(("joined", "gone"), told)
    assert {"requeue-jobs", "forget"} <= set(told)
    assert "drain" not in told


def idle_jobs(pool: RealPool) -> int:
    return int(pool.show("status")["jobs"]["idle"])


def looks(pool: RealPool, number: int) -> None:
    """Wait until the daemon has looked so many times more (a look a second)."""
    first = pool.show("status")["daemon"]["looked_at"]
    until(
        lambda: pool.show("status")["daemon"]["looked_at"] >= first + number,
        10 * number,
        f"{number} looks of the daemon",
    )


FITS_NOWHERE = {
    "request_memory = 900GB": ("Memory", "memory"),
    'requirements = TARGET.Arch == "aarch64"': ("aarch64", "aarch64"),
    "request_cpus = 64": ("Cpus", "64 cpus"),
}
"""Jobs by the clause that no offer fulfils, and by what a person is told of it."""


def test_jobs_that_fit_no_offer_launch_nothing(shared: RealPool) -> None:
    before = launches(shared)
    clusters = {
        shared.submit(f"executable = /bin/true\ntransfer_executable = false\n{wish}\nqueue\n"): said
        for wish, said in FITS_NOWHERE.items()
    }
    until(lambda: idle_jobs(shared) == len(clusters), 20, "the jobs seen by the daemon")
    looks(shared, 4)
    assert launches(shared) == before
    for cluster, (clause, words) in clusters.items():
        (group,) = shared.show("explain", f"{cluster}.0")["groups"]
        assert (group["unmet"], group["new"], group["coming"]) == (1, 0, 0)
        assert [reason["code"] for reason in group["held_back"]] == ["no-offer"]
        assert len(group["offers"]) == 6  # three flavors in two zones
        for offer in group["offers"]:
            assert offer["holds"] == 0
            assert any(clause in reason["text"] for reason in offer["fails"]), offer
        assert words in shared.updraft("explain", f"{cluster}.0").stdout


def test_a_machine_whose_tag_is_removed_keeps_its_job_and_is_named(shared: RealPool) -> None:
    """Its cloud lists it no more; asked by its id, it has it."""
    pool = shared
    cluster = pool.submit(waiters(1, "tagged-again"))

    def hosts() -> list[str]:
        return [job["RemoteHost"] for job in pool.queue(f"ClusterId == {cluster} && JobStatus == 2")]

    (host,) = until(hosts, 60, "the job runs")
    machine = host.split("@")[1]
    tags = next(one["tags"] for one in pool.workers("running") if one["id"] == machine)
    pool.cloud.client().tag([machine], {TAG_POOL: None})

    def named() -> bool:
        return any(one["code"] == "untagged" and machine in one["text"] for one in pool.events())

    until(named, 40, "it is named")
    looks(pool, 3)
    assert hosts() == [host]
    assert pool.slots(), "and its ads are there"
    pool.cloud.client().tag([machine], {TAG_POOL: tags[TAG_POOL]})
    let_end(pool, "tagged-again")
    await_done(pool, [cluster], 60)
    assert [
        one["NumJobStarts"]
        for one in pool.history(["ClusterId", "NumJobStarts"])
        if one["ClusterId"] == cluster
    ] == [1]
    until(lambda: machine not in [one["id"] for one in pool.workers("running")], 90, "it ends like any other")
