"""A spot machine that is taken back: its jobs are in the queue again before it ends, and run elsewhere."""

from collections.abc import Callable

from tests.integration.test_life import job_log
from tests.rigs.pools.realpool import settings, until
from updraft.demo.pool import RealPool, Wishes

Pools = Callable[..., RealPool]
# The first run waits to be taken away, the second ends at once; with `trap` it won't be asked to go.
JOB = """\
executable = /bin/sh
arguments = "-c '{trap}test $$([NumJobStarts]) = 0 || exit 0; while :; do sleep 1; done'"
transfer_executable = false
log = jobs.log
request_memory = 800MB
request_disk = 10MB
queue
"""
SPOT = settings(worker={"markets": ["spot"], "flavors": ["small"], "idle_limit": "60s"})


def test_a_notice_gives_the_jobs_back_before_the_machines_end(real_pool: Pools) -> None:
    pool = real_pool(Wishes(settings=SPOT))
    obedient, stubborn = pool.submit(JOB.format(trap="")), pool.submit(JOB.format(trap="trap : TERM; "))
    until(lambda: len(pool.queue("JobStatus == 2")) == 2, 60, "both jobs running")
    taken = [worker["id"] for worker in pool.workers("running")]
    assert len(taken) == 2
    pool.cloud.client().notice(*taken)

    def reasons() -> list[str]:
        found = [s.get("DrainReason", "") for s in pool.slots() if s["UpdraftInstance"] in taken]
        return found if len(found) == 2 and all(found) else []

    for reason in until(reasons, 15, "both machines closed", every=0.2):
        assert reason.startswith("updraft spot-notice: the cloud takes the machine back at ")
    evicted = lambda: {job for kind, job in job_log(pool) if kind == "004"}  # noqa: E731
    until(lambda: evicted() == {f"{obedient}.0", f"{stubborn}.0"}, 25, "both jobs given back", every=0.2)
    until(lambda: len(pool.history(["ClusterId"])) == 2, 60, "both jobs done elsewhere")
    starts = {job["ClusterId"]: job["NumJobStarts"] for job in pool.history(["ClusterId", "NumJobStarts"])}
    assert starts == {obedient: 2, stubborn: 2}
    # Nobody had to wait for a lease, and no schedd lost sight of a job.
    assert not {"022", "024"} & {kind for kind, _ in job_log(pool)}
    ends = {e["subject"]: e["code"] for e in pool.events() if e["kind"] == "gone"}
    assert {ends[machine] for machine in taken} <= {"spot-notice", "powered-off"}
