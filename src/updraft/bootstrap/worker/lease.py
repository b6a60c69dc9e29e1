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


def lease_settings(end: float, interval: float) -> str:
    """What `updraft-lease` reads, as JSON: the lease's end in epoch seconds; looked at each `interval` s."""
    if not math.isfinite(end) or end <= 0:
        raise BootstrapError(f"a lease ends at a time in epoch seconds, not {end:g}")
    force = ["systemctl", "poweroff", "--force"]
    return json.dumps(
        {
            "metadata": "169.254.169.254",
            "state": "/var/lib/updraft/lease-state.json",
            "commands": {
                "close": ["sh", "-c", _CLOSE],
                "open": ["sh", "-c", _OPEN],
                "vacate": ["sh", "-c", f"{_OPEN}; condor_drain -quick {_WHY} {_SLOT}"],
            },
            "master": "condor_master",
            "power_off": [["systemctl", "poweroff"], force, ["poweroff", "-f"]],
            "patience": _PATIENCE,
            "settings": {"end": math.floor(end), "interval": interval, "closing": CLOSING, "grace": GRACE},
        },
        indent=1,
    )


def lease_files(end: float | None, interval: float) -> list[dict[str, Any]]:
    """What ends a machine with its lease; nothing for one that has none."""
    if end is None:
        return []
    return [
        machine.file(f"{machine.SCRIPTS}/lease", lean("lease.py"), "0755"),
        machine.file("/etc/updraft/lease.json", lease_settings(end, interval)),
        machine.file("/etc/systemd/system/updraft-lease.service", machine.shipped("updraft-lease.service")),
        machine.file(
            "/var/lib/cloud/scripts/per-boot/updraft-lease", machine.shipped("each-boot-lease.sh"), "0755"
        ),
    ]
