"""The forms of what `pool load` prints as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value

UPDATES = form(
    "Ads of the simulated machines: three a machine and update.",
    sent=value("integer", "Sent without an error."),
    taken=value("integer", "Of these, counted by the collectors that they were sent to."),
    lost=value("integer", "Of these, counted by none."),
    delayed=value("integer", "Machines' last ads that were heard more than 5 s after they were sent."),
    failed=value("integer", "Calls that had an error."),
    call=value("number", "Seconds of one machine's update, the median.", none=True),
    slowest=value("number", "Seconds of the slowest update or join.", none=True),
    join_call=value("number", "Seconds of a join with its authentication, the median.", none=True),
    behind=value("number", "By how many seconds the load itself came late at worst."),
    errors=listing({"type": "string"}, "What failed calls said, some of it."),
)
DAEMON = form(
    "All processes of one name.",
    name=value("string", 'Such as "collector 1", "schedd" or "shadow".'),
    processes=value("integer", "How many."),
    memory=value("number", "MiB of all together; shared pages count by share."),
    peak=value("number", "MiB that the largest had at most, shared pages included."),
    descriptors=value("integer", "Open file descriptors of the one with the most."),
    descriptor_limit=value("integer", "How many it may have."),
    cpu=value("number", "Seconds of processor time of all together."),
)
CYCLE: Schema = {
    "type": ["object", "null"],
    "description": "The longest negotiation cycle with all slots: seconds, cpu, slots, idle_jobs, "
    "considered, out_of_time; null where there was none.",
}
RUN = form(
    "A load test with one number of machines.",
    machines=value("integer", "Simulated machines asked for."),
    children=value("integer", "Collectors that they advertise to."),
    joined=value("integer", "Machines that had joined and not vanished at the end."),
    lost_machines=value("integer", "Machines that vanished, as asked for."),
    seconds_to_join=value("number", "Until the last one had joined."),
    updates=UPDATES,
    shown=value("integer", "Of the joined, how many the top collector shows."),
    status=value("number", "Seconds of condor_status over all, the median.", none=True),
    status_longest=value("number", "The longest of them; null where one failed.", none=True),
    cycle=CYCLE,
    groups=value("integer", "Job groups of the dummy jobs."),
    daemons=listing(DAEMON, "By name."),
    duty=value("number", "Part of its time that the busiest child collector is busy.", none=True),
    sessions=value("integer", "Security sessions that the child collectors say they keep."),
    extrapolated=value("object", "What real machines would add, by the real startds' costs: not measured."),
    gives_out=listing({"type": "string"}, "What is beyond its bound; empty where all is well."),
)
REAL: Schema = {
    "anyOf": [
        form(
            "Real startds on this machine.",
            asked=value("integer", "How many were asked for."),
            joined=value("integer", "How many joined."),
            running=value("integer", "How many ran a job."),
            seconds_to_join=value("number", "Until the last one was shown."),
            seconds_to_run=value("number", "From the submission until the last one ran."),
            startd=value("number", "MiB of a startd.", none=True),
            starter=value("number", "MiB of a starter.", none=True),
            shadow=value("number", "MiB of a shadow, on the head.", none=True),
            collector_descriptors=value("number", "Descriptors of a collector for each startd.", none=True),
            schedd_descriptors=value("number", "Descriptors of the schedd for each job.", none=True),
            memory=value("number", "MiB of a startd with its starter.", none=True),
        ),
        {"type": "null"},
    ],
    "description": "Real startds, or null.",
}
LOAD_FORMS: Mapping[str, Schema] = {
    "pool load": form(
        "A pool's configuration under load.",
        version=VERSION,
        runs=listing(RUN, "One for each number of machines."),
        real=REAL,
    )
}
