"""The forms of what the verbs about heads, networks, images, pools, tokens and leftovers print as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import REASON, VERSION, Schema, form, listing, value

_RULE = form(
    "A rule of a security group.",
    direction=value("string", '"in" or "out".'),
    protocol=value("string", '"tcp", "udp", "icmp", "icmpv6", another\'s number, or "any".'),
    ports={
        "type": ["array", "null"],
        "items": {"type": "integer"},
        "description": "The first and the last, of ICMP type and code (-1: every code); null for all.",
    },
    source=value("string", 'Who is at the other end: a network, "group:ID" or "list:ID".'),
    families=listing({"enum": [4, 6]}, "The kinds of IP address that it is for."),
)
HEAD_FORMS: Mapping[str, Schema] = {
    "network check": form(
        "Security groups and what the pool needs of them.",
        version=VERSION,
        groups=listing(
            form(
                "The groups of one cloud's heads or workers.",
                cloud=value("string", "The cloud."),
                role={"enum": ["head", "worker"], "description": "Whose they are."},
                name=value("string", "The group's name or id, as it is looked for."),
                ids=listing({"type": "string"}, "Those that there are; empty for none."),
                missing=listing(_RULE, "What is needed and isn't there."),
                open=listing(_RULE, "What lets in more than is needed."),
                notes=listing(value("string", "A sentence."), "What can't be told, or isn't used."),
            ),
            "By cloud.",
        ),
        left_out=listing(
            form("A cloud without groups.", cloud=value("string", "Which."), text=value("string", "Why.")),
            "Clouds in which there is nothing to compare.",
        ),
    ),
    "head list": form(
        "The heads of the pool.",
        version=VERSION,
        heads=listing(
            form(
                "A head.",
                cloud=value("string", "Its cloud."),
                name=value("string", "What `head launch` called it."),
                id=value("string", "The instance's id."),
                state=value("string", "As the cloud says it: pending, running, stopped, error."),
                address=value("string", "Where it is reached; empty while it has none."),
                flavor=value("string", "Its flavor."),
                zone=value("string", "Its zone."),
                image=value("string", "What it booted."),
                launched=value("number", "When, in POSIX seconds."),
            ),
            "By cloud.",
        ),
    ),
}


MACHINE_IMAGE = form(
    "A machine image.",
    cloud=value("string", "Its cloud."),
    id=value("string", "The cloud's name for it."),
    name=value("string", "Its name."),
    state=value("string", '"ready", "making" or "failed".'),
    architecture=value("string", "As the cloud says it."),
    created=value("number", "When it was made.", none=True),
    size=value("integer", "Bytes of its file or its volumes.", none=True),
    form=value("string", 'The form of its file ("qcow2", "raw", "tar"), empty where it has none.'),
    checksum=value("string", '"ALGORITHM:HEX" of its file, empty where the cloud tells none.'),
    pool=value("string", "The pool whose updraft made it, empty where somebody else did."),
    ours=value("boolean", "This pool's updraft made it."),
    shared=listing({"type": "string"}, "Who else may use it, as far as the cloud told; `show` asks."),
    **{"from": value("string", "What it was made from, where updraft made it.")},
)
IMAGE_FORMS: Mapping[str, Schema] = {
    "image list": form(
        "Machine images.",
        version=VERSION,
        images=listing(MACHINE_IMAGE, "By cloud, as it lists them."),
        errors=listing(
            form("A cloud left out.", cloud=value("string", "Which."), text=value("string", "What it said.")),
            "Clouds that didn't answer.",
        ),
    ),
    "image show": form("One machine image.", version=VERSION, image=MACHINE_IMAGE),
}


_SETTING = form(
    "A setting of HTCondor's.",
    name=value("string", "Its name."),
    value=value("string", "Its value."),
    reason=value("string", "Why it is so."),
    source=value("string", "Whose advice it is."),
    since=value("string", "The oldest release known to have it."),
)
_LEAST = form(
    "A limit of the system, or a need; more is as good.",
    name=value("string", "Its name."),
    at_least=value("integer", "How much."),
    unit=value("string", "Of what."),
    reason=value("string", "Why so much."),
    source=value("string", "Whose advice it is."),
)
POOL_FORMS: Mapping[str, Schema] = {
    "pool config": form(
        "The configuration for a pool of a size.",
        version=VERSION,
        role=value("string", '"head", "submit" or "worker".'),
        htcondor=value("string", "The release whose settings they are."),
        machines=value("integer", "Machines of the pool at most."),
        running_jobs=value("integer", "Jobs that run at once."),
        schedds=value("integer", "Submit nodes that share them."),
        settings=listing(_SETTING, "What is to be written, in this order."),
        unit={
            "anyOf": [_LEAST, {"type": "null"}],
            "description": "HTCondor's unit, where it must be changed.",
        },
        kernel=listing(_LEAST, "Settings of the kernel."),
        needs=listing(_LEAST, "Memory, disk and ports."),
        left_out=listing(_SETTING, "What HTCondor does by itself, with its default."),
        notes=listing(value("string", "A sentence."), "What can't be a setting."),
    )
}


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


_NAMES = value("string", "A launch.")
_KEYS = listing(
    form(
        "A key that signs workers' tokens.",
        name=value("string", "Its name, which tokens name too."),
        signs=value("boolean", "Whether it signs those of new launches."),
    ),
    "The keys on this machine, the oldest first; empty where they can't be seen.",
)
_TOKEN = form(
    "A token that may be in use; never the token itself.",
    launch=value("string", "Its launch; `by-hand-…` for one that `userdata worker --with-token` made."),
    **{"class": value("string", "The launch's worker class.")},
    identity=value("string", "As whom its machines authenticate."),
    id=value("string", "The token's own id (jti); empty where it isn't known."),
    key=value("string", "The name of the key that signed it; empty where it isn't known."),
    issued=value("number", "When it was made.", none=True),
    expires=value("number", "When it ends by itself; null where it isn't known.", none=True),
    machines=value("integer", "How many machines of the launch live."),
    state={"enum": ["good", "revoked", "over"], "description": "Over: it has ended by itself."},
)
TOKEN_FORMS: Mapping[str, Schema] = {
    "tokens list": form(
        "The tokens that may be in use, the oldest first.",
        version=VERSION,
        tokens=listing(_TOKEN, "One a launch."),
        keys=_KEYS,
    ),
    "tokens revoke": form(
        "What was revoked.",
        version=VERSION,
        launches=listing(_NAMES, "The launches."),
        identities=listing(value("string", "An identity."), "As whom their machines authenticate."),
        all=value("boolean", "Whether every token that was issued until now is revoked."),
        file=value("string", "The file of HTCondor's configuration that says so."),
    ),
    "tokens rotate": form(
        "What became of the keys.",
        version=VERSION,
        new=value("string", "The key that was made.", none=True),
        removed=listing(value("string", "A key."), "Those that were removed."),
        needed=value("object", "Old keys that stay, each with how many machines may have a token of it."),
        revoked=listing(_NAMES, "The launches whose tokens were revoked with it."),
        keys=_KEYS,
    ),
}


LEFTOVER_FORMS: Mapping[str, Schema] = {
    "leftovers": form(
        "What updraft has made in the clouds, and what is left over of it.",
        version=VERSION,
        leftovers=listing(
            form(
                "A thing in a cloud.",
                cloud=value("string", "Its cloud."),
                kind=value(
                    "string",
                    '"machine", "image", "snapshot", "volume", "security-group", "address", "port" or '
                    '"key-pair".',
                ),
                id=value("string", "The cloud's name for it."),
                name=value("string", "Its name, empty where it has none."),
                made=value("number", "When it was made.", none=True),
                fate={
                    "enum": ["left", "unused", "kept", "refused"],
                    "description": "left: --remove removes it; unused: only where its id is given; kept: in "
                    "use, named, or young; refused: it isn't proven to be this pool's.",
                },
                reason=REASON,
                removed=value("boolean", "This call has removed it."),
                error=value("string", "Why it couldn't be removed, else empty."),
            ),
            "By cloud, kind and id; what is kept only with --all.",
        ),
        errors=listing(
            form(
                "A question without an answer.",
                cloud=value("string", "Whom."),
                what=value("string", "What it was asked for."),
                text=value("string", "What it said."),
            ),
            "What isn't known.",
        ),
    )
}
