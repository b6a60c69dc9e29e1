"""What becomes of each machine, whatever the queue says: ended, drained for a cause, lost, or left alone.

One rule after the other looks at a machine; the first that has an opinion decides. A rule returns a
`Disposition`: what to do now (perhaps nothing), why, and by when. Scaling in for want of work is in
`scalein`.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from updraft.core.machines.annex_leaving import lease_over, of_annex
from updraft.core.machines.cooldowns import CLOUD_ERROR, NEVER_JOINED, boot_deadline
from updraft.core.machines.dispositions import (
    DecisionView,
    Disposition,
    Rule,
    cloud_answers,
    drained,
    end,
    end_by_deadline,
    end_by_hand,
    jobs_known,
    jobs_there,
)
from updraft.core.machines.lifecycle import SPOT_NOTICE
from updraft.core.machines.stubborn import lifetime_deadline, overdue, unanswered
from updraft.core.machines.witnesses import ANOTHERS, borne_out, closed_for_good, last_heard, not_ours
from updraft.core.model import (
    Action,
    CloudState,
    Disown,
    Drain,
    DrainMode,
    DrainRecord,
    Forget,
    Known,
    Machine,
    MachineRecord,
    Phase,
    Reason,
    RequeueJobs,
    RunningJob,
    Snapshot,
    Undrain,
)
from updraft.core.settings import CLOUD_DRAINED

OPERATOR = "operator"


def disposition(machine: Machine, look: DecisionView) -> Disposition | None:
    """The first rule's opinion; None where the machine may stay."""
    if machine.record.let_go is not None and (found := _let_go(machine, look)) is not None:
        return found
    foreign = not_ours(machine.instance, look.policy)
    if foreign is not None and machine.phase is not Phase.GONE:
        return Disposition(foreign, warn=True)
    if machine.record.variant and (found := of_annex(machine, look)) is not None:
        return found
    if machine.record.wanted_drain is not None and (found := _killed(machine, look)) is not None:
        return found
    # Most machines are joined, and to hash a phase takes longer than to compare it.
    rules = _OF_JOINED if machine.phase is Phase.JOINED else RULES[machine.phase]
    for rule in rules:
        found = rule(machine, look)
        if found is not None:
            return found
    return None


# --------------------------------------------------------------------------------------- who is let go


def _let_go(machine: Machine, look: DecisionView) -> Disposition | None:
    """An operator wants it to stay and be ours no longer: its drain is taken back first, its tags go then.

    Before every other rule: once its tags are gone its cloud lists it no more, and that is not its end. One
    that has ended, or is past taking back, is beyond that.
    """
    record, reason = machine.record, machine.record.let_go
    ended = machine.instance is not None and machine.instance.state is CloudState.TERMINATED
    if reason is None or ended or record.terminate_asked_at is not None or closed_for_good(record):
        return None
    if not cloud_answers(machine, look):
        return Disposition(reason)
    foreign = not_ours(machine.instance, look.policy)
    if foreign is not None and foreign.code == ANOTHERS:
        return Disposition(reason, ended=True)  # its tags are another's, and stay
    if record.drain is not None and machine.slots:
        return Disposition(reason, (Undrain(machine.id, machine.cloud, reason),))
    return Disposition(reason, (Disown(machine.id, machine.cloud, reason),))


def _killed(machine: Machine, look: DecisionView) -> Disposition | None:
    """An operator has said that it goes with its jobs: nobody else is asked, and its startd may be dead."""
    wanted = machine.record.wanted_drain
    if machine.phase is Phase.GONE or wanted is None or wanted.deadline is None or look.now < wanted.deadline:
        return None
    return end_by_hand(machine, look, wanted.reason)


# ------------------------------------------------------------------------------------------ who is gone


def _gone(machine: Machine, look: DecisionView) -> Disposition | None:
    """The cloud says that it is over: its ads go at once, its jobs go back to the queue."""
    if machine.phase is not Phase.GONE:
        return None
    record = machine.record
    reason = record.end or lease_over(machine, look)
    ours = not look.meanwhile(record.missing_since or look.now)
    told_by = "it was not asked to end it" if ours else _NOT_US
    reason = reason or Reason("gone", f"the cloud has it no more, and {told_by}")
    if record.end is None and record.drain is not None and record.drain.reason.code == SPOT_NOTICE:
        reason = record.drain.reason
    actions: list[Action] = []
    if machine.slots:
        names = tuple(slot.name for slot in machine.slots)
        actions.append(Forget(machine.id, machine.cloud, names, reason))
    emptied = record.drain is not None and record.drain.mode is DrainMode.EMPTY and record.drain.accepted_at
    if record.joined_at is None or emptied:
        return Disposition(reason, tuple(actions), ended=True)
    # What its owner, or whoever held it, wants out of the queue is none to give back.
    jobs = tuple(job for job in jobs_known(machine, look) if not job.leaving)
    actions.extend(_given_back(machine, jobs, reason, look))
    known = borne_out(machine, look.snapshot, look.policy)
    if jobs_there(machine, look) is None:
        since = record.missing_since or look.now
        waited = look.running.asked and look.now - since >= look.policy.timings.schedd_patience
        text = f"{reason.text}; not every schedd has said which jobs it believes to run there"
        return Disposition(Reason(reason.code, text), tuple(actions), ended=waited and known and not jobs)
    if not jobs and not known:
        text = f"{reason.text}; it counts until the pool is known well enough to bear that out"
        return Disposition(Reason(reason.code, text), tuple(actions))
    return Disposition(reason, tuple(actions), ended=not jobs, warn=reason.code == "gone" and ours)


_NOT_US = "another controller acted until then"


def _given_back(
    machine: Machine, jobs: Iterable[RunningJob], reason: Reason, look: DecisionView
) -> list[Action]:
    by_schedd: dict[str, list[str]] = {}
    for job in jobs:
        if not _fails_by_itself(job, machine.record, look):
            by_schedd.setdefault(job.schedd, []).append(job.job_id)
    why = Reason("machine-gone", f"machine {machine.id} is gone: {reason.text}")
    return [
        RequeueJobs(schedd, tuple(dict.fromkeys(ids)), machine.id, why)
        for schedd, ids in sorted(by_schedd.items())
    ]


def _fails_by_itself(job: RunningJob, record: MachineRecord, look: DecisionView) -> bool:
    """Did it start, by the claim of one that was given back, when the machine was gone?

    Its shadow can't reach the machine, gives up within a minute, and the schedd drops the claim. To give it
    back sooner hands the claim to the next idle job of its user, and so on, look after look.
    """
    late = record.missing_since is not None and job.started > record.missing_since
    return late and look.now - job.started < _GIVES_UP


_GIVES_UP = 120.0  # seconds for a new shadow to give up a machine that it can't reach; 57 were seen
_LEFT_ON_HOLD = Reason(
    "left-on-hold",
    "their machine is gone, and giving them back to the queue was cut short while they were held",
)


def left_on_hold(snapshot: Snapshot, actions: Iterable[Action]) -> tuple[RequeueJobs, ...]:
    """Releases jobs that are on hold for us, but at schedds where one of these `actions` does that anyhow."""
    served = {action.schedd for action in actions if isinstance(action, RequeueJobs)}
    return tuple(
        RequeueJobs(schedd, source.value.held, "", _LEFT_ON_HOLD)
        for schedd, source in sorted(snapshot.schedds.items())
        if isinstance(source, Known) and source.value.held and schedd not in served
    )


def _failed(machine: Machine, look: DecisionView) -> Disposition | None:
    """The cloud says that it is broken."""
    if machine.phase is not Phase.FAILED:
        return None
    fault = machine.instance.fault if machine.instance else ""
    why = Reason(CLOUD_ERROR, f"the cloud reports an error: {fault or 'no text'}")
    found = end(machine, look, why)
    return replace(found, failed=machine.record.joined_at is None)


def _ending(machine: Machine, look: DecisionView) -> Disposition | None:
    """On its way out: closed by our drain and seen gone from the pool, or shut down from inside."""
    if machine.phase is not Phase.ENDING:
        return None
    state = machine.instance.state if machine.instance else None
    why = machine.record.end or Reason("powered-off", "it was shut down from inside")
    if state is CloudState.STOPPING:
        return Disposition(why)
    if state is CloudState.TERMINATED:
        return Disposition(Reason(why.code, f"{why.text}; its cloud is asked for it by its id"))
    if state is CloudState.STOPPED:
        return end(machine, look, why)
    drain = machine.record.drain
    reason = drain.reason if drain is not None else why
    if not cloud_answers(machine, look):
        return Disposition(reason)
    return end(machine, look, reason)


def _lost(machine: Machine, look: DecisionView) -> Disposition | None:
    """The pool has forgotten it and the cloud has not: it goes only when no schedd has a job there either.

    One whose ads are there and too old has been waited for; how old they are is told by a clock.
    """
    if machine.phase is not Phase.LOST:
        return None
    record, old = machine.record, bool(machine.slots)
    since = record.silent_since or look.now
    told = record.drain.reason if record.drain and record.drain.reason.code == SPOT_NOTICE else None
    retiring = told is not None or (record.drain is not None and record.drain.mode is DrainMode.EMPTY)
    patience = 0.0 if retiring or old else look.policy.timings.end_patience
    text = told.text if told else _how_lost(machine, since, look)
    if old and look.unsettled:
        return Disposition(Reason("lost", f"{text}; the clock has jumped: it is waited for"), warn=True)
    if look.now - since < patience or not cloud_answers(machine, look):
        return Disposition(Reason("lost", f"{text}; it is given {patience:.0f} s to come back"), warn=True)
    gone = told or Reason("vanished", f"{text}, and no job has a lease there")
    return end(machine, look, gone, Reason("lost", text))


def _how_lost(machine: Machine, since: float, look: DecisionView) -> str:
    if machine.slots:
        age = look.now - last_heard(machine.slots)
        text = f"its last ad is {age / 60:.0f} min old" if age >= 120 else f"its last ad is {age:.0f} s old"
        return f"{text}, and {_NOT_US}" if look.meanwhile(since) else text
    ago = f"{look.now - since:.0f} s ago"
    if look.meanwhile(since):
        return f"it was seen to be in the pool no more {ago}, and {_NOT_US}"
    return f"it left the pool without being asked to, {ago}"


# ------------------------------------------------------------------------------------------- who is late


def _booting(machine: Machine, look: DecisionView) -> Disposition | None:
    """Not joined yet: it has a deadline, and the absence of its ad must be worth something."""
    if machine.phase not in (Phase.REQUESTED, Phase.BOOTING):
        return None
    record = machine.record
    if record.joined_at is not None:
        return Disposition(
            Reason("pool-unknown", "it had joined; the pool is not known well enough to say more")
        )
    deadline = boot_deadline(record, look.worker(machine), look.policy, look.snapshot)
    if record.wanted_drain is not None or look.policy.closing:
        reason = record.wanted_drain.reason if record.wanted_drain else _CLOSING
        found = end(machine, look, reason)
        if found.actions:
            return found
    if look.now < deadline or look.unsettled:
        return Disposition(
            Reason("booting", f"it has until {deadline - look.now:.0f} s from now to join"), deadline=deadline
        )
    waited = look.now - record.requested_at
    late = Reason(NEVER_JOINED, f"it has not joined the pool in {waited:.0f} s")
    return end(machine, look, late, Reason("overdue", "it is late to join"))


# ------------------------------------------------------------------------------------------- who drains


def _draining(machine: Machine, look: DecisionView) -> Disposition | None:
    """Closed: ends when it is empty, or at its deadline; a busy drain can be taken back."""
    drain = machine.record.drain
    if machine.phase is not Phase.DRAINING:
        return None
    if drain is None:
        return Disposition(Reason("foreign-drain", "somebody else drains it: left alone"))
    if not cloud_answers(machine, look):
        return Disposition(drain.reason, deadline=drain.deadline)
    if drain.accepted_at is None:  # nobody but its startd can say whether it is closed
        mode = DrainMode.BUSY if machine.busy else DrainMode.EMPTY
        return Disposition(
            drain.reason, (Drain(machine.id, machine.cloud, mode, drain.reason, drain.deadline),)
        )
    if not machine.busy:
        leaving = drain.mode is DrainMode.EMPTY
        leaving = leaving and look.now - drain.accepted_at < look.policy.timings.end_patience
        return Disposition(drain.reason) if leaving else end(machine, look, drain.reason)
    drain = replace(drain, deadline=_soonest(machine, drain, look))
    if drain.deadline is not None and look.now >= drain.deadline:
        text = f"{drain.reason.text}; its deadline has passed and jobs still ran"
        return end_by_deadline(machine, look, Reason("deadline", text))
    if _takes_back(machine, look):
        reason = Reason("taken-back", "what it was drained for is over: it may work on")
        return Disposition(reason, (Undrain(machine.id, machine.cloud, reason),))
    return Disposition(drain.reason, deadline=drain.deadline)


def _soonest(machine: Machine, drain: DrainRecord, look: DecisionView) -> float | None:
    """The first of the deadlines of its drain, of an operator's, and, once it is over, of its lifetime."""
    wanted, worker = machine.record.wanted_drain, look.worker(machine)
    named = [drain.deadline, None if wanted is None else wanted.deadline]
    if worker is not None and look.now - machine.record.requested_at >= worker.lifetime:
        named.append(lifetime_deadline(machine, worker))
    return min((at for at in named if at is not None), default=None)


def _takes_back(machine: Machine, look: DecisionView) -> bool:
    """Is the cause of this busy drain gone?"""
    drain, worker = machine.record.drain, look.worker(machine)
    if drain is None or drain.mode is not DrainMode.BUSY or look.policy.closing:
        return False
    if drain.reason.code == OPERATOR:
        return machine.record.wanted_drain is None
    if drain.reason.code == "drifted":
        return worker is not None and worker.generation == machine.generation
    if drain.reason.code == "over-limit":
        return machine.key not in look.surplus
    if drain.reason.code == "budget-spent":
        return machine.key not in look.overspent
    return drain.reason.code == CLOUD_DRAINED and look.policy.rule(machine.cloud).leaving is None


def _unfinished(machine: Machine, look: DecisionView) -> Disposition | None:
    """A drain was written down and perhaps never asked for (a crash): look again, then finish or drop it."""
    drain = machine.record.drain
    if machine.phase is not Phase.JOINED or drain is None:
        return None
    if drain.accepted_at is not None or not machine.slots or not cloud_answers(machine, look):
        return Disposition(drain.reason, deadline=drain.deadline)
    if drain.mode is DrainMode.BUSY:
        return drained(machine, look, drain.reason, drain.deadline)
    reason = Reason("reconsidered", "its drain was not finished: it is looked at anew")
    return Disposition(reason, (Undrain(machine.id, machine.cloud, reason),))


_CLOSING = Reason("destroy", "all machines of the pool are to go")


def _cause(machine: Machine, look: DecisionView) -> Disposition | None:
    """A cause to go that is not want of work: by hand, all of it, too old, drifted, over a lowered limit."""
    if machine.phase is not Phase.JOINED or not machine.slots or not cloud_answers(machine, look):
        return None
    record, worker = machine.record, look.worker(machine)
    if record.wanted_drain is not None:
        return drained(machine, look, record.wanted_drain.reason, record.wanted_drain.deadline)
    if look.policy.closing:
        return drained(machine, look, _CLOSING, None)
    # What was promised to somebody by name until a time isn't taken back for these.
    promised = bool(record.variant.annex)
    if worker is None:
        why = Reason("drifted", f"class {machine.worker_class} is not configured")
        return None if promised else drained(machine, look, why, None)
    age = look.now - record.requested_at
    if age >= worker.lifetime and not look.unsettled:
        reason = Reason(
            "lifetime", f"it is {age / 3600:.1f} h old, its lifetime is {worker.lifetime / 3600:.1f} h"
        )
        return drained(machine, look, reason, lifetime_deadline(machine, worker))
    if worker.generation != machine.generation and not promised:
        return drained(
            machine, look, Reason("drifted", f"the settings of class {worker.name} have changed"), None
        )
    if machine.key in look.surplus:
        return drained(machine, look, Reason("over-limit", "a limit was lowered below what runs"), None)
    if (spent := look.overspent.get(machine.key)) is not None:
        return drained(machine, look, spent, None)
    leaving = look.policy.rule(machine.cloud).leaving
    return None if leaving is None else drained(machine, look, leaving, None)


_OF_JOINED: tuple[Rule, ...] = (overdue, unanswered, _unfinished, _cause)
# The rules of each phase. Who is let go was asked before.
RULES: Mapping[Phase, tuple[Rule, ...]] = {
    Phase.REQUESTED: (_booting,),
    Phase.BOOTING: (_booting,),
    Phase.JOINED: _OF_JOINED,
    Phase.DRAINING: (overdue, unanswered, _draining),
    Phase.ENDING: (_ending,),
    Phase.LOST: (_lost,),
    Phase.FAILED: (_failed,),
    Phase.GONE: (_gone,),
}
