"""A worker that asks for its own token at its boot: what its user-data hold is good for asking alone."""

import json
from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean
from updraft.bootstrap.worker.reach import BROKER_TOKEN, Reach, is_called
from updraft.core.machines.handover import ABSENCE

PORT = 9618
"""Where the machine can be asked which key it has: HTCondor's own port, as long as HTCondor doesn't run."""

_LEAST = 60.0
_PART = 0.7  # of the boot deadline: the machine has taken a while to come so far


def handover_files(
    pool: str, launch: str, boot_deadline: float, reach: Reach, *, asks: bool
) -> list[dict[str, Any]]:
    """The script and what it is told, as entries of `write_files`; none where it doesn't ask.

    A machine that the controller can't call shows its key on its console; behind a broker it is given a token
    for that one, too. The script gives up some time before the boot deadline (seconds), so that the console
    still tells why; as long as the controller says nothing it waits for ABSENCE longer.
    """
    if not asks:
        return []
    told = {
        "pool": pool,
        "launch": launch,
        "port": PORT if is_called(reach) else 0,
        "patience": max(_LEAST, boot_deadline * _PART),
        "silence": ABSENCE,
        "instance": "/var/lib/cloud/data/instance-id",
        "token": "/etc/condor/tokens.d/updraft",
        "broker": BROKER_TOKEN if reach.broker and not reach.token else "",
        "done": "/var/lib/updraft/own-token",
        "room": "/run",
    }
    return [
        machine.file(f"{machine.SCRIPTS}/handover", lean("handover.py"), "0755"),
        machine.file("/etc/updraft/handover.json", json.dumps(told, indent=1)),
    ]
