"""An account for each slot of a worker: what keeps the jobs of its users apart, and each from the one before.

HTCondor runs jobs of owners who have no account on a machine as `nobody`, all of them. `SLOT<N>_<M>_USER`
would name an account for each slot, but has to be written for every slot that there can be; with
`NOBODY_SLOT_USER = $(STARTER_SLOT_NAME)` jobs run as `nobody` all the same (tried on 23.9 and 25.14). So the
startd is given a starter of ours, which knows its slot, and becomes HTCondor's own.
"""

from typing import Any

from updraft.bootstrap import condor_config as cc
from updraft.bootstrap import machine
from updraft.bootstrap.lean import lean

STARTER = f"{machine.SCRIPTS}/starter"
DROP_IN = "/etc/systemd/system/condor.service.d/updraft-accounts.conf"
"""At each start of HTCondor again: an update of its package opens its logs as they were."""

SETTINGS = {
    "STARTER": STARTER,
    # With a job ends all that its account runs, by whatever way it got out of the job's own processes.
    "DEDICATED_EXECUTE_ACCOUNT_REGEXP": "updraft-slot[0-9_]+",
    # Whoever reaches the startd may ask for it, and it has the environment of every job that ran here.
    "STARTD_HISTORY": "",
    # Or for a snapshot, which has that of the jobs that run; or tell a starter that he is its job's shadow.
    # To want a proof isn't enough: a slot's account has one (FS). Who may WRITE may READ (23.9 and 25.14).
    "SEC_READ_AUTHENTICATION": "REQUIRED",
    "ALLOW_READ": "$(ALLOW_ADMINISTRATOR)",
    "ALLOW_WRITE": "$(ALLOW_ADMINISTRATOR)",
    **cc.without_fs("MASTER", "STARTD", "STARTER"),
}
"""HTCondor's settings of a worker whose slots have accounts."""


def account_files() -> list[dict[str, Any]]:
    """The scripts, as entries of `write_files`."""
    return [
        machine.file(STARTER, lean("starter.sh"), "0755"),
        machine.file(f"{machine.SCRIPTS}/accounts", lean("accounts.sh"), "0755"),
        machine.file(f"{machine.SCRIPTS}/forget-keys", lean("forget_keys.py"), "0755"),
        machine.file(DROP_IN, f"[Service]\nExecStartPre=/bin/sh {machine.SCRIPTS}/accounts\n"),
    ]
