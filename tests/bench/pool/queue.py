"""A real schedd with 100,000 idle jobs in 200 groups, asked as the daemon asks it."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from tests.bench.rows import Measured
from updraft.clouds.local.images.image import Image
from updraft.demo.pool import RealPool, Wishes, bring_up

GROUPS = 200
EACH = 500
PER_SUBMIT = 40  # groups in one condor_submit: 20,000 jobs, the most that HTCondor takes at once
JOB = """\
executable = /bin/sleep
transfer_executable = false
arguments = 600
request_cpus = $(Cores)
request_memory = $(Mem)
request_disk = 1024
notification = never
queue {each} Cores, Mem from (
{rows}
)
"""


def submit(pool: RealPool, groups: int = GROUPS) -> None:
    """Two users submit all of it."""
    rows = [f"{1 + number % 4} {500 + 10 * number}" for number in range(groups)]
    for begin in range(0, groups, PER_SUBMIT):
        text = JOB.format(each=EACH, rows="\n".join(rows[begin : begin + PER_SUBMIT]))
        user = "alice" if begin // PER_SUBMIT % 2 else "bob"
        done = pool.on_head("condor_submit", "-terse", "-", user=user, stdin=text, timeout=300)
        if done.returncode != 0:
            raise RuntimeError(f"condor_submit failed: {done.stderr.strip()[-300:]}")


def measure(image: Image, folder: Path, say: Callable[[str], None]) -> Measured:
    """A pool without a controller; what the daemon would ask is asked by a program on its head."""
    settings = {"MAX_JOBS_PER_OWNER": "200000", "MAX_JOBS_SUBMITTED": "200000"}
    pool = bring_up(image, folder, say, Wishes(controller=False, head_settings=settings))
    try:
        say(f"Submitting {GROUPS * EACH:,} jobs.")
        submit(pool)
        say("Asking the schedd.")
        seen = ask(pool)
    finally:
        pool.cloud.stop()
    if (seen["idle"], seen["groups"]) != (GROUPS * EACH, GROUPS):
        raise AssertionError(f"the schedd showed {seen['idle']} jobs in {seen['groups']} groups")
    # What else the daemon asks must not wait for the schedd, nor may its own threads.
    slowest_other = max(seen["other_reads_meanwhile_s"]["all"])
    if slowest_other > 1.0 or seen["longest_standstill_s"] > 0.5:
        raise AssertionError(f"the loop was blocked meanwhile: {json.dumps(seen)}")
    return Measured(max(seen["cold_s"], *seen["warm_s"]), seen)


def ask(pool: RealPool) -> dict[str, Any]:
    """Run the program on the head, with the Python path that `updraft` itself has there."""
    program = (resources.files("tests.bench.pool") / "ask_schedd.py").read_text()
    path = "PYTHONPATH=/opt/updraft/src:/opt/updraft/lib"
    # A file, not `-c`: the children are started anew from the program that they belong to.
    pool.on_head("sh", "-c", "cat > /root/ask_schedd.py", stdin=program)
    done = pool.on_head("env", path, "python3", "-P", "/root/ask_schedd.py", timeout=180)
    if done.returncode != 0:
        raise RuntimeError(f"asking failed: {done.stderr.strip()[-500:]}")
    return dict(json.loads(done.stdout))
