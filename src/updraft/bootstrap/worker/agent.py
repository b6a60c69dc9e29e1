"""The agent of a worker: which watchers it gets, and what each is told.

The guard is on every machine: it ends one whose time is over, or that has nobody left to work for. The lease
ends a machine whether or not the head is there; the notice lets jobs leave a spot machine in time.
"""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean
from updraft.bootstrap.worker.door import OPEN
from updraft.errors import BootstrapError

CONFIG = "/etc/updraft/agent.json"
UNIT = "updraft-agent.service"
CLOSING = 60.0
"""Seconds before the end of a lease from which on no job begins."""
GRACE = 25.0
"""Seconds that jobs get at its end to save what they have."""
_PATIENCE = 15.0  # for each way to power off

_METADATA = "169.254.169.254"
# Root of a machine may drain it, but only under a name that the collector knows: any slot's does. The
# controller knows a drain of its own house, and its code, by how the reason begins.
_SLOT = '"slot1@$(condor_config_val STARTD_NAME)"'
_DRAIN = f'condor_drain -graceful -exit-on-completion -reason "updraft: $0" {_SLOT}'
_OPEN = f"condor_drain -cancel {_SLOT}"
_NOTICE = "-reason 'updraft spot-notice: the cloud takes the machine back at {when}'"
_LEASE = "-reason 'updraft lease: its lease is over'"


def agent_files(told: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The agent with these watchers and what each is told, as entries of `write_files`."""
    # What asks the metadata service takes as much memory as all the rest, and most machines ask nothing.
    asks = ["metadata"] if {"lease", "notice"} & set(told) else []
    programs = ["__main__.py", *(f"watchers/{name}.py" for name in ("machine", *asks, *told))]
    return [
        *(machine.file(f"{machine.SCRIPTS}/agent/{one}", lean(f"agent/{one}")) for one in programs),
        machine.file(CONFIG, json.dumps(told)),
        machine.file(f"/etc/systemd/system/{UNIT}", lean(UNIT)),
        machine.file("/var/lib/cloud/scripts/per-boot/updraft", lean("each-boot.sh"), "0755"),
    ]


def guard_settings(heads: Sequence[tuple[str, int]], limits: Mapping[str, float]) -> dict[str, Any]:
    """What the guard is told: the addresses of the collectors, and its limits in seconds."""
    return {
        "heads": heads,
        "state": "/var/lib/updraft/guard-state.json",
        "failed": "/run/updraft/failed",
        "open": OPEN,
        "drain": ["sh", "-c", _DRAIN],
        "power_off": [["systemctl", "poweroff"], ["shutdown", "-h", "now"], ["poweroff"]],
        "settings": limits,
    }


def notice_settings(interval: float, least: float) -> dict[str, Any]:
    """What a spot machine is told: the notice is asked for each `interval` s, once HTCondor runs; one that
    doesn't say when means in `least` s."""
    close = f"condor_drain -graceful {_NOTICE} {_SLOT}"
    vacate = f"{_OPEN}; condor_drain -quick {_NOTICE} {_SLOT}"
    return {
        "metadata": _METADATA,
        "startd": "condor_startd",
        "master": "condor_master",
        "interval": interval,
        "least": least,
        "commands": {"close": ["sh", "-c", close], "vacate": ["sh", "-c", vacate]},
    }


def lease_settings(asked: float, end: float, latest: float, interval: float) -> dict[str, Any]:
    """What a machine with a lease is told of it: when it was asked for and when the lease ends, in epoch
    seconds; it has booted within `latest` s, or never will. Looked at each `interval` s."""
    for one in (asked, end):
        if not math.isfinite(one) or one <= 0:
            raise BootstrapError(
                f"a lease is from one time to another, in epoch seconds, and {one:g} is none"
            )
    settings = {"asked": math.floor(asked), "latest": latest, "end": math.floor(end), "interval": interval}
    force = ["systemctl", "poweroff", "--force"]
    return {
        "metadata": _METADATA,
        "state": "/var/lib/updraft/lease-state.json",
        "booted": "/var/lib/updraft/booted",
        "commands": {
            "close": ["sh", "-c", f"condor_drain -graceful {_LEASE} {_SLOT}"],
            "open": ["sh", "-c", _OPEN],
            "vacate": ["sh", "-c", f"{_OPEN}; condor_drain -quick {_LEASE} {_SLOT}"],
        },
        "master": "condor_master",
        "power_off": [["systemctl", "poweroff"], force, ["poweroff", "-f"]],
        "patience": _PATIENCE,
        "settings": {**settings, "closing": CLOSING, "grace": GRACE},
    }
