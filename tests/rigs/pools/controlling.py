"""What the tests of the controller's life share: its process on the head, its file, machines and jobs."""

import json
import shlex
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.rigs.pools.realpool import patience, until
from updraft.clouds.base import TAG_CLASS
from updraft.demo.pool import USER, RealPool

FILE = "/etc/updraft/updraft.toml"
LOG = "/var/log/updraft.log"
STATE = "/var/lib/updraft"
SERVICE = "/run/updraft-machine/updraft"  # .main is its process, .keep the one that starts it again
ALIVE = ("pending", "running", "stopping")
RUNNING = 2  # a job's JobStatus
LONG_AT_FIRST = "$$([ifThenElse(MY.NumJobStarts>0,1,60)])"  # seconds: a job that is ended is soon done again
JOB = """\
executable = /bin/sleep
arguments = {seconds}
transfer_executable = false
request_cpus = {cpus}
request_memory = 256MB
request_disk = 10MB
requirements = {requirements}
log = /home/{user}/$(Cluster).log
queue {count}
"""

SECOND_SCHEDD = """\
SCHEDD_TWO = $(SCHEDD)
SCHEDD_TWO_ARGS = -local-name two
TWO.SCHEDD_NAME = two
TWO.SCHEDD_LOG = $(LOG)/SchedLog.two
TWO.SPOOL = $(SPOOL)/two
TWO.SCHEDD_ADDRESS_FILE = $(SPOOL)/two/.address
TWO.SCHEDD_DAEMON_AD_FILE = $(SPOOL)/two/.classad
DAEMON_LIST = $(DAEMON_LIST) SCHEDD_TWO
DC_DAEMON_LIST = +SCHEDD_TWO
"""


def sh(pool: RealPool, script: str, timeout: float = 60.0, stdin: str | None = None) -> str:
    """What a shell on the head prints; it has to succeed."""
    done = pool.on_head("sh", "-c", script, timeout=timeout, stdin=stdin)
    assert done.returncode == 0, f"{script}: {done.stdout}{done.stderr}"
    return done.stdout


def sleepers(
    count: int, seconds: float | str, *, requirements: str = "true", cpus: int = 1, user: str = USER
) -> str:
    """A description of jobs that sleep."""
    return JOB.format(count=count, seconds=seconds, requirements=requirements, cpus=cpus, user=user)


def waiters(
    count: int, until_told: str, *, requirements: str = "true", cpus: int = 1, user: str = USER
) -> str:
    """A description of jobs that run until `let_end` says so, with this word."""
    job = sleepers(count, 0, requirements=requirements, cpus=cpus, user=user)
    wait = f"\"-c 'until test -e /run/{until_told}; do sleep 0.3; done'\""
    return job.replace(
        "executable = /bin/sleep\narguments = 0\n", f"executable = /bin/sh\narguments = {wait}\n"
    )


def second_schedd(pool: RealPool) -> str:
    """The name of another schedd of the head, which is started now."""
    conf = "/etc/condor/config.d/95-two.conf"
    assert pool.on_head("sh", "-c", f"cat >{conf}", stdin=SECOND_SCHEDD).returncode == 0
    sh(pool, "install -d -o condor -g condor /var/spool/condor/two && condor_reconfig")
    names = lambda: [  # noqa: E731
        name for name in sh(pool, "condor_status -schedd -af Name").split() if name.startswith("two@")
    ]
    return until(names, 40, "the second schedd is in the collector")[0]


def let_end(pool: RealPool, until_told: str) -> None:
    """Let the jobs of this word end, on all machines that there are."""
    for machine in pool.cloud.client().machines():
        if machine["state"] == "running":
            in_machine(pool, machine["id"], "touch", f"/run/{until_told}")


# ------------------------------------------------------------------------------------------- the daemon


def looks(pool: RealPool, count: int, each: Callable[[], None] = lambda: None) -> None:
    """Wait until the daemon has begun and ended so many looks more; `each` is called again and again."""
    known: set[float] = set()

    def looked() -> bool:
        each()
        known.add(pool.show("status")["daemon"]["looked_at"])
        return len(known) > count + 1  # the first was before, the second may have begun before

    until(looked, 20 * count, f"the controller has looked {count} times")


def kill_service(pool: RealPool) -> None:
    """End the daemon and what would start it again with -9, as a head's sudden death does."""
    sh(pool, f"kill -9 $(cat {SERVICE}.keep); kill -9 $(cat {SERVICE}.main); rm -f {SERVICE}.*")


def start_service(pool: RealPool) -> None:
    """Start the daemon as the head does."""
    sh(pool, "systemctl start updraft")


def acting(pool: RealPool) -> bool:
    """True while the daemon has looked within the last seconds, and acts."""
    status = pool.show("status")
    return bool(status["daemon"]["alive"] and status["daemon"]["acting"])


def start_and_wait(pool: RealPool) -> None:
    """Start the daemon and wait until it acts."""
    start_service(pool)
    until(lambda: acting(pool), 40, "the controller acts")


def daemon_pid(pool: RealPool) -> int:
    """The service's process, as the head sees it."""
    return int(sh(pool, f"cat {SERVICE}.main"))


def run_killer(pool: RealPool, *arguments: str, deadline: float = 40.0) -> None:
    """Run the daemon of `killer.py` on the head until it has died at its step."""
    text = Path(__file__).with_name("killer.py").read_text()
    assert pool.on_head("sh", "-c", "cat > /root/killer.py", stdin=text).returncode == 0
    words, deadline = " ".join(shlex.quote(word) for word in arguments), deadline * patience()
    script = (
        "export PYTHONPATH=/opt/updraft/src:/opt/updraft/lib; "
        f"timeout {deadline:g} python3 /root/killer.py {words} >>{LOG} 2>&1; echo $?"
    )
    code = sh(pool, script, deadline + 10).strip()
    assert code == "137", f"the daemon should have died at {arguments[0]!r}, and ended with {code}"
    until(lambda: not processes(pool, "multiprocessing"), 5, "the killed daemon's children are gone")


def processes(pool: RealPool, pattern: str) -> list[str]:
    """Command lines on the head that hold `pattern`."""
    lines = sh(pool, "ps -ww -eo pid,args").splitlines()
    return [line.strip() for line in lines if pattern in line]


def edit(pool: RealPool, before: str, after: str) -> None:
    """Change the head's updraft.toml; the text that goes must be there exactly once."""
    text = sh(pool, f"cat {FILE}")
    assert text.count(before) == 1, f"{before!r} is in the settings {text.count(before)} times"
    write(pool, text.replace(before, after))


def write(pool: RealPool, text: str) -> None:
    """Replace the head's updraft.toml."""
    assert pool.on_head("sh", "-c", f"cat >{FILE}", stdin=text).returncode == 0


def reload(pool: RealPool, code: str) -> str:
    """Have the daemon read its file again; the text of the event `code` that it answers with."""
    known = len(events(pool, code))
    sh(pool, "systemctl reload updraft")
    found = until(lambda: events(pool, code)[known:], 15, f"the daemon says {code}")
    return str(found[-1]["text"])


def events(pool: RealPool, code: str = "") -> list[dict[str, Any]]:
    """Events of the ledger, the oldest first: all, or those whose reason or kind is `code`."""
    lines = pool.updraft("events", "--last", "5000", "--json").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    return [event for event in found if code in ("", event["kind"], event["code"])]


# ------------------------------------------------------------------------------------ machines and jobs


def of_class(pool: RealPool, name: str, *states: str) -> list[dict[str, Any]]:
    """The cloud's machines of a worker class, ended ones too; `states` narrows them down."""
    return [m for m in pool.workers(*states) if m["tags"].get(TAG_CLASS) == name]


def slot_of(pool: RealPool, machine: str) -> dict[str, Any] | None:
    """The machine's slot as the collector shows it."""
    return next((slot for slot in pool.slots() if slot["UpdraftInstance"] == machine), None)


def runs(pool: RealPool, cluster: int, count: int = 1) -> bool:
    """True while so many jobs of a cluster run."""
    return len(pool.queue(f"ClusterId == {cluster} && JobStatus == {RUNNING}")) == count


def await_running(pool: RealPool, cluster: int, count: int = 1, deadline: float = 60.0) -> None:
    """Wait until so many jobs of a cluster are executing.

    One whose input is still under way has the status of running too, and begins anew where its shadow ends
    then: there is nothing yet that a new shadow could go on with.
    """
    executing = "JobCurrentStartExecutingDate >= JobCurrentStartDate"
    these = f"ClusterId == {cluster} && JobStatus == {RUNNING} && {executing}"
    until(lambda: len(pool.queue(these)) == count, deadline, f"{count} jobs of cluster {cluster} execute")


def await_done(pool: RealPool, clusters: Iterable[int], deadline: float) -> None:
    """Wait until these clusters have left the queue."""
    either = " || ".join(f"ClusterId == {cluster}" for cluster in clusters)
    until(lambda: not pool.queue(either), deadline, f"all jobs with {either} are done", every=1)


def outcomes(pool: RealPool, cluster: int) -> list[tuple[int, int, int]]:
    """(completed, exit code, starts) of each ended job of a cluster; (4, 0, 1) is done well, exactly once."""
    wanted = ("ClusterId", "ProcId", "JobStatus", "ExitCode", "NumJobStarts")
    rows = [row for row in pool.history(wanted) if row["ClusterId"] == cluster]
    return [(row["JobStatus"], row.get("ExitCode", -1), row.get("NumJobStarts", 0)) for row in rows]


DONE_ONCE = (4, 0, 1)


def disturbed(pool: RealPool, cluster: int, user: str = USER) -> str:
    """What a cluster's event log has of evictions and lost connections; empty where nothing disturbed it."""
    log = sh(pool, f"cat /home/{user}/{cluster}.log")
    bad = ("004", "021", "022", "024")  # evicted, error of the shadow or starter, disconnected, not again
    return "".join(line + "\n" for line in log.splitlines() if line.startswith(bad))


def starts_and_ends(pool: RealPool, cluster: int, user: str = USER) -> list[str]:
    """What a cluster's event log has of starts (001), evictions (004) and ends (005), sorted.

    Where a schedd is killed it may lose the latest counts of its jobs' starts; their logs have them.
    """
    log = sh(pool, f"cat /home/{user}/{cluster}.log").splitlines()
    return sorted(line[:3] for line in log if line.startswith(("001 ", "004 ", "005 ")))


def in_machine(pool: RealPool, machine: str, *argv: str, stdin: str | None = None) -> str:
    """What a command in any machine of the cloud prints; it has to succeed."""
    from updraft.clouds.local.process import run_in

    done: subprocess.CompletedProcess[str] = run_in(pool.cloud, machine, argv, stdin=stdin)
    assert done.returncode == 0, f"{argv}: {done.stdout}{done.stderr}"
    return done.stdout
