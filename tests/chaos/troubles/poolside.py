"""What HTCondor's daemons, and its users, do to those who look after a pool."""

import time
from pathlib import Path

from tests.chaos.troubles.script import Happening
from tests.chaos.troubles.world import HOSTILE, Does, End, World
from tests.rigs.pools import hostile

# As the kernel cuts them: a process's name has 15 letters at most.
COLLECTOR, NEGOTIATOR, SCHEDD = "condor_collecto", "condor_negotiat", "condor_schedd"
STARTD, SHADOW = "condor_startd", "condor_shadow"
LONG_QUEUE = """\
executable = /bin/true
transfer_executable = false
requirements = TARGET.Nowhere =?= 1
queue 10000
"""
# One submission makes 20,000 jobs at most, and these take most of a minute: nobody waits for them.
FIVE_TIMES = """
cat >~/long.sub
(for n in 1 2 3 4 5; do condor_submit -terse ~/long.sub; done) </dev/null >/dev/null 2>&1 &
"""


def stopped(daemon: str) -> Does:
    """A daemon of the head stands still for a while."""

    def does(world: World, one: Happening) -> End | None:
        world.note(one)
        world.sh(f"pkill -STOP -o -x {daemon}")
        return lambda: world.sh(f"pkill -CONT -x {daemon} || :")

    return does


def killed(daemon: str) -> Does:
    """A daemon of the head dies, and its master starts another one."""

    def does(world: World, one: Happening) -> End | None:
        world.note(one)
        world.sh(f"pkill -KILL -o -x {daemon}")
        return None

    return does


def startd(signal: str) -> Does:
    """The startd of a machine stands still for a while, or dies."""

    def does(world: World, one: Happening) -> End | None:
        machine = world.victim(one)
        if machine is None:
            return None
        world.note(one, machine=machine)
        world.in_machine(machine, f"pkill -{signal} -o -x {STARTD} || :")
        if signal == "KILL":
            return None

        def goes_on() -> None:
            world.mend_machine(machine, f"pkill -CONT -x {STARTD} || :")
            world.befallen(machine, time.time())

        return goes_on

    return does


def shadow(signal: str) -> Does:
    """A shadow stands still for a while, or dies."""

    def does(world: World, one: Happening) -> End | None:
        job = world.a_running_job(one)
        if job is None:
            return None
        hosts = world.head("condor_q", job, "-af", "RemoteHost").split()
        machine = next((m.id for m in world.running() if any(m.id in host for host in hosts)), "")
        world.note(one, job=job, machine=machine)
        # `condor_shadow CLUSTER.PROC --schedd=…`
        world.sh(f"pkill -{signal} -f '^condor_shadow.* {job} ' || :")
        if signal == "KILL":
            return None
        return lambda: world.sh(f"pkill -CONT -f '^condor_shadow.* {job} ' || :")

    return does


def hostile_ads(world: World, one: Happening) -> End | None:
    """Jobs and slots with whatever a user or a worker may write."""
    world.note(one)
    program = Path(hostile.__file__).read_text()
    world.head("python3", "-", str(one.draw), "200", "100", user=HOSTILE, stdin=program)
    return lambda: world.sh(f"condor_rm {HOSTILE} || :; condor_rm -forcex {HOSTILE} || :")


def long_queue(world: World, one: Happening) -> End | None:
    """Fifty thousand jobs that nobody can run."""
    world.note(one)
    world.head("sh", "-c", FIVE_TIMES, user=HOSTILE, stdin=LONG_QUEUE)
    return lambda: world.sh(f"pkill -u {HOSTILE} -x condor_submit; condor_rm {HOSTILE} || :")


DEEDS: dict[str, Does] = {
    "collector-stopped": stopped(COLLECTOR),
    "collector-killed": killed(COLLECTOR),
    "negotiator-stopped": stopped(NEGOTIATOR),
    "negotiator-killed": killed(NEGOTIATOR),
    "schedd-stopped": stopped(SCHEDD),
    "schedd-killed": killed(SCHEDD),
    "startd-stopped": startd("STOP"),
    "startd-killed": startd("KILL"),
    "shadow-stopped": shadow("STOP"),
    "shadow-killed": shadow("KILL"),
    "hostile-ads": hostile_ads,
    "long-queue": long_queue,
}
