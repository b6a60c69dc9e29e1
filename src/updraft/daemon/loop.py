"""The daemon's loop. Time and sleeping come from outside: tests and the simulator run it in virtual time."""

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

import structlog

from updraft.act import Actor, UserData
from updraft.act.launching import going_on
from updraft.clouds.base import Driver
from updraft.condor.base import Pool
from updraft.core.demand.left_out import UNREAD_ANNEX
from updraft.core.model import Known, Observation, Plan, Prepared, Reason, Snapshot
from updraft.core.settings import Policy
from updraft.daemon import report, requests
from updraft.daemon.adoption import adoptions
from updraft.daemon.clockwatch import JUMP, ClockWatch
from updraft.daemon.herald import Herald
from updraft.daemon.notify import Notify, notifier
from updraft.daemon.preparing import PACE, Preparer
from updraft.daemon.tallies import tallies
from updraft.daemon.usage import UsageKeeper
from updraft.daemon.watchdog import Watchdog, interval
from updraft.errors import LedgerError, StateLost, UpdraftError
from updraft.ledger import Ledger, clouds
from updraft.observe import Observer
from updraft.recording import Recorder

PRUNE_EVERY = 3600.0
CLOCK = "clock"
"""The note of how this host's clock went on."""
SAVE_EVERY = 10.0
AFTER_A_FAULT = 10.0
_NUMBER = re.compile(r"(?<![\w-])\d[\w.,:]*")
WATCHED = 5.0

Planner = Callable[[Snapshot, Policy], Plan]


class Sleeper(Protocol):
    """How the loop waits and is told to stop or reload: `Switch`, or a virtual one."""

    stop: bool
    reload: bool

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until woken."""


def _nothing() -> None:
    """There is nothing to give back."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a configuration leads to; made anew when it is reloaded, and `close`d when others take over."""

    policy: Policy
    pool: Pool
    drivers: Mapping[str, Driver]
    user_data: UserData
    close: Callable[[], None] = _nothing


@dataclass(frozen=True, slots=True)
class Cycle:
    """One turn of the loop. `standing` is None where this controller acted, else why it did not."""

    snapshot: Snapshot
    plan: Plan
    standing: Reason | None
    late: tuple[str, ...] = ()


Seen = Callable[[Cycle, Policy, Mapping[str, Driver]], None]
"""Who is shown each turn of the loop, with the policy that it went by and the drivers; raises nothing."""


class Daemon:
    """Keeps a pool as its policy wants it, until told to stop or everything is destroyed.

    `herald` None acts without asking who else does: for simulations, never for a real pool.
    `reload` makes the parts anew from the configuration; it raises UpdraftError where that is wrong.
    `seen` is shown each turn, and `recorder` writes down each decision.
    """

    def __init__(
        self,
        *,
        parts: Parts,
        ledger: Ledger,
        observer: Observer,
        preparer: Preparer,
        actor: Actor,
        plan: Planner,
        clock: Callable[[], float],
        switch: Sleeper,
        herald: Herald | None = None,
        reload: Callable[[], Parts] | None = None,
        stopwatch: Callable[[], float] = time.monotonic,
        notify: Notify | None = None,
        watchdog: Watchdog | None = None,
        seen: Seen | None = None,
        recorder: Recorder | None = None,
        boot: str = "",
    ) -> None:
        self.parts = parts
        self._ledger = ledger
        self._observer = observer
        self._preparer = preparer
        self._actor = actor
        self._plan = plan
        self._clock = clock
        self._switch = switch
        self._herald = herald
        self._reload = reload
        self._stopwatch = stopwatch
        self._notify = notify or notifier()
        self._watchdog = watchdog or Watchdog(actor.under_way, self._notify, interval())
        self._seen = seen
        self._recorder = recorder
        self._log = structlog.get_logger("updraft").bind(pool=parts.policy.pool)
        self._started = clock()
        self._loaded = 1
        self._usage = UsageKeeper(ledger)
        self._pruned = float("-inf")
        self._saved: tuple[float, str] = (float("-inf"), "")
        self._told: frozenset[Reason] = frozenset()
        self._silent: frozenset[str] = frozenset()
        self._logged = max((event.id for event in ledger.events(limit=1)), default=0)
        self._stood: str | None = ""
        self._acts_since: float | None = None
        self._times = ClockWatch(ledger.noted(CLOCK), boot)
        self._clock_noted: dict[str, Any] = {}
        self._deferred = False  # to another controller, since this one last acted
        self._taken_over_at: float | None = None
        self.destroyed = False

    def run(self) -> None:
        """Turn until stopped. Machines stay when the daemon stops.

        Raises StateLost where its state directory was taken away.
        """
        self._say("started", Reason("started", "the controller has started"))
        if self._herald is not None:
            self._herald.start()
        with self._watchdog:
            self._notify("READY=1")
            try:
                while not self._switch.stop and not self.destroyed:
                    self._watchdog.beat()
                    self._take_up_reload()
                    pause = self._turn()
                    self._rest(pause)
            finally:
                self._notify("STOPPING=1")
                if self._herald is not None:
                    self._herald.stop()
        self._say("stopped", Reason("stopped", "the controller has stopped; its machines stay"))

    def _turn(self) -> float:
        """One cycle, and how long to rest after it. A fault costs a cycle, never the daemon.

        Raises StateLost where the daemon has nothing left to go on with.
        """
        begun = self._stopwatch()
        try:
            self.cycle()
        except StateLost:
            raise
        except UpdraftError as error:
            self._log.error("cycle failed", why=str(error))
            return AFTER_A_FAULT
        except Exception:
            self._log.exception("cycle failed by a fault of updraft itself")
            return AFTER_A_FAULT
        left = self._observer.pause - (self._stopwatch() - begun)
        return max(self.parts.policy.timings.cycle, left)

    def _rest(self, seconds: float) -> None:
        # In portions: a loop that only waits moves, too.
        while seconds > 0 and not (self._switch.stop or self._switch.reload or self.destroyed):
            self._watchdog.beat()
            self._switch.wait(min(seconds, WATCHED))
            seconds -= WATCHED

    # -------------------------------------------------------------------------------------- one cycle

    def cycle(self) -> Cycle:
        """Look, prepare, plan, and act if this controller may."""
        times = {"begun": self._stopwatch()}
        now = self._clock()
        if self._times.look(now, times["begun"]):
            self._say("clock-jumped", self._times.reason)
        prepared, policy, standing = self._prepared(now)
        seen, snapshot = prepared.observation, prepared.snapshot
        off = self._off(snapshot.now)
        times["looked"] = self._stopwatch()
        plan = self._decided(prepared, policy)
        plan = plan if off is None else replace(plan, warnings=(*plan.warnings, off))
        self._observer.questions = plan.questions
        if standing is None:
            asked = adoptions(self._ledger, seen, policy)
            plan = replace(plan, actions=(*asked, *plan.actions)) if asked else plan
        times["planned"] = self._stopwatch()
        late = self._actor.carry_out(plan, snapshot) if standing is None else ()
        times["acted"] = self._stopwatch()
        cycle = Cycle(snapshot, plan, standing, late)
        if self._seen is not None:
            self._seen(cycle, policy, self.parts.drivers)
        self._remember(cycle, _took(times), policy)
        if policy.closing and standing is None and requests.all_gone(snapshot):
            self._finish_destroying(snapshot.now)
        return cycle

    def _prepared(self, now: float) -> tuple[Prepared, Policy, Reason | None]:
        """What is to be decided about and by which policy, and why this controller may not act."""
        # Before the ledger is read, which then has what became of others.
        launching = going_on(self._actor.under_way())
        seen = self._observer.look(now)
        learned = self._preparer.learn(seen, self.policy)
        standing = self._standing(seen)
        seen = replace(
            seen,
            jumped_at=self._times.jumped_at,
            launching=launching,
            awake_since=self._started,
            left_out=(*seen.left_out, *_unread(self._ledger)),
            taken_over_at=self._taken_over(standing, learned.at),
        )
        if standing is None:
            self._acts_since = since = learned.at if self._acts_since is None else self._acts_since
            seen = requests.take_up(self._ledger, seen, self.parts.policy, since)
        else:
            self._acts_since = None
        policy = self.policy
        return self._preparer.prepare(seen, learned, policy), policy, standing

    def _decided(self, prepared: Prepared, policy: Policy) -> Plan:
        if self._recorder is None:
            return self._plan(prepared.snapshot, policy)
        return self._recorder.decided(prepared, policy, self._plan)

    @property
    def policy(self) -> Policy:
        """The policy in force: the configuration's with what was decided of clouds since, closing while a
        `destroy` is open."""
        policy = clouds.in_force(self.parts.policy, clouds.overrides(self._ledger))
        return replace(policy, closing=bool(requests.closing(self._ledger)))

    def _standing(self, seen: Observation) -> Reason | None:
        if self._herald is None:
            return None
        collector = seen.collector
        return self._herald.standing(collector.value.started if isinstance(collector, Known) else None)

    def _off(self, now: float) -> Reason | None:
        """Why this host's clock isn't to be believed, by the collector's."""
        if self._herald is None:
            return None
        return self._times.compare(now, self._herald.ahead, JUMP + self._herald.precision)

    def _taken_over(self, standing: Reason | None, now: float) -> float | None:
        """When this controller began to act in another's place."""
        if standing is not None:
            self._deferred = self._deferred or standing.code == "second-controller"
        elif self._deferred:
            self._deferred, self._taken_over_at = False, now
        return self._taken_over_at

    def _finish_destroying(self, now: float) -> None:
        for request in requests.closing(self._ledger):
            self._ledger.done(request.id, "done: no machine is left", now)
        self.destroyed = True
        self._say("destroyed", Reason("destroyed", "no machine of this pool is left"))

    # ------------------------------------------------------------------------------- what is told of it

    def _remember(self, cycle: Cycle, took: Mapping[str, float], policy: Policy) -> None:
        now = cycle.snapshot.now
        doc, told = report.document(
            cycle.snapshot, cycle.plan, standing=cycle.standing, timings=took, generation=self._loaded
        )
        used = self._usage.look(cycle.snapshot, cycle.plan if cycle.standing is None else Plan(), policy)
        cycle = replace(cycle, plan=told)
        substance = report.substance(doc) + repr((policy.clouds, policy.cloud_limits))
        with self._ledger.together():
            self._tell(cycle)
            for kind, text in self._preparer.fresh.items():
                self._ledger.learn(kind, text, now)
            self._preparer.fresh.clear()
            self._note_self(now, cycle.standing)
            if used is not None:
                self._ledger.book(used)
            # The document is written when something in it has changed, not each time that it grew older.
            # A clock that was set back must not keep it from that.
            if substance != self._saved[1] or abs(now - self._saved[0]) >= SAVE_EVERY:
                decided = clouds.overrides(self._ledger)
                doc.update(tallies(cycle.snapshot, cycle.plan, policy, decided))
                self._ledger.save_cycle(doc, now)
                self._ledger.note("schedds", {"seen": self._observer.schedds_seen}, now)
                self._ledger.note(PACE, self._preparer.pace_note, now)
                self._saved = (now, substance)
            if abs(now - self._pruned) >= PRUNE_EVERY:
                self._ledger.prune(now)
                self._pruned = now
        self._usage.written()
        self._log_sources(cycle.snapshot)
        self._write_line(cycle, took)
        self._log_outcomes()

    def _note_self(self, now: float, standing: Reason | None) -> None:
        host = self._herald.host if self._herald is not None else ""
        doc = {
            "pid": os.getpid(),
            "host": host,
            "started": self._started,
            "last_cycle": now,
            "acting": standing is None,
        }
        self._ledger.note("controller", doc, now)
        if self._times.note != self._clock_noted:
            self._clock_noted = self._times.note
            self._ledger.note(CLOCK, self._clock_noted, now)

    def _tell(self, cycle: Cycle) -> None:
        """Warnings and the standing become events when they come up, not as long as they last."""
        warnings = frozenset(cycle.plan.warnings)
        codes = {(reason.code, _stem(reason.text)) for reason in self._told}
        for warning in cycle.plan.warnings:
            if (warning.code, _stem(warning.text)) not in codes:
                self._ledger.event(cycle.snapshot.now, "warning", "", warning)
                self._log.warning(warning.text, code=warning.code)
        self._told = warnings
        code = None if cycle.standing is None else cycle.standing.code
        if code != self._stood:
            self._stood = code
            reason = cycle.standing or Reason("acting", "this controller acts for the pool")
            self._ledger.event(cycle.snapshot.now, "standing", "", reason)
            self._log.info(reason.text, code=reason.code)

    def _log_sources(self, snapshot: Snapshot) -> None:
        """Who doesn't answer is said when it begins and when it ends, not as long as it lasts."""
        silent = {
            name: source["error"]
            for name, source in report.sources(snapshot).items()
            if source["state"] == "unknown"
        }
        for name in sorted(silent.keys() - self._silent):
            self._log.warning(f"{name}: no answer: {silent[name]['text']}", code=silent[name]["code"])
        for name in sorted(self._silent - silent.keys()):
            self._log.info(f"{name}: answers again", code="answers")
        self._silent = frozenset(silent)

    def _log_outcomes(self) -> None:
        """What became of what was begun, also in earlier cycles, is said in the log as in the ledger."""
        for event in self._ledger.events(after=self._logged, kinds=report.OUTCOMES):
            self._logged = event.id
            self._log.info(report.outcome(event), code=event.code)

    def _write_line(self, cycle: Cycle, took: Mapping[str, float]) -> None:
        if cycle.standing is not None or not cycle.plan.actions:
            return
        counts = report.jobs(cycle.snapshot)
        for text, code in report.lines(cycle.snapshot, cycle.plan):
            self._log.info(text, code=code)
        self._log.info(
            "cycle",
            waiting=counts["idle"],
            running=counts["running"],
            machines=len(cycle.plan.machines),
            actions=len(cycle.plan.actions),
            late=len(cycle.late),
            took=round(sum(took.values()), 2),
        )

    def _say(self, kind: str, reason: Reason) -> None:
        self._log.info(reason.text, code=reason.code)
        try:
            self._ledger.event(self._clock(), kind, "", reason)
        except LedgerError as error:
            self._log.error("the ledger can't be written", why=str(error))

    # ------------------------------------------------------------------------------------------ reload

    def _take_up_reload(self) -> None:
        if not self._switch.reload:
            return
        self._switch.reload = False
        if self._reload is None:
            return
        self._notify("RELOADING=1")
        try:
            parts = self._reload()
            self._observer.reconfigure(parts.policy, parts.pool, parts.drivers)
            self._actor.reconfigure(parts.policy, parts.pool, parts.drivers, parts.user_data)
        except UpdraftError as error:
            text = f"the changed configuration is wrong, the old one stays in force: {error}"
            self._say("reload-failed", Reason("bad-configuration", text))
        else:
            old, self.parts = self.parts, parts
            self._loaded += 1
            if self._herald is not None:
                self._herald.pool = parts.pool
            old.close()
            self._say("reloaded", Reason("reloaded", "the changed configuration is in force"))
        self._notify("READY=1")


def run_once(
    observer: Observer, preparer: Preparer, plan: Planner, policy: Policy, now: float
) -> tuple[Snapshot, Plan]:
    """One look and the plan that it leads to. Nothing is done and nothing is written."""
    snapshot = preparer.at_once(observer.look(now), policy).snapshot
    return snapshot, plan(snapshot, policy)


def _unread(ledger: Ledger) -> Iterator[Reason]:
    """What says which annexes can't be read in the ledger: their machines are as those of an unknown one."""
    for name in ledger.unread_annexes():
        text = f"left out: annex {name}: its row in the ledger can't be read; create it again to replace it"
        yield Reason(UNREAD_ANNEX, text)


def _took(times: Mapping[str, float]) -> dict[str, float]:
    return {
        "look": times["looked"] - times["begun"],
        "plan": times["planned"] - times["looked"],
        "act": times["acted"] - times["planned"],
    }


def _stem(text: str) -> str:
    """A warning's text without its numbers, which grow while it is the same warning; those in names stay."""
    return _NUMBER.sub("", text)
