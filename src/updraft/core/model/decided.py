"""What was decided: machines with their phases, the actions, and the plan."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from updraft.core.model.annexes import Annex, AnnexOutlook
from updraft.core.model.basics import MachineId, Reason
from updraft.core.model.observed import Instance, Offer, Slot
from updraft.core.model.remembered import DrainMode, MachineRecord, Untaken
from updraft.core.model.spent import Spending


class Phase(StrEnum):
    """Where a machine is in its life; lost and failed are ways to leave."""

    REQUESTED = "requested"
    BOOTING = "booting"
    JOINED = "joined"
    DRAINING = "draining"
    ENDING = "ending"
    GONE = "gone"
    LOST = "lost"
    FAILED = "failed"


@dataclass(frozen=True)  # without slots, for what it remembers
class Machine:
    """One instance with all that is known of it: the cloud's word, the pool's and the ledger's."""

    id: str
    cloud: str
    phase: Phase
    worker_class: str
    flavor: str
    generation: str
    record: MachineRecord
    instance: Instance | None = None
    slots: tuple[Slot, ...] = ()

    @property
    def key(self) -> MachineId:
        """Its cloud and its id."""
        return MachineId(self.cloud, self.id)

    @property
    def busy(self) -> bool:
        """True while any of its slots has a claim."""
        for slot in self.slots:  # noqa: SIM110 (any() costs several times as much, for each machine)
            if slot.busy:
                return True
        return False

    @cached_property
    def claimed(self) -> Mapping[tuple[str, str], int]:
        """Cores that are claimed, by the user and what the negotiator calls that one's jobs.

        Most machines are asked for it at each decision, and are the same as at the last one.
        """
        cores: dict[tuple[str, str], int] = {}
        for slot in self.slots:
            if slot.user:
                key = slot.user, slot.submitter
                cores[key] = cores.get(key, 0) + slot.total.cpus
            for child in slot.children:
                if child.user:
                    key = child.user, child.submitter
                    cores[key] = cores.get(key, 0) + child.resources.cpus
        return cores


@dataclass(frozen=True, slots=True)
class Launch:
    """Ask the cloud for `count` machines of this offer, once, under this key; `annex` is whose they are."""

    key: str
    offer: Offer
    count: int
    reason: Reason
    annex: Annex | None = None


@dataclass(frozen=True, slots=True)
class Drain:
    """Close a machine to new jobs: see `DrainMode`. `deadline` ends a busy drain by force."""

    machine: str
    cloud: str
    mode: DrainMode
    reason: Reason
    deadline: float | None = None

    @property
    def key(self) -> MachineId:
        """The cloud and the id of the machine."""
        return MachineId(self.cloud, self.machine)


@dataclass(frozen=True, slots=True)
class Undrain:
    """Take back a busy drain: waiting jobs can use the machine."""

    machine: str
    cloud: str
    reason: Reason

    @property
    def key(self) -> MachineId:
        """The cloud and the id of the machine."""
        return MachineId(self.cloud, self.machine)


@dataclass(frozen=True, slots=True)
class Terminate:
    """End instances of one cloud. Nothing runs on them, or their deadline has passed."""

    machines: tuple[str, ...]
    cloud: str
    reason: Reason

    @property
    def keys(self) -> tuple[MachineId, ...]:
        """The cloud and the id of each."""
        return tuple([MachineId(self.cloud, one) for one in self.machines])


@dataclass(frozen=True, slots=True)
class Adopt:
    """Take an instance into our care: one with our tag into the ledger, another by writing the tags on it.

    The tags are written where `worker_class` is given, on an operator's word alone.
    """

    machine: str
    cloud: str
    reason: Reason
    worker_class: str = ""
    launch_key: str = ""
    generation: str = ""

    @property
    def key(self) -> MachineId:
        """The cloud and the id of the machine."""
        return MachineId(self.cloud, self.machine)


@dataclass(frozen=True, slots=True)
class Disown:
    """Let go of an instance: it stays, and is no longer ours."""

    machine: str
    cloud: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class RequeueJobs:
    """Give the jobs of a machine that is gone for certain back to the queue.

    `machine` is empty for jobs that are on hold for us since that was cut short: they are only released.
    """

    schedd: str
    jobs: tuple[str, ...]
    machine: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Forget:
    """Invalidate the ads of a machine that is gone for certain: no ghosts in `condor_status`."""

    machine: str
    cloud: str
    slots: tuple[str, ...]
    reason: Reason


Action = Launch | Drain | Undrain | Terminate | Adopt | Disown | RequeueJobs | Forget


@dataclass(frozen=True, slots=True)
class GroupOutlook:
    """The outlook of one job group: how many jobs find room where, and why the rest doesn't.

    `held_back` are limits, cool-downs and the like that stopped a purchase; `refused` are, where no offer can
    run it, the clauses that fail on some of them (offer key, reason).
    """

    group: str
    idle: int
    joined: int = 0
    coming: int = 0
    new: int = 0
    unmet: int = 0
    held_back: tuple[Reason, ...] = ()
    refused: tuple[tuple[str, Reason], ...] = ()


@dataclass(frozen=True, slots=True)
class MachineOutlook:
    """The outlook of one machine, and why."""

    machine: Annotated[str, "Its id."]
    cloud: str
    phase: Phase
    reason: Reason
    deadline: float | None = None

    @property
    def key(self) -> MachineId:
        """Its cloud and its id."""
        return MachineId(self.cloud, self.machine)


@dataclass(frozen=True, slots=True)
class Cooldown:
    """A rest after failures."""

    scope: Annotated[str, '"offer", "image" or "cloud".']
    key: Annotated[str, "Which one."]
    until: Annotated[float, "When it ends."]
    failures: Annotated[int, "Failures in a row."]
    probe: Annotated[bool, "True where one machine may go out to try."]
    reason: Reason


@dataclass(frozen=True, slots=True)
class Questions:
    """The questions for the next look: clouds for these `machines`, each by its id, and schedds for the
    jobs that run, where anybody has to know which run on `jobs`. Both are clouds and ids.
    """

    machines: frozenset[MachineId] = frozenset()
    jobs: frozenset[MachineId] = frozenset()


@dataclass(frozen=True, slots=True)
class Plan:
    """The decision about a snapshot.

    `records` are the machine records as they are to be remembered (only those that changed), `settled` the
    launch keys of which nothing more will come; both are written to the ledger before any action. `at_work`
    are the machines that have a claim now, None where the ledger's records say it of each (see `LedgerView`).
    `warnings` are reported and lead to nothing by themselves (a slot that nobody explains, a lost machine).
    `annexes` says what becomes of each. `spending` is how budgets of a day or month stand. `questions` is
    what the next look has to find out. `untaken` is to be remembered under that name.
    """

    actions: tuple[Action, ...] = ()
    records: tuple[MachineRecord, ...] = ()
    settled: tuple[str, ...] = ()
    groups: tuple[GroupOutlook, ...] = ()
    machines: tuple[MachineOutlook, ...] = ()
    cooldowns: tuple[Cooldown, ...] = ()
    warnings: tuple[Reason, ...] = ()
    at_work: frozenset[MachineId] | None = None
    annexes: tuple[AnnexOutlook, ...] = ()
    spending: tuple[Spending, ...] = ()
    questions: Questions = Questions()
    untaken: Mapping[str, Untaken] = field(default_factory=dict)
