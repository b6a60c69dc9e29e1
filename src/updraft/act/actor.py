"""Carries out a plan, action by action. Every action is safe to do again after a crash at any point of it.

What lasts is written in this order: first the intent (the ledger's row, the tag), then the deed, then its
outcome. `step` is called with a name between any two of them, so that a test can end the process there.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from updraft.act.consoles import keep_consoles
from updraft.act.lanes import Lanes, Task, UnderWay
from updraft.act.launching import LAUNCH, Launcher, UserData, pool_tags, why
from updraft.act.leases import Leases
from updraft.act.sightings import Sightings, news, sightings
from updraft.clouds.base import (
    TAG_CLASS,
    TAG_GENERATION,
    TAG_IDENTITY,
    TAG_LAUNCH,
    TAG_POOL,
    TAG_RETIRING,
    TAG_VARIANT,
    Machines,
)
from updraft.clouds.cloud import Cloud
from updraft.condor.base import Pool
from updraft.core.model import (
    Action,
    Adopt,
    Disown,
    Drain,
    DrainMode,
    DrainRecord,
    Forget,
    Launch,
    Plan,
    Reason,
    RequeueJobs,
    Snapshot,
    Terminate,
    Undrain,
)
from updraft.core.settings import Policy
from updraft.errors import DrainRefused, LedgerError, PoolDenied, PoolError, UpdraftError
from updraft.ledger import Ledger, annexes

DEADLINE = 10.0


def _no_step(_name: str) -> None:
    """Nothing happens between two side effects, but in tests."""


class Actor:
    """Does what a plan says. One action's failure is an event, and the others go on."""

    def __init__(
        self,
        *,
        policy: Policy,
        pool: Pool,
        clouds: Mapping[str, Cloud],
        user_data: UserData,
        ledger: Ledger,
        clock: Callable[[], float],
        lanes: Lanes | None = None,
        step: Callable[[str], None] = _no_step,
    ) -> None:
        self._ledger = ledger
        self._clock = clock
        self._lanes = lanes or Lanes()
        self._step = step
        self._leases = Leases()
        self.reconfigure(policy, pool, clouds, user_data)

    def reconfigure(
        self, policy: Policy, pool: Pool, clouds: Mapping[str, Cloud], user_data: UserData
    ) -> None:
        """Go on with a changed configuration."""
        self._pool = pool
        self._clouds = dict(clouds)
        self._pool_tags = pool_tags(policy)
        self._launcher = Launcher(
            policy=policy,
            pool=pool,
            user_data=user_data,
            ledger=self._ledger,
            clock=self._clock,
            step=self._step,
        )

    def carry_out(self, plan: Plan, snapshot: Snapshot) -> tuple[str, ...]:
        """Write what the plan wants remembered, then do its actions.

        Returns the names of actions that are not done by the deadline. Raises LedgerError where nothing can
        be written: then nothing more is done, because nothing would be known of it.
        """
        self._step("plan: before the records")
        with self._ledger.together():
            self._ledger.remember(plan.records)
            self._count_annexes(plan, snapshot)
            if plan.at_work is not None:
                self._ledger.keep_at_work(plan.at_work, snapshot.now)
            if plan.untaken != snapshot.ledger.untaken:
                self._ledger.keep_untaken(plan.untaken, snapshot.now)
            self._ledger.settle(plan.settled)
            for machine, kind, reason in news(plan, snapshot):
                self._ledger.event(snapshot.now, kind, machine, reason)
        self._step("plan: recorded")
        unmarked = self._tag_retiring(plan)
        tasks = self._tasks(plan, sightings(self._ledger, snapshot, plan), unmarked)
        return self._lanes.run((*tasks, *self._tell_leases(snapshot)))

    def under_way(self) -> tuple[UnderWay, ...]:
        """The actions that have begun and aren't done."""
        return self._lanes.under_way()

    def _count_annexes(self, plan: Plan, snapshot: Snapshot) -> None:
        if snapshot.annexes:
            over = {r.key for r in snapshot.ledger.machines if r.ended_at is not None}
            new = [r for r in plan.records if r.ended_at is not None and r.key not in over]
            annexes.count_left(self._ledger, new)
            annexes.forget(self._ledger, plan.annexes, snapshot.now)

    def _tell_leases(self, snapshot: Snapshot) -> Iterable[Task]:
        def tell(cloud: str, until: float, ids: tuple[str, ...]) -> None:
            try:
                self._leases.tell(self._machines, cloud, until, ids, snapshot.now)
            except Exception as error:
                self._event("failed", cloud, why(error), {"wanted": "tell machines of their lease"})

        for (cloud, until), ids in self._leases.untold(snapshot).items():
            name = f"tell {cloud} {until:.0f} {' '.join(ids)}"
            yield Task(cloud, name, partial(tell, cloud, until, ids), len(ids))

    # ------------------------------------------------------------------------------------ the actions

    def _tasks(self, plan: Plan, seen: Sightings, unmarked: frozenset[str]) -> Iterable[Task]:
        # What is gone must not be matched to, and what is not ended costs: these go before new launches.
        order = (Adopt, Forget, RequeueJobs, Undrain, Terminate, Drain, Disown, Launch)
        for action in sorted(plan.actions, key=lambda action: order.index(type(action))):
            lane, name = _name(action)
            yield Task(lane, name, partial(self._one, action, name, seen, unmarked), _machines(action))

    def _one(self, action: Action, name: str, seen: Sightings, unmarked: frozenset[str]) -> None:
        try:
            match action:
                case Launch():
                    self._launcher.launch(action, self._machines(action.offer.cloud))
                case Drain():
                    if action.mode is DrainMode.BUSY or action.cloud not in unmarked:
                        self._drain(action, seen)
                case Adopt():
                    self._adopt(action)
                case _:
                    self._end(action, seen)
        except LedgerError:
            raise
        except Exception as error:  # one action's failure is news, and no reason to leave the others
            self._event("failed", name, why(error), {"wanted": action.reason.text})

    def _end(self, action: Undrain | Terminate | Disown | RequeueJobs | Forget, seen: Sightings) -> None:
        match action:
            case Undrain():
                self._undrain(action, seen)
            case Terminate():
                self._terminate(action, seen)
            case Disown():
                self._disown(action)
            case RequeueJobs():
                self._requeue(action)
            case Forget():
                self._forget(action)

    def _tag_retiring(self, plan: Plan) -> frozenset[str]:
        """Write the intent of the empty drains on the instances, a call for each cloud.

        Returns the clouds where that failed: there, nothing is drained in this cycle.
        """
        wanted: dict[str, list[str]] = {}
        for action in plan.actions:
            if isinstance(action, Drain) and action.mode is DrainMode.EMPTY:
                wanted.setdefault(action.cloud, []).append(action.machine)
        marked: set[str] = set()

        def tag(cloud: str, ids: list[str]) -> None:
            self._step("drain: before the tag")
            try:
                self._machines(cloud).tag(ids, {TAG_RETIRING: "yes"})
            except Exception as error:
                self._event("failed", cloud, why(error), {"wanted": "tag machines as retiring"})
                return
            marked.add(cloud)
            self._step("drain: tagged")

        self._lanes.run(
            Task(cloud, f"tag {cloud}", partial(tag, cloud, ids), len(ids)) for cloud, ids in wanted.items()
        )
        return frozenset(wanted) - marked

    def _drain(self, action: Drain, seen: Sightings) -> None:
        slots = seen.slots_of(action.cloud, action.machine)
        if not slots:
            text = f"{action.machine} has no slot in the pool to drain"
            self._event("drain-failed", action.machine, Reason("no-slot", text))
            return
        record = self._ledger.record(action.cloud, action.machine)
        drain = record.drain if record and record.drain and record.drain.mode is action.mode else None
        drain = drain or DrainRecord(action.mode, self._clock(), action.reason, None, action.deadline)
        self._ledger.change(action.cloud, (action.machine,), drain=drain)
        self._step("drain: recorded")
        try:
            self._pool.drain(
                slots, action.mode, f"updraft {action.reason.code}: {action.reason.text}", DEADLINE
            )
        except DrainRefused as error:
            self._busy_again(action, error)
            return
        except PoolDenied:
            raise
        except PoolError:
            self._unanswered(action)
            raise
        self._step("drain: asked")
        accepted = replace(drain, accepted_at=self._clock())
        self._ledger.change(action.cloud, (action.machine,), drain=accepted, unanswered_since=None)
        self._event("drain", action.machine, action.reason, {"mode": str(action.mode)})
        self._step("drain: accepted")

    def _busy_again(self, action: Drain, error: DrainRefused) -> None:
        """The startd said no: the machine stays, and every sign of the drain goes."""
        self._step("drain: refused")
        if action.mode is DrainMode.EMPTY:
            self._machines(action.cloud).tag((action.machine,), {TAG_RETIRING: None})
            self._step("drain: untagged")
        record = self._ledger.record(action.cloud, action.machine)
        wanted = record.wanted_drain if record else None
        # Asked by hand to go if it is empty: it isn't, and that is the answer.
        kept = None if wanted is not None and wanted.mode is DrainMode.EMPTY else wanted
        self._ledger.change(
            action.cloud,
            (action.machine,),
            drain=None,
            wanted_drain=kept,
            last_claimed_at=self._clock(),
            unanswered_since=None,
        )
        text = f"{action.machine} is busy again and stays: {why(error).text}"
        self._event("busy-again", action.machine, Reason("busy-again", text))

    def _unanswered(self, action: Drain | Undrain) -> None:
        """Its startd was asked in vain: what becomes of it, the next plan says."""
        record, now = self._ledger.record(action.cloud, action.machine), self._clock()
        since = record.unanswered_since if record and record.unanswered_since else now
        self._ledger.change(action.cloud, (action.machine,), unanswered_since=since, unanswered_at=now)

    def _undrain(self, action: Undrain, seen: Sightings) -> None:
        slots = seen.slots_of(action.cloud, action.machine)
        try:
            if slots:
                self._pool.undrain(slots, DEADLINE)
        except PoolDenied:
            raise
        except PoolError:
            self._unanswered(action)
            raise
        self._step("undrain: asked")
        instance = seen.instances.get(action.key)
        if instance is not None and instance.retiring:
            self._machines(action.cloud).tag((action.machine,), {TAG_RETIRING: None})
        self._ledger.change(action.cloud, (action.machine,), drain=None, unanswered_since=None)
        self._event("undrain", action.machine, action.reason)

    def _terminate(self, action: Terminate, seen: Sightings) -> None:
        machines = self._machines(action.cloud)
        ids = tuple(machine for machine in action.machines if seen.ours(action.cloud, machine))
        for stranger in set(action.machines) - set(ids):
            text = f"{stranger} is not known as ours, and is left alone"
            self._event("failed", stranger, Reason("not-ours", text))
        if not ids:
            return
        said = keep_consoles(machines, action.cloud, ids, self._ledger, self._clock)
        self._step("terminate: before the record")
        self._ledger.change(action.cloud, ids, terminate_asked_at=self._clock())
        self._step("terminate: recorded")
        try:
            machines.terminate(ids)
        except Exception as error:
            with self._ledger.together():
                first = set(ids) - set(self._not_ended(action.cloud, ids))
                self._ledger.change(action.cloud, sorted(first), end_failed_at=self._clock())
                self._ledger.change(action.cloud, ids, end_failed=why(error))
            raise
        failed = self._not_ended(action.cloud, ids)
        self._ledger.change(action.cloud, failed, end_failed=None, end_failed_at=None)
        self._step("terminate: asked")
        for machine in ids:
            self._event("terminate", machine, said.get(machine, action.reason))

    def _not_ended(self, cloud: str, ids: Sequence[str]) -> list[str]:
        """Those of which the cloud did not take the last order."""
        return [one for one in ids if (r := self._ledger.record(cloud, one)) and r.end_failed]

    def _adopt(self, action: Adopt) -> None:
        if action.worker_class:
            tags = {
                TAG_CLASS: action.worker_class,
                TAG_LAUNCH: action.launch_key,
                TAG_GENERATION: action.generation,
                **self._pool_tags,
            }
            self._machines(action.cloud).tag(
                (action.machine,), {name: text or None for name, text in tags.items()}
            )
            self._step("adopt: tagged")
        self._event("adopt", action.machine, action.reason)

    def _disown(self, action: Disown) -> None:
        tags = (TAG_RETIRING, TAG_VARIANT, TAG_GENERATION, TAG_LAUNCH, TAG_CLASS, TAG_IDENTITY, TAG_POOL)
        # The pool's tag goes last and by itself: while it is there, a crash leaves the machine ours.
        self._machines(action.cloud).tag((action.machine,), dict.fromkeys(tags[:-1]))
        self._step("disown: half")
        self._machines(action.cloud).tag((action.machine,), {TAG_POOL: None})
        self._step("disown: untagged")
        self._ledger.change(action.cloud, (action.machine,), ended_at=self._clock(), end=action.reason)
        self._event("disown", action.machine, action.reason)

    def _requeue(self, action: RequeueJobs) -> None:
        given = self._pool.requeue(action.schedd, action.jobs, action.machine, DEADLINE)
        if given:
            detail = {"schedd": action.schedd, "jobs": list(given)}
            self._event("requeue-jobs", action.machine or action.schedd, action.reason, detail)

    def _forget(self, action: Forget) -> None:
        self._pool.forget(action.slots, DEADLINE)
        self._event("forget", action.machine, action.reason)

    # ------------------------------------------------------------------------------------------ inside

    def _machines(self, cloud: str) -> Machines:
        try:
            return self._clouds[cloud].machines
        except KeyError:
            raise UpdraftError(
                f"cloud {cloud} is not in the configuration: nothing can be done there"
            ) from None

    def _event(
        self,
        kind: str,
        subject: str,
        reason: Reason,
        detail: Mapping[str, object] | None = None,
    ) -> None:
        self._ledger.event(self._clock(), kind, subject, reason, detail)


def _name(action: Action) -> tuple[str, str]:
    """The lane of an action, and its name: one that is under way under that name isn't begun again."""
    match action:
        case Launch():
            return action.offer.cloud, LAUNCH + action.key
        case Terminate():
            return action.cloud, f"terminate {action.cloud} {' '.join(action.machines)}"
        case RequeueJobs():
            return (
                f"schedd {action.schedd}",
                f"requeue-jobs {action.machine or 'left on hold'} {action.schedd}",
            )
        case Forget():
            return "pool", f"forget {action.machine}"
        case _:
            return action.cloud, f"{type(action).__name__.lower()} {action.machine}"


def _machines(action: Action) -> int:
    """How many machines it is about."""
    match action:
        case Launch():
            return action.count
        case Terminate():
            return len(action.machines)
        case _:
            return 1
