"""What `updraft report --json` prints: what was in some days, and what updraft would have done."""

from collections.abc import Sequence
from dataclasses import field
from typing import Annotated

from updraft.documents import IN_PLACE, Document


class SideFigures(Document):
    """The figures of what was, or of what would have been."""

    jobs: Annotated[int, "Jobs that both sides have: what no machine of updraft's holds is in neither."]
    ended: Annotated[int, "Of these, ended."]
    not_begun: Annotated[int, "Of these, never begun."]
    mean_wait: Annotated[float | None, "Seconds from a job's arrival to its first start; null without jobs."]
    median_wait: Annotated[float | None, "Half of the jobs waited no longer."]
    p95_wait: Annotated[float | None, "95 of 100 waited no longer."]
    longest_wait: Annotated[float | None, "Of all."]
    core_hours_there: Annotated[float, "Of all machines in the pool; or of those paid for."]
    core_hours_claimed: Annotated[float, "Of these, claimed by jobs."]
    idle_share: Annotated[float | None, "Part of them that no job had; null without any."]
    machines: Annotated[int, "Machines that there were."]
    most_machines: Annotated[int, "The most at one time."]
    most_cores: Annotated[int, "The most cores at one time."]


class ReallySide(Document):
    """What really was."""

    figures: SideFigures = field(metadata=IN_PLACE)
    cost: Annotated[float | None, "At list prices; null where it isn't known."]
    currency: Annotated[str, "That of the cost; empty where the site doesn't say it."]


class WouldSide(Document):
    """What updraft would have done: an estimate."""

    figures: SideFigures = field(metadata=IN_PLACE)
    cost: Annotated[float | None, "At list prices; null where it isn't known."]
    unpriced: Annotated[int, "Machines without a price that is known, or free ones."]
    currency: Annotated[str, "That of the cost; empty where the site doesn't say it."]


class ReportedJobs(Document):
    """Jobs that arrived, by what has become of them."""

    arrived: Annotated[int, "All of them."]
    ended: Annotated[int, "Ended, having run."]
    running: Annotated[int, "Running."]
    waiting: Annotated[int, "Waiting."]
    held: Annotated[int, "On hold."]
    removed: Annotated[int, "Removed before they ran."]
    failed: Annotated[int, "Of those that ended, with another exit code than 0 or by a signal."]


class ReportedUser(Document):
    """One user's jobs."""

    name: Annotated[str, "Whose."]
    jobs: Annotated[int, "That arrived."]
    failed: Annotated[int, "That ended with another exit code than 0, or by a signal."]
    removed: Annotated[int, "That were removed before they ran."]
    core_hours: Annotated[float, "That they had."]
    mean_wait: Annotated[float | None, "Seconds; null where none of them is in both columns."]
    p95_wait: Annotated[float | None, "Seconds."]
    would_mean_wait: Annotated[float | None, "Seconds, as updraft would have done it: an estimate; or null."]
    would_p95_wait: Annotated[float | None, "The same of 95 in 100."]
    cost: Annotated[float | None, "Of updraft's machines, as `updraft usage` says it; or null."]


class ReportedWait(Document):
    """What one user's jobs waited for."""

    user: Annotated[str, "Whose; empty: of many others together."]
    code: Annotated[str, "The reason's code."]
    text: Annotated[str, "Its latest sentence."]
    job_hours: Annotated[float, "For how many hours, summed over jobs."]


class ReportedFailure(Document):
    """What failed."""

    code: Annotated[str, "The reason's code."]
    number: Annotated[int, "How often."]
    last: Annotated[str, "When last (UTC)."]
    text: Annotated[str, "In words, the last time."]


class MonthReport(Document):
    """What was in these days, and what updraft would have done."""

    pool: Annotated[str, "The pool."]
    from_: Annotated[str, "The first UTC day that was asked for."]
    to: Annotated[str, "The last one, included."]
    since: Annotated[str, "The first look that is in it (UTC)."]
    until: Annotated[str, "The last one (UTC)."]
    watched: Annotated[bool, "updraft only watched, at least for a time."]
    jobs: ReportedJobs
    really: ReallySide
    would: Annotated[WouldSide | None, "What updraft would have done, or null."]
    unfit: Annotated[int, "Jobs that no machine holds which updraft may buy: in neither column."]
    why_not: Annotated[str | None, "Why it isn't known what updraft would have done, or null."]
    estimate: Annotated[str, "What the figures of `would` are."]
    assumed: Annotated[Sequence[str], "What they go by."]
    users: Annotated[Sequence[ReportedUser], "Who had most first; at most 200."]
    waits: Annotated[Sequence[ReportedWait], "The longest first; at most 100."]
    failures: Annotated[Sequence[ReportedFailure], "The most frequent first."]
    notes: Annotated[Sequence[str], "What else is to be known."]
