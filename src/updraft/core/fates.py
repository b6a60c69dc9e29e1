"""What a rule says of a machine, and what the rules share: ending it, draining it, what is certain of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from updraft.core.model import (
    Action,
    Annex,
    Drain,
    DrainMode,
    Known,
    Machine,
    Reason,
    RunningJob,
    Snapshot,
    Terminate,
)
from updraft.core.settings import Policy, WorkerClass
from updraft.core.variants import annex_of

ASK_AGAIN = 15.0  # seconds before a terminate that the cloud doesn't show is asked for again


@dataclass(frozen=True, slots=True)
class Fate:
    """What becomes of a machine: actions now, the reason, by when; `ended` True where it is over."""

    reason: Reason
    actions: tuple[Action, ...] = ()
    deadline: float | None = None
    ended: bool = False
    warn: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """One decision's view, handed to each rule; `surplus` are machines that a lowered limit sends away."""

    snapshot: Snapshot
    policy: Policy
    surplus: frozenset[tuple[str, str]] = frozenset()
    _running: list[Mapping[str, Sequence[RunningJob]] | None] = field(default_factory=list)
    _annexes: dict[str, Annex] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._annexes.update((one.name, one) for one in self.snapshot.annexes)

    @property
    def running(self) -> Mapping[str, Sequence[RunningJob]] | None:
        """Jobs that some schedd believes to run, by the machine; None where not every schedd has said.

        A worker's slots carry its instance id in their name (`slot1_1@i-0abc@host`): host names come back.
        """
        if not self._running:
            self._running.append(_running(self.snapshot))
        return self._running[0]

    @property
    def now(self) -> float:
        """The decision's time."""
        return self.snapshot.now

    def worker(self, machine: Machine) -> WorkerClass | None:
        """The machine's class, None where the configuration doesn't have it any more."""
        return self.policy.classes.get(machine.worker_class)

    def annex(self, machine: Machine) -> Annex | None:
        """The annex that the machine was launched for; None for others, and for one that nobody knows."""
        return self._annexes.get(annex_of(machine.record.variant)) if self._annexes else None


Rule = Callable[[Machine, Look], Fate | None]


def terminate(machine: Machine, look: Look, reason: Reason, deadline: float | None = None) -> Fate:
    """End it, unless that was asked for and no look since shows that it was in vain."""
    asked = machine.record.terminate_asked_at
    if asked is not None and _looked_at(machine.cloud, look) - asked < ASK_AGAIN:
        return Fate(reason, deadline=deadline)
    return Fate(reason, (Terminate((machine.id,), machine.cloud, reason),), deadline)


def _looked_at(cloud: str, look: Look) -> float:
    """When the cloud was asked for the machines that it shows: a slow one may be shown as it was."""
    view = look.snapshot.clouds.get(cloud)
    return view.machines.at if view is not None and isinstance(view.machines, Known) else look.now


def jobs_there(machine: Machine, look: Look) -> tuple[RunningJob, ...] | None:
    """Jobs that some schedd believes to run on it; None where not every schedd has said."""
    running = look.running
    return None if running is None else tuple(running.get(machine.id, ()))


def _running(snapshot: Snapshot) -> Mapping[str, Sequence[RunningJob]] | None:
    if not snapshot.schedds:
        return None
    found: dict[str, list[RunningJob]] = {}
    for source in snapshot.schedds.values():
        if not isinstance(source, Known) or source.value.running is None:
            return None
        for job in source.value.running:
            for part in dict.fromkeys(job.slot.split("@")):
                found.setdefault(part, []).append(job)
    return found


def cloud_answers(machine: Machine, look: Look) -> bool:
    """Has the machine's cloud said what machines there are?"""
    view = look.snapshot.clouds.get(machine.cloud)
    return view is not None and isinstance(view.machines, Known)


def proves_empty(machine: Machine, look: Look) -> bool:
    """Is it certain that a machine without an ad runs nothing?

    Either the collector has run since before the machine was asked for and never heard of it, or it is old
    enough and no schedd has a job there.
    """
    collector = look.snapshot.collector
    if not isinstance(collector, Known) or not cloud_answers(machine, look):
        return False
    if not machine.record.adopted and collector.value.started <= machine.record.requested_at:
        return True
    old = look.now - collector.value.started >= look.policy.timings.collector_age
    jobs = jobs_there(machine, look)
    return old and jobs is not None and not jobs


def drained(machine: Machine, look: Look, reason: Reason, deadline: float | None) -> Fate:
    """Atomically where it is empty; else closed to new jobs, with a deadline if there is one.

    A graceful drain throws a job off at once that asked for less retirement than the machine gives
    (`MaxJobRetirementTime`): such a machine waits until it is empty, or for its deadline.
    """
    mode = DrainMode.BUSY if machine.busy else DrainMode.EMPTY
    now_or_never = deadline is not None and look.now >= deadline
    if mode is DrainMode.BUSY and not now_or_never and _impatient(machine, look):
        text = f"{reason.text}; a job on it would be thrown off by a drain: it waits until it is empty"
        return Fate(Reason("impatient-job", text), deadline=deadline)
    ends = deadline if mode is DrainMode.BUSY else None
    return Fate(reason, (Drain(machine.id, machine.cloud, mode, reason, ends),), ends)


def _impatient(machine: Machine, look: Look) -> bool:
    worker = look.worker(machine)
    promised = worker.drain_deadline if worker is not None else 0.0
    return any(slot.patience < promised for slot in machine.slots)
