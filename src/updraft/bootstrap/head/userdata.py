"""The user-data of a head: the pool's central manager and submit node, with the controller on it.

It makes its own keys at its first boot and holds no credentials of any cloud.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from updraft.bootstrap import condor_config as cc
from updraft.bootstrap import machine
from updraft.bootstrap.head import transforms
from updraft.bootstrap.head.identities import OWN_SETTING, WORKER_USER, ended_lines, identity_rule
from updraft.bootstrap.head.roles import CENTRAL_MANAGER, ROLES, SUBMIT
from updraft.bootstrap.head.scaled import scaled_files, scaled_settings
from updraft.bootstrap.head.source import checked_source
from updraft.bootstrap.layers import EC2_LIMIT, Layer, compose
from updraft.bootstrap.lean import lean
from updraft.bootstrap.sizing.roles import MATCH_LIMITS, negotiator_pace, schedd_interval
from updraft.bootstrap.worker.door import door_files
from updraft.bootstrap.worker.install import Install, install_files
from updraft.bootstrap.worker.reach import BROKER_KEY, BROKER_KEYS, broker_settings
from updraft.errors import BootstrapError

SIGNING_KEY = "updraft-workers"
"""The name of the key that signs the tokens of workers, and nothing else."""

STRANGER = "*@unmapped"
"""How HTCondor calls who has shown nothing, or something that it has no name for (`ssl@unmapped`)."""

# Before the collector of a release before 25 asks the rule about an ad, it works out the ad's address, which
# may take it for ever. The master ends one that hasn't answered for so long (seconds), and starts it anew; by
# itself it would wait for an hour. Nothing else keeps a collector from its timers for minutes.
HUNG = {"COLLECTOR_NOT_RESPONDING_TIMEOUT": 180}

SAMPLES: Mapping[str, str] = {
    "README.txt": "0644",
    "test.sub": "0644",
    "test-docker.sub": "0644",
    "test.sh": "0755",
}
"""What the first user finds at home, with the rights of each file."""

_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")


@dataclass(frozen=True, slots=True)
class HeadSpec:
    """All that a head is told; times in seconds.

    `users` are accounts to make; `ssh_keys` (public keys) open the first of them, and with `samples` it finds
    sample jobs at home, where updraft is there to bring them. `controller_config` is the text of
    updraft.toml; None leaves the controller off. `files` are further files of root, path to text, such as the
    layers that updraft.toml names. `updraft` is where the program is; where the image has none, it is
    installed from the wheel `source` (an address with its hash), and what it needs, by hash too, from `index`
    (empty: pip's own; file:///: a folder of wheels), as `install` says what else the image may lack.
    The four intervals are the negotiator's and the schedd's; the defaults are HTCondor's own, which suit a
    large pool, `quick` sets those of a small one and `paced` those between. `machines` is how many the pool
    may have, for which it is tuned (None: as a small one). `broker` adds a broker (CCB) for workers that
    nothing can connect to. `superusers` may act on other people's jobs; `anonymous_read` lets whoever
    reaches the head read the pool's ads and jobs; `settings` are further lines of configuration, as they are.
    """

    trust_domain: str
    uid_domain: str
    condor_host: str = "$(IP_ADDRESS)"
    users: tuple[str, ...] = ()
    controller_config: str | None = field(default=None, repr=False)
    updraft: str = "/usr/local/bin/updraft"
    source: str = ""
    index: str = ""
    ssh_keys: tuple[str, ...] = ()
    samples: bool = False
    install: Install = field(default_factory=Install)
    files: Mapping[str, str] = field(default_factory=dict, repr=False)
    job_lease: float = 2400.0
    negotiator_interval: int = 60
    negotiator_cycle_delay: int = 20
    negotiator_min_interval: int = 5
    schedd_interval: int = 300
    machines: int | None = None
    broker: bool = False
    superusers: tuple[str, ...] = ("root", "condor")
    anonymous_read: bool = False
    settings: Mapping[str, str] = field(default_factory=dict)
    layers: tuple[Layer, ...] = ()
    roles: tuple[str, ...] = ROLES


def quick(spec: HeadSpec) -> HeadSpec:
    """The same head with the intervals of a pool so small that looking often costs nothing."""
    return replace(
        spec, negotiator_interval=5, negotiator_cycle_delay=1, negotiator_min_interval=1, schedd_interval=5
    )


def paced(spec: HeadSpec) -> HeadSpec:
    """The same head with the intervals that suit the number of its machines."""
    pace = negotiator_pace(spec.machines or 0)
    return replace(
        spec,
        negotiator_interval=pace["NEGOTIATOR_INTERVAL"],
        negotiator_cycle_delay=pace["NEGOTIATOR_CYCLE_DELAY"],
        negotiator_min_interval=pace["NEGOTIATOR_MIN_INTERVAL"],
        schedd_interval=schedd_interval(spec.machines or 0),
    )


def head_user_data(spec: HeadSpec, *, limit: int = EC2_LIMIT) -> bytes:
    """The user-data of a head.

    Raises BootstrapError as `worker_user_data` does, and UsageError for a source of updraft that won't do.
    """
    return compose(head_layers(spec), limit=limit)


def head_layers(spec: HeadSpec) -> tuple[Layer, ...]:
    """The layers in their order: updraft's own, the site's, and the start of HTCondor as the last."""
    _check(spec)
    boot = {
        "EXPECT": "condor_collector condor_negotiator condor_schedd",
        "KEYS": " ".join([f"/etc/condor/passwords.d/{SIGNING_KEY}", *_broker_key(spec)]),
        "UNITS": "updraft.service" if spec.controller_config is not None else "",
        "UPDRAFT": spec.updraft,
        "SOURCE": spec.source,
        "INDEX": spec.index,
    }
    own: dict[str, Any] = {
        "bootcmd": machine.early_steps(),
        "write_files": [
            *condor_files(spec),
            *door_files(),
            *_controller_files(spec),
            *install_files(spec.install),
            *scaled_files(spec.machines, spec.broker),
            *(machine.file(path, text, "0600") for path, text in spec.files.items()),
            *machine.boot_files(boot),
        ],
    }
    if spec.users:
        first, *others = spec.users
        keys = {"ssh_authorized_keys": list(spec.ssh_keys)} if spec.ssh_keys else {}
        own["users"] = ["default", {**_account(first), **keys}, *map(_account, others)]
    return (
        Layer("updraft's head", own),
        *spec.layers,
        Layer("updraft's start of HTCondor", {"runcmd": _last_steps(spec)}),
    )


def _last_steps(spec: HeadSpec) -> list[Any]:
    """HTCondor starts once updraft is there: a head without it would be a pool without workers."""
    if spec.controller_config is None:
        return [*machine.boot_steps()]
    boot = f"sh {machine.SCRIPTS}/boot"
    if spec.samples and spec.users:
        # From the package, since user-data have little room. A head without them is a head.
        boot = f"{{ {spec.updraft} head samples {spec.users[0]}; {boot}; }}"
    return [*machine.boot_steps(f"sh {machine.SCRIPTS}/get-updraft && {boot}")]


def condor_files(spec: HeadSpec) -> list[dict[str, Any]]:
    """HTCondor's configuration as entries of `write_files`. Raises BootstrapError for what can't be."""
    _check(spec)
    told = {transforms.FILE: transforms.schedd_config(), transforms.GROUPS_FILE: transforms.groups_config()}
    jobs = [machine.file(f"{machine.CONFIG_DIR}/{name}", text) for name, text in told.items()]
    return [
        machine.file(f"{machine.CONFIG_DIR}/01-updraft-security.conf", cc.SECURITY),
        machine.file(f"{machine.CONFIG_DIR}/90-updraft.conf", head_config(spec)),
        *(jobs if SUBMIT in spec.roles else []),
    ]


def sample_files(user: str, folder: str) -> list[dict[str, Any]]:
    """The sample jobs of a user in a folder of theirs, as entries of `write_files`."""
    return [
        machine.file(f"{folder}/{name}", machine.shipped(f"samples/{name}"), mode) | {"owner": user}
        for name, mode in SAMPLES.items()
    ]


def head_config(spec: HeadSpec) -> str:
    """HTCondor's configuration of a head. Holds no secret."""
    manages, submits = (role in spec.roles for role in (CENTRAL_MANAGER, SUBMIT))
    broker = spec.broker and manages
    daemons = "MASTER" + " COLLECTOR NEGOTIATOR" * manages + " SCHEDD" * submits + " BROKER" * broker
    # A broker knows the tokens of its own key alone: who calls a worker by way of it shows it a file (FS).
    calling = () if broker else (*daemons.split(), *["SHADOW"] * submits)
    made = cc.lines(
        {
            "DAEMON_LIST": daemons,
            "CONDOR_HOST": spec.condor_host,
            "TRUST_DOMAIN": spec.trust_domain,
            "UID_DOMAIN": spec.uid_domain,
            **_strangers(spec),
            **cc.without_fs(*calling),
            **(_manager(spec) if manages else {}),
            **(_submit_node(spec) if submits else {}),
            # Of a manager alone nobody knows what its submit nodes refuse.
            **({transforms.GROUPS_SETTING: True} if manages and submits else {}),
            **(broker_settings(spec.trust_domain, workers_of(spec.trust_domain)) if broker else {}),
            **(scaled_settings(spec.machines, daemons, broker) if manages else {}),
            **spec.settings,
        }
    )
    return made + ended_lines() if manages else made


def _strangers(spec: HeadSpec) -> Mapping[str, str]:
    """What keeps out who shows nothing: jobs reach these daemons, and a schedd tells all jobs' environment.

    To a daemon that has a certificate, who connects by SSL without one has authenticated, under the same
    name, and who has one of any authority that the machine trusts, as `ssl` (tried on 23.9 and 25.14): to
    require authentication isn't enough. A submit node alone has no key by which it could know the controller,
    and stays open.
    """
    denied = {"DENY_WRITE": f"$(DENY_WRITE) {STRANGER}"}
    if spec.anonymous_read or CENTRAL_MANAGER not in spec.roles:
        return denied
    return {**denied, "SEC_READ_AUTHENTICATION": "REQUIRED", "DENY_READ": f"$(DENY_READ) {STRANGER}"}


def _manager(spec: HeadSpec) -> Mapping[str, str | int | bool]:
    return {
        **{name: f"$(ALLOW_DAEMON) {who}" for name, who in worker_rights(spec.trust_domain).items()},
        **identity_rule(spec.trust_domain),
        OWN_SETTING: True,
        **HUNG,
        "NEGOTIATOR_INTERVAL": spec.negotiator_interval,
        "NEGOTIATOR_CYCLE_DELAY": spec.negotiator_cycle_delay,
        "NEGOTIATOR_MIN_INTERVAL": spec.negotiator_min_interval,
    }


def _submit_node(spec: HeadSpec) -> Mapping[str, str | int | bool]:
    return {
        "JOB_DEFAULT_LEASE_DURATION": round(spec.job_lease),
        # A worker's token reads the collector, for its own boot; what jobs are told is none of its business.
        "SCHEDD.DENY_READ": f"$(DENY_READ) {workers_of(spec.trust_domain)}",
        # A shadow for each start of a job: only then it is known whose it is when a machine is lost.
        "SHADOW_WORKLIFE": 0,
        # Otherwise 20 jobs of one user at most get a slot in a cycle, however many machines come. A schedd
        # older than 25.11 has no such limit, and HTCondor ignores a setting that it doesn't know.
        MATCH_LIMITS: False,
        "QUEUE_SUPER_USERS": ", ".join(spec.superusers),
        "SCHEDD_INTERVAL": spec.schedd_interval,
    }


def workers_of(trust_domain: str) -> str:
    """The identities of all workers."""
    return f"{WORKER_USER}*@{trust_domain}"


def _broker_key(spec: HeadSpec) -> list[str]:
    return [f"{BROKER_KEYS}/{BROKER_KEY}"] if spec.broker else []


def worker_rights(trust_domain: str) -> Mapping[str, str]:
    """The settings that let workers in, each with the identities to add to those that it has.

    A worker's token is good for this at the collector, and for nothing anywhere else.
    """
    workers = workers_of(trust_domain)
    return {"COLLECTOR.ALLOW_ADVERTISE_STARTD": workers, "COLLECTOR.ALLOW_ADVERTISE_MASTER": workers}


def _controller_files(spec: HeadSpec) -> list[dict[str, Any]]:
    if spec.controller_config is None:
        return []
    unit = lean("updraft.service").replace("/usr/local/bin/updraft", spec.updraft)
    if not spec.broker:
        proofs = f'Environment="_CONDOR_{cc.CLIENT_PROOFS}={cc.NO_FS}"'
        unit = unit.replace("[Service]\n", f"[Service]\n{proofs}\n")
    return [
        machine.file("/etc/updraft/updraft.toml", spec.controller_config, "0600"),
        machine.file("/etc/systemd/system/updraft.service", unit),
        machine.file(f"{machine.SCRIPTS}/get-updraft", lean("get-updraft.sh"), "0755"),
    ]


def _account(name: str) -> dict[str, Any]:
    return {"name": name, "shell": "/bin/bash", "lock_passwd": True}


def _check(spec: HeadSpec) -> None:
    if not spec.roles or not set(spec.roles) <= set(ROLES):
        raise BootstrapError(f"the roles of a head are {' and '.join(ROLES)}, one of them or both")
    cc.domain("trust domain", spec.trust_domain)
    cc.domain("UID domain", spec.uid_domain)
    for name in spec.users:
        if not _USER.fullmatch(name):
            raise BootstrapError(f"{name!r} is no name for a user account")
    if not re.fullmatch(r"/[A-Za-z0-9._/+-]+", spec.updraft):
        raise BootstrapError(f"{spec.updraft!r} is no absolute path of a program")
    checked_source(spec.source, spec.index)
    for key in spec.ssh_keys:
        if "PRIVATE" in key or not re.fullmatch(r"[a-z0-9@.-]+ [A-Za-z0-9+/=]+( [^\r\n]*)?", key):
            raise BootstrapError("an SSH key of the first user is no public key, in one line")
    _check_files(spec)


def _check_files(spec: HeadSpec) -> None:
    for path in spec.files:
        if not re.fullmatch(r"/[A-Za-z0-9._/+-]+", path) or ".." in path.split("/"):
            raise BootstrapError(f"{path!r} is no absolute path of a file for the head")
