"""A program that runs as a job: it lives on a worker and leaves things there, or it looks for them.

`lives WORD` leaves things of that name wherever a job can, and runs until /run/WORD is there. `looks WORD`
tries to find, read, change and kill all of that, and prints what it could.
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

PUBLIC = ("/tmp", "/var/tmp", "/dev/shm", "/run/lock", "/run/user", "/var/spool/cron")
EXECUTE = "/var/lib/condor/execute"
KEY = 0x5EED  # of System V's objects
ADD_KEY, KEYCTL = {"x86_64": (248, 250), "aarch64": (217, 219)}[os.uname().machine]
libc = ctypes.CDLL(None)


def lives(word: str) -> None:
    """Leave something everywhere, then run until told."""
    os.umask(0o077)
    os.environ[word] = "secret"
    for folder in (*PUBLIC, os.getcwd()):  # noqa: PTH109
        try:
            Path(folder, word).write_text("secret")
        except OSError:
            continue
    found = libc.shmget(KEY, 4096, 0o1666), libc.semget(KEY, 1, 0o1666), libc.msgget(KEY, 0o1666)
    found += (libc.mq_open(f"/{word}".encode(), os.O_CREAT | os.O_RDWR, 0o666, None),)
    found += (libc.syscall(ADD_KEY, b"user", word.encode(), b"secret", 6, -4),)
    assert min(found) >= 0, found
    subprocess.call(["sh", "-c", f"echo '* * * * * {word}' | crontab - 2>/dev/null"])
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:  # nothing of the job in its ancestors, its descriptors or its environment
            os.closerange(0, 100)
            subprocess.call(["/bin/sh", "-c", f": {word}; sleep 1000; :"], env={})
        os._exit(0)
    print(os.environ["_CONDOR_SLOT"], os.getuid(), flush=True)  # noqa: T201 (the job's output)
    while not Path("/run", word).exists():
        time.sleep(0.2)
    print(Path(word).read_text())  # noqa: T201


def _processes(word: str) -> Iterator[str]:
    own = {os.getpid(), os.getppid()}
    for pid in (int(name) for name in os.listdir("/proc") if name.isdigit()):  # noqa: PTH208
        there = Path("/proc", str(pid))
        try:
            called = (there / "cmdline").read_text()
            if pid in own or word not in called or "looks" in called:
                continue
            yield "a process"
            if word in (there / "environ").read_text():
                yield "its environment"
            list((there / "cwd").iterdir())
            yield "its folder"
        except OSError:
            pass
        try:
            os.kill(pid, signal.SIGKILL)
            yield "killed it"
        except OSError:
            continue


def _files(word: str) -> Iterator[str]:
    for top in (*PUBLIC, EXECUTE):
        for folder, _, names in os.walk(top):
            for path in (Path(folder, name) for name in names if word in name):
                yield f"a file in {top}"
                try:
                    path.read_text()
                    yield f"read it in {top}"
                    path.write_text("changed")
                    yield f"changed it in {top}"
                except OSError:
                    continue


def _objects(word: str) -> Iterator[str]:
    if max(libc.shmget(KEY, 0, 0), libc.semget(KEY, 0, 0), libc.msgget(KEY, 0)) >= 0:
        yield "a System V object"
    if libc.mq_open(f"/{word}".encode(), os.O_RDWR) >= 0:
        yield "a message queue"
    if libc.syscall(KEYCTL, 10, -4, b"user", word.encode(), 0) >= 0:
        yield "a key"


def looks(word: str) -> None:
    """Print what was found and done, once each."""
    found = {*_files(word), *_objects(word), *_processes(word)}
    slot = os.environ["_CONDOR_SLOT"]
    print(json.dumps({"slot": slot, "uid": os.getuid(), "found": sorted(found)}), flush=True)  # noqa: T201


if __name__ == "__main__":
    {"lives": lives, "looks": looks}[sys.argv[1]](sys.argv[2])
