"""Machines that others take and give: a spot machine is taken back, others are let go and taken in."""

from collections.abc import Callable

import pytest

from tests.integration.life.test_life import job_log
from tests.integration.life.test_sources import unknown
from tests.rigs.pools.controlling import (
    ALIVE,
    DONE_ONCE,
    await_done,
    await_running,
    events,
    let_end,
    of_class,
    outcomes,
    second_schedd,
    sh,
    waiters,
)
from tests.rigs.pools.realpool import settings, until
from updraft.clouds.base import TAG_POOL
from updraft.demo.pool import RealPool, Wishes

pytestmark = pytest.mark.long

Pools = Callable[..., RealPool]
# The first run waits to be taken away, the second ends at once; with `trap` it won't be asked to go.
JOB = """\
executable = /bin/sh
arguments = "-c '{trap}test $$([NumJobStarts]) = 0 || exit 0; while :; do sleep 1; done'"
transfer_executable = false
log = jobs.log
request_memory = 800MB
request_disk = 10MB
requirements = TARGET.UpdraftClass == "spot"
queue
"""
WORKER = 'TARGET.UpdraftClass == "worker"'
SPOT = """
[classes.spot]
image = "{image}"
markets = ["spot"]
flavors = ["small"]
idle_limit = "60s"
"""


@pytest.fixture(scope="module")
def pool(module_pool: Pools) -> RealPool:
    return module_pool(Wishes(settings=settings(more=SPOT)))


def test_a_notice_gives_the_jobs_back_before_the_machines_end(pool: RealPool) -> None:
    obedient, stubborn = pool.submit(JOB.format(trap="")), pool.submit(JOB.format(trap="trap : TERM; "))
    until(lambda: len(pool.queue("JobStatus == 2")) == 2, 60, "both jobs running")
    taken = [worker["id"] for worker in of_class(pool, "spot", "running")]
    assert len(taken) == 2
    pool.cloud.client().notice(*taken)

    def reasons() -> list[str]:
        found = [s.get("DrainReason", "") for s in pool.slots() if s["UpdraftInstance"] in taken]
        return found if len(found) == 2 and all(found) else []

    for reason in until(reasons, 15, "both machines closed", every=0.2):
        assert reason.startswith("updraft spot-notice: the cloud takes the machine back at ")
    evicted = lambda: {job for kind, job in job_log(pool) if kind == "004"}  # noqa: E731
    until(lambda: evicted() == {f"{obedient}.0", f"{stubborn}.0"}, 25, "both jobs given back", every=0.2)
    await_done(pool, [obedient, stubborn], 60)
    starts = {job["ClusterId"]: job["NumJobStarts"] for job in pool.history(["ClusterId", "NumJobStarts"])}
    assert starts == {obedient: 2, stubborn: 2}
    # Nobody had to wait for a lease, and no schedd lost sight of a job.
    assert not {"022", "024"} & {kind for kind, _ in job_log(pool)}

    def ends() -> list[str]:
        found = {e["subject"]: e["code"] for e in pool.events() if e["kind"] == "gone"}
        return [found[machine] for machine in taken] if set(taken) <= set(found) else []

    assert set(until(ends, 40, "both have ended by their cloud's word")) <= {"spot-notice", "powered-off"}


def test_a_machine_is_let_go_and_taken_in_again(pool: RealPool) -> None:
    job = pool.submit(waiters(1, "let-go", requirements=WORKER))
    await_running(pool, job)
    [machine] = [m["id"] for m in of_class(pool, "worker", "running")]
    known = lambda: {row["id"]: row for row in pool.show("machines")["machines"]}  # noqa: E731

    let_go = pool.updraft("disown", machine, "--wait")
    assert let_go.returncode == 0, let_go.stderr
    [instance] = [m for m in pool.workers() if m["id"] == machine]
    assert TAG_POOL not in instance["tags"]
    assert machine not in known()
    assert len(pool.queue(f"ClusterId == {job} && JobStatus == 2")) == 1, "its job runs on"

    nobody = pool.updraft("adopt", "i-nobody", "--class", "worker", "--wait")
    assert nobody.returncode == 1
    assert "no slot of this pool" in nobody.stdout

    taken = pool.updraft("adopt", machine, "--wait")
    assert taken.returncode == 0, taken.stdout + taken.stderr
    row = known()[machine]
    assert (row["class"], row["phase"]) == ("worker", "joined")
    let_end(pool, "let-go")
    await_done(pool, [job], 60)
    assert outcomes(pool, job) == [DONE_ONCE]
    until(lambda: not of_class(pool, "worker", *ALIVE), 60, "idle, it goes like any other")


def test_a_worker_started_by_hand_with_its_user_data_is_adopted(pool: RealPool) -> None:
    printed = pool.updraft("userdata", "worker", "worker", "--flavor", "small", "--paste", "--with-token")
    assert printed.returncode == 0, printed.stderr
    assert "updraft adopt INSTANCE-ID --class worker" in printed.stderr
    [made] = pool.cloud.client().run(
        key="by-hand", count=1, image=pool.image.name, flavor="small", zone="zone-a", market="on-demand",
        tags={"Name": "by-hand"}, user_data=printed.stdout.encode(),
    )  # fmt: skip
    machine = made["id"]
    until(lambda: [s for s in pool.slots() if s.get("UpdraftInstance") == machine], 60, "it has joined")
    until(
        lambda: events(pool, "unexplained-slot"), 20, "the controller says that it is no machine of its own"
    )
    taken = pool.updraft("adopt", machine, "--wait")
    assert taken.returncode == 0, taken.stdout + taken.stderr
    gone = lambda: machine not in {m["id"] for m in pool.workers(*ALIVE)}  # noqa: E731
    until(gone, 60, "idle for its limit, it goes")


def test_a_spot_machine_that_ends_unannounced_gives_its_job_back_though_a_schedd_is_silent_for_good(
    pool: RealPool,
) -> None:
    """The last of this file: nothing is taken away by other rules from here on."""
    second = second_schedd(pool)
    seen = lambda: second in " ".join(pool.show("status")["sources"])  # noqa: E731
    until(seen, 30, "the controller knows of the second schedd")
    sh(pool, "pkill -STOP -f '[l]ocal-name two'")
    until(lambda: "schedd" in unknown(pool), 60, "it is silent")
    cluster = pool.submit(waiters(1, "elsewhere", requirements='TARGET.UpdraftClass == "spot"'))
    await_running(pool, cluster)
    hosts = lambda: [  # noqa: E731
        job["RemoteHost"].split("@")[1] for job in pool.queue(f"ClusterId == {cluster} && JobStatus == 2")
    ]
    (victim,) = hosts()
    pool.cloud.client().crash(victim)
    until(lambda: [host for host in hosts() if host != victim], 60, "its job runs elsewhere")
    let_end(pool, "elsewhere")
    await_done(pool, [cluster], 60)
    assert [e["code"] for e in events(pool, "requeue-jobs") if e["subject"] == victim]
