"""The forms of what `--json` prints, as JSON Schema: the promise of docs/reference/json.md, checked in tests.

A key that is here stays, with its meaning, as long as `version` is 1; new keys may come beside it.
"""

from collections.abc import Mapping

from updraft.cli.annexes.schemas import ANNEX, ANNEX_FORMS
from updraft.cli.forms import NO_REASON, REASON, VERSION, Schema
from updraft.cli.forms import form as _form
from updraft.cli.forms import listing as _list
from updraft.cli.forms import value as _value
from updraft.cli.simulating.schemas import SIMULATE_FORMS
from updraft.cli.usage.schemas import USAGE_FORMS
from updraft.cli.verb_schemas import (
    HEAD_FORMS,
    IMAGE_FORMS,
    LEFTOVER_FORMS,
    LOAD_FORMS,
    POOL_FORMS,
    TOKEN_FORMS,
)
from updraft.cli.watching.tally_schemas import BUDGET, CLOUD_FORMS, TALLIES

RESOURCES = _form(
    "A quantity of machine.",
    cpus=_value("integer", "Cores."),
    memory=_value("integer", "MiB."),
    disk=_value("integer", "KiB."),
    gpus=_value("integer", "GPUs."),
)
DAEMON = _form(
    "The daemon, as the ledger shows it.",
    alive=_value("boolean", "It has looked at the pool within the last minute, and its process lives."),
    acting=_value("boolean", "It acts; false while it waits for another controller."),
    standing={**NO_REASON, "description": "Why it doesn't act, or null."},
    host=_value("string", "Where it runs."),
    pid=_value("integer", "Its process there.", none=True),
    since=_value("number", "When it started.", none=True),
    looked_at=_value("number", "When it last looked.", none=True),
    age=_value("number", "How many seconds ago that was.", none=True),
)
GROUP = _form(
    "A job group: waiting jobs alike in everything that matching looks at.",
    key=_value("string", "Its name within this document."),
    idle=_value("integer", "Jobs that wait."),
    joined=_value("integer", "Of these, how many find room on joined machines."),
    coming=_value("integer", "How many on machines on their way."),
    new=_value("integer", "How many on machines that the plan launches."),
    unmet=_value("integer", "How many find none."),
    held_back=_list(
        {
            **REASON,
            "properties": {**REASON["properties"], "remedy": _value("string", "What would change it.")},
        },
        "Limits, rests and the like that stopped a purchase.",
    ),
)
COOLDOWN = _form(
    "A rest after failures.",
    scope=_value("string", '"offer", "image" or "cloud".'),
    key=_value("string", "Which one."),
    until=_value("number", "When it ends."),
    failures=_value("integer", "Failures in a row."),
    probe=_value("boolean", "True where one machine may go out to try."),
    reason=REASON,
)
ACTION = _form(
    "Something that the plan does.",
    what=_value("string", "launch, drain, undrain, terminate, adopt, disown, requeuejobs or forget."),
    text=_value("string", "The same for people."),
    reason=REASON,
)
SOURCES: Schema = {
    "type": "object",
    "description": "Every source by name: schedds, the collector, the clouds.",
    "additionalProperties": _form("A source.", state={"enum": ["known", "unknown"], "description": "Which."}),
}
REQUEST = _form(
    "An operator's wish that isn't done.",
    id=_value("integer", "Its number."),
    at=_value("number", "When it was asked for."),
    who=_value("string", "By whom."),
    kind={"enum": ["drain", "undrain", "terminate", "adopt", "disown", "destroy"], "description": "What."},
    machine=_value("string", "Which machine; empty for all."),
    kill_jobs=_value("boolean", "Whether jobs may be killed for it."),
)
MACHINE = _form(
    "A machine.",
    id=_value("string", "The cloud's own name of it."),
    cloud=_value("string", "The cloud, as updraft.toml names it."),
    **{"class": _value("string", "Its worker class.")},
    flavor=_value("string", "Its flavor."),
    zone=_value("string", "Its zone."),
    market=_value("string", '"on-demand" or "spot".'),
    image=_value("string", "Its image."),
    variant=_value(
        "string", 'How it differs from plain machines of its class (`image=…&user=…`); "" if it does not.'
    ),
    generation=_value("string", "The hash of what it was launched with."),
    launch=_value("string", "The launch key."),
    price=_value("number", "Per hour; null where it isn't known.", none=True),
    phase={
        "enum": ["requested", "booting", "joined", "draining", "ending", "gone", "lost", "failed"],
        "description": "Where it is in its life.",
    },
    reason=REASON,
    deadline=_value("number", "Until when it may stay as it is.", none=True),
    requested_at=_value("number", "When it was asked for."),
    joined_at=_value("number", "When it joined the pool.", none=True),
    busy_at=_value("number", "When it last had a claim.", none=True),
    ended_at=_value("number", "When it was gone.", none=True),
    age=_value("number", "Seconds since it was asked for, up to its end."),
    drain={"type": ["object", "null"], "description": "The drain that was begun, or null."},
)
JOBS = _form(
    "All jobs of the pool.", idle=_value("integer", "Waiting."), running=_value("integer", "Running.")
)
EVENT = _form(
    "One event; each is a document of its own, on a line of its own.",
    version=VERSION,
    id=_value("integer", "Grows with time."),
    at=_value("number", "When."),
    kind=_value("string", "What kind of thing happened."),
    subject=_value("string", "The machine, launch or cloud that it happened to."),
    code=_value("string", "The reason's code."),
    text=_value("string", "The reason's sentence."),
    detail=_value("object", "More of it."),
)
OFFER = _form(
    "An offer, and whether jobs of the group can run on it.",
    offer=_value("string", "class@cloud/zone/flavor/market."),
    price=_value("number", "Per hour; null where it isn't known.", none=True),
    holds=_value("integer", "How many of these jobs fit; null where it was not evaluated.", none=True),
    fails=_list(REASON, "The clauses that fail, on either side."),
    rests=_list(COOLDOWN, "Rests that keep it from being bought."),
)
JOB = _form(
    "A job in a queue.",
    id=_value("string", "CLUSTER.PROC."),
    schedd=_value("string", "The schedd that has it."),
    owner=_value("string", "Its owner."),
    state=_value("string", "idle, running, held, suspended, removed or completed."),
    since=_value("number", "When it was submitted."),
)
WISH = _form(
    "A wish that was written down.",
    id=_value("integer", "Its number."),
    kind=_value("string", "What."),
    machine=_value("string", "Which machine; empty for all."),
    kill_jobs=_value("boolean", "Whether jobs may be killed for it."),
    outcome=_value("string", "What became of it; null while that is open.", none=True),
)
WISHES = _form(
    "What was asked of the daemon.", version=VERSION, daemon=DAEMON, requests=_list(WISH, "Each wish.")
)

FINDING = _form(
    "One thing that was looked at.",
    area=_value("string", 'Where it belongs: "here", "pool", "cloud NAME".'),
    what=_value("string", "What it is."),
    state={"enum": ["ok", "warning", "problem", "skipped"], "description": "Skipped isn't ok: nobody knows."},
    text=_value("string", "How it stands, or why it can't be said."),
    remedy=_value("string", "What to do; empty where nothing needs doing."),
)
IMAGE = _form(
    "An image.",
    cloud=_value("string", "Its cloud."),
    id=_value("string", "Its id."),
    name=_value("string", "Its name."),
    state=_value("string", "As the cloud says it."),
    arch=_value("string", "Architecture; empty where the cloud doesn't say."),
    owner=_value("string", "Whose it is."),
    created=_value("number", "When it was made.", none=True),
)
CLOUD_OFFER = _form(
    "Something that can be bought.",
    cloud=_value("string", "Its cloud."),
    zone=_value("string", "Where."),
    flavor=_value("string", "The size of machine."),
    market=_value("string", "on-demand or spot."),
    resources=RESOURCES,
    price=_value("number", "Per hour, or null.", none=True),
    left=_value("integer", "How many more there are, or null.", none=True),
    arch=_value("string", "Architecture."),
)
CLOUD_ERROR = _form(
    "A cloud that didn't answer.",
    cloud=_value("string", "Its name."),
    text=_value("string", "Why."),
)
BUDGET_OVER = _form(
    "A budget that is spent.",
    whose=_value("string", "Whose, in words."),
    period={"enum": ["day", "month"], "description": "Of UTC."},
    ends=_value("number", "When the next one begins."),
)
FORMS: Mapping[str, Schema] = {
    "plan": _form(
        "One look and the plan that it leads to.",
        version=VERSION,
        at=_value("number", "When it was looked."),
        pool=_value("string", "The pool's name."),
        sources=SOURCES,
        jobs=JOBS,
        groups=_list(GROUP, "Who waits."),
        machines=_list(_form("A machine's outlook.", machine=_value("string", "Its id."), reason=REASON)),
        cooldowns=_list(COOLDOWN, "Rests."),
        warnings=_list(REASON, "What is reported and leads to nothing by itself."),
        spending=_list(BUDGET, "Budgets of money."),
        actions=_list(ACTION, "What would be done."),
    ),
    "status": _form(
        "The daemon's last look.",
        version=VERSION,
        pool=_value("string", "The pool's name."),
        daemon=DAEMON,
        jobs=JOBS,
        machines=_form(
            "All machines together.",
            total=_value("integer", "How many."),
            phases=_value("object", "How many in each phase."),
            cost_per_hour=_value("number", "What those of known price cost."),
            unknown_prices=_value("integer", "How many have a price that isn't known."),
        ),
        sources=SOURCES,
        groups=_list(GROUP, "Who waits."),
        actions=_list(ACTION, "What was decided."),
        cooldowns=_list(COOLDOWN, "Rests."),
        warnings=_list(REASON, "What is reported."),
        annexes=_list(ANNEX, "Those that stand, as in `annex list`."),
        requests=_list(REQUEST, "Wishes that aren't done."),
        **TALLIES,
    ),
    **ANNEX_FORMS,
    **CLOUD_FORMS,
    **IMAGE_FORMS,
    **LEFTOVER_FORMS,
    **POOL_FORMS,
    **LOAD_FORMS,
    **TOKEN_FORMS,
    **USAGE_FORMS,
    **HEAD_FORMS,
    "machines": _form("The machines.", version=VERSION, machines=_list(MACHINE, "Oldest first.")),
    "events": EVENT,
    "replay": _form(
        "The decisions of a recording, made again.",
        version=VERSION,
        decisions=_list(
            _form(
                "One decision.",
                number=_value("integer", "Its place in the file, from 1."),
                at=_value("number", "When it was made."),
                same=_value("boolean", "Whether the plan is the recorded one, byte for byte."),
                differs=_list(_value("string", "A part of the plan."), "What differs."),
                actions=_list(
                    _form(
                        "An action of the plan made now.",
                        what=_value("string", "Its kind."),
                        code=_value("string", "The reason's code."),
                        text=_value("string", "The reason."),
                    )
                ),
            )
        ),
    ),
    "explain JOB": _form(
        "Why jobs wait.",
        version=VERSION,
        jobs=_list(JOB, "The jobs of this name."),
        groups=_list(
            {
                **GROUP,
                "properties": {
                    **GROUP["properties"],
                    "request": RESOURCES,
                    "budgets": _list(BUDGET_OVER, "Budgets that are spent and hold them back."),
                    "offers": _list(OFFER),
                },
            },
            "The groups that those of them that wait are planned for in.",
        ),
        silent=_list(
            _form(
                "A schedd.",
                schedd=_value("string", "Its name."),
                why=_value("string", "Why there was no answer."),
            ),
            "Schedds that were not heard: they may have jobs of this name, too.",
        ),
        left_out=_list(REASON, "Offers, classes, annexes and clouds without which it is planned."),
    ),
    "explain MACHINE": _form(
        "One machine.",
        version=VERSION,
        machine=MACHINE,
        launch={"type": ["object", "null"], "description": "The launch that made it, or null."},
        events=_list(_value("object", "As `events` has them."), "What happened to it."),
        console=_value("string", "Its console: as kept at its end, else as its cloud shows it.", none=True),
        no_console=_value("string", "Why there is none; empty where there is one."),
        left_out=_list(REASON, "What the last look left out of the machine, its cloud, class or annex."),
        daemon=DAEMON,
    ),
    **SIMULATE_FORMS,
    "drain": WISHES,
    "undrain": WISHES,
    "terminate": WISHES,
    "adopt": WISHES,
    "disown": WISHES,
    "destroy": WISHES,
    "service status": _form(
        "The daemon as systemd and the ledger show it.",
        version=VERSION,
        unit={
            "type": ["object", "null"],
            "description": "The unit: installed, enabled (true or false) and state; null without systemd.",
        },
        daemon={
            "anyOf": [DAEMON, {"type": "null"}],
            "description": "The daemon; null where none has ever run.",
        },
    ),
    "check": _form(
        "Everything that a working pool needs.",
        version=VERSION,
        file=_value("string", "The configuration."),
        seconds=_value("number", "How long the look took."),
        counts=_value("object", "How many findings are ok, warning, problem and skipped."),
        findings=_list(FINDING, "In the order of the report."),
    ),
    "images": _form(
        "The images of the clouds.",
        version=VERSION,
        images=_list(IMAGE, "By cloud and name."),
        errors=_list(CLOUD_ERROR, "The clouds that didn't answer."),
    ),
    "offers": _form(
        "What can be bought.",
        version=VERSION,
        offers=_list(CLOUD_OFFER, "The cheapest first."),
        errors=_list(CLOUD_ERROR, "The clouds that didn't answer."),
    ),
    "config check": _form(
        "A configuration that is right.",
        version=VERSION,
        file=_value("string", "The file."),
        pool=_value("string", "The pool's name."),
        clouds=_list(_value("string", "A name."), "Its clouds."),
        classes=_list(_value("object", "A class."), "Its classes, each with its generation."),
    ),
    "version": _form(
        "What this is.",
        version=VERSION,
        updraft=_value("string", "updraft's version."),
        python=_value("string", "Python's."),
        htcondor=_value("string", "That of HTCondor's bindings."),
    ),
}
