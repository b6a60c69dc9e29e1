"""The form of `updraft report --json`."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value

_SIDE: Mapping[str, Schema] = {
    "jobs": value("integer", "Jobs that both sides have: what no machine of updraft's holds is in neither."),
    "ended": value("integer", "Of these, ended."),
    "not_begun": value("integer", "Of these, never begun."),
    "mean_wait": value(
        "number", "Seconds from a job's arrival to its first start; null without jobs.", none=True
    ),
    "median_wait": value("number", "Half of the jobs waited no longer.", none=True),
    "p95_wait": value("number", "95 of 100 waited no longer.", none=True),
    "longest_wait": value("number", "Of all.", none=True),
    "core_hours_there": value("number", "Of all machines in the pool; or of those paid for."),
    "core_hours_claimed": value("number", "Of these, claimed by jobs."),
    "idle_share": value("number", "Part of them that nobody claimed; null without any.", none=True),
    "machines": value("integer", "Machines that there were."),
    "most_machines": value("integer", "The most at one time."),
    "most_cores": value("integer", "The most cores at one time."),
    "cost": value("number", "At list prices; null where it isn't known.", none=True),
    "currency": value("string", "That of the cost; empty where the site doesn't say it."),
}
_WOULD = form(
    "What updraft would have done: an estimate.",
    **_SIDE,
    unpriced=value("integer", "Machines without a price that is known, or free ones."),
)
_USER = form(
    "One user's jobs.",
    name=value("string", "Whose."),
    jobs=value("integer", "That arrived."),
    failed=value("integer", "That ended with another exit code than 0, or by a signal."),
    removed=value("integer", "That were removed before they ran."),
    core_hours=value("number", "That they had."),
    mean_wait=value("number", "Seconds; null where none of them is in both columns.", none=True),
    p95_wait=value("number", "Seconds.", none=True),
    would_mean_wait=value(
        "number", "Seconds, as updraft would have done it: an estimate; or null.", none=True
    ),
    would_p95_wait=value("number", "The same of 95 in 100.", none=True),
    cost=value("number", "Of updraft's machines, as `updraft usage` says it; or null.", none=True),
)
REPORT_FORMS: Mapping[str, Schema] = {
    "report": form(
        "What was in these days, and what updraft would have done.",
        version=VERSION,
        pool=value("string", "The pool."),
        **{
            "from": value("string", "The first UTC day that was asked for."),
            "to": value("string", "The last one, included."),
        },
        since=value("string", "The first look that is in it (UTC)."),
        until=value("string", "The last one (UTC)."),
        watched=value("boolean", "updraft only watched, at least for a time."),
        jobs=form(
            "Jobs that arrived, by what has become of them.",
            arrived=value("integer", "All of them."),
            ended=value("integer", "Ended, having run."),
            running=value("integer", "Running."),
            waiting=value("integer", "Waiting."),
            held=value("integer", "On hold."),
            removed=value("integer", "Removed before they ran."),
            failed=value("integer", "Of those that ended, with another exit code than 0 or by a signal."),
        ),
        really=form("What really was.", **_SIDE),
        would={"anyOf": [_WOULD, {"type": "null"}], "description": "What updraft would have done, or null."},
        unfit=value("integer", "Jobs that no machine holds which updraft may buy: in neither column."),
        why_not=value("string", "Why it isn't known what updraft would have done, or null.", none=True),
        estimate=value("string", "What the figures of `would` are."),
        assumed=listing({"type": "string"}, "What they go by."),
        users=listing(_USER, "Who had most first; at most 200."),
        waits=listing(
            form(
                "What one user's jobs waited for.",
                user=value("string", "Whose; empty: of many others together."),
                code=value("string", "The reason's code."),
                text=value("string", "Its latest sentence."),
                job_hours=value("number", "For how many hours, summed over jobs."),
            ),
            "The longest first; at most 100.",
        ),
        failures=listing(
            form(
                "What failed.",
                code=value("string", "The reason's code."),
                number=value("integer", "How often."),
                last=value("string", "When last (UTC)."),
                text=value("string", "In words, the last time."),
            ),
            "The most frequent first.",
        ),
        notes=listing({"type": "string"}, "What else is to be known."),
    ),
}
