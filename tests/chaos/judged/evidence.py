"""What is known from outside: the cloud's own log, the jobs' event logs, and what was done on purpose."""

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

ALIVE = frozenset({"pending", "running", "stopping"})


@dataclass(slots=True)
class MachineLife:
    """One machine as its cloud wrote it down: when it entered each state, and why it ended."""

    id: str
    key: str
    address: str
    cores: int
    role: str
    times: dict[str, float] = field(default_factory=dict)
    why: str = ""

    def alive_at(self, at: float) -> bool:
        """Was it asked for, and not yet gone?"""
        return self.times["pending"] <= at < self.times.get("terminated", float("inf"))

    @property
    def state(self) -> str:
        """The one that it entered last."""
        return max(self.times, key=lambda state: (self.times[state], state == "terminated"))


@dataclass(frozen=True, slots=True)
class Call:
    """One call of the cloud's API: when it came in, by whom, its refusal (`code`), and how long it took."""

    at: float
    name: str
    who: str
    code: str
    ids: tuple[str, ...] = ()
    made: tuple[str, ...] = ()
    key: str = ""
    count: int = 0
    took: float = 0.0


@dataclass(frozen=True, slots=True)
class CloudLog:
    """All that a cloud wrote down; machines are those of the pool, without the head."""

    machines: Mapping[str, MachineLife]
    calls: tuple[Call, ...]

    def at_address(self, address: str, at: float) -> MachineLife | None:
        """The machine that had this address then."""
        found = (m for m in self.machines.values() if m.address == address and m.alive_at(at))
        return next(found, None)


def read_cloud(lines: Iterable[str]) -> CloudLog:
    """The log of a cloud; its last line may be half written."""
    machines: dict[str, MachineLife] = {}
    calls = []
    for line in lines:
        try:
            row: dict[str, Any] = json.loads(line)
        except ValueError:
            continue
        if "machine" in row:
            one = machines.setdefault(
                row["machine"],
                MachineLife(row["machine"], row["key"], row["address"], row["cores"], row["role"]),
            )
            one.times[row["state"]] = row["at"]
            one.why = row["why"] or one.why
        elif "call" in row:
            calls.append(
                Call(
                    row["at"] - row["took"],
                    row["call"],
                    row["who"],
                    row["code"],
                    tuple(row.get("ids", ())),
                    tuple(row.get("made", ())),
                    row.get("key", ""),
                    row.get("count", 0),
                    row["took"],
                )
            )
    return CloudLog({id_: one for id_, one in machines.items() if one.role != "controller"}, tuple(calls))


# -------------------------------------------------------------------------------------------- event logs

_EVENT = re.compile(
    r"^(\d{3}) \((\d+)\.(\d+)\.\d+\) (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) (.*)$"
    r"(?:\n\s+(\(.*))?",  # how it ended, where it did
    re.MULTILINE,
)
_HOST = re.compile(r"Job executing on host: <([0-9.]+):")
START, EVICTED, ENDED, ABORTED, HELD, RELEASED = "001", "004", "005", "009", "012", "013"
RECONNECT_FAILED = "024"
_SHADOW_ERROR = "007"
_RUN_ENDS = {EVICTED, ENDED, ABORTED, HELD, RECONNECT_FAILED, _SHADOW_ERROR}


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a job on a machine's address; `end` and `how` (the event's number) None while it runs."""

    job: str
    address: str
    start: float
    end: float | None = None
    how: str = ""


@dataclass(frozen=True, slots=True)
class JobLog:
    """What the jobs' event log says, by job: runs, good ends, what is on hold at its end, what was removed.

    `gone` has when each left the queue.
    """

    runs: tuple[Run, ...]
    ends: Mapping[str, int]
    held: frozenset[str]
    aborted: frozenset[str]
    submitted: Mapping[str, float]
    gone: Mapping[str, float]

    def left_at(self, job: str) -> float:
        """When a job left the queue; endless where it hasn't."""
        return self.gone.get(job, float("inf"))


def read_jobs(text: str) -> JobLog:
    """The event log that all honest jobs share. Times are UTC, in seconds.

    An end that follows an end, with no start in between, is the same one: a schedd that is killed before it
    has noted that its job is done has another shadow say so again (seen on 25.14).
    """
    runs: list[Run] = []
    open_runs: dict[str, Run] = {}
    ends: dict[str, int] = {}
    held: set[str] = set()
    aborted: set[str] = set()
    submitted: dict[str, float] = {}
    gone: dict[str, float] = {}
    for number, cluster, proc, when, rest, how in _EVENT.findall(text):
        job, at = f"{int(cluster)}.{int(proc)}", _moment(when)
        if number == "000":
            submitted[job] = at
        run = open_runs.pop(job, None) if number in _RUN_ENDS or number == START else None
        if run is not None:
            runs.append(Run(job, run.address, run.start, at, number))
        if number == START and (host := _HOST.search(rest)):
            open_runs[job] = Run(job, host[1], at)
        if number == ENDED and how.endswith("(return value 0)") and (run is not None or job not in ends):
            ends[job] = ends.get(job, 0) + 1
        if number == ABORTED:
            aborted.add(job)
        if number in (ABORTED, ENDED):
            gone[job] = at
        if number == HELD:
            held.add(job)
        if number in (RELEASED, ABORTED, ENDED):
            held.discard(job)
    return JobLog((*runs, *open_runs.values()), ends, frozenset(held), frozenset(aborted), submitted, gone)


def _moment(when: str) -> float:
    return datetime.fromisoformat(when).replace(tzinfo=UTC).timestamp()


# ---------------------------------------------------------------------------------- what was done on purpose


@dataclass(frozen=True, slots=True)
class Deed:
    """What was done: the happening's name, its beginning and end, and to which machine or job, if to one."""

    what: str
    begun: float
    ended: float
    machine: str = ""
    job: str = ""
    failed: str = ""
