"""What a machine with a lease is told of it: `updraft-lease` ends it, whether or not the head is there."""

import json
import math
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean
from updraft.errors import BootstrapError

CLOSING = 60.0
"""Seconds before the end of a lease from which on no job begins."""
GRACE = 25.0
"""Seconds that jobs get at its end to save what they have."""
_PATIENCE = 15.0  # for each way to power off

_SLOT = '"slot1@$(condor_config_val STARTD_NAME)"'
# The controller knows a drain of its own house by how the reason begins.
_WHY = "-reason 'updraft lease: its lease is over'"
_CLOSE = f"condor_drain -graceful {_WHY} {_SLOT}"
_OPEN = f"condor_drain -cancel {_SLOT}"


def lease_settings(asked: float, end: float, latest: float, interval: float) -> str:
    """What `updraft-lease` reads, as JSON: when the machine was asked for and when its lease ends, in epoch
    seconds; it has booted within `latest` s, or never will. Looked at each `interval` s."""
    for one in (asked, end):
        if not math.isfinite(one) or one <= 0:
            raise BootstrapError(
                f"a lease is from one time to another, in epoch seconds, and {one:g} is none"
            )
    settings = {"asked": math.floor(asked), "latest": latest, "end": math.floor(end), "interval": interval}
    force = ["systemctl", "poweroff", "--force"]
    return json.dumps(
        {
            "metadata": "169.254.169.254",
            "state": "/var/lib/updraft/lease-state.json",
            "booted": "/var/lib/updraft/booted",
            "commands": {
                "close": ["sh", "-c", _CLOSE],
                "open": ["sh", "-c", _OPEN],
                "vacate": ["sh", "-c", f"{_OPEN}; condor_drain -quick {_WHY} {_SLOT}"],
            },
            "master": "condor_master",
            "power_off": [["systemctl", "poweroff"], force, ["poweroff", "-f"]],
            "patience": _PATIENCE,
            "settings": {**settings, "closing": CLOSING, "grace": GRACE},
        },
        indent=1,
    )


def lease_files(lease: tuple[float, float] | None, latest: float, interval: float) -> list[dict[str, Any]]:
    """What ends a machine with its lease (when it was asked for, and its end); nothing for one without."""
    if lease is None:
        return []
    return [
        machine.file(f"{machine.SCRIPTS}/lease", lean("lease.py"), "0755"),
        machine.file("/etc/updraft/lease.json", lease_settings(*lease, latest, interval)),
        machine.file("/etc/systemd/system/updraft-lease.service", machine.shipped("updraft-lease.service")),
        machine.file("/var/lib/cloud/scripts/per-boot/updraft-lease", lean("each-boot-lease.sh"), "0755"),
    ]
