"""One job of the first user's, from its submission to its output: the proof that a head is one."""

import json
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from updraft.errors import ProblemFound
from updraft.provision.setup.host import Host

_JOB = """\
{universe}
executable = {program}
arguments = 1 self-test
output = out
error = err
log = log
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
request_cpus = 1
request_memory = 128MB
request_disk = 100MB
queue
"""
_ASK = 0.5
_PATIENCE = 120.0
DONE, HELD, REMOVED = 4, 5, 3


@dataclass(frozen=True, slots=True)
class Ran:
    """The job that ran: its id, the seconds that it took from its submission, and where it was."""

    job: str
    seconds: float
    where: str


def run_one(host: Host, user: str, program: str, *, here: bool, deadline: float) -> Ran:
    """Submit the job as `user` and wait for it; `here` runs it on the submit node, without a worker.

    Raises ProblemFound where it isn't done within `deadline` seconds (it stays in the queue then, to be
    looked at), is held, or ends otherwise than it should.
    """
    folder = Path(tempfile.mkdtemp(prefix="updraft-self-test."))
    account = host.account(user)
    if account is not None:
        shutil.chown(folder, account.pw_uid, account.pw_gid)
    begun = host.clock()
    text = _JOB.format(universe="universe = local" if here else "", program=program)
    done = host.run(["condor_submit", "-terse", "-"], user=user, folder=str(folder), stdin=text)
    if done.returncode != 0:
        folder.rmdir()
        raise ProblemFound(f"the self-test's job can't be submitted as {user}: {_line(done.stderr)}")
    job = done.stdout.split()[0]
    _await(host, job, begun + deadline, deadline)
    printed = (folder / "out").read_text(errors="replace") if (folder / "out").exists() else ""
    if "is done" not in printed:
        raise ProblemFound(
            f"the self-test's job {job} ended and printed nothing to {folder}/out; see {folder}"
        )
    shutil.rmtree(folder)
    first = printed.splitlines()[0]
    return Ran(job, host.clock() - begun, first.rpartition(" on ")[2])


def _await(host: Host, job: str, until: float, deadline: float) -> None:
    while (status := _status(host, job)) != DONE:
        if status == HELD:
            why = _line(host.run(["condor_q", job, "-af", "HoldReason"]).stdout)
            raise ProblemFound(f"the self-test's job {job} was held: {why}")
        if status == REMOVED:
            raise ProblemFound(f"the self-test's job {job} was removed")
        if host.clock() > until:
            raise ProblemFound(
                f"the self-test's job {job} isn't done within {deadline:.0f} s: "
                f"`updraft explain {job}` says why"
            )
        host.sleep(_ASK)


def _status(host: Host, job: str) -> int:
    """The job's status in the queue or, once it has left it, in the history; 0 while neither answers."""
    for tool in ("condor_q", "condor_history"):
        done = host.run([tool, job, "-json", "-attributes", "JobStatus"], timeout=30)
        if done.returncode != 0:
            return 0
        try:
            found = json.loads(done.stdout or "[]")
        except ValueError:
            return 0
        if found:
            return int(found[0].get("JobStatus", 0))
    return 0


def _line(text: str) -> str:
    return " ".join(text.split())[-300:] or "no message"
