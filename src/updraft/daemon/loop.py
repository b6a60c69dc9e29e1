"""The daemon's loop, and how it sleeps and is woken (`Switch`).

Time and sleeping come from outside: tests and the simulator run it in virtual time.
"""

import os
import select
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import Protocol

import structlog

from updraft.act import Actor, UserData
from updraft.act.launching import going_on
from updraft.clouds.cloud import Cloud
from updraft.condor.base import Pool
from updraft.core.demand.left_out import UNREAD_ANNEX
from updraft.core.model import Known, Observation, Plan, Prepared, Reason, Snapshot
from updraft.core.settings import Policy
from updraft.daemon import requests
from updraft.daemon.adoption import adoptions
from updraft.daemon.clockwatch import JUMP, ClockWatch
from updraft.daemon.election import LeaderElection
from updraft.daemon.notify import Notify, notifier
from updraft.daemon.preparing import Preparer
from updraft.daemon.reporting import CLOCK, Cycle, Reporter
from updraft.daemon.watchdog import Watchdog, interval
from updraft.errors import StateLost, UpdraftError
from updraft.ledger import Ledger, clouds
from updraft.observe import Observer
from updraft.recording import Recorder

AFTER_A_FAULT = 10.0
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
    clouds: Mapping[str, Cloud]
    user_data: UserData
    close: Callable[[], None] = _nothing


Seen = Callable[[Cycle, Policy, Mapping[str, Cloud]], None]
"""Who is shown each turn of the loop, with the policy that it went by and the clouds; raises nothing."""


class Daemon:
    """Keeps a pool as its policy wants it, until told to stop or everything is destroyed.

    `election` None acts without asking who else does: for simulations, never for a real pool.
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
        election: LeaderElection | None = None,
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
        self._election = election
        self._reload = reload
        self._stopwatch = stopwatch
        self._notify = notify or notifier()
        self._watchdog = watchdog or Watchdog(actor.under_way, self._notify, interval())
        self._seen = seen
        self._recorder = recorder
        self._log = structlog.get_logger("updraft").bind(pool=parts.policy.pool)
        self._started = clock()
        host = "" if election is None else election.host
        self._reporter = Reporter(ledger, observer, preparer, parts.policy.pool, host, self._started)
        self._loaded = 1
        self._acts_since: float | None = None
        self._times = ClockWatch(ledger.noted(CLOCK), boot)
        self._deferred = False  # to another controller, since this one last acted
        self._taken_over_at: float | None = None
        self.destroyed = False

    def run(self) -> None:
        """Turn until stopped. Machines stay when the daemon stops.

        Raises StateLost where its state directory was taken away.
        """
        self._say("started", Reason("started", "the controller has started"))
        if self._election is not None:
            self._election.start()
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
                if self._election is not None:
                    self._election.stop()
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
            self._seen(cycle, policy, self.parts.clouds)
        self._reporter.remember(cycle, _took(times), policy, self._loaded, self._times.note)
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
        if self._election is None:
            return None
        collector = seen.collector
        return self._election.standing(collector.value.started if isinstance(collector, Known) else None)

    def _off(self, now: float) -> Reason | None:
        """Why this host's clock isn't to be believed, by the collector's."""
        if self._election is None:
            return None
        return self._times.compare(now, self._election.ahead, JUMP + self._election.precision)

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

    def _say(self, kind: str, reason: Reason) -> None:
        self._reporter.say(kind, reason, self._clock())

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
            self._observer.reconfigure(parts.policy, parts.pool, parts.clouds)
            self._actor.reconfigure(parts.policy, parts.pool, parts.clouds, parts.user_data)
        except UpdraftError as error:
            text = f"the changed configuration is wrong, the old one stays in force: {error}"
            self._say("reload-failed", Reason("bad-configuration", text))
        else:
            old, self.parts = self.parts, parts
            self._loaded += 1
            if self._election is not None:
                self._election.pool = parts.pool
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


class Switch:
    """`stop` and `reload` are set by signals; `wait` returns early when one comes."""

    def __init__(self) -> None:
        self.stop = False
        self.reload = False
        # A pipe, because nothing else that wakes a waiting thread may be used inside a signal handler.
        self._ear, self._mouth = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)

    def install(self) -> None:
        """Listen to SIGTERM and SIGINT (stop), and SIGHUP (reload). Only in the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._heard)

    def _heard(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload = True
        else:
            self.stop = True
        self.wake()

    def wake(self) -> None:
        """End the wait under way, or the next one."""
        with suppress(BlockingIOError):  # full of wake-ups already
            os.write(self._mouth, b"!")

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until woken."""
        ready, _, _ = select.select([self._ear], [], [], max(0.0, seconds))
        if ready:
            os.read(self._ear, 4096)

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self._ear)
        os.close(self._mouth)
