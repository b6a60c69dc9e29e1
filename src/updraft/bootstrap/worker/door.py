"""What closes to all but root what a cloud tells a machine: its metadata address, which is kept closed, and
the drive on which it may bring the user-data."""

from typing import Any

from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean

DOOR = "updraft-door.service"
OPEN = "/run/updraft/metadata-open"
"""There as long as it can't be closed, with the reason in it."""


def door_files() -> list[dict[str, Any]]:
    """The scripts and the service, as entries of `write_files`."""
    return [
        machine.file(f"{machine.SCRIPTS}/close-metadata", lean("close-metadata.sh"), "0755"),
        machine.file(f"{machine.SCRIPTS}/door", lean("door.py"), "0755"),
        machine.file(f"/etc/systemd/system/{DOOR}", lean(DOOR)),
    ]


def drive_files() -> list[dict[str, Any]]:
    """What unmounts the drive with the user-data before each start of HTCondor."""
    return [machine.file(f"{machine.SCRIPTS}/close-drives", lean("close-drives.sh"), "0755")]
