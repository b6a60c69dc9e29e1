"""The life of jobs on a real pool: from no machine to all done to no machine, and not one job killed."""

import re
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from tests.rigs.pools.controlling import LONG_AT_FIRST
from tests.rigs.pools.realpool import settings, until
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
SECOND = """\
executable = /bin/sleep
arguments = 1
transfer_executable = false
log = jobs.log
request_memory = 200MB
request_disk = 10MB
queue $(howmany)
"""
DRAINED = ("drain", "busy-again")
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


def test_from_no_machine_to_all_jobs_done_to_no_machine(real_pool: Callable[..., RealPool]) -> None:
    pool = real_pool()
    version = pool.on_head("condor_version").stdout
    assert "CondorVersion: 25." in version
    a_whole_life(pool)
    launches = [event for event in pool.events() if event["kind"] == "launch"]
    assert {event["code"] for event in launches} == {"demand"}
    asked = sum(event["detail"]["asked"] for event in launches)
    assert asked == len(pool.workers()), (
        "each machine is explained by a launch, and each launch made its machines"
    )


def test_the_same_with_an_older_release(real_pool: Callable[..., RealPool]) -> None:
    pool = real_pool(suite="trixie")
    assert "CondorVersion: 23.9" in pool.on_head("condor_version").stdout
    a_whole_life(pool)


# The user's own shell submits: a burst that wants several machines, and then a job a second, which keeps some
# of them busy while the others reach their idle limit.
ROUND = """\
condor_submit -terse howmany=6 second.sub >/dev/null || exit 1
for tick in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do
    condor_submit -terse howmany=1 second.sub >/dev/null || exit 1
    sleep 1
done
"""
JOBS_A_ROUND = 6 + 14
MOST_ROUNDS = 16


def test_scaling_in_under_a_stream_of_short_jobs_kills_none(real_pool: Callable[..., RealPool]) -> None:
    pool = real_pool(Wishes(settings=settings(worker={"flavors": ["small"], "idle_limit": "2s"})))
    pool.on_head("sh", "-c", "cat > second.sub", user=USER, stdin=SECOND)
    drained: set[str] = set()
    rounds = 0
    while rounds < 4 or (len(drained) < 2 and rounds < MOST_ROUNDS):  # on a busy machine boots take long
        done = pool.on_head("sh", "-c", ROUND, user=USER, timeout=180)
        assert done.returncode == 0, done.stderr
        rounds += 1
        drained = {event["subject"] for event in pool.events() if event["kind"] in DRAINED}
    assert len(drained) > 1, "fewer than two drains while the stream went on: the test has shown nothing"
    all_done(pool, rounds * JOBS_A_ROUND, 90)
    done_without_harm(pool, rounds * JOBS_A_ROUND)
    nobody_left(pool, 60)


def test_jobs_of_a_worker_that_dies_run_again(real_pool: Callable[..., RealPool]) -> None:
    """Long before their lease is over (5 min here), which is what their shadows would wait for."""
    pool = real_pool(Wishes(settings=settings(worker={"flavors": ["medium"]})))
    pool.submit(MIXED.format(seconds=LONG_AT_FIRST, cpus=1, memory="300MB", count=2))

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

    until(lambda: not ads(), 10, f"condor_status without any ad of {host}")
    until(
        lambda: not pool.queue(f'JobStatus == 2 && regexp("@{victim}@", RemoteHost)'),
        60 - (time.monotonic() - word),
        "the jobs of the dead worker back in the queue",
    )
    all_done(pool, 2, 120)
    # Shadows are the schedd's to count; a job's starts are lost with a shadow that had not told of them yet.
    ended = pool.history(["JobStatus", "ExitCode", "NumShadowStarts", "LastRemoteHost"])
    assert [(job["JobStatus"], job["ExitCode"], job["NumShadowStarts"]) for job in ended] == [(4, 0, 2)] * 2
    assert all(victim not in job["LastRemoteHost"] for job in ended)
    told = stories(pool.events(), [victim])[victim]
    assert in_order(("joined", "gone"), told)
    assert {"requeue-jobs", "forget"} <= set(told)
    assert "drain" not in told


# -------------------------------------------------------------------------- demand, on a pool that they share


@pytest.fixture(scope="module")
def shared(module_pool: Callable[..., RealPool]) -> RealPool:
    return module_pool(Wishes(settings=settings(worker={"flavors": ["small", "medium"]})))


def idle_jobs(pool: RealPool) -> int:
    return int(pool.show("status")["jobs"]["idle"])


def launches(pool: RealPool) -> list[dict[str, Any]]:
    return [event for event in pool.events() if event["kind"] == "launch"]


def looks(pool: RealPool, number: int) -> None:
    """Wait until the daemon has looked so many times more (a look a second)."""
    first = pool.show("status")["daemon"]["looked_at"]
    until(
        lambda: pool.show("status")["daemon"]["looked_at"] >= first + number,
        10 * number,
        f"{number} looks of the daemon",
    )


@pytest.mark.parametrize(
    ("wish", "clause"),
    [
        ("request_memory = 900GB", "Memory"),
        ('requirements = TARGET.Arch == "aarch64"', "aarch64"),
        ("request_cpus = 64", "Cpus"),
    ],
)
def test_a_job_that_fits_no_offer_launches_nothing(shared: RealPool, wish: str, clause: str) -> None:
    before = launches(shared)
    cluster = shared.submit(f"executable = /bin/true\ntransfer_executable = false\n{wish}\nqueue\n")
    try:
        until(lambda: idle_jobs(shared) == 1, 20, "the job seen by the daemon")
        looks(shared, 4)
        assert launches(shared) == before
        told = shared.show("explain", f"{cluster}.0")
        (group,) = told["groups"]
        assert (group["unmet"], group["new"], group["coming"]) == (1, 0, 0)
        assert [reason["code"] for reason in group["held_back"]] == ["no-offer"]
        assert len(group["offers"]) == 4  # two flavors in two zones
        for offer in group["offers"]:
            assert offer["holds"] == 0
            assert any(clause in reason["text"] for reason in offer["fails"]), offer
        assert clause in shared.updraft("explain", f"{cluster}.0").stdout
    finally:
        shared.on_head("condor_rm", str(cluster))
        until(lambda: idle_jobs(shared) == 0, 20, "the job gone from the demand")


LATE = "executable = /bin/sleep\narguments = {seconds}\ntransfer_executable = false\nrequest_memory = 200MB\n"


def test_jobs_that_the_schedd_has_not_made_yet_are_demand(shared: RealPool) -> None:
    before = {machine["id"] for machine in shared.workers()}
    done = len(shared.history(["ClusterId"]))
    shared.submit(LATE.format(seconds=8) + "max_idle = 1\nqueue 5\n")
    until(lambda: idle_jobs(shared) == 5, 10, "all five jobs as demand, though only one is in the queue", 0.2)
    assert len(shared.queue()) < 5
    until(lambda: len(shared.history(["ClusterId"])) == done + 5, 90, "five jobs done", 1)
    new = [machine for machine in shared.workers() if machine["id"] not in before]
    cores = {"small": 1, "medium": 2}
    assert sum(cores[machine["flavor"]] for machine in new) in (5, 6)


def test_jobs_that_the_schedd_will_not_make_now_are_no_demand(shared: RealPool) -> None:
    done = len(shared.history(["ClusterId"]))
    shared.submit(LATE.format(seconds=2) + "max_materialize = 2\nqueue 6\n")
    most = 0

    def ended() -> bool:
        nonlocal most
        most = max(most, idle_jobs(shared))
        return len(shared.history(["ClusterId"])) == done + 6

    until(ended, 90, "six jobs done", 0.2)
    assert 1 <= most <= 2
