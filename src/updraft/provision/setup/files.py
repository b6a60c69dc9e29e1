"""Which files make a machine a head: what `updraft userdata head` sends, and what replaces its first boot."""

import base64
import binascii
import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.head.roles import CENTRAL_MANAGER, SUBMIT
from updraft.bootstrap.head.scaled import scaled_files
from updraft.bootstrap.head.userdata import SIGNING_KEY, HeadSpec, condor_files, sample_files
from updraft.bootstrap.worker.door import door_files
from updraft.bootstrap.worker.install import install_files
from updraft.bootstrap.worker.reach import BROKER_KEY, BROKER_KEYS, Reach, reach_files
from updraft.errors import UsageError
from updraft.provision.setup.tree import Wanted

CONF = f"{machine.CONFIG_DIR}/90-updraft.conf"
KEYS = "/etc/condor/passwords.d"
POOL_KEY = f"{KEYS}/POOL"
TOKEN = "/etc/condor/tokens.d/updraft-pool"  # noqa: S105  # a path
START = f"{machine.SCRIPTS}/head-start"
TOLD = "/etc/updraft/head.conf"
DROP_IN = "/etc/systemd/system/condor.service.d/updraft-head.conf"
UNIT = "/etc/systemd/system/updraft.service"
ADDRESS = f"{machine.CONFIG_DIR}/93-updraft-address.conf"
SAMPLES = "updraft-samples"

_MADE = ("trust_domain_ca", "trust_domain_ca_privkey", "hostcert", "hostkey")
BY_HTCONDOR = tuple(f"/etc/condor/{name}.pem" for name in _MADE)
"""What the collector makes at its first start, beside keys: gone again with the head."""

NOTED = ("/etc/condor/known_hosts", "/etc/sysctl.d/99-htcondor.conf")
"""What HTCondor writes anew at any call or start of it: gone again with the head, whatever it says."""

_DROP_IN = f"[Service]\nExecStartPre=-{START}\n"


@dataclass(frozen=True, slots=True)
class Place:
    """What the files are told of this machine.

    `home` is the first user's ("" without samples); `unit` the text of updraft's service and `run` the
    command that it runs ("" both without a controller); `metadata` says whether the machine is a cloud's,
    `public` is "", an address or "metadata"; `token` lets a further submit node into its pool.
    """

    home: str = ""
    unit: str = ""
    run: str = ""
    metadata: bool = False
    public: str = ""
    token: str = ""


def wanted_files(spec: HeadSpec, place: Place) -> list[Wanted]:
    """All files, in the order in which they are shown. Keys are made anew at each call, and kept if there."""
    found = [_wanted(entry) for entry in condor_files(spec)]
    found += (
        [_wanted(entry) for entry in scaled_files(spec.machines, spec.broker)]
        if CENTRAL_MANAGER in spec.roles
        else []
    )
    found += [_key(path) for path in _keys(spec)]
    if place.token:
        found.append(Wanted(TOKEN, place.token.strip() + "\n", 0o600, secret=True))
    found += _start_files(place)
    if place.unit:
        found.append(Wanted(UNIT, place.unit))
    if place.home:
        samples = sample_files(spec.users[0], f"{place.home}/{SAMPLES}")
        found += [_wanted(entry) for entry in samples]
    return found


def installers(spec: HeadSpec) -> list[Wanted]:
    """The scripts that install HTCondor here."""
    return [_wanted(entry) for entry in install_files(spec.install)]


def _start_files(place: Place) -> Iterable[Wanted]:
    told = {
        "METADATA": "close" if place.metadata else "",
        "PUBLIC": "metadata" if place.public == "metadata" else "",
        "RUN": place.run,
    }
    entries = [
        machine.file(START, machine.shipped("head-start.sh"), "0755"),
        machine.settings_file(TOLD, told),
        machine.file(DROP_IN, _DROP_IN),
        *reach_files(Reach(host=place.public)),
    ]
    if place.metadata:
        entries += door_files()
    return [_wanted(entry) for entry in entries]


def _keys(spec: HeadSpec) -> list[str]:
    if CENTRAL_MANAGER not in spec.roles:
        return []
    broker = [f"{BROKER_KEYS}/{BROKER_KEY}"] if spec.broker else []
    return [POOL_KEY, f"{KEYS}/{SIGNING_KEY}", *broker]


def _key(path: str) -> Wanted:
    # Text, because a key with a zero byte in it is cut there by older releases.
    return Wanted(path, base64.b64encode(secrets.token_bytes(64)).decode(), 0o600, secret=True, keep=True)


def _wanted(entry: Mapping[str, Any]) -> Wanted:
    owner = str(entry["owner"]).partition(":")[0]
    return Wanted(entry["path"], entry["content"], int(entry["permissions"], 8), owner)


def checked_token(text: str, trust_domain: str) -> str:
    """A pool's token for a further submit node. Raises UsageError for anything else."""
    words = text.split()
    parts = words[0].split(".") if len(words) == 1 else []
    if len(parts) != 3:
        raise UsageError("the file of --join holds no token of HTCondor's: one line of three parts with dots")
    try:
        told = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        domain, scope = str(told["iss"]), str(told.get("scope", ""))
    except (ValueError, KeyError, TypeError, binascii.Error) as error:
        raise UsageError("the file of --join holds no token that can be read") from error
    if domain != trust_domain:
        raise UsageError(f"the token is good in the trust domain {domain}, and not in {trust_domain}")
    if scope and "ADVERTISE_SCHEDD" not in scope:
        raise UsageError("the token lets no submit node in: make one with -authz ADVERTISE_SCHEDD")
    return words[0]


def token_command(trust_domain: str) -> str:
    """What makes a further submit node's token, on the central manager."""
    rights = " ".join(f"-authz {right}" for right in ("READ", "ADVERTISE_MASTER", "ADVERTISE_SCHEDD"))
    return f"condor_token_create -identity condor@{trust_domain} {rights}"


def daemons(roles: Iterable[str]) -> tuple[str, ...]:
    """The processes that run on a head with these roles."""
    names = {
        CENTRAL_MANAGER: ("condor_collector", "condor_negotiator"),
        SUBMIT: ("condor_schedd",),
    }
    return tuple(name for role in roles for name in names[role])
