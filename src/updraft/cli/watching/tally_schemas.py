"""The forms of what `status` says by cloud, class and user, and of what `cloud` shows."""

from collections.abc import Mapping

from updraft.cli.forms import NO_REASON, REASON, VERSION, Schema, form, listing, value

_COUNTED: Mapping[str, Schema] = {
    "machines": value("integer", "Machines, those on their way included."),
    "cores": value("integer", "Their cores."),
    "memory": value("integer", "Their memory, MiB."),
    "cost_per_hour": value("number", "What those of known price cost."),
    "unknown_prices": value("integer", "How many have a price that isn't known."),
    "phases": value("object", "How many machines in each phase."),
}
_LIMITS = form(
    "The ceilings of this cloud; null is none.",
    machines=value("integer", "Machines at one time.", none=True),
    cores=value("integer", "Cores at one time.", none=True),
    memory=value("integer", "Memory at one time, MiB.", none=True),
    cost_per_hour=value("number", "Cost per hour.", none=True),
)


def _or_null(of: Schema, what: str) -> Schema:
    return {"anyOf": [of, {"type": "null"}], "description": what}


def _both(what: str) -> Schema:
    return form(
        what,
        machines=value("integer", "Machines; null where it isn't known.", none=True),
        cores=value("integer", "Cores; null where it isn't known.", none=True),
    )


_SAID = form("A decision.", who=value("string", "By whom."), at=value("number", "When."))
CLOUD = form(
    "A cloud as of the daemon's last look.",
    name=value("string", "Its name."),
    state={
        "enum": ["silent", "disabled", "resting", "not-ending", "ok"],
        "description": "The first of these that is so.",
    },
    not_ending=_or_null(
        form(
            "Machines that stay.",
            machines=value("integer", "How many."),
            since=value("number", "Since when, at the longest."),
            reason=REASON,
        ),
        "It doesn't take orders to end `machines` of its machines, `since` when, and the `reason`; or null.",
    ),
    silent=_or_null(
        form(
            "Its silence.",
            since=value("number", "When it was first asked without an answer."),
            last=value("number", "When it last answered.", none=True),
            reason=REASON,
        ),
        "It doesn't say its machines: `since` when, `last` when it last did, and the `reason`; or null.",
    ),
    disabled={**NO_REASON, "description": "Why nothing is bought there, or null."},
    disabled_at=value("number", "When an operator disabled it; null where the file does.", none=True),
    leaving=value("boolean", "Whether its machines leave as their jobs end."),
    rest=_or_null(
        form("A rest.", until=value("number", "When it ends."), reason=REASON),
        "A rest of the whole cloud after failures: `until` when, and the `reason`; or null.",
    ),
    priority=value("integer", "Where it is lower is bought sooner."),
    **_COUNTED,
    limits=_LIMITS,
    quota_left=_both("What its quota leaves for more machines."),
    foreign=_both("What others than this pool have of it."),
    last_error=_or_null(
        form(
            "An error.",
            at=value("number", "When."),
            code=value("string", "Short and stable."),
            text=value("string", "One sentence, for people."),
        ),
        "The latest error of the last day: `at`, `code` and `text`; or null.",
    ),
)
CLASS = form(
    "A worker class.",
    name=value("string", "Its name."),
    **_COUNTED,
    min=value("integer", "Machines that are always kept; null of a class that the file lacks.", none=True),
    max=value("integer", "Machines at most; null where there is no such limit.", none=True),
    max_cores=value("integer", "Cores at most; null where there is no such limit.", none=True),
    waiting=value("integer", "Waiting jobs that could run on it; a job may count for several classes."),
)
USER = form(
    "A user (or a user of an accounting group) who has or wants anything.",
    user=value("string", "The name, without its domain."),
    cores=value("integer", "Cores that the user's jobs have claimed."),
    waiting=value("integer", "Jobs that wait."),
    machines=value("integer", "Machines that the user's jobs are on."),
    max_cores=value("integer", "Cores that machines are bought for at most, or null.", none=True),
    max_machines=value("integer", "Machines that are bought at most, or null.", none=True),
    part=value("number", "Part of all claimed cores; null where there are none.", none=True),
    share=value("number", "Part that the negotiator would give by the users' priorities alone."),
)
BUDGET = form(
    "A budget of a day or a month as of the daemon's last look.",
    scope={
        "enum": ["pool", "cloud", "class", "user", "group", "annexes"],
        "description": "Whose it is; of annexes, of all those of one user together.",
    },
    name=value("string", "The cloud, class, user or group; empty for the pool."),
    whose=value("string", "The same in words."),
    period={"enum": ["day", "month"], "description": "Of UTC."},
    most=value("number", "What may be spent in it."),
    spent=value("number", "What was, at list prices; null where nobody knows.", none=True),
    cost_per_hour=value("number", "What runs under it; null where some price isn't known.", none=True),
    over=value("boolean", "Whether all of it is spent."),
    ends=value("number", "When the period ends."),
    runs_out=value(
        "number", "When all will be spent at this rate; null where that isn't in the period.", none=True
    ),
    waiting=value("integer", "Waiting jobs that it holds back."),
)
TALLIES: Mapping[str, Schema] = {
    "clouds": listing(CLOUD, "By cloud."),
    "classes": listing(CLASS, "By worker class."),
    "spending": listing(BUDGET, "Budgets of money."),
    "users": listing(USER, "By user, those with the most cores first; at most 1,000."),
}
DECIDED = form(
    "A cloud of the file, and what is decided of it.",
    name=value("string", "Its name."),
    driver=value("string", "Its driver."),
    priority=value("integer", "Where it is lower is bought sooner."),
    disabled={**NO_REASON, "description": "Why nothing is bought there, or null."},
    leaving=value("boolean", "Whether its machines leave as their jobs end."),
    limits={**_LIMITS, "description": "The ceilings in force; null is none."},
    file=form(
        "What updraft.toml says.",
        enabled=value("boolean", "Whether it is enabled there."),
        limits=_LIMITS,
    ),
    switched=_or_null(_SAID, "`who` enabled or disabled it at run time, and `at` what time; or null."),
    limited=_or_null(_SAID, "`who` set limits at run time, and `at` what time; or null."),
    look=_or_null(CLOUD, "The cloud as `status` has it; null before the daemon's first look."),
)
_CLOUDS = form("What is decided of clouds.", version=VERSION, clouds=listing(DECIDED, "Each cloud."))
CLOUD_FORMS: Mapping[str, Schema] = {
    "cloud list": _CLOUDS,
    "cloud show": form("One cloud.", version=VERSION, cloud=DECIDED),
    **dict.fromkeys(("cloud enable", "cloud disable", "cloud limit", "cloud reset"), _CLOUDS),
}
