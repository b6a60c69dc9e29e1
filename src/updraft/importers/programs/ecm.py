"""ecm.conf, and the user-data that ecm.py made for a master: what becomes of each key."""

from updraft.importers.output.report import Fate
from updraft.importers.output.rules import Program, Rule
from updraft.importers.programs.ec2rc import EC2RC
from updraft.importers.programs.targets import (
    BOOT_DEADLINE,
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

RULES = (
    FLAVOR.of("", "FLAVOR_VMS"),
    FLAVOR.because("as FLAVOR_VMS, in ECM until 2017").of("", "WNS_FLAVOR"),
    MAXIMUM.of("", "MAX_VMS", "3"),
    MINIMUM.of("", "MIN_VMS", "0"),
    SLOTS.of(
        "",
        "JOBS_PER_VM",
        more='ECM only divided by it. With "partitionable" instead, each job gets what it asks for',
    ),
    IDLE_LIMIT.of("", "IDLE_TIME", "3600"),
    KEY_NAME.of("", "KEY_NAME"),
    IMAGE.of("", "IMAGE_ID"),
    FLAVOR.because("the same as FLAVOR_VMS").of("", "FLAVOR"),
    LAYER.of("", "SLAVE_USERDATA"),
    BOOT_DEADLINE.of("ECM's own", "estimated_vm_deploy_time_s", "1200"),
    Rule(
        "ECM's own",
        "check_queue_every_s, check_vms_every_s, waiting_jobs_time_s",
        Fate.REPLACED,
        "ECM waited 45 s each time; updraft looks every 2 s and launches at once",
    ),
)

NOTES = (
    (
        "HTCondor on the workers",
        Fate.REPLACED,
        'ECM installed it at boot, and docker: condor = "install", universes = ["docker"]. An '
        "image that has both is left as it is",
    ),
    (
        "the pool password",
        Fate.REPLACED,
        "each launch has a token of its own, good for nothing but joining; the old password is not used",
    ),
    (
        "the master's user-data",
        Fate.REPLACED,
        "`updraft userdata head` makes that of a new head, without any credentials in it",
    ),
    no_lifetime("ECM"),
)

ECM = Program("ECM", "ecm.conf, and the master's user-data", "ecm", RULES, NOTES, EC2RC)
