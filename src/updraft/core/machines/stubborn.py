"""Machines whose startd doesn't answer, refuses, or says what isn't so: their ends are late, and come.

A startd is asked to close before its machine ends, and its word that nothing runs is what makes an end safe.
One that doesn't run as it should, or that a thief has taken, may say what it likes: so its word holds until
the last deadline that the policy names, and no longer.
"""

from updraft.core.machines.dispositions import DecisionView, Disposition, cloud_answers, end_by_deadline
from updraft.core.model import Machine, Reason
from updraft.core.reasons import moment
from updraft.core.settings import WorkerClass

_ASK_AGAIN = 60.0  # seconds before a startd that didn't answer is asked again: each try takes ten
_PATIENCES = 10  # in which a startd that is asked at its lifetime's end has closed, and its jobs have ended


def lifetime_deadline(machine: Machine, worker: WorkerClass) -> float:
    """When its lifetime is over, and the time that jobs then have to end."""
    return machine.record.requested_at + worker.lifetime + worker.drain_deadline


def overdue(machine: Machine, look: DecisionView) -> Disposition | None:
    """All that its lifetime and a drain may take has been over for long: it goes, whatever its startd says.

    That it is asked in vain, refuses, or says that it works or that somebody else drains it.
    """
    worker = look.worker(machine)
    if worker is None or not machine.slots or look.unsettled or not cloud_answers(machine, look):
        return None
    over = look.now - lifetime_deadline(machine, worker)
    if over < _PATIENCES * look.policy.timings.end_patience:
        return None
    text = f"its lifetime and the time to drain have been over for {over / 60:.0f} min, and it doesn't close"
    return end_by_deadline(machine, look, Reason("deadline", text))


def unanswered(machine: Machine, look: DecisionView) -> Disposition | None:
    """Its startd was asked in vain: it rests, and is judged as lost once its ads are too old."""
    since, last = machine.record.unanswered_since, machine.record.unanswered_at
    if since is None or last is None or look.now - last >= _ASK_AGAIN:
        return None
    text = f"its startd has not answered since {moment(since)}"
    return Disposition(Reason("unanswered", f"{text}; it is asked again in a minute"), warn=True)
