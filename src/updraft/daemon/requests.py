"""What operators asked for by hand, as wishes on the machines' records: the plan takes them from there."""

from dataclasses import replace

import structlog

from updraft.core.machines.lifecycle import LET_GO
from updraft.core.machines.witnesses import closed_for_good
from updraft.core.model import (
    CloudState,
    DrainMode,
    DrainRecord,
    Known,
    LaunchState,
    MachineRecord,
    Observation,
    Reason,
    Slot,
    Snapshot,
)
from updraft.core.settings import Policy
from updraft.daemon.adoption import adoption
from updraft.errors import LedgerError, UpdraftError
from updraft.ledger import Ledger, Request, RequestKind, annexes
from updraft.ledger.reader import Reader

_LOG = structlog.get_logger("updraft")
OPERATOR = "operator"  # the reason code that the planner knows a wish by


def take_up(ledger: Ledger, seen: Observation, policy: Policy, since: float) -> Observation:
    """Turn open requests into wishes; the observation as it then is. Each is taken up once, and whole.

    One that raises is answered as refused, so that it holds up nobody else; a ledger that can't be used is
    everybody's (LedgerError).

    An adoption stays open until its cloud shows the instance as ours. `since` is when this controller began
    to act: a request may have waited for that, and nothing was done for it meanwhile.
    """
    _refuse_unread(ledger, seen.now)
    requests = ledger.requests()
    for request in requests:
        try:
            with ledger.together():
                outcome = _outcome(request, ledger, seen, policy, since)
                if outcome is not None:
                    _answer(request, outcome, ledger, seen.now)
        except LedgerError:  # no fault of this one: nobody's can be answered
            raise
        except UpdraftError as error:
            _answer(request, f"refused: {error}", ledger, seen.now)
        except Exception as error:
            _LOG.exception("a request can't be taken up by a fault of updraft itself", request=request.id)
            _answer(request, f"refused: {_fault(error)}", ledger, seen.now)
    return replace(seen, ledger=ledger.view(seen.now)) if requests else seen


def _outcome(request: Request, ledger: Ledger, seen: Observation, policy: Policy, since: float) -> str | None:
    """What became of the request, in words; None while it is open."""
    if request.kind is RequestKind.DESTROY:
        _all_go(request, ledger, seen)
        return None
    if request.kind is RequestKind.ADOPT:
        return adoption(request, ledger, seen, policy, since)
    return _one(request, ledger, seen)


def _answer(request: Request, outcome: str, ledger: Ledger, now: float) -> None:
    with ledger.together():
        ledger.done(request.id, outcome, now)
        reason = Reason(f"request-{request.kind}", f"{request.who} asked for {request.kind}: {outcome}")
        ledger.event(now, "request", request.machine, reason)


def _refuse_unread(ledger: Ledger, now: float) -> None:
    """What can't be read can't be done: nobody is to wait for it."""
    for one in ledger.unread_requests():
        outcome = f"refused: its row in the ledger can't be read ({one.why}); ask again"
        with ledger.together():
            ledger.done(one.id, outcome, now)
            text = f"request {one.id} of {one.who}: {outcome}"
            ledger.event(now, "request", one.machine, Reason("request-unread", text))


def _fault(error: Exception) -> str:
    return f"taking it up fails ({type(error).__name__}), which is a fault of updraft: please report it"


def _one(request: Request, ledger: Ledger, seen: Observation) -> str:
    """Write the wish on the machine's record. Returns what became of the request, in words."""
    found = find(request.machine, seen.ledger.machines)
    if isinstance(found, str):
        return found
    record = ledger.machine(found.id, found.cloud) or found
    if request.kind is RequestKind.UNDRAIN:
        if record.wanted_drain is None:
            return "refused: nobody asked for its drain by hand"
        ledger.remember((replace(record, wanted_drain=None),))
        return "taken up: it works on, unless its drain was past taking back"
    if request.kind is RequestKind.DISOWN:
        return _let_go(request, record, ledger)
    busy = any(slot.busy for slot in slots_of(record, seen))
    if request.kind is RequestKind.TERMINATE and not request.kill_jobs:
        if not isinstance(seen.collector, Known):
            return "refused: the pool does not answer, so jobs may run there; --kill-jobs ends them"
        if busy:
            return "refused: jobs run there; drain it, or end them with --kill-jobs"
    ledger.remember((replace(record, wanted_drain=_wish(request, seen.now)),))
    return "taken up"


def _let_go(request: Request, record: MachineRecord, ledger: Ledger) -> str:
    if closed_for_good(record):
        return "refused: the pool has closed it for good, and it is on its way out"
    if record.terminate_asked_at is not None:
        return "refused: its end was asked for already"
    reason = Reason(LET_GO, f"{request.who} asked for disown: it stays, and is no longer this pool's to end")
    ledger.remember((replace(record, wanted_drain=None, let_go=reason),))
    return "taken up"


def _wish(request: Request, now: float) -> DrainRecord:
    text = f"{request.who} asked for {request.kind}" + (" --kill-jobs" if request.kill_jobs else "")
    mode = DrainMode.EMPTY if request.kind is RequestKind.TERMINATE else DrainMode.BUSY
    if request.kill_jobs:
        return DrainRecord(DrainMode.BUSY, request.at, Reason(OPERATOR, text), deadline=now)
    return DrainRecord(mode, request.at, Reason(OPERATOR, text))


def find(name: str, records: tuple[MachineRecord, ...]) -> MachineRecord | str:
    """The live machine of this id (or `cloud/id`), or a sentence why there is none."""
    live = [r for r in records if r.ended_at is None and name in (r.id, f"{r.cloud}/{r.id}")]
    if not live:
        return f"refused: no live machine of this pool is called {name}"
    if len(live) > 1:
        names = ", ".join(f"{record.cloud}/{record.id}" for record in live)
        return f"refused: more than one machine is called {name}: {names}"
    return live[0]


def slots_of(record: MachineRecord, seen: Observation) -> tuple[Slot, ...]:
    """The machine's slots in the collector's last answer."""
    source = seen.collector if isinstance(seen.collector, Known) else seen.collector.last
    slots = source.value.slots if source is not None else ()
    wanted = (record.cloud, record.id, record.launch_key)
    return tuple(slot for slot in slots if (slot.cloud, slot.instance_id, slot.launch_key) == wanted)


# -------------------------------------------------------------------------------------------- destroy


def closing(ledger: Ledger | Reader) -> tuple[Request, ...]:
    """The requests that everything shall go, while they are open: it may have been asked for twice."""
    return tuple(r for r in ledger.requests() if r.kind is RequestKind.DESTROY)


def _all_go(request: Request, ledger: Ledger, seen: Observation) -> None:
    """Where the jobs are to be killed, each machine gets that wish; else the closing policy drains them.

    Annexes are stopped: a controller that is started later must not buy their machines again.
    """
    for annex in seen.annexes:
        if not annex.over(seen.now):
            annexes.stop(ledger, annex.name, request.who, seen.now, kill_jobs=request.kill_jobs)
    if request.kill_jobs:
        wish = _wish(request, seen.now)
        live = [r for r in seen.ledger.machines if r.ended_at is None]
        ledger.remember(
            replace(r, wanted_drain=wish)
            for r in live
            if r.wanted_drain is None or not r.wanted_drain.deadline
        )


def all_gone(snapshot: Snapshot) -> bool:
    """Is it certain that no machine of this pool is left, or on its way?"""
    for view in snapshot.clouds.values():
        if not isinstance(view.machines, Known):
            return False
        if any(instance.state is not CloudState.TERMINATED for instance in view.machines.value):
            return False
    pending = (LaunchState.INTENDED, LaunchState.UNKNOWN)
    return not any(launch.state in pending for launch in snapshot.ledger.launches) and not any(
        record.ended_at is None for record in snapshot.ledger.machines
    )
