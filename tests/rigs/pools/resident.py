"""A resident on a pool's head: what tests ask again and again costs no new process on the way there.

Entering a machine takes two namespaces and a call of the cloud's API, and `updraft` a third of a second until
it has loaded itself. A test that waits asks several times a second, and several wait at a time.
"""

import contextlib
import json
import os
import selectors
import subprocess
import threading
import time
from collections.abc import Sequence

from updraft.clouds.local import process
from updraft.demo.pool import RealPool

# It reads its program first: a command line with this text in it would look like a process of updraft's.
BEGIN = "import json, os; words = os.fdopen(os.dup(0)); exec(json.loads(words.readline()))"
# The verbs that only read the ledger are called where the resident is; all else is a process of the head.
PROGRAM = r"""
import contextlib, io, subprocess, sys

sys.dont_write_bytecode = True
sys.path[:0] = ["/opt/updraft/src", "/opt/updraft/lib"]
try:
    from updraft.cli.main import call
except ImportError:
    call = None
READS = (["status"], ["machines"], ["events"], ["annex", "status"], ["annex", "list"])

def verb(arguments):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = call(arguments)
    return [code, out.getvalue(), err.getvalue()]

def answer(argv, given, timeout):
    if call and argv[0] == "updraft" and any(argv[1 : 1 + len(read)] == read for read in READS):
        return verb(argv[1:])
    quiet = {"stdin": subprocess.DEVNULL} if given is None else {"input": given}
    try:
        done = subprocess.run(
            argv, capture_output=True, encoding="utf-8", errors="replace", timeout=timeout, **quiet
        )
    except subprocess.TimeoutExpired:
        return None
    except OSError as error:
        return [127, "", f"{error}\n"]
    return [done.returncode, done.stdout, done.stderr]

reply = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_RDWR), 0)
os.dup2(0, 1)
for line in words:
    print(json.dumps(answer(*json.loads(line))), file=reply, flush=True)
"""
GRACE = 10.0  # seconds that a resident may take besides the command's own deadline


class Resident:
    """Runs commands on one machine of a cloud; started at the first one, and again where it has ended."""

    def __init__(self, pool: RealPool) -> None:
        self._pool = pool
        self._free = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def run(
        self, argv: Sequence[str], *, user: str | None, stdin: str | None, timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        """As `process.run_in`, which does it where the resident is busy for another thread, or has ended."""
        if not self._free.acquire(blocking=False):
            return self._directly(argv, user, stdin, timeout)
        try:
            found = self._ask([*process.as_user(user), *argv], stdin, timeout)
        except (OSError, EOFError):
            self._end()
            found = self._directly(argv, user, stdin, timeout)
        finally:
            self._free.release()
        return found

    def close(self) -> None:
        """End it, if it runs."""
        with self._free:
            self._end()

    def _directly(
        self, argv: Sequence[str], user: str | None, stdin: str | None, timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        pool = self._pool
        return process.run_in(pool.cloud, pool.head, argv, user=user, stdin=stdin, timeout=timeout)

    def _ask(
        self, argv: Sequence[str], stdin: str | None, timeout: float
    ) -> "subprocess.CompletedProcess[str]":
        if self._process is None:
            self._process = self._start()
        resident = self._process
        _write(resident, [list(argv), stdin, timeout])
        answer = json.loads(_line(resident, time.monotonic() + timeout + GRACE))
        if answer is None:
            raise subprocess.TimeoutExpired(list(argv), timeout)
        return subprocess.CompletedProcess(list(argv), *answer)

    def _start(self) -> "subprocess.Popen[bytes]":
        pool = self._pool
        started = subprocess.Popen(
            process.enter_command(pool.cloud, pool.head, ["python3", "-c", BEGIN]),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        _write(started, PROGRAM)
        return started

    def _end(self) -> None:
        if self._process is None:
            return
        resident, self._process = self._process, None
        resident.kill()
        for stream in (resident.stdin, resident.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        resident.wait()


def _write(resident: "subprocess.Popen[bytes]", what: object) -> None:
    assert resident.stdin is not None
    resident.stdin.write(json.dumps(what).encode() + b"\n")
    resident.stdin.flush()


def _line(resident: "subprocess.Popen[bytes]", until: float) -> bytes:
    """What it answers. Raises EOFError where it has ended, or doesn't answer until then."""
    assert resident.stdout is not None
    found = b""
    with selectors.DefaultSelector() as selector:
        selector.register(resident.stdout, selectors.EVENT_READ)
        while not found.endswith(b"\n"):
            if not selector.select(max(0.0, until - time.monotonic())):
                raise EOFError
            read = os.read(resident.stdout.fileno(), 1 << 20)
            if not read:
                raise EOFError
            found += read
    return found


class WatchedPool(RealPool):
    """A pool whose head is asked through a resident."""

    resident: Resident

    @classmethod
    def of(cls, pool: RealPool) -> "WatchedPool":
        """The same pool."""
        watched = cls(pool.cloud, pool.head, pool.image)
        object.__setattr__(watched, "resident", Resident(pool))
        return watched

    def on_head(
        self, *argv: str, user: str | None = None, stdin: str | None = None, timeout: float = 60.0
    ) -> "subprocess.CompletedProcess[str]":
        """Run a command on the head, as root or as `user`."""
        return self.resident.run(argv, user=user, stdin=stdin, timeout=timeout)
