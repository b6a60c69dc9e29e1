"""Our own holds, and how they are told from everybody else's.

A job is on hold for us only while it is given back (see `jobs`). It says so itself, in the two things that a
hold can be given: whoever finds it later needs to remember nothing.
"""

from typing import Any

from updraft.condor.written import quoted, says
from updraft.errors import PoolDenied

_SUBCODE = 20_931  # any number that nobody else gives; it spares most held jobs the comparison of their texts
_CODE_BY_HAND = 1  # HoldReasonCode of what a user or a tool has held


def held_by(pool: str) -> str:
    """The constraint that only jobs satisfy that are on hold for the controller of this pool.

    The schedd adds to the text who held the job; a job that is on hold already keeps the text that it has.
    """
    text, code = _words(pool)
    written = quoted(text)[:-1]
    begins = f"substr(unparse(HoldReason), 0, {len(written)}) =?= {quoted(written)}"
    ours = f"{says('HoldReasonCode', str(_CODE_BY_HAND))} && {says('HoldReasonSubCode', str(code))}"
    return f"{says('JobStatus', '5')} && {ours} && {begins}"


def hold(source: Any, pool: str, constraint: str) -> None:
    """Put the jobs that satisfy the constraint on hold for us: tested and done in one step by the schedd."""
    import htcondor2

    _act(source, htcondor2.JobAction.Hold, pool, constraint)


def release(source: Any, pool: str) -> None:
    """Release the jobs that are on hold for us, and no others."""
    import htcondor2

    _act(source, htcondor2.JobAction.Release, pool, held_by(pool))


def job_id(row: Any) -> str:
    """A job's id from its ad."""
    return f"{row['ClusterId']}.{row['ProcId']}"


def _words(pool: str) -> tuple[str, int]:
    return f"updraft ({pool}) gives this job back to the queue: its machine is gone", _SUBCODE


def _act(source: Any, action: Any, pool: str, constraint: str) -> None:
    # A reason that is no pair is dropped by htcondor2: the job would be on hold for no reason at all.
    done = source.act(action, constraint, reason=_words(pool))
    if done["TotalPermissionDenied"]:
        raise PoolDenied(
            "the schedd lets us hold and release no jobs of other users: add the controller's identity to "
            "QUEUE_SUPER_USERS there"
        )
