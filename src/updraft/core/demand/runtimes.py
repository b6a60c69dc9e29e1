"""How long jobs run: what is expected of a group's, and what they may need.

By itself, so that the processes that read HTCondor's ads don't load all that plans.
"""

from updraft.core.model import JobGroup

_PRIOR = 1800.0
_PRIOR_WEIGHT = 2.0


def expected(finished: float, seconds: float) -> float | None:
    """How long a job is expected to run when `finished` jobs like it ran `seconds` together; None of none.

    A mean with a prior of half an hour that counts as two jobs: a few quick failures of a user's first jobs
    don't make the rest of them short.
    """
    if finished <= 0:
        return None
    return (seconds + _PRIOR * _PRIOR_WEIGHT) / (finished + _PRIOR_WEIGHT)


def needs(group: JobGroup) -> float:
    """The seconds that a job of this group may need: by its own bound, else as expected; 0 where unknown."""
    return (group.longest if group.longest is not None else group.run_time) or 0.0
