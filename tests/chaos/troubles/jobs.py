"""Jobs of all kinds, and what befalls them. All honest ones write to one event log."""

from tests.chaos.judged.judging import LEASE
from tests.chaos.troubles.script import Happening
from tests.chaos.troubles.world import JOB_LOG, Does, End, World, drawn

JOB = f"""\
executable = /bin/sh
arguments = "-c '{{program}}'"
transfer_executable = false
request_cpus = {{cpus}}
request_memory = 200MB
request_disk = 10MB
job_lease_duration = {LEASE:.0f}
log = {JOB_LOG}
{{more}}
queue {{count}}
"""
QUEUED = 30  # jobs at most at a time
ON_HOLD, SUSPENDED = 5, 7  # as JobStatus has it


def _submit(world: World, count: int, program: str, cpus: int = 1, more: str = "") -> None:
    waiting = len(world.pool.queue('Owner == "alice"'))
    if waiting < QUEUED:
        world.submit(JOB.format(count=count, program=program, cpus=cpus, more=more), count)


def short(world: World, one: Happening) -> End | None:
    """A few of some seconds."""
    draw = drawn(one)
    count, seconds, cpus = draw.randint(1, 5), draw.choice((1, 2, 4, 8)), draw.choice((1, 1, 1, 2))
    _submit(world, count, f"sleep {seconds}", cpus)
    return None


def long(world: World, one: Happening) -> End | None:
    """Some that are longer than most of what happens."""
    draw = drawn(one)
    _submit(world, draw.randint(1, 3), f"sleep {draw.choice((25, 45))}", draw.choice((1, 2)))
    return None


def ignore_sigterm(world: World, one: Happening) -> End | None:
    """Some that don't go when they are asked to."""
    seconds = drawn(one).choice((5, 15))
    loop = f"trap : TERM; end=$(($(date +%s) + {seconds})); while test $(date +%s) -lt $end; do sleep 1; done"
    _submit(world, 2, loop)
    return None


def made_late(world: World, one: Happening) -> End | None:
    """A cluster whose jobs the schedd makes a few at a time."""
    _submit(world, 6, "sleep 3", more="max_materialize = 2")
    return None


def _sure(command: str, job: str, state: int) -> str:
    """A command after which the job isn't in this state any more, for certain: a schedd may be silent."""
    return f'{command} || {{ state=$(condor_q {job} -af JobStatus) && test "$state" != {state}; }}'


def suspended(world: World, one: Happening) -> End | None:
    """A running one that stands still for a while."""
    job = world.a_running_job(one)
    if job is None:
        return None
    world.head("condor_suspend", job)
    world.note(one, job=job)
    return lambda: world.sh(_sure(f"condor_continue {job}", job, SUSPENDED))


def held(world: World, one: Happening) -> End | None:
    """A running one that its owner holds, and releases."""
    job = world.a_running_job(one)
    if job is None:
        return None
    world.note(one, job=job)
    world.head("condor_hold", job)
    return lambda: world.sh(_sure(f"condor_release {job}", job, ON_HOLD))


def removed(world: World, one: Happening) -> End | None:
    """A running one that its owner removes."""
    job = world.a_running_job(one)
    if job is not None:
        world.note(one, job=job)
        world.head("condor_rm", job)
    return None


DEEDS: dict[str, Does] = {
    "jobs-short": short,
    "jobs-long": long,
    "jobs-that-ignore-sigterm": ignore_sigterm,
    "jobs-made-late": made_late,
    "job-suspended": suspended,
    "job-held": held,
    "job-removed": removed,
}
