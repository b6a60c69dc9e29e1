"""What user-data of workers and heads have in common: the files shipped as data, and the steps of a boot."""

import shlex
from collections.abc import Mapping
from typing import Any

from updraft.bootstrap.lean import lean, shipped

__all__ = (
    "CONFIG_DIR",
    "SCRIPTS",
    "boot_files",
    "boot_steps",
    "early_steps",
    "file",
    "settings_file",
    "shipped",
)

SCRIPTS = "/usr/local/lib/updraft"
CONFIG_DIR = "/etc/condor/config.d"
BOOT_CONF = "/etc/updraft/boot.conf"
"""The last of our files to be written: cloud-init ends at the first that it can't write."""


def file(path: str, content: str, mode: str = "0644") -> dict[str, Any]:
    """One entry of cloud-init's `write_files`, owned by root."""
    return {"path": path, "content": content, "permissions": mode, "owner": "root:root"}


def settings_file(path: str, settings: Mapping[str, str]) -> dict[str, Any]:
    """The same for what a script of ours is told: one `NAME=value` a line, as the shell reads it."""
    return file(path, "".join(f"{name}={shlex.quote(value)}\n" for name, value in settings.items()))


def early_steps(children: int = 0) -> list[list[str]]:
    """`bootcmd`: at each boot, before any file is written and before HTCondor can start.

    A worker chooses one of `children` collectors; with 0 it reports to the pool's own.
    """
    chosen = f"children={children}\n{shipped('child.sh')}" if children else ""
    return [["sh", "-c", lean("close-metadata.sh") + lean("early.sh") + chosen]]


def boot_steps(steps: str = f"sh {SCRIPTS}/boot") -> list[list[str]]:
    """`runcmd`: the last step of the first boot, where all that it needs was written."""
    why = "updraft-boot: FAILED: cloud-init could not write its files"
    told = f"echo {why} | tee /run/updraft/failed; [ ! -c /dev/console ] || echo {why} >/dev/console"
    return [["sh", "-c", f"[ -s {BOOT_CONF} ] || {{ mkdir -p /run/updraft; {told}; exit 1; }}; {steps}"]]


def boot_files(settings: Mapping[str, str]) -> list[dict[str, Any]]:
    """The script of a boot, and what this kind of machine expects of it: behind all other files of ours."""
    return [file(f"{SCRIPTS}/boot", lean("boot.sh"), "0755"), settings_file(BOOT_CONF, settings)]
