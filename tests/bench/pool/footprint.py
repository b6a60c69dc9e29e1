"""What the machines of a local cloud take of their host: processes, and the memory that is theirs."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.rows import spread

KIB = 1024
TICKS = os.sysconf("SC_CLK_TCK")
_TIMES = slice(11, 15)  # in /proc/PID/stat behind the name: user and system time, and those of children
_CLOUD, _MACHINE = 1, 2  # places in NSpid: the host's own number of a process comes first


@dataclass(frozen=True, slots=True)
class Process:
    """A process as the host sees it. `ids` are its numbers, the host's own first, then those inside.

    `pss` is its memory in KiB, what it shares with others divided among them; `busy` its seconds on a core,
    those of its ended children included.
    """

    parent: int
    ids: tuple[int, ...]
    name: str
    pss: int
    busy: float


def look(proc: Path = Path("/proc")) -> dict[int, Process]:
    """Every process of the host by its number; those that end meanwhile are left out. Takes root."""
    return dict(_processes(proc))


def _processes(proc: Path) -> Iterator[tuple[int, Process]]:
    for folder in proc.glob("[0-9]*"):
        try:
            status = (folder / "status").read_text()
            rollup = (folder / "smaps_rollup").read_text()
            ticks = (folder / "stat").read_text().rpartition(")")[2].split()[_TIMES]
        except OSError:  # it has ended, or is a thread of the kernel
            continue
        said = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
        memory = re.search(r"^Pss:\s+(\d+) kB", rollup, re.M)
        ids = tuple(map(int, said["NSpid"].split()))
        pss = int(memory[1]) if memory else 0
        yield ids[0], Process(int(said["PPid"]), ids, said["Name"].strip(), pss, sum(map(int, ticks)) / TICKS)


def by_machine(processes: Mapping[int, Process], cloud: int) -> dict[int, list[Process]]:
    """The processes of each machine of the cloud whose process 1 is `cloud` on the host.

    A machine is named by its first process as the cloud sees it, which is the `pid` that its API shows.
    """
    found: dict[int, list[Process]] = {}
    for pid, process in processes.items():
        first = _machine_of(processes, pid, cloud)
        if first is not None:
            found.setdefault(first, []).append(process)
    return found


def _machine_of(processes: Mapping[int, Process], pid: int, cloud: int) -> int | None:
    """The first process of the machine that a process belongs to: the last on the way up to the cloud."""
    first, seen = None, set()
    while (process := processes.get(pid)) is not None and pid not in seen:
        if pid == cloud:
            return first
        seen.add(pid)
        if len(process.ids) > _MACHINE:
            first = process.ids[_CLOUD]
        pid = process.parent
    return None


def summed(machines: Mapping[int, Sequence[Process]]) -> dict[str, Any]:
    """Of these machines: MiB and processes for each, and MiB for each machine by the names of processes."""
    sizes = [sum(one.pss for one in found) / KIB for found in machines.values()]
    names: dict[str, int] = {}
    for found in machines.values():
        for one in found:
            names[one.name] = names.get(one.name, 0) + one.pss
    return {
        "pss_mib": spread(sizes),
        "processor_s": spread([sum(one.busy for one in found) for found in machines.values()]),
        "processes": spread([len(found) for found in machines.values()]),
        "pss_mib_by_name": {
            name: round(kib / KIB / len(machines), 2)
            for name, kib in sorted(names.items(), key=lambda item: -item[1])
        },
    }


def available(meminfo: Path = Path("/proc/meminfo")) -> float:
    """MiB that the host could still give out (MemAvailable)."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", meminfo.read_text(), re.M)
    if found is None:
        raise ValueError(f"{meminfo} does not say MemAvailable")
    return int(found[1]) / KIB
