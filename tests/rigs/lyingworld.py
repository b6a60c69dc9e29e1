"""A world of machines and jobs as it is, and sources that each lie about it, for properties of the plan.

First there is the truth: machines that are there or not, whose systems live or not, jobs on them with their
leases. Then each source tells of it, and may leave out, lag, contradict, forge or be silent (`Lies`). What
the plan wants is done to the truth.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tests.rigs.annexworlds import with_annexes
from tests.rigs.snapshots import ASK, DOWN, NOW, SMALL, instance, slot, snapshot
from updraft.core.model import (
    PLAIN,
    Adopt,
    Annex,
    Child,
    CloudState,
    CloudView,
    CollectorView,
    Drain,
    DrainMode,
    DrainRecord,
    Forget,
    Instance,
    Known,
    Launch,
    LedgerView,
    MachineRecord,
    Plan,
    Questions,
    Reason,
    RequeueJobs,
    Resources,
    RunningJob,
    ScheddView,
    Slot,
    Snapshot,
    Source,
    Terminate,
    Undrain,
    Unknown,
    Variant,
)
from updraft.core.plan import plan
from updraft.core.settings import Policy

LEASE = 2400.0
KEEPS_ADS = 900.0
SCHEDDS = ("one", "two")
FAR = "far"  # which flocks here, and which the pool's list doesn't have
ABSURD: Mapping[str, Mapping[str, Any]] = {
    "state": {"state": "Banana", "children": (Child("Wat", "\u2603", ASK, "alice@pool"),)},
    "idle": {"state": "Unclaimed", "children": (), "free": SMALL},
    "nothing": {"total": Resources(), "free": Resources(), "children": (), "job_starts": None},
    "numbers": {"free": Resources(10**15, 10**15, 10**15, 10**15), "job_starts": -(10**15)},
    "times": {"started": 1e15, "retirement": -1e15, "job_starts": 10**15},
    "unheard": {"heard": 0.0},
    "ahead": {"heard": NOW + 1e12},
    "schedds": {"schedds": ("nobody", "\u2603")},
    "drained": {"state": "Drained", "activity": "Retiring", "children": (), "draining": True},
}
"""What an ad may say that makes no sense, or that isn't so: by the fields of a slot."""


@dataclass
class Machine:
    """The truth about one. `there`: its cloud has it; `up`: its system lives. `job` is its schedd's name, and
    `job_id` the job's own: two machines that have the same run one job together. `slots` are static ones, of
    which the first has the job; with one it is partitionable.

    `renewed` is when the job's lease was, and `heard` when the collector last heard of it (0: it has no ad of
    it), both by the clocks on the wall; `lived` and `seen` are the same in seconds that have really passed.
    `identity` is that of the pool that launched it, as its tag says. `variant` is that of the annex that it
    is of. `killed` says that a person wants it to go with its jobs.
    """

    id: str
    since: float
    there: bool = True
    up: bool = True
    joined: bool = True
    job: str = ""
    renewed: float = 0.0
    heard: float = 0.0
    lived: float = 0.0
    seen: float = 0.0
    closed: bool = False
    identity: str = ""
    job_id: str = "7.0"
    slots: int = 1
    variant: Variant = PLAIN
    killed: bool = False

    def works(self, elapsed: float) -> bool:
        """Does a job live there, as far as this machine goes?"""
        return self.up and bool(self.job) and self.lived + LEASE > elapsed


@dataclass(frozen=True)
class Lies:
    """What the sources get wrong at one look. Machines by their ids."""

    left_out: frozenset[str] = frozenset()
    states: tuple[tuple[str, CloudState], ...] = ()
    denied: frozenset[str] = frozenset()  # asked by id, its cloud says that there is no such one, once
    always_denied: frozenset[str] = frozenset()  # the same, as often as it is asked
    untagged: frozenset[str] = frozenset()
    listing_silent: bool = False
    listing_old: bool = False  # the last answer, read again
    by_id_silent: bool = False
    lost_ads: frozenset[str] = frozenset()  # nothing of theirs reaches the collector
    collector_new: bool = False
    collector_silent: bool = False
    forged: frozenset[str] = frozenset()  # an ad of theirs says that it is empty and drains for us
    silent: frozenset[str] = frozenset()  # schedds
    partly: frozenset[str] = frozenset()  # schedds of whose answer what runs was cut off
    absurd: tuple[tuple[str, str], ...] = ()  # whose ads say which of ABSURD
    wanted: tuple[tuple[str, bool], ...] = ()  # no lie: machines that a person drains, True with their jobs
    ledger_lost: bool = False


@dataclass
class World:
    """The truth, and the controller's memory of it."""

    policy: Policy
    machines: dict[str, Machine] = field(default_factory=dict)
    now: float = NOW
    elapsed: float = 0.0
    jumped_at: float | None = None
    records: dict[str, MachineRecord] = field(default_factory=dict)
    questions: Questions = field(default_factory=Questions)
    collector_started: float = NOW - 100_000
    ledger_lost: bool = False
    annexes: tuple[Annex, ...] = ()
    _listing: Known[tuple[Instance, ...]] | None = None
    _found: dict[str, Known[Instance | None]] = field(default_factory=dict)
    _denied: set[str] = field(default_factory=set)
    _schedds: dict[str, Known[ScheddView]] = field(default_factory=dict)

    # ---------------------------------------------------------------------------------- what is so

    def works(self, one: Machine) -> bool:
        """Does a job live there? One that runs on two machines lives as long as both do."""
        return bool(one.job) and all(each.works(self.elapsed) for each in self.of_job(one.job, (one.job_id,)))

    def of_job(self, schedd: str, jobs: Iterable[str]) -> list[Machine]:
        """The machines on which any of these jobs runs."""
        return [one for one in self.machines.values() if one.job == schedd and one.job_id in jobs]

    def deadline(self, one: Machine) -> float:
        """From when on the policy ends it whatever runs there, by the clock on the wall."""
        worker = self.policy.classes["default"]
        leases = [each.until for each in self.annexes if one.variant and each.variant == one.variant]
        return min([one.since + worker.lifetime + worker.drain_deadline, *leases])

    @property
    def settled(self) -> bool:
        """Has the clock gone on by itself for long enough that a deadline means something?"""
        return self.jumped_at is None or self.now - self.jumped_at >= self.policy.timings.collector_age

    # ------------------------------------------------------------------------------- the truth goes on

    def jumps(self, by: float) -> None:
        """The clocks are set; the controller, which compares them with one that nobody sets, sees it."""
        self.now += by
        self.jumped_at = self.now
        for one in self.machines.values():
            one.since = min(one.since, self.now)  # nothing waits until it is as late again

    def passes(self, seconds: float, lies: Lies) -> None:
        """Time passes, with nobody looking: ads and leases are renewed by whoever lives."""
        self.now += seconds
        self.elapsed += seconds
        if lies.collector_new:
            self.collector_started = self.now
            for one in self.machines.values():
                one.heard = 0.0
        for one in self.machines.values():
            reaches = one.up and one.joined and one.id not in lies.lost_ads
            if reaches:
                one.heard, one.seen = self.now - 1.0, self.elapsed
            elif one.heard and self.now - one.heard > KEEPS_ADS:
                one.heard = 0.0
            if one.up and one.job and one.job not in lies.silent:
                one.renewed, one.lived = self.now, self.elapsed
        for one in self.machines.values():
            if not one.up and one.lived + LEASE <= self.elapsed:
                self._over(one.job, (one.job_id,))

    def _over(self, schedd: str, jobs: Iterable[str]) -> None:
        """These jobs run here no more: they are back in their queue."""
        for one in self.of_job(schedd, jobs):
            one.job = ""

    def by_hand(self, lies: Lies) -> None:
        """A person wants some machines to go: what the ledger doesn't know nobody can ask for."""
        for id_, kill in lies.wanted:
            record, one = self.records.get(id_), self.machines[id_]
            if record is not None and record.ended_at is None:
                one.killed = one.killed or kill
                why = Reason("operator", "as a test says")
                deadline = self.now if one.killed else None
                wanted = DrainRecord(DrainMode.BUSY, self.now, why, deadline=deadline)
                self.records[id_] = replace(record, wanted_drain=wanted)

    # ---------------------------------------------------------------------------- what is told of it

    def look(self, lies: Lies) -> Snapshot:
        """What the sources say now."""
        if lies.ledger_lost:
            self.records.clear()
            self.ledger_lost = True
            for one in self.machines.values():
                one.killed = False
        self.by_hand(lies)
        shown = snapshot(now=self.now, jumped_at=self.jumped_at)
        told = replace(
            shown,
            schedds=self._told_by_schedds(lies),
            collector=self._told_by_collector(lies),
            clouds={"c1": self._told_by_cloud(shown.clouds["c1"], lies)},
            ledger=LedgerView(machines=tuple(self.records.values())),
        )
        return with_annexes(told, self.annexes)

    def _instance(self, one: Machine, lies: Lies) -> Instance:
        state = dict(lies.states).get(one.id, CloudState.RUNNING)
        return instance(one.id, state, launched_at=one.since, identity=one.identity, variant=one.variant)

    def _told_by_cloud(self, view: CloudView, lies: Lies) -> CloudView:
        listed: Source[tuple[Instance, ...]]
        there = [one for one in self.machines.values() if one.there]
        if lies.listing_silent:
            listed = Unknown(DOWN, self.now, self._listing)
        elif lies.listing_old and self._listing is not None:
            listed = self._listing
        else:
            missing = lies.left_out | lies.untagged
            told = tuple(self._instance(one, lies) for one in there if one.id not in missing)
            listed = self._listing = Known(told, self.now)
        wanted = {id_ for _, id_ in self.questions.machines}
        self._found = {id_: said for id_, said in self._found.items() if id_ in wanted}
        if not lies.by_id_silent:
            self._ask_by_id(wanted, lies)
        return replace(view, machines=listed, found=dict(self._found))

    def _ask_by_id(self, wanted: Iterable[str], lies: Lies) -> None:
        for id_ in wanted:
            last = self._found.get(id_)
            if last is not None and 0 <= self.now - last.at < 10.0:
                continue
            one = self.machines[id_]
            # That an id is denied twice in a row, 10 s apart, is what everybody goes by.
            denied = id_ in lies.denied and id_ not in self._denied
            (self._denied.add if denied else self._denied.discard)(id_)
            denied = denied or id_ in lies.always_denied
            tagged = id_ not in lies.untagged
            said = instance(id_, tagged=tagged, identity=one.identity) if one.there and not denied else None
            self._found[id_] = Known(said, self.now)

    def _told_by_collector(self, lies: Lies) -> Source[CollectorView]:
        if lies.collector_silent:
            return Unknown(DOWN, self.now)
        slots = [made for one in self.machines.values() if one.heard for made in self._slots(one, lies)]
        return Known(CollectorView(tuple(slots), self.collector_started, self.now - 5), self.now)

    def _slots(self, one: Machine, lies: Lies) -> list[Slot]:
        """Its slots' ads; of several all but the first are idle. An absurd ad is the first one's."""
        made = [self._slot(one, lies)]
        absurd = dict(lies.absurd).get(one.id)
        for number in range(2, one.slots + 1):
            more = replace(made[0], name=f"slot{number}@{one.id}@host", children=(), schedds=())
            made.append(replace(more, state="Unclaimed", activity="Idle", partitionable=False))
        if absurd is not None:
            made[0] = replace(made[0], **ABSURD[absurd])
        return made

    def _slot(self, one: Machine, lies: Lies) -> Slot:
        made = slot(one.id, heard=one.heard, started=one.since)
        if one.id in lies.forged:
            reason = "updraft spot-notice: the cloud takes the machine back"
            return replace(made, heard=self.now, draining=True, drain_reason=reason)
        closed: dict[str, Any] = (
            {"draining": True, "drain_reason": "updraft operator: x"} if one.closed else {}
        )
        if one.job and one.slots > 1:
            made = replace(made, state="Claimed", activity="Busy", partitionable=False, schedds=(one.job,))
        elif one.job:
            child = Child("Claimed", "Busy", ASK, "alice@pool")
            made = replace(made, children=(child,), free=SMALL - ASK, schedds=(one.job,))
        return replace(made, **closed)

    def _told_by_schedds(self, lies: Lies) -> dict[str, Source[ScheddView]]:
        found: dict[str, Source[ScheddView]] = {}
        for name in SCHEDDS:
            if name in lies.silent:
                found[name] = Unknown(DOWN, self.now, self._schedds.get(name))
                continue
            running = tuple(
                RunningJob(name, one.job_id, f"slot1_1@{one.id}@host", "alice", one.renewed + LEASE)
                for one in self.machines.values()
                if one.job == name
            )
            asked = bool(self.questions.jobs) and name not in lies.partly
            view = ScheddView(running=running if asked else None)
            found[name] = self._schedds[name] = Known(view, self.now)
        return found

    # -------------------------------------------------------------------------- what the plan does to it

    def decide(self, lies: Lies) -> Plan:
        """One decision, with what it wants to remember; `carry_out` does what it wants done."""
        return self.decide_on(self.look(lies))

    def decide_on(self, told: Snapshot) -> Plan:
        """The same about what the sources have said."""
        made = plan(told, self.policy)
        self.questions = made.questions
        self.records.update({one.id: one for one in made.records})
        return made

    def carry_out(self, made: Plan) -> None:
        """Do it to the truth."""
        for action in made.actions:
            match action:
                case Terminate(machines=ids):
                    self._end(ids)
                case Drain():
                    self._drain(action)
                case Undrain(machine=id_):
                    self.machines[id_].closed = False
                    self.records[id_] = replace(self.records[id_], drain=None)
                case RequeueJobs(schedd=schedd, jobs=jobs):
                    self._over(schedd, jobs)
                case Forget(machine=id_):
                    self.machines[id_].heard = 0.0
                case _:
                    assert isinstance(action, Adopt | Launch), f"unexpected: {action}"

    def _end(self, ids: Iterable[str]) -> None:
        for id_ in ids:
            one = self.machines[id_]
            one.there = one.up = False
            self.records[id_] = replace(self.records[id_], terminate_asked_at=self.now)

    def _drain(self, action: Drain) -> None:
        """The startd itself is asked: one that doesn't live can't answer."""
        one, record = self.machines[action.machine], self.records[action.machine]
        drain = DrainRecord(action.mode, self.now, action.reason, None, action.deadline)
        if one.up and one.joined:
            if action.mode is DrainMode.EMPTY and one.job:
                self.records[one.id] = replace(record, drain=None, last_claimed_at=self.now)
                return
            drain = replace(drain, accepted_at=self.now)
            one.closed = True
            if action.mode is DrainMode.EMPTY:
                one.up, one.heard = False, 0.0  # its startd leaves; nothing ran there
        self.records[one.id] = replace(record, drain=drain)
