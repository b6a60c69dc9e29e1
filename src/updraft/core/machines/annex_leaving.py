"""How the machines of an annex leave: at the end of its lease for certain, before it when it is stopped."""

from updraft.core.machines.dispositions import (
    DecisionView,
    Disposition,
    cloud_answers,
    drained,
    end,
    end_by_deadline,
    end_by_hand,
)
from updraft.core.machines.lifecycle import LEASE
from updraft.core.model import Annex, Machine, Phase, Reason
from updraft.core.reasons import moment

LEASE_OVER = "lease-over"
GRACE = 30.0
"""Seconds after the end of a lease in which a machine, which knows it too, lets its jobs save their work."""


def of_annex(machine: Machine, look: DecisionView) -> Disposition | None:
    """The disposition of a machine because of its annex; None where that is no reason to go.

    The end of a lease is a matter of the clock alone: no source has to be known for it, and who doesn't
    answer is asked to end the machine all the same.
    """
    annex = look.annex(machine)
    if annex is None or machine.phase is Phase.GONE:
        return None
    if look.now >= annex.until:
        return _over(machine, look, annex)
    drain = machine.record.drain
    if (
        machine.phase is Phase.DRAINING
        and drain is not None
        and drain.reason.code == LEASE
        and not annex.kill_jobs
    ):
        return Disposition(Reason("lease-closing", "its lease ends soon: no job begins there any more"))
    if annex.stopped is not None:
        return _stopped(machine, look, annex, annex.stopped)
    return None


def lease_over(machine: Machine, look: DecisionView) -> Reason | None:
    """Why a machine is gone that nobody was asked to end: with its lease, which it knows; None for others."""
    annex = look.annex(machine)
    return _reason(annex) if annex is not None and look.now >= annex.until else None


def _reason(annex: Annex) -> Reason:
    return Reason(LEASE_OVER, f"the lease of annex {annex.name} ended at {moment(annex.until)}")


def _over(machine: Machine, look: DecisionView, annex: Annex) -> Disposition:
    reason = _reason(annex)
    if machine.busy and look.now < annex.until + GRACE:
        return Disposition(reason, deadline=annex.until + GRACE)
    return end_by_deadline(machine, look, reason)


def _stopped(machine: Machine, look: DecisionView, annex: Annex, reason: Reason) -> Disposition | None:
    """It is closed to new jobs, and ends when it is empty; with its jobs where that was asked for."""
    if annex.kill_jobs:
        return end_by_hand(machine, look, reason)
    if machine.phase in (Phase.REQUESTED, Phase.BOOTING) and machine.record.joined_at is None:
        found = end(machine, look, reason)
        return found if found.actions else None
    if machine.phase is not Phase.JOINED or not machine.slots or machine.record.drain is not None:
        return None
    return drained(machine, look, reason, annex.until) if cloud_answers(machine, look) else None
