"""One job that tries one machine: submitted on the head by HTCondor's own tools, waited for, and removed."""

import os
import re
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from pwd import getpwnam

import classad2

from updraft.condor.access import PoolAccess, environment
from updraft.condor.base import ATTR_INSTANCE
from updraft.condor.process.tools import Tools
from updraft.errors import PoolError, UsageError

USUAL = """\
#!/bin/sh
# What any worker should be able to do.
set -e
id
uname -a
test -w .
echo fine
"""
_DEADLINE = 30.0
_MOST = 64 * 1024
_SUBMIT = """\
universe = vanilla
executable = trial.sh
output = out
error = err
log = log
should_transfer_files = YES
when_to_transfer_output = ON_EXIT
request_cpus = 1
request_memory = 128MB
request_disk = 10MB
requirements = TARGET.{instance_attribute} =?= {instance}
+{attribute} = {key}
queue
"""


@dataclass(frozen=True, slots=True)
class TrialOutcome:
    """How a trial stands: over or not, whether it went well, and what there is to say of it."""

    over: bool
    good: bool = False
    text: str = ""


class Trial:
    """The job of one trial, submitted as `user`, who can't be root.

    Close it: that removes the job and its files. `attribute` and `key` are what the machine's START asks of
    a job.
    """

    def __init__(self, access: PoolAccess, user: str, attribute: str, key: str) -> None:
        try:
            who = getpwnam(user)
        except KeyError as error:
            raise UsageError(f"there is no user {user} to submit the trial job; name one") from error
        if who.pw_uid == 0:
            raise UsageError("HTCondor takes no jobs of root; name a user to submit the trial job")
        self._private = Path(tempfile.mkdtemp(prefix="updraft-trial-"))
        self.folder = self._private / "job"
        self.folder.mkdir()
        self._owner = (who.pw_uid, who.pw_gid)
        given = environment(access, self._private)
        self._as_user = ("runuser", "-u", user, "--") if os.geteuid() != who.pw_uid else ()
        self._tools = Tools(access.tools, given, access.collector)
        self._mark = {"attribute": attribute, "key": classad2.quote(key)}
        self._cluster = ""

    def submit(self, instance: str, script: str) -> None:
        """Submit it for this machine alone. Raises PoolError."""
        self._write("trial.sh", script, 0o755)
        about: Mapping[str, str] = {"instance_attribute": ATTR_INSTANCE, "instance": classad2.quote(instance)}
        self._write("job", _SUBMIT.format(**self._mark, **about), 0o644)
        for path in (self._private, self.folder):  # root writes nothing there any more
            os.chown(path, *self._owner)
        initial = ("sh", "-c", 'cd "$1" && exec condor_submit -terse job', "sh", str(self.folder))
        said = self._tools.run((*self._as_user, *initial), _DEADLINE)
        found = re.match(r"\s*(\d+)\.", said)
        if found is None:
            raise PoolError("condor_submit didn't say which job it made")
        self._cluster = found[1]

    def outcome(self) -> TrialOutcome:
        """What the job's own log says of it by now."""
        log = self._read("log")
        if "\n005 (" in f"\n{log}":
            good = "return value 0" in log
            said = " ".join((self._read("out") + self._read("err")).split())[-300:]
            return TrialOutcome(True, good, said or "it said nothing")
        for event, what in (("012", "held"), ("009", "removed")):
            at = f"\n{log}".find(f"\n{event} (")
            if at >= 0:
                return TrialOutcome(True, False, f"it was {what}: {' '.join(log[at:].split())[:300]}")
        return TrialOutcome(False)

    def close(self) -> None:
        """Remove the job, if it is still there, and its files."""
        try:
            if self._cluster and not self.outcome().over:
                self._tools.run((*self._as_user, "condor_rm", self._cluster), _DEADLINE)
        except PoolError:
            pass  # its requirements name a machine that ends now: it can run nowhere
        finally:
            shutil.rmtree(self._private, ignore_errors=True)

    def _write(self, name: str, text: str, mode: int) -> None:
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def _read(self, name: str) -> str:
        try:  # the folder is the user's: a link there leads nowhere
            handle = os.open(self.folder / name, os.O_RDONLY | os.O_NOFOLLOW)
        except OSError:
            return ""
        with os.fdopen(handle, encoding="utf-8", errors="replace") as file:
            return file.read(_MOST)
