"""The shadows of jobs whose machine is gone: found in the process table of the schedd's host, and ended.

A shadow that has lost its starter waits for it until the job's lease is over (40 minutes, unless the site
says otherwise), whatever the schedd tells it. Until then a job that was given back to the queue is idle and
can't start again. Nothing but the end of the process helps.
"""

import os
import re
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

PROC = Path("/proc")
_LATER = 5.0  # seconds from the schedd's note of a shadow's birth to the birth
_SOCKET = re.compile(r"[?&]sock=([^&>]+)")


def shadows_of(schedd: str, births: Mapping[str, float], proc: Path = PROC) -> Iterator[int]:
    """Processes that are the shadows of these jobs now.

    `schedd` is the schedd's address, `births` each job's ShadowBday. A shadow is used for one job after the
    other and keeps the name of the first on its command line: only one that was born for this job, at the
    time that the job's own ad says, is surely at work for it. Of another nothing is found.
    """
    boot = _boot_time(proc)
    for folder in proc.glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text(errors="replace").split("\0")
            start = (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()[19]
        except (OSError, IndexError):
            continue  # it has just ended
        born = births.get(words[1]) if len(words) > 1 else None  # whoever has an account can name a process
        if Path(words[0]).name != "condor_shadow" or born is None:
            continue
        addresses = [word.removeprefix("--schedd=") for word in words if word.startswith("--schedd=")]
        at = boot + int(start) / os.sysconf("SC_CLK_TCK")
        if [_endpoint(address) for address in addresses] == [_endpoint(schedd)] and abs(at - born) <= _LATER:
            yield int(folder.name)


def end(pids: Iterable[int], deadline: float) -> None:
    """End these processes and wait until the schedd has noticed, `deadline` seconds at most."""
    ended = []
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue  # gone by itself, or not ours to end: then the lease decides
        ended.append(PROC / str(pid))
    until = time.monotonic() + deadline
    while any(folder.exists() for folder in ended) and time.monotonic() < until:
        time.sleep(0.05)


def _endpoint(address: str) -> tuple[str, str]:
    """What tells one daemon's address from another's on this host: address with port, and socket.

    Schedds in containers of one host may well have sockets of the same name.
    """
    found = _SOCKET.search(address)
    return address.lstrip("<").partition("?")[0].rstrip(">"), found[1] if found else ""


def _boot_time(proc: Path) -> float:
    lines = (proc / "stat").read_text().splitlines()
    return next((float(line.split()[1]) for line in lines if line.startswith("btime ")), 0.0)
