"""What a rule says of a machine, and what the rules share: ending it, draining it, what is certain of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from updraft.core.machines.witnesses import not_ours, objection, unsettled
from updraft.core.model import (
    Action,
    Annex,
    Drain,
    DrainMode,
    Known,
    Machine,
    MachineId,
    Reason,
    RunningJob,
    Snapshot,
    Terminate,
)
from updraft.core.settings import Policy, WorkerClass

_FIRST_LOOKS = 60.0  # seconds in which a controller that takes over has seen what became of its machines
ASK_AGAIN = 15.0  # seconds before a terminate that the cloud doesn't show is asked for again


@dataclass(frozen=True, slots=True)
class Disposition:
    """The decision about one machine: actions now, the reason, by when; `ended` True where it is over.

    `failed` that it counts as a launch that failed, though it can't be ended yet.
    """

    reason: Reason
    actions: tuple[Action, ...] = ()
    deadline: float | None = None
    ended: bool = False
    warn: bool = False
    failed: bool = False


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One decision's view, handed to each rule; `surplus` are machines that a lowered limit sends away,
    `overspent` those that a spent budget does, each with the reason.

    `asked_for` are machines of which a rule had to know what jobs run there.
    """

    snapshot: Snapshot
    policy: Policy
    surplus: frozenset[MachineId] = frozenset()
    overspent: Mapping[MachineId, Reason] = field(default_factory=dict)
    asked_for: set[MachineId] = field(default_factory=set)
    _running: list["_Running"] = field(default_factory=list)
    _annexes: dict[str, Annex] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._annexes.update((one.name, one) for one in self.snapshot.annexes)

    @property
    def running(self) -> "_Running":
        """Jobs that the schedds believe to run, as far as these have said."""
        if not self._running:
            self._running.append(_running(self.snapshot))
        return self._running[0]

    @property
    def now(self) -> float:
        """The decision's time."""
        return self.snapshot.now

    @property
    def unsettled(self) -> bool:
        """Whether no deadline has passed for certain, since the clock has jumped."""
        return unsettled(self.snapshot, self.policy)

    def meanwhile(self, since: float) -> bool:
        """Whether what was first seen then happened while another controller acted."""
        over = self.snapshot.taken_over_at
        return over is not None and abs(since - over) < _FIRST_LOOKS

    def worker(self, machine: Machine) -> WorkerClass | None:
        """The machine's class, None where the configuration doesn't have it any more."""
        return self.policy.classes.get(machine.worker_class)

    def annex(self, machine: Machine) -> Annex | None:
        """The annex that the machine was launched for; None for others, and for one that nobody knows."""
        return self._annexes.get(machine.record.variant.annex) if self._annexes else None


Rule = Callable[[Machine, DecisionView], Disposition | None]


@dataclass(frozen=True, slots=True)
class _Running:
    """Jobs by the machine, in the words of the schedds that have `said`; `complete` if all have, `asked` if
    all that answer were asked for them.
    """

    jobs: Mapping[str, Sequence[RunningJob]]
    complete: bool
    asked: bool
    said: frozenset[str]


def end(machine: Machine, look: DecisionView, reason: Reason, held: Reason | None = None) -> Disposition:
    """End it where the cloud and the pool both bear it out; else say who objects.

    `held` is how that is called, where it isn't the reason of the end.
    """
    why = objection(machine, look.snapshot, look.policy, lambda: jobs_there(machine, look))
    if why is None:
        return _terminate(machine, look, reason)
    shown = held or reason
    # What no schedd was asked before is found out by the next look: that is no news.
    return Disposition(
        Reason(shown.code, f"{shown.text}; {why.text}: reported only"), warn=look.running.asked
    )


def end_by_deadline(machine: Machine, look: DecisionView, reason: Reason) -> Disposition:
    """End it, whatever the pool says: a deadline has passed that the policy or a person has named."""
    foreign = not_ours(machine.instance, look.policy)
    if foreign is not None:
        return Disposition(foreign, warn=True)
    if look.unsettled:
        text = f"{reason.text}; but this host's clock has jumped: no deadline is acted on for a while"
        return Disposition(Reason("clock-jumped", text), warn=True)
    return _terminate(machine, look, reason)


def end_by_hand(machine: Machine, look: DecisionView, reason: Reason) -> Disposition:
    """End it, whatever the pool and the clock say: a person has said that it goes now, with its jobs."""
    foreign = not_ours(machine.instance, look.policy)
    return Disposition(foreign, warn=True) if foreign is not None else _terminate(machine, look, reason)


def _terminate(machine: Machine, look: DecisionView, reason: Reason) -> Disposition:
    """Ask for its end, unless that was asked for and no look since shows that it was in vain."""
    asked, failed = machine.record.terminate_asked_at, machine.record.end_failed
    told = reason
    if failed is not None:
        told = Reason(
            "end-failed", f"{reason.text}; its cloud did not take the order to end it: {failed.text}"
        )
    if asked is not None and _looked_at(machine.cloud, look) - asked < ASK_AGAIN:
        return Disposition(told, warn=failed is not None)
    order = Terminate((machine.id,), machine.cloud, reason)
    return Disposition(told, (order,), warn=failed is not None)


def _looked_at(cloud: str, look: DecisionView) -> float:
    """When the cloud was asked for the machines that it shows: a slow one may be shown as it was."""
    view = look.snapshot.clouds.get(cloud)
    return view.machines.at if view is not None and isinstance(view.machines, Known) else look.now


def jobs_there(machine: Machine, look: DecisionView) -> tuple[RunningJob, ...] | None:
    """Jobs that some schedd believes to run on it; None where not every schedd has said."""
    known = jobs_known(machine, look)
    said = look.running.complete and look.running.said.issuperset(machine.record.other_schedds)
    return known if said else None


def jobs_known(machine: Machine, look: DecisionView) -> tuple[RunningJob, ...]:
    """Jobs that the schedds that have said believe to run on it."""
    look.asked_for.add(machine.key)
    return tuple(look.running.jobs.get(machine.id, ()))


def _running(snapshot: Snapshot) -> _Running:
    """By every part of the slot's name: a worker's slots carry its instance id in theirs
    (`slot1_1@i-0abc@host`), since host names come back.
    """
    found: dict[str, list[RunningJob]] = {}
    complete, asked = bool(snapshot.schedds), True
    said: set[str] = set()
    for name, source in snapshot.schedds.items():
        if not isinstance(source, Known) or source.value.running is None:
            complete, asked = False, asked and not isinstance(source, Known)
            continue
        said.add(name)
        for job in source.value.running:
            for part in dict.fromkeys(job.slot.split("@")):
                found.setdefault(part, []).append(job)
    return _Running(found, complete, asked, frozenset(said))


def cloud_answers(machine: Machine, look: DecisionView) -> bool:
    """Has the machine's cloud said what machines there are?"""
    view = look.snapshot.clouds.get(machine.cloud)
    return view is not None and isinstance(view.machines, Known)


def drained(machine: Machine, look: DecisionView, reason: Reason, deadline: float | None) -> Disposition:
    """Atomically where it is empty; else closed to new jobs, with a deadline if there is one.

    A graceful drain throws a job off at once that asked for less retirement than the machine gives
    (`MaxJobRetirementTime`): such a machine waits until it is empty, or for its deadline.
    """
    mode = DrainMode.BUSY if machine.busy else DrainMode.EMPTY
    now_or_never = deadline is not None and look.now >= deadline and not look.unsettled
    if mode is DrainMode.BUSY and not now_or_never and _impatient(machine, look):
        text = f"{reason.text}; a job on it would be thrown off by a drain: it waits until it is empty"
        return Disposition(Reason("impatient-job", text), deadline=deadline)
    ends = deadline if mode is DrainMode.BUSY else None
    return Disposition(reason, (Drain(machine.id, machine.cloud, mode, reason, ends),), ends)


def _impatient(machine: Machine, look: DecisionView) -> bool:
    worker = look.worker(machine)
    promised = worker.drain_deadline if worker is not None else 0.0
    return any(slot.patience < promised for slot in machine.slots)
