"""What is remembered and what was judged: the ledger's rows, verdicts, and the snapshot that holds all."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from updraft.core.model.annexes import Annex
from updraft.core.model.basics import NOTHING, MachineId, Reason, Resources, Source
from updraft.core.model.joins import JoinPace
from updraft.core.model.observed import CloudView, CollectorView, JobGroup, Kind, Offer, ScheddView
from updraft.core.model.spent import Spent
from updraft.core.model.variants import PLAIN, Variant


class LaunchState(StrEnum):
    """The state of a launch in the ledger."""

    INTENDED = "intended"  # written before the call: until it settles, all of it may exist
    ACCEPTED = "accepted"  # the cloud answered with ids
    REFUSED = "refused"  # the cloud answered no; `error` says why
    UNKNOWN = "unknown"  # no answer: the tags settle it
    SETTLED = "settled"  # looked at again: nothing more will come of it


@dataclass(frozen=True, slots=True)
class LaunchRecord:
    """The ledger's row of one launch, written before the cloud is asked; `variant` as of a machine's.

    `failed_at` is when the call ended without an answer, None where it has one, or was cut off.
    """

    key: str
    cloud: str
    zone: str
    flavor: str
    market: str
    worker_class: str
    image: str
    generation: str
    count: int
    resources: Resources
    price: float | None
    asked_at: float
    state: LaunchState
    ids: tuple[str, ...] = ()
    error: Reason | None = None
    variant: Variant = PLAIN
    failed_at: float | None = None


class DrainMode(StrEnum):
    """The two ways in which a machine leaves."""

    EMPTY = "empty"  # atomic test-and-close: refused if anything runs; no way back
    BUSY = "busy"  # closed to new jobs, running ones finish up to a deadline; can be taken back


@dataclass(frozen=True, slots=True)
class DrainRecord:
    """A drain that was begun. `accepted_at` is None until the pool said yes."""

    mode: DrainMode
    asked_at: float
    reason: Reason
    accepted_at: float | None = None
    deadline: float | None = None


@dataclass(frozen=True, slots=True)
class MachineRecord:
    """The ledger's record of one machine: what neither cloud nor pool can say by itself.

    `last_claimed_at` is when it was last seen (or known by its counter) to have a claim: idle counts from
    there; `job_starts` the counter then; `missing_since` when its cloud, known, stopped listing it;
    `gone_since` when the cloud, asked for it by its id, first said that it has ended, and `gone_heard`
    when the pool had last heard of it then (0: never); `silent_since` when an old-enough collector
    stopped having an ad of it; `seen_at` when its cloud first listed it. `adopted` is True where the tags
    were all that was known of it: then its past is not known either. `wanted_drain` is what an operator
    asked for; `let_go` that an operator wants it to stay and be ours no longer. `gaps` are the latest
    times, in seconds, that it was idle before it had a claim again.
    `variant` is the one that it is. `unanswered_since` is when its startd
    was first asked something in vain, and `unanswered_at` when last; None since it has answered.
    `other_schedds` have had jobs on it, by its ads, and were not in the pool's list then. `end_failed` is
    why its cloud did not take the last order to end it, `end_failed_at` the time of the first one since which
    it has taken none.
    """

    id: str
    cloud: str
    launch_key: str
    worker_class: str
    flavor: str
    generation: str
    requested_at: float
    resources: Resources = NOTHING
    zone: str = ""
    market: str = "on-demand"
    image: str = ""
    price: float | None = None
    joined_at: float | None = None
    last_claimed_at: float | None = None
    job_starts: int | None = None
    silent_since: float | None = None
    missing_since: float | None = None
    drain: DrainRecord | None = None
    terminate_asked_at: float | None = None
    ended_at: float | None = None
    end: Reason | None = None
    wanted_drain: DrainRecord | None = None
    seen_at: float | None = None
    adopted: bool = False
    let_go: Reason | None = None
    gaps: tuple[float, ...] = ()
    variant: Variant = PLAIN
    gone_since: float | None = None
    gone_heard: float = 0.0
    unanswered_since: float | None = None
    unanswered_at: float | None = None
    other_schedds: tuple[str, ...] = ()
    end_failed: Reason | None = None
    end_failed_at: float | None = None

    @property
    def key(self) -> MachineId:
        """Its cloud and its id."""
        return MachineId(self.cloud, self.id)


@dataclass(frozen=True, slots=True)
class AtWork:
    """The `machines` (cloud and id) that had a claim at the last decision, and the time `at` of its look."""

    machines: frozenset[MachineId]
    at: float


@dataclass(frozen=True, slots=True)
class Standstill:
    """Since when none of a group's jobs has begun by its schedd's word, though they have room by machines'
    words; how many waited and ran when that was seen last, and when the oldest of them had come."""

    since: float
    idle: int
    running: int
    oldest: float


@dataclass(frozen=True, slots=True)
class Untaken:
    """Of a job group that didn't take room that matches: how many times in a row, since when the last time,
    until when nothing is bought for it, and how many of its jobs ran at most meanwhile.

    `doubted` are machines (cloud and id) whose room it didn't take: it may be their fault. With no times they
    alone are doubted, or may come to be: `still` is what is known of that.
    """

    times: int
    since: float
    until: float
    running: int = 0
    doubted: tuple[MachineId, ...] = ()
    still: Standstill | None = None


@dataclass(frozen=True, slots=True)
class LedgerView:
    """The ledger's memory: all live machines, launches and ends of the last day, boots seen so far.

    `boots` maps (image, flavor) to the seconds from request to join of the latest boots, oldest first.
    `at_work` is for a ledger that keeps in one place who was busy last: the `last_claimed_at` of their
    records need not be written anew at each look, and is `at_work.at`. None where the records themselves say
    it.
    `untaken` has, by their keys, the job groups that didn't take the room that there was.
    """

    launches: tuple[LaunchRecord, ...] = ()
    machines: tuple[MachineRecord, ...] = ()
    boots: Mapping[tuple[str, str], tuple[float, ...]] = field(default_factory=dict)
    at_work: AtWork | None = None
    untaken: Mapping[str, Untaken] = field(default_factory=dict)


# -------------------------------------------------------------------------------------------- matching


@dataclass(frozen=True, slots=True)
class Verdict:
    """Would this group run on this kind? `copies` is how many of its jobs an empty slot holds.

    Where `copies` is 0, `reasons` names each clause that fails, on either side. `decided` is False where the
    requirements could not be evaluated: then nothing is launched for the pair and nothing is drained for it.
    `asks` is what one job takes from a slot of this kind, rounded as the startd rounds it.
    """

    copies: int
    asks: Resources
    reasons: tuple[Reason, ...] = ()
    decided: bool = True


Verdicts = Mapping[tuple[str, str], Verdict]


@dataclass(frozen=True, slots=True)
class Observed:
    """What every source said, each known or unknown, and what the controller knows of itself.

    `annexes` are all that the ledger has. `jumped_at` is when, by the clock as it went on, it was last seen
    to jump; None for never. `launching` are the keys of launches whose calls went on when the look began;
    calls from before `awake_since` were cut off then. Another controller acted until `taken_over_at`; None
    where none has since this one began. `left_out` names what the look could make nothing of, and that
    doesn't say so itself. `spent` is what the records say was spent, None where nobody has asked: then no
    budget of a day or month is known to have anything left.
    """

    now: float
    pool: str
    schedds: Mapping[str, Source[ScheddView]]
    collector: Source[CollectorView]
    clouds: Mapping[str, CloudView]
    ledger: LedgerView = field(default_factory=LedgerView)
    annexes: tuple[Annex, ...] = ()
    jumped_at: float | None = None
    launching: frozenset[str] = frozenset()
    awake_since: float = 0.0
    taken_over_at: float | None = None
    left_out: tuple[Reason, ...] = ()
    spent: Source[Spent] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot(Observed):
    """What one decision is made about, prepared from what was observed.

    `verdicts` is keyed by (group key, kind key); a pair that is missing was not evaluated. `spare` are groups
    of jobs that don't exist, for which room is to be kept ready now. `pace` is how fast machines may join, by
    what the collectors have said up to now.
    """

    offers: tuple[Offer, ...] = ()
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    verdicts: Verdicts = field(default_factory=dict)
    spare: tuple[JobGroup, ...] = ()
    pace: JoinPace = JoinPace()  # noqa: RUF009 - frozen
