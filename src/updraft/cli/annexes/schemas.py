"""The forms of what the verbs about annexes print as JSON."""

from collections.abc import Mapping

from updraft.cli.forms import NO_REASON, REASON, VERSION, Schema, form, listing, value

ANNEX_LOOK = form(
    "How an annex stood at the daemon's last look.",
    name=value("string", "Its name."),
    state={"enum": ["whole", "growing", "held", "leaving", "over"], "description": "How it stands."},
    reason=REASON,
    machines=value("integer", "Machines that there are, those on their way included."),
    cores=value("integer", "Their cores."),
    joined=value("integer", "How many are in the pool."),
    busy=value("integer", "How many have jobs."),
    coming=value("integer", "How many were asked for and are not in the pool yet."),
    launching=value("integer", "How many were launched at that look."),
    missing=value("integer", "How many more are wanted: machines, or cores where it counts these."),
    forget=value("boolean", "Whether it was forgotten then."),
)
ASKED: Mapping[str, Schema] = {
    "name": value("string", "Its name."),
    "owner": value("string", "Who asked for it, or for whom."),
    "worker_class": value("string", "The class of its machines."),
    "machines": value("integer", "So many machines; 0 where it counts cores."),
    "cores": value("integer", "Machines with so many cores; 0 where it counts machines."),
    "until": value("number", "When its lease ends."),
    "idle": value("number", "Seconds after which an idle machine leaves."),
    "for_all": value("boolean", "Whether its machines take the jobs of all users."),
    "spot": value("boolean", "Only that market (true), only the other (false), or any (null).", none=True),
    "max_price": value("number", "Per hour, of one machine.", none=True),
    "clouds": listing({"type": "string"}, "Only these clouds; empty for all of the class."),
    "flavors": listing({"type": "string"}, "Only these flavors, by name or pattern; empty for the class's."),
    "image": value("string", "Booted instead of the class's; empty for that."),
    "security_groups": listing({"type": "string"}, "Instead of the cloud's own; empty for those."),
    "layer": value("boolean", "Whether it has user-data of its own."),
    "tags": value("object", "Tags of its machines."),
    "since": value("number", "When it was asked for."),
    "left": value("integer", "Machines that have left for want of work, and are not replaced."),
    "left_cores": value("integer", "Their cores."),
    "stopped": {**NO_REASON, "description": "Why its machines leave before the lease ends, or null."},
    "kill_jobs": value("boolean", "Whether their jobs have no time to finish."),
    "deleted": value("boolean", "Whether it is forgotten once its machines are gone."),
}
INSTANCE = form(
    "A machine of an annex.",
    id=value("string", "The cloud's own name of it."),
    cloud=value("string", "Its cloud."),
    flavor=value("string", "Its flavor."),
    phase=value("string", "Where it is in its life."),
    text=value("string", "The same for people, with the reason."),
)
ANNEX = form(
    "An annex.",
    **ASKED,
    look={"anyOf": [ANNEX_LOOK, {"type": "null"}], "description": "As of the last look; null before one."},
    instances=listing(INSTANCE, "Its machines."),
)
_ONE = form(
    "An annex, as it was written down.",
    version=VERSION,
    daemon=value("object", "The daemon, as in `status`."),
    annex=ANNEX,
)
_ALL = form("Annexes.", version=VERSION, annexes=listing(ANNEX, "By name."))
ANNEX_FORMS: Mapping[str, Schema] = {
    "annex list": _ALL,
    "annex status": _ALL,
    "annex create": form(
        "An annex, as it was written down, or what it would buy now (--dry-run).",
        version=VERSION,
        daemon=value("object", "The daemon, as in `status`; null for a dry run.", none=True),
        annex=ANNEX,
        launches=listing(
            form(
                "Machines that would be launched.",
                offer=value("string", "class@cloud/zone/flavor/market, and the variant."),
                count=value("integer", "How many."),
                price=value("number", "Of each, per hour.", none=True),
                cores=value("integer", "Of all of them."),
            ),
            "For a dry run: what would be launched, best first.",
        ),
        outlook={
            "anyOf": [ANNEX_LOOK, {"type": "null"}],
            "description": "For a dry run: how it would stand.",
        },
    ),
    **dict.fromkeys(("annex extend", "annex stop", "annex delete"), _ONE),
}
