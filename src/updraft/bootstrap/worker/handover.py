"""A worker that asks for its own token at its boot: what its user-data hold is good for asking alone."""

import json
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean

PORT = 9618
"""Where the machine can be asked which key it has: HTCondor's own port, as long as HTCondor doesn't run."""

_LEAST = 60.0
_PART = 0.7  # of the boot deadline: the machine has taken a while to come so far


def handover_files(
    pool: str, launch: str, boot_deadline: float, *, called: bool, asks: bool
) -> list[dict[str, Any]]:
    """The script and what it is told, as entries of `write_files`; none where it doesn't ask.

    `called` is whether the controller can reach the machine at its own address. The script gives up some time
    before the boot deadline (seconds), so that the console still tells why.
    """
    if not asks:
        return []
    told = {
        "pool": pool,
        "launch": launch,
        "port": PORT if called else 0,
        "patience": max(_LEAST, boot_deadline * _PART),
        "instance": "/var/lib/cloud/data/instance-id",
        "token": "/etc/condor/tokens.d/updraft",
        "done": "/var/lib/updraft/own-token",
        "room": "/run",
    }
    return [
        machine.file(f"{machine.SCRIPTS}/handover", lean("handover.py"), "0755"),
        machine.file("/etc/updraft/handover.json", json.dumps(told, indent=1)),
    ]
