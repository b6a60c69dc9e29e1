"""The form of what `simulate` prints as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value

_FIGURES = {
    "jobs": "Jobs that arrived.",
    "completed": "Jobs that were done at the end.",
    "wait_mean": "Mean wait in seconds, from a job's arrival to its first start.",
    "wait_p50": "Half of the jobs waited no longer.",
    "wait_p95": "95 of 100 jobs waited no longer.",
    "wait_p99": "99 of 100 jobs waited no longer.",
    "wait_max": "The longest wait.",
    "slowdown": "Mean bounded slowdown: wait and run time, divided by the run time (at least 10 s).",
    "makespan": "Seconds from the first arrival to the last job's end.",
    "cost": "What all machines cost, in the unit of the prices.",
    "core_hours_paid": "Core-hours of all machines.",
    "core_hours_used": "Core-hours of jobs that came to something.",
    "paid_per_used": "The one divided by the other.",
    "idle_share": "Part of the paid core-hours in which no job ran.",
    "killed": "Runs of jobs that an order to end a machine cut short.",
    "lost": "Runs of jobs that ended with their machine's own death.",
    "machines": "Machines that were launched.",
    "per_thousand": "The same for 1,000 jobs.",
    "api_calls": "Calls to the clouds.",
    "violations": "Looks at which a limit was exceeded.",
    "over_bound": "The cost divided by the least possible.",
    "under_accuracy": "SPEC's elasticity metrics: cores that lacked, as a part of those asked for.",
    "over_accuracy": "Cores that were too many, as a part of those asked for.",
    "under_timeshare": "Part of the time in which cores lacked.",
    "over_timeshare": "Part of the time in which there were too many.",
}
SIMULATED = form(
    "A setting, and what became of it.",
    name=value("string", "Its name."),
    rival=value("boolean", "Whether another system's rule decided."),
    metrics=form(
        "Its figures; null where one doesn't apply.",
        **{name: value("number", about, none=True) for name, about in _FIGURES.items()},
    ),
    to_cores=value("object", "Numbers of cores, and the seconds until so many had joined, or null."),
    bound=value("number", "The least that these jobs can cost on these offers, or null.", none=True),
    calls=value("object", "How many API calls of each kind there were."),
    violations=value("object", "At how many looks which limit was exceeded."),
    refused_drains=value("integer", "Drains that found a machine busy: it stayed."),
    cycle=value("number", "Seconds between two of its looks."),
    cycles=value("integer", "Looks."),
    decisions=value("integer", "Looks at which anything had changed, so that it was decided anew."),
    machines_of=value("object", "How many machines of each flavor (and market) were launched."),
)
SIMULATE_FORMS: Mapping[str, Schema] = {
    "simulate": form(
        "Settings that were simulated over one workload.",
        version=VERSION,
        workload=form(
            "The jobs.",
            name=value("string", "The file or the generator."),
            jobs=value("integer", "How many."),
            seconds=value("number", "From the first arrival to the last."),
            core_hours=value("number", "The work in them."),
            begins=value("number", "When the first arrived, in POSIX seconds, or null.", none=True),
            sha256=value("string", "The file's; empty where there is none."),
            notes=listing(value("string", "A sentence."), "What was done to them on the way."),
            left_out=value("object", "How many records were left out, by the reason."),
        ),
        conditions=form(
            "What all settings share.",
            cycle=value("number", "Seconds between two looks."),
            seed=value("integer", "Where chance begins."),
            boot=value(
                "number", "Seconds until a machine joins, the median, unless its cloud says otherwise."
            ),
            failures=value("number", "Part of the machines that never join."),
            interruptions=value("number", "How often an hour a spot machine is taken away."),
        ),
        settings=listing(SIMULATED, "Each setting, in the order of the call."),
        front=listing(
            value("string", "A name."),
            "Settings that no other beats in cost and mean wait, the cheapest first.",
        ),
    ),
}
