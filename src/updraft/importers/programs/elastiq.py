"""elastiq.conf: what becomes of each of its keys."""

from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Kind, Program, Rule
from updraft.importers.programs.ec2rc import CREDENTIALS, EC2RC
from updraft.importers.programs.targets import (
    BOOT_DEADLINE,
    ENDPOINT,
    FLAVOR,
    IDLE_LIMIT,
    IMAGE,
    KEY_NAME,
    LAYER,
    MAXIMUM,
    MINIMUM,
    SLOTS,
    no_lifetime,
)

_EVERY_LOOK = "updraft looks at everything every 2 s ([timings] cycle)"

RULES = (
    Rule("elastiq", "sleep_s", Fate.NOT_NEEDED, _EVERY_LOOK),
    Rule("elastiq", "check_queue_every_s", Fate.NOT_NEEDED, _EVERY_LOOK),
    Rule("elastiq", "check_vms_every_s", Fate.NOT_NEEDED, _EVERY_LOOK),
    Rule(
        "elastiq",
        "check_vms_in_error_every_s",
        Fate.REPLACED,
        "a machine in error is ended at once; what failed rests, longer after each failure ([timings] "
        "cooldown_first), before it is tried again",
    ),
    BOOT_DEADLINE.of(
        "elastiq",
        "estimated_vm_deploy_time_s",
        "600",
        more=". If boots may take longer, raise it: the default is 30m",
    ),
    Rule(
        "elastiq",
        "waiting_jobs_threshold",
        Fate.TAKEN,
        "fewer jobs without room wait for more, as before; until 0.9 elastiq wanted one more than this. 0 "
        "and 1 are every job, and aren't written",
        target="min_jobs",
        becomes="[demand] min_jobs",
        kind=Kind.COUNT,
    ),
    Rule(
        "elastiq",
        "waiting_jobs_time_s",
        Fate.TAKEN,
        "counted from the submission of the first of them; leave it out, and machines are launched as soon "
        "as jobs wait that no free or coming room will hold",
        target="min_wait",
        becomes="[demand] min_wait",
        kind=Kind.SECONDS,
    ),
    SLOTS.of("elastiq", "n_jobs_per_vm", more='With "partitionable" instead, each job gets what it asks for'),
    IDLE_LIMIT.of("elastiq", "idle_for_time_s", "3600"),
    Rule(
        "elastiq",
        "batch_plugin",
        Fate.NOT_NEEDED,
        "updraft serves HTCondor, and nothing else",
        target="plugin",
    ),
    Rule(
        "elastiq", "log_level", Fate.NOT_NEEDED, "every decision is logged with its reason: `updraft events`"
    ),
    MINIMUM.of("quota", "min_vms", "0"),
    MAXIMUM.of("quota", "max_vms", "3"),
    ENDPOINT.of("ec2", "api_url"),
    Rule("ec2", "api_version", Fate.NOT_NEEDED, "the client library knows the version that it speaks"),
    Rule("ec2", "aws_access_key_id", Fate.SECRET, f"put it {CREDENTIALS}"),
    Rule("ec2", "aws_secret_access_key", Fate.SECRET, f"put it {CREDENTIALS}"),
    IMAGE.of("ec2", "image_id"),
    KEY_NAME.of("ec2", "key_name"),
    FLAVOR.of("ec2", "flavour"),
    LAYER.of("ec2", "user_data_b64"),
    Rule(
        "debug",
        "dry_run_shutdown_vms",
        Fate.REPLACED,
        "`updraft plan` shows what would be done, and does nothing",
        target="dry_run",
        kind=Kind.SWITCH,
    ),
    Rule(
        "debug",
        "dry_run_boot_vms",
        Fate.REPLACED,
        "`updraft plan` shows what would be done, and does nothing",
        target="dry_run",
        kind=Kind.SWITCH,
    ),
    *(
        Rule(
            "substitute",
            name,
            Fate.TAKEN,
            f"replaces %{name}% in the layer; empty: {what}, found at each launch",
            target=f"variable {name}",
            becomes=f"layers: variables.{name}",
        )
        for name, what in (
            ("ipv4", "the head's address"),
            ("ipv6", "the head's address"),
            ("fqdn", "the head's full name"),
        )
    ),
)

NOTES = (
    no_lifetime("elastiq"),
    (
        "waiting_jobs_time_s",
        Fate.REPLACED,
        "elastiq waited 40 s (100 s for more than 10 jobs until 0.9.4); here machines are launched at once. "
        "A wait: [demand] min_wait",
    ),
)

ELASTIQ = Program("elastiq", "elastiq.conf", "elastiq", RULES, NOTES, EC2RC)
