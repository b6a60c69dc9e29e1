"""How the pool reaches a worker: directly, through a connection broker (CCB), or at another address.

Behind NAT nothing can connect to a worker. Either it keeps a connection to a broker open, through which it is
asked to connect back; or its network forwards connections to a public address, which it then advertises.

A broker lets a worker register that may advertise a master there (tried on 23.9 and 25.14; DAEMON, which it
asks for by name, is as good, and good for more). The head's broker is a collector of its own with a key of
its own: the token for it is signed by that key, which no other daemon has, and is good for nothing elsewhere.
"""

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean
from updraft.errors import BootstrapError

BROKER = "broker"
"""The broker's name behind the port that all daemons of the head share."""

BROKER_KEYS = "/etc/condor/broker.d"
"""Where the broker's key is: apart from the others, because a daemon believes in every key that it has."""

BROKER_KEY = "updraft-broker"
BROKER_TOKEN = "/etc/condor/tokens.d/updraft-broker"  # noqa: S105  # a path
"""Where a worker has its token for the broker."""

METADATA = "metadata"

_BROKER_ADDRESS = re.compile(r"[A-Za-z0-9.\-]+(:[0-9]{1,5})?(\?sock=[A-Za-z0-9_-]+)?")
_NOBODY = "nobody@broker.invalid"


@dataclass(frozen=True, slots=True)
class Reach:
    """`broker` is a CCB's address and `token` what it wants; `host` the address that is forwarded to us.

    "metadata" as `host` is the public address that the cloud's metadata tells at each boot. With nothing of
    it the worker is reached directly.
    """

    broker: str = ""
    token: str = field(default="", repr=False)
    host: str = ""


def is_called(reach: Reach) -> bool:
    """Can the head call such a machine before HTCondor runs there, at an address that it knows by itself?"""
    return not reach.broker and reach.host != METADATA


def reach_settings(reach: Reach) -> dict[str, str | int | bool]:
    """HTCondor's settings of a worker that is reached so. Raises BootstrapError for what is no address."""
    if reach.broker:
        if not _BROKER_ADDRESS.fullmatch(reach.broker):
            raise BootstrapError(f"{reach.broker!r} is no address of a broker: host, host:port, ?sock=name")
        return {"CCB_ADDRESS": reach.broker}
    if reach.host and reach.host != METADATA:
        return {"TCP_FORWARDING_HOST": _address(reach.host)}
    return {}


def reach_files(reach: Reach, *, asks: bool = False) -> list[dict[str, Any]]:
    """What else such a worker needs on its disk: the broker's token, or what asks for its public address.

    One that `asks` for its own token at its boot is given one for the broker with it.
    """
    if reach.broker:
        if asks and not reach.token:
            return []
        if len(reach.token.split()) != 1:
            raise BootstrapError("a worker behind a broker needs the broker's token, in one line")
        return [machine.file(BROKER_TOKEN, reach.token.strip() + "\n", "0600")]
    if reach.host == METADATA:
        return [machine.file(f"{machine.SCRIPTS}/public-address", lean("public_address.py"), "0755")]
    return []


def broker_settings(trust_domain: str, workers: str) -> Mapping[str, str]:
    """A head's settings for a broker of its own; `workers` are the identities that may register with it."""
    return {
        "BROKER": "$(COLLECTOR)",
        "BROKER_ARGS": f"-sock {BROKER}",
        "BROKER_LOG": "$(LOG)/BrokerLog",
        "BROKER.COLLECTOR_LOG": "$(LOG)/BrokerLog",
        # It is no collector of the pool, and says of itself what it says to nobody but itself.
        "BROKER.COLLECTOR_HOST": f"$(CONDOR_HOST)?sock={BROKER}",
        "BROKER.COLLECTOR_ADDRESS_FILE": "$(LOG)/.broker_address",
        "BROKER.COLLECTOR_SUPER_ADDRESS_FILE": "$(LOG)/.broker_super_address",
        "BROKER.COLLECTOR_AD_FILE": "$(LOG)/.broker_classad",
        "BROKER.CCB_RECONNECT_FILE": "$(SPOOL)/broker.ccb_reconnect",
        "BROKER.SEC_PASSWORD_DIRECTORY": BROKER_KEYS,
        "BROKER.SEC_TOKEN_POOL_SIGNING_KEY_FILE": f"{BROKER_KEYS}/{BROKER_KEY}",
        "BROKER.ALLOW_DAEMON": f"condor@{trust_domain}",
        "BROKER.ALLOW_ADVERTISE_MASTER": workers,
        # Its ads are nobody's: the negotiator asks the pool's own collector.
        **{f"BROKER.ALLOW_ADVERTISE_{what}": _NOBODY for what in ("STARTD", "SCHEDD")},
    }


def _address(text: str) -> str:
    try:
        return str(ipaddress.ip_address(text))
    except ValueError as error:
        raise BootstrapError(f"{text!r} is neither an address nor {METADATA!r}") from error
