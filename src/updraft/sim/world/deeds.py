"""Carries out plans in a fast simulation, in the order and with the records of the daemon's own actor."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from updraft.act.launching import intent_of, record_of
from updraft.core.model import (
    Action,
    Adopt,
    CloudOffer,
    Disown,
    Drain,
    DrainMode,
    DrainRecord,
    Forget,
    Kind,
    Launch,
    LaunchState,
    MachineRecord,
    Offer,
    Plan,
    Reason,
    RequeueJobs,
    Terminate,
    Undrain,
)
from updraft.core.settings import Policy
from updraft.core.slots.catalogue import imagine
from updraft.core.slots.kinds import apart_key, kind_key
from updraft.errors import CloudError
from updraft.sim.world.agenda import Agenda
from updraft.sim.world.fastcloud import PAGE, FastCloud
from updraft.sim.world.fleet import Worker
from updraft.sim.world.leanledger import LeanLedger

_ORDER = (Adopt, Forget, RequeueJobs, Undrain, Terminate, Drain, Disown, Launch)
_RANK: Mapping[type, int] = {kind: rank for rank, kind in enumerate(_ORDER)}
CONSOLES_AT_ONCE = 5


class Deeds:
    """Does what plans say. `close`, `reopen`, `unlist` and `requeue` are what the pool can be told.

    Adopt and Disown lead to nothing: here, every machine is ours and stays so. With `apart`, machines are of
    the kinds of their zones and markets.
    """

    def __init__(
        self,
        policy: Policy,
        clouds: Mapping[str, FastCloud],
        ledger: LeanLedger,
        agenda: Agenda,
        *,
        apart: bool,
        close: Callable[[Worker, DrainMode, str], None],
        reopen: Callable[[Worker], None],
        unlist: Callable[[Worker], None],
        requeue: Callable[[Iterable[str]], None],
    ) -> None:
        self._policy = policy
        self._apart = apart
        self._clouds = clouds
        self._ledger = ledger
        self._agenda = agenda
        self._close, self._reopen, self._unlist, self._requeue = close, reopen, unlist, requeue
        self.workers: dict[tuple[str, str], Worker] = {}
        self.everyone: list[Worker] = []
        self.refused_drains = 0
        self._kinds: dict[tuple[str, ...], Kind] = {}

    def carry_out(self, plan: Plan) -> None:
        """Write what the plan wants remembered, then do its actions."""
        if plan.actions:
            self._agenda.touched()
        self._ledger.remember(plan.records)
        for record in plan.records:
            if record.ended_at is not None:
                self.workers.pop((record.cloud, record.id), None)
        self._ledger.settle(plan.settled)
        self._tag_retiring(plan.actions)
        for action in sorted(plan.actions, key=lambda action: _RANK[type(action)]):
            self._do(action)

    def _do(self, action: Action) -> None:
        match action:
            case Launch():
                self._launch(action)
            case Drain():
                self._drain(action)
            case Undrain():
                self._undrain(action)
            case Terminate():
                self._terminate(action)
            case RequeueJobs():
                self._requeue(action.jobs)
            case Forget():
                worker = self.workers.get((action.cloud, action.machine))
                if worker is not None:
                    self._unlist(worker)
            case _:
                pass

    # ---------------------------------------------------------------------------------------- launching

    def _launch(self, action: Launch) -> None:
        now, offer, cloud = self._agenda.now, action.offer, self._clouds[action.offer.cloud]
        intent = intent_of(action, now)
        self._ledger.intend(intent)
        kind = self._kind(offer)
        try:
            made = cloud.launch(action, intent, lambda name, at: Worker(name, intent, kind, at))
        except CloudError as error:
            self._ledger.outcome(action.key, LaunchState.REFUSED, error=Reason(error.code, str(error)))
            return
        self._ledger.outcome(action.key, LaunchState.ACCEPTED, [worker.id for worker in made])
        self._ledger.remember(record_of(intent, worker.id) for worker in made)
        self.everyone.extend(made)
        self.workers.update({(worker.cloud, worker.id): worker for worker in made})

    def _kind(self, offer: Offer) -> Kind:
        """What a machine of this offer really brings: what the catalogue imagines."""
        name = (offer.worker_class, offer.generation, offer.cloud, offer.flavor, offer.zone, offer.market)
        if name not in self._kinds:
            worker = replace(self._policy.classes[offer.worker_class], generation=offer.generation)
            arch = next(
                (o.arch for o in self._clouds[offer.cloud].sold.offers if o.flavor == offer.flavor), ""
            )
            sold = CloudOffer(
                offer.cloud, offer.zone, offer.flavor, offer.market, offer.resources, arch=arch or "X86_64"
            )
            key = kind_key(offer.worker_class, offer.generation, offer.cloud, offer.flavor)
            if self._apart:
                key = apart_key(key, offer.zone, offer.market)
            self._kinds[name] = imagine(worker, sold, offer.image, self._policy.pool, key)
        return self._kinds[name]

    # ------------------------------------------------------------------------------------------ draining

    def _tag_retiring(self, actions: Sequence[Action]) -> None:
        """Write the intent of the empty drains on the instances, a hundred with each call."""
        marked: Counter[str] = Counter()
        for action in actions:
            if isinstance(action, Drain) and action.mode is DrainMode.EMPTY:
                marked[action.cloud] += self._tag(action.cloud, action.machine, retiring=True)
        for cloud, count in marked.items():
            self._clouds[cloud].calls["tag"] += -(-count // PAGE)

    def _tag(self, cloud: str, machine: str, *, retiring: bool) -> int:
        worker = self.workers.get((cloud, machine))
        if worker is None:
            return 0
        worker.retiring = retiring
        self._clouds[cloud].changed(worker)
        return 1

    def _drain(self, action: Drain) -> None:
        worker, now = self.workers.get((action.cloud, action.machine)), self._agenda.now
        if worker is None or not worker.listed:
            return
        record = self._ledger.machines[action.cloud, action.machine]
        drain = record.drain if record.drain and record.drain.mode is action.mode else None
        drain = drain or DrainRecord(action.mode, now, action.reason, None, action.deadline)
        self._change(record, drain=drain)
        if not worker.works:
            return  # it doesn't answer
        if action.mode is DrainMode.EMPTY and worker.busy:
            self._busy_again(worker, record)
            return
        if worker.drain is None:
            self._close(worker, action.mode, f"updraft {action.reason.code}: {action.reason.text}")
        self._change(record, drain=replace(drain, accepted_at=now))

    def _busy_again(self, worker: Worker, record: MachineRecord) -> None:
        """The startd said no: the machine stays, and every sign of the drain goes."""
        self.refused_drains += 1
        self._clouds[worker.cloud].calls["tag"] += self._tag(worker.cloud, worker.id, retiring=False)
        self._change(record, drain=None, busy_at=self._agenda.now)

    def _undrain(self, action: Undrain) -> None:
        worker = self.workers.get((action.cloud, action.machine))
        if worker is None:
            return
        if worker.works and worker.drain is DrainMode.BUSY:
            self._reopen(worker)
        if worker.retiring:
            self._clouds[worker.cloud].calls["tag"] += self._tag(worker.cloud, worker.id, retiring=False)
        self._change(self._ledger.machines[action.cloud, action.machine], drain=None)

    def _terminate(self, action: Terminate) -> None:
        ours = [(action.cloud, name) for name in action.machines if (action.cloud, name) in self.workers]
        if not ours:
            return
        cloud, records = self._clouds[action.cloud], [self._ledger.machines[key] for key in ours]
        silent = sum(r.joined_at is None and r.terminate_asked_at is None for r in records)
        cloud.calls["console"] += min(CONSOLES_AT_ONCE, silent)
        for record in records:
            self._change(record, terminate_asked_at=self._agenda.now)
        cloud.terminate([self.workers[key] for key in ours])

    def _change(self, record: MachineRecord, **changes: object) -> None:
        self._ledger.remember((replace(record, **changes),))  # type: ignore[arg-type]
