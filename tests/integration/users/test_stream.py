"""Machines are taken away under a stream of short jobs, and not one of these is killed."""

from collections.abc import Callable

from tests.integration.life.test_life import all_done, done_without_harm, nobody_left
from tests.rigs.pools.realpool import settings
from updraft.demo.pool import USER, RealPool, Wishes

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
    while rounds < 2 or (len(drained) < 2 and rounds < MOST_ROUNDS):  # on a busy machine boots take long
        done = pool.on_head("sh", "-c", ROUND, user=USER, timeout=180)
        assert done.returncode == 0, done.stderr
        rounds += 1
        drained = {event["subject"] for event in pool.events() if event["kind"] in DRAINED}
    assert len(drained) > 1, "fewer than two drains while the stream went on: the test has shown nothing"
    all_done(pool, rounds * JOBS_A_ROUND, 90)
    done_without_harm(pool, rounds * JOBS_A_ROUND)
    nobody_left(pool, 60)
