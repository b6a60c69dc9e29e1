"""The form of `updraft usage --json`."""

from collections.abc import Mapping

from updraft.cli.forms import VERSION, Schema, form, listing, value
from updraft.usage import NOT_THE_BILL
from updraft.usage.report import BY

FIGURES: Mapping[str, Schema] = {
    "currency": value("string", "That of the costs; empty where the site doesn't say it."),
    "machine_days": value("integer", "Records of a machine and a day that it is the sum of."),
    "machine_hours": value("number", "Hours that its machines were there; 0 for users and groups."),
    "paid_core_hours": value("number", "Cores that were there, or that the user is charged with."),
    "used_core_hours": value("number", "Of these, claimed."),
    "idle_core_hours": value("number", "Of these, claimed by nobody."),
    "unknown_core_hours": value("number", "Of these, nobody knows what they did: no controller looked."),
    "doubtful_core_hours": value("number", "Not among these: nobody knows whether they were there."),
    "paid_gpu_hours": value("number", "GPUs that were there; 0 for users and groups."),
    "used_gpu_hours": value("number", "GPUs that were claimed."),
    "jobs": value("integer", "Jobs begun."),
    "lost_core_hours": value("number", "Work that was lost with its machine, at most."),
    "cost": value("number", "At list prices; null where no price is known.", none=True),
    "idle_cost": value("number", "Of this, for idle cores.", none=True),
    "unpriced_machine_hours": value("number", "Hours of machines whose price isn't known: not in the cost."),
    "billed": value("number", "What an imported bill says, or null.", none=True),
    "efficiency": value("number", "Used ÷ paid, of what is known; or null.", none=True),
    "paid_per_used": value("number", "Paid ÷ used, of what is known; or null.", none=True),
    "kwh": value("number", "Energy, by the site's coefficients; or null.", none=True),
    "co2_kg": value("number", "CO₂ of that, in kg; or null.", none=True),
}
MACHINE = form(
    "What the latest record of a machine says of it.",
    cloud=value("string", "Its cloud."),
    region=value("string", "Where that is, as the cloud's settings say it; or empty."),
    zone=value("string", "Its zone."),
    instance=value("string", "Its id."),
    flavor=value("string", "Its flavor."),
    market=value("string", "on-demand or spot."),
    image=value("string", "Its image."),
    **{"class": value("string", "Its worker class.")},
    annex=value("string", "The annex that it was launched for, or empty."),
    owner=value("string", "Whose annex that is, or empty."),
    cores=value("integer", "Its cores."),
    memory=value("integer", "Its memory, MiB."),
    gpus=value("integer", "Its GPUs."),
    price=value("number", "Per hour, when it was last seen; null where it isn't known.", none=True),
    source=value("string", "Where the price is from: site (updraft.toml) or cloud; empty without one."),
    benchmark=value("string", "What `score` is measured by, or empty."),
    score=value("number", "The benchmark of one core, where the site says it; or null.", none=True),
    requested=value("string", "When it was asked for (UTC)."),
    seen_until=value("string", "The last moment of it that is in the report (UTC)."),
    ended=value("string", "Why it ended (a reason's code); null of one that hasn't.", none=True),
    why=value("string", "The same in words, or null.", none=True),
)
_KINDS = (*BY, "unknown", "pool")
ROW = form(
    "One row.",
    kind={
        "enum": list(_KINDS),
        "description": "What it is of: `unknown` is used by somebody whom nobody knows, `pool` charged to "
        "nobody.",
    },
    name=value("string", "Whose, or of what; of a machine CLOUD/ID. Empty: without a group or an annex."),
    **FIGURES,
    machine={"anyOf": [MACHINE, {"type": "null"}], "description": "With `--by machine`: of which; or null."},
)
USAGE_FORMS: Mapping[str, Schema] = {
    "usage": form(
        "What was used and paid.",
        version=VERSION,
        estimate=value("boolean", "Always true."),
        note={"const": NOT_THE_BILL, "description": "What its figures are."},
        pool=value("string", "The pool."),
        **{
            "from": value("string", "The first UTC day."),
            "to": value("string", "The last UTC day, included."),
        },
        by={"enum": list(BY), "description": "What the rows are by."},
        since=value("string", "The first day of which there are any records, or null.", none=True),
        until=value("string", "The last look that is in it (UTC), or null.", none=True),
        idle_paid_by={"enum": ["users", "pool"], "description": "Who is charged for idle cores."},
        rows=listing(ROW, "The dearest first."),
        totals=listing(form("All of a currency.", **FIGURES), "By currency."),
    ),
    "usage import": form(
        "What was read of a bill.",
        version=VERSION,
        rows=value("integer", "Rows of the files."),
        machine_days=value("integer", "Machines and days that it says something of."),
        billed={
            "type": "object",
            "description": "What was billed for these, by currency.",
            "additionalProperties": {"type": "number"},
        },
        others=value("integer", "Rows of resources that are no machines of this pool."),
        unread=value("integer", "Rows that can't be read, and are left out."),
        why=value("string", "What is wrong with the first of them, or null.", none=True),
    ),
}
