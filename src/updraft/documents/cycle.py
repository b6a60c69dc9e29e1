"""What the daemon writes down at each look: `plan` prints it, and what else is shown is read from it."""

from collections.abc import Mapping
from dataclasses import field
from typing import Annotated, Literal

from updraft.core.model import (
    BudgetPeriod,
    BudgetScope,
    Cooldown,
    GroupOutlook,
    MachineOutlook,
    Reason,
    Resources,
)
from updraft.core.reasons import HeldBack, held_back
from updraft.documents import ABSENT, IN_PLACE, Absent, As, Document, Rows


class SourceState(Document):
    """A source."""

    state: Annotated[Literal["known", "unknown"], "Which."]
    at: Annotated[float | Absent, "Of one that is known: as of when."] = ABSENT
    since: Annotated[float | Absent, "Of one that is unknown: since when."] = ABSENT
    error: Annotated[Reason | Absent, "Why it is unknown."] = ABSENT
    last: Annotated[float | Absent | None, "As of when it was last known, or null."] = ABSENT


class JobCounts(Document):
    """All jobs of the pool."""

    idle: Annotated[int, "Waiting."]
    running: Annotated[int, "Running."]


class Room(Document):
    """How many jobs of a group wait, and what room there is for them."""

    idle: Annotated[int, "Jobs that wait."]
    joined: Annotated[int, "Of these, how many find room on joined machines."]
    coming: Annotated[int, "How many on machines on their way."]
    new: Annotated[int, "How many on machines that the plan launches."]
    unmet: Annotated[int, "How many find none."]
    held_back: Annotated[tuple[HeldBack, ...], "Limits, rests and the like that stopped a purchase."]

    @staticmethod
    def planned(outlook: GroupOutlook) -> "Room":
        """As the plan has it."""
        return Room.of(outlook, held_back=tuple(map(held_back, outlook.held_back)))


class Refused(Document):
    """What an offer has against a group."""

    offer: str
    reason: Reason = field(metadata=IN_PLACE)


class GroupRow(Document):
    """A job group: waiting jobs alike in everything that matching looks at."""

    key: Annotated[str, "Its name within this document."]
    room: Room = field(metadata=IN_PLACE)
    refused: tuple[Refused, ...]
    schedd: str | Absent = ABSENT
    owner: str | Absent = ABSENT
    submitter: str | Absent = ABSENT
    running: int | Absent = ABSENT
    oldest: float | Absent = ABSENT
    priority: int | Absent = ABSENT
    first_id: str | Absent = ABSENT
    evaluable: bool | Absent = ABSENT
    request: Annotated[Resources | Absent, "What each of its jobs asks for."] = ABSENT


class ActionRow(Document):
    """Something that the plan does."""

    what: Annotated[str, "launch, drain, undrain, terminate, adopt, disown, requeuejobs or forget."]
    text: Annotated[str, "The same for people."]
    reason: Reason


SOURCES = "Every source by name: schedds, the collector, the clouds."
Groups = Annotated[Rows, As(tuple[GroupRow, ...]), "Who waits."]
Cooldowns = Annotated[Rows, As(tuple[Cooldown, ...]), "Rests."]


class BudgetOver(Document):
    """A budget that is spent."""

    whose: Annotated[str, "Whose, in words."]
    period: Annotated[BudgetPeriod, "Of UTC."]
    ends: Annotated[float, "When the next one begins."]


class BudgetRow(Document):
    """A budget of a day or a month as of the daemon's last look."""

    scope: Annotated[BudgetScope, "Whose it is; of annexes, of all those of one user together."]
    name: Annotated[str, "The cloud, class, user or group; empty for the pool."]
    whose: Annotated[str, "The same in words."]
    period: Annotated[BudgetPeriod, "Of UTC."]
    most: Annotated[float, "What may be spent in it."]
    spent: Annotated[float | None, "What was, at list prices; null where nobody knows."]
    cost_per_hour: Annotated[float | None, "What runs under it; null where some price isn't known."]
    over: Annotated[bool, "Whether all of it is spent."]
    ends: Annotated[float, "When the period ends."]
    runs_out: Annotated[float | None, "When all will be spent at this rate; null where not in the period."]
    waiting: Annotated[int, "Waiting jobs that it holds back."]


Budgets = Annotated[Rows, As(tuple[BudgetRow, ...]), "Budgets of money."]


class Look(Document):
    """One look and the plan that it leads to."""

    version: int
    at: Annotated[float, "When it was looked."]
    pool: Annotated[str, "The pool's name."]
    acting: bool
    standing: Reason | None
    configuration: int
    timings: Mapping[str, float]
    sources: Annotated[Mapping[str, SourceState], SOURCES]
    jobs: JobCounts
    phases: Mapping[str, int]
    groups: Groups
    machines: Annotated[Rows, As(tuple[MachineOutlook, ...]), "What becomes of each machine."]
    cooldowns: Cooldowns
    annexes: Rows  # as the looks of `annex list`
    warnings: Annotated[Rows, As(tuple[Reason, ...]), "What is reported and leads to nothing by itself."]
    spending: Budgets
    actions: Annotated[Rows, As(tuple[ActionRow, ...]), "What would be done."]


# ------------------------------------------------------------------------ by cloud, class and user


class Counted(Document):
    """Machines of one cloud or class, and what they are."""

    machines: Annotated[int, "Machines, those on their way included."]
    cores: Annotated[int, "Their cores."]
    memory: Annotated[int, "Their memory, MiB."]
    cost_per_hour: Annotated[float, "What those of known price cost."]
    unknown_prices: Annotated[int, "How many have a price that isn't known."]
    phases: Annotated[Mapping[str, int], "How many machines in each phase."]


class Ceilings(Document):
    """The ceilings of this cloud; null is none."""

    machines: Annotated[int | None, "Machines at one time."]
    cores: Annotated[int | None, "Cores at one time."]
    memory: Annotated[int | None, "Memory at one time, MiB."]
    cost_per_hour: Annotated[float | None, "Cost per hour."]


class Both(Document):
    """Machines and cores."""

    machines: Annotated[int | None, "Machines; null where it isn't known."]
    cores: Annotated[int | None, "Cores; null where it isn't known."]


class NotEnding(Document):
    """Machines that stay."""

    machines: Annotated[int, "How many."]
    since: Annotated[float, "Since when, at the longest."]
    reason: Reason


class Silence(Document):
    """A cloud's silence."""

    since: Annotated[float, "When it was first asked without an answer."]
    last: Annotated[float | None, "When it last answered."]
    reason: Reason


class Rest(Document):
    """A rest of a whole cloud."""

    until: Annotated[float, "When it ends."]
    reason: Reason


class LastError(Document):
    """The latest error of a cloud."""

    at: Annotated[float, "When."]
    reason: Reason = field(metadata=IN_PLACE)


class CloudTally(Document):
    """A cloud as of the daemon's last look."""

    name: Annotated[str, "Its name."]
    state: Annotated[Literal["silent", "disabled", "resting", "not-ending", "ok"], "The first that is so."]
    silent: Annotated[Silence | None, "That it doesn't say its machines, since when and why; or null."]
    not_ending: Annotated[NotEnding | None, "That it doesn't end machines when it is told to; or null."]
    disabled: Annotated[Reason | None, "Why nothing is bought there, or null."]
    disabled_at: Annotated[float | None, "When an operator disabled it; null where the file does."]
    leaving: Annotated[bool, "Whether its machines leave as their jobs end."]
    rest: Annotated[Rest | None, "A rest of the whole cloud after failures; or null."]
    priority: Annotated[int, "Where it is lower is bought sooner."]
    counted: Counted = field(metadata=IN_PLACE)
    limits: Ceilings
    last_error: Annotated[LastError | None, "The latest error of the last day; or null."]
    quota_left: Annotated[Both, "What its quota leaves for more machines."]
    foreign: Annotated[Both, "What others than this pool have of it."]
    credentials_end: Annotated[float | None, "When the credentials end; null where they don't, or unknown."]


class ClassTally(Document):
    """A worker class."""

    name: Annotated[str, "Its name."]
    counted: Counted = field(metadata=IN_PLACE)
    min: Annotated[int | None, "Machines that are always kept; null of a class that the file lacks."]
    max: Annotated[int | None, "Machines at most; null where there is no such limit."]
    max_cores: Annotated[int | None, "Cores at most; null where there is no such limit."]
    waiting: Annotated[int, "Waiting jobs that could run on it; a job may count for several classes."]


class UserTally(Document):
    """A user (or a user of an accounting group) who has or wants anything."""

    user: Annotated[str, "The name, without its domain."]
    cores: Annotated[int, "Cores that the user's jobs have claimed."]
    waiting: Annotated[int, "Jobs that wait."]
    machines: Annotated[int, "Machines that the user's jobs are on."]
    max_cores: Annotated[int | None, "Cores that machines are bought for at most, or null."]
    max_machines: Annotated[int | None, "Machines that are bought at most, or null."]
    part: Annotated[float | None, "Part of all claimed cores; null where there are none."]
    share: Annotated[float, "Part that the negotiator would give by the users' priorities alone."]


class Tallies(Document):
    """What there is by cloud, class and user."""

    clouds: Annotated[Rows, As(tuple[CloudTally, ...]), "By cloud."]
    classes: Annotated[Rows, As(tuple[ClassTally, ...]), "By worker class."]
    spending: Budgets
    users: Annotated[Rows, As(tuple[UserTally, ...]), "Those with the most cores first; at most 1,000."]


# ------------------------------------------------------------------------------------------ the daemon


class DaemonState(Document):
    """The daemon, as the ledger shows it."""

    alive: Annotated[bool, "It has looked at the pool within the last minute, and its process lives."]
    acting: Annotated[bool, "It acts; false while it waits for another controller."]
    standing: Annotated[Mapping[str, str] | None, As(Reason | None), "Why it doesn't act, or null."]
    host: Annotated[str, "Where it runs."]
    pid: Annotated[int | None, "Its process there."]
    since: Annotated[float | None, "When it started."]
    looked_at: Annotated[float | None, "When it last looked."]
    age: Annotated[float | None, "How many seconds ago that was."]
