"""A burst from no machine to a hundred: a real pool on the local cloud, and as many jobs at once.

`python -m tests.bench.pool.burst 10` does the same with ten, and prints what it measured as JSON.
"""

import json
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.pool import footprint, live
from tests.bench.rows import Measured, Row, spread
from updraft.act.consoles import boot_failure
from updraft.clouds.local.config import Quotas
from updraft.clouds.local.images.image import Image
from updraft.clouds.local.images.layers import DEFAULT_STORE
from updraft.demo.pool import USER, RealPool, Wishes, bring_up, find_or_build

MACHINES = 100
PORT = 7000
HOME = f"/home/{USER}"
LOG = f"{HOME}/burst.log"
LONGEST = 1500.0  # seconds for all to join
ENDING = 300.0  # seconds for all to go

# The timings are updraft's own defaults, but for the age at which a collector's silence counts: a pool that
# has just been made would let every late machine pass.
SETTINGS = """\
[pool]
name = "{pool}"
job_lease = "5m"

[clouds.{cloud}]
driver = "local"
endpoint = "{endpoint}"

[classes.worker]
image = "{image}"
flavors = ["small"]
idle_limit = "10s"
head_gone_after = "20m"

[limits]
{limits}

[timings]
collector_age = "20s"
"""
# Jobs wait at the gate until all have come: none ends early, and leaves its machine to another one's job. A
# connection that nobody writes to costs nothing.
GATE = """\
import os, socket
server = socket.create_server(("", {port}), backlog=512)
server.settimeout(0.5)
came, held = 0, []
while True:
    try:
        held.append(server.accept()[0])
        came += 1
    except TimeoutError:
        pass
    with open("came.new", "w") as file:
        file.write(str(came))
    os.replace("came.new", "came")
    if os.path.exists("open"):
        for one in held:
            one.sendall(b"go\\n")
            one.close()
        held = []
"""
WAIT = """\
#!/bin/bash
exec 3<>/dev/tcp/$1/$2 && read -r word <&3 && [ "$word" = go ]
"""
JOB = """\
executable = {home}/wait.sh
arguments = {address} {port}
request_cpus = 1
request_memory = 128
request_disk = 1024
should_transfer_files = yes
log = {log}
queue {count}
"""


@dataclass(frozen=True, slots=True)
class Story:
    """All that was seen of one burst. Times are POSIX seconds, memory is in MiB."""

    submitted: float
    came: float
    memory_before: float
    memory_lowest: float
    memory_then: float
    footprint: Mapping[str, Any]
    jobs: tuple[live.Job, ...]
    launches: tuple[Mapping[str, Any], ...]
    machines: tuple[Mapping[str, Any], ...]
    instances: tuple[Mapping[str, Any], ...]
    boot_failures: Mapping[str, str]


def play(image: Image, folder: Path, say: Callable[[str], None], machines: int = MACHINES) -> Story:
    """Bring the pool up, submit, wait until every job is at work, measure, and let all of it end."""
    wishes = Wishes(
        settings=SETTINGS,
        limits=f"machines = {machines}",
        quotas=Quotas(machines + 1, machines + 2),
        head_settings={"DEFAULT_USERLOG_FORMAT_OPTIONS": "ISO_DATE SUB_SECOND UTC"},
    )
    pool = bring_up(image, folder, say, wishes)
    try:
        _wait(lambda: pool.show("status")["daemon"]["acting"], 60, "the controller acts")
        _open_a_gate(pool)
        return _burst(pool, machines, say)
    finally:
        pool.cloud.stop()


def _open_a_gate(pool: RealPool) -> None:
    for name, text in (("gate.py", GATE.format(port=PORT)), ("wait.sh", WAIT)):
        done = pool.on_head("sh", "-c", f"cat >{name} && chmod 755 {name}", user=USER, stdin=text)
        done.check_returncode()
    script = "setsid python3 gate.py </dev/null >/dev/null 2>&1 &"
    pool.on_head("sh", "-c", script, user=USER).check_returncode()


def _burst(pool: RealPool, machines: int, say: Callable[[str], None]) -> Story:
    address = next(one["address"] for one in pool.cloud.client().machines() if one["id"] == pool.head)
    say(f"Submitting {machines} jobs at once, each of which wants a machine.")
    before, begun = footprint.available(), time.time()
    pool.submit(JOB.format(home=HOME, address=address, port=PORT, log=LOG, count=machines))
    lowest = [before]

    def all_came() -> bool:
        lowest.append(footprint.available())
        return int(pool.on_head("cat", f"{HOME}/came").stdout or 0) >= machines

    _wait(all_came, LONGEST, f"{machines} jobs run at once", pool)
    came = time.time()
    say(f"All are at work, after {came - begun:.0f} s.")
    time.sleep(10)  # what a boot leaves to be ended has ended
    then, sizes = footprint.available(), _sizes(pool)
    pool.on_head("touch", f"{HOME}/open", user=USER).check_returncode()
    _wait(lambda: not pool.workers("pending", "running", "stopping"), ENDING, "all machines are gone")
    say("All machines are gone.")
    ledger = json.loads(pool.on_head("python3", "-c", live.READ_LEDGER).stdout)
    workers = pool.workers()
    return Story(
        begun, came, before, min(lowest), then, sizes,
        jobs=tuple(live.parse(pool.on_head("cat", LOG).stdout)),
        launches=tuple(ledger["launches"]),
        machines=tuple(ledger["machines"]),
        instances=tuple(workers),
        boot_failures=_boot_failures(pool, workers),
    )  # fmt: skip


def _sizes(pool: RealPool) -> dict[str, Any]:
    """What the workers take, and the head for itself."""
    found = footprint.by_machine(footprint.look(), pool.cloud.pid)
    workers = {one["pid"] for one in pool.workers("running")}
    return footprint.summed({pid: processes for pid, processes in found.items() if pid in workers})


def _boot_failures(pool: RealPool, workers: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Why boots failed, in the machines' own words."""
    client = pool.cloud.client()
    said = {one["id"]: boot_failure(client.console(one["id"])) for one in workers}
    return {id_: why for id_, why in said.items() if why}


def _wait(condition: Callable[[], bool], seconds: float, what: str, pool: RealPool | None = None) -> None:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            seen = pool.events(30) if pool else ""
            raise TimeoutError(f"{what}: not within {seconds:.0f} s; {seen}")
        time.sleep(1.0)


# ------------------------------------------------------------------------------------------------ the rows


def joined(story: Story) -> Measured:
    """Machines that joined, ran a job of their own to its end, and were the only ones that were launched."""
    used = {job.address for job in story.jobs if job.ended is not None}
    there = {str(one["id"]) for one in story.machines if one["joined_at"]}
    count = sum(one["id"] in there and one["address"] in used for one in story.instances)
    left = sum(one["state"] != "terminated" for one in story.instances)
    detail = {"jobs": len(story.jobs), "instances": len(story.instances), "left": left, **steps(story)}
    return Measured(count, detail)


def failed(story: Story) -> Measured:
    """Machines whose boot failed by their own word, and those that the ledger never saw join."""
    never = {str(one["id"]): _end(one) for one in story.machines if not one["joined_at"]}
    known = {str(one["id"]) for one in story.machines}
    strangers = {one["id"]: "not in the ledger" for one in story.instances if one["id"] not in known}
    every = {**strangers, **never, **story.boot_failures}
    return Measured(len(every), {"why": every})


def _end(machine: Mapping[str, Any]) -> str:
    end = machine.get("end") or {}
    return f"{end.get('code', 'never joined')}: {end.get('text', '')}"


def steps(story: Story) -> dict[str, Any]:
    """Where the seconds went, from the submission on."""
    asked = [one["asked_at"] - story.submitted for one in story.launches for _ in range(one["count"])]
    on = [
        one["times"]["running"] - one["times"]["pending"]
        for one in story.instances
        if "running" in one["times"]
    ]
    boots = [one["joined_at"] - one["requested_at"] for one in story.machines if one["joined_at"]]
    return {
        "all_joined_s": round(last_join(story), 1),
        "all_at_work_s": round(story.came - story.submitted, 1),
        "launches": len(story.launches),
        "asked_after_s": spread(asked),
        "asked_to_started_s": spread(on),
        "asked_to_joined_s": spread(boots),
    }


def last_join(story: Story) -> float:
    """Seconds from the submission to the look that saw the last slot. ValueError where none joined."""
    return max(float(one["joined_at"]) for one in story.machines if one["joined_at"]) - story.submitted


def memory(story: Story) -> Measured:
    """MiB of the host for each machine at work: what became less available, disks in memory included.

    The head's and the cloud's share of having them is in it.
    """
    count = len(story.instances)
    each = (story.memory_before - story.memory_then) / count
    peak = (story.memory_before - story.memory_lowest) / count
    return Measured(each, {"at_the_peak_mib_each": round(peak, 1), **story.footprint})


def rows(story: Callable[[], Story]) -> list[Row]:
    """The rows of a burst; they take minutes, and a machine for themselves."""
    what = f"a burst from 0 to {MACHINES} real local machines"

    def of(judge: Callable[[Story], Measured]) -> Callable[[], Measured]:
        return lambda: judge(story())

    def seconds() -> Measured:
        return Measured(last_join(story()), steps(story()))

    return [
        Row("burst-100", f"{what}: joined, each with a job of its own", MACHINES, "", of(joined),
            at_least=True, by_name=True),
        Row("burst-100-failed", f"{what}: failed boots", 0, "", of(failed), by_name=True),
        Row("burst-100-seconds", f"{what}: submitted → all joined", None, "s", seconds, by_name=True),
        Row("burst-100-memory", f"{what}: memory for each", None, "MiB", of(memory), by_name=True),
    ]  # fmt: skip


def main() -> None:
    """A burst of as many as the first argument says."""

    def say(what: str) -> None:
        print(time.strftime("%H:%M:%S"), what, file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory(prefix="updraft-burst-") as folder:
        story = play(find_or_build(DEFAULT_STORE, say), Path(folder) / "cloud", say, int(sys.argv[1]))
    told = {judge.__name__: judge(story) for judge in (joined, failed, memory)}
    print(json.dumps({name: [one.value, one.detail] for name, one in told.items()}, indent=1))


if __name__ == "__main__":
    main()
