"""How long jobs run: what they say of themselves, and what a schedd's history says of those that ended.

Runs in the child that reads the demand. A history that can't be read costs nothing but the knowledge.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from updraft.condor.advalues import real, value
from updraft.condor.written import said as written
from updraft.condor.written import says, says_number
from updraft.core.demand.runtimes import expected

OWN_ESTIMATE = "UpdraftRunTime"
"""What a job may say of itself: seconds that it is expected to run."""

# Bounds that jobs give themselves, with their unit in seconds. The first two are HTCondor's own
# (allowed_execute_duration, allowed_job_duration); the others are customs of large sites.
_BOUNDS = (
    ("AllowedExecuteDuration", 1.0),
    ("AllowedJobDuration", 1.0),
    ("MaxRuntime", 1.0),
    ("MaxWallTimeMins", 60.0),
)
RUN_TIME_NAMES = (OWN_ESTIMATE, *(name for name, _ in _BOUNDS))

_ROWS_AT_ONCE = 2_000
_KEYS = 2_000
_FADE_AT = 1_000
_WANTED = ("Owner", "Cmd", "CompletionDate", "JobCurrentStartDate")


@dataclass(frozen=True, slots=True)
class Finished:
    """Jobs that ended, by owner and executable: how many, and their seconds together; up to `until`."""

    until: float = 0.0
    runs: Mapping[tuple[str, str], tuple[float, float]] = field(default_factory=dict)


def said(row: Any) -> tuple[float | None, float | None]:
    """The seconds that a job says it will run, and the bound that it gives itself; None where it doesn't."""
    bounds = [most * unit for name, unit in _BOUNDS if (most := _positive(row, name)) is not None]
    return _positive(row, OWN_ESTIMATE), min(bounds, default=None)


def likely(
    own: float | None, longest: float | None, owner: str, executable: str, finished: Finished
) -> float | None:
    """How long a job is expected to run: by its own word, else by those that ended; not above its bound."""
    count, seconds = finished.runs.get((owner, executable), (0.0, 0.0)) if executable else (0.0, 0.0)
    found = own if own is not None else expected(count, seconds)
    return found if found is None or longest is None else min(found, longest)


def refreshed(source: Any, known: Finished) -> Finished:
    """What is known, with the jobs that ended since; `known` where the history can't be read."""
    import htcondor2

    earlier = f"CompletionDate <= {int(known.until)}"
    since = f"{says_number('CompletionDate')} && {earlier}" if known.until else None
    constraint = f"{says('JobStatus', '4')} && {written('JobCurrentStartDate')}"
    try:
        rows = list(source.history(constraint, list(_WANTED), match=_ROWS_AT_ONCE, since=since))
    except (htcondor2.HTCondorException, OSError, RuntimeError, ValueError):  # the last by old bindings
        return known
    return added(known, rows)


def added(known: Finished, rows: Iterable[Any]) -> Finished:
    """What is known, and these rows of a history. Old means fade: what a user runs changes."""
    runs = dict(known.runs)
    until = known.until
    for row in rows:
        ended, began = _positive(row, "CompletionDate"), _positive(row, "JobCurrentStartDate")
        owner, executable = value(row, "Owner"), value(row, "Cmd")
        if ended is None or began is None or ended <= known.until:
            continue
        if not isinstance(owner, str) or not isinstance(executable, str):
            continue
        until = max(until, ended)
        count, seconds = runs.pop((owner, executable), (0.0, 0.0))
        if count >= _FADE_AT:
            count, seconds = count / 2, seconds / 2
        runs[owner, executable] = (count + 1, seconds + max(0.0, ended - began))
    while len(runs) > _KEYS:
        del runs[next(iter(runs))]  # what has ended least recently
    return Finished(until, runs)


def _positive(ad: Any, name: str) -> float | None:
    """A literal number above zero; nothing else is looked at, and nothing is evaluated."""
    found = real(ad, name)
    return found if found > 0 else None
