"""What turns a worker into the machine that an image is made of: one more layer of its user-data."""

import json
from typing import Any

from updraft.bootstrap import condor_config as cc
from updraft.bootstrap import machine
from updraft.bootstrap.images import unfit
from updraft.bootstrap.layers import Layer
from updraft.bootstrap.lean import lean

ATTR_TRIAL = "UpdraftImageTrial"
"""The attribute of the one job that may start on such a machine; its value is the launch key."""
READY, FAILED = "updraft-image: READY", "updraft-image: FAILED:"
BOOT_FAILED = "updraft-boot: FAILED:"
# The last three: of a machine that an older updraft has launched, and whose disk was copied.
_AGENTS = ("updraft-agent", "updraft-guard", "updraft-lease", "updraft-notice")
_STOPPED = ("condor", "updraft-door", *_AGENTS)
GONE_AFTER = 15  # seconds: longer than HTCondor takes to start a startd again

_UNIT = """\
[Unit]
Description=Makes this machine fit to be an image, once it was drained
[Service]
Type=simple
ExecStart=/usr/bin/python3 -I {script} {config}
StandardOutput=journal
"""
_CONFIG = "/etc/updraft/bake.json"


def baking_layer(launch_key: str) -> Layer:
    """The last of the site's layers on a machine that becomes an image.

    Only its trial job may start there, and once the machine was drained it is cleaned and looked through.
    What an earlier life has left on its disk is taken away before HTCondor can start, and the agent of that
    life doesn't go on: it would end this machine by the old one's lease.
    """
    end = f"for one in {' '.join(_AGENTS)}; do systemctl disable --now $one.service; done 2>/dev/null"
    return Layer(
        "the making of an image",
        {
            "bootcmd": [["sh", "-c", f"{end}; rm -rf /var/lib/updraft /etc/condor/tokens.d/*"]],
            "write_files": [
                machine.file(f"{machine.CONFIG_DIR}/95-updraft-image.conf", _start(launch_key)),
                *bake_files(bake_settings()),
            ],
            "runcmd": [["systemctl", "start", "--no-block", "updraft-bake.service"]],
        },
    )


def bake_files(settings: str) -> list[dict[str, Any]]:
    """The script, what it is told, and its unit, as entries of `write_files`."""
    script = f"{machine.SCRIPTS}/bake"
    return [
        machine.file(script, lean("bake.py"), "0755"),
        machine.file(_CONFIG, settings),
        machine.file("/etc/systemd/system/updraft-bake.service", _UNIT.format(script=script, config=_CONFIG)),
    ]


def bake_settings(*, startd: bool = True) -> str:
    """What `bake` reads, as JSON. Without `startd` it doesn't wait for one to come and go."""
    return json.dumps(
        {
            "gone_after": GONE_AFTER if startd else None,
            "stop": [["systemctl", "stop", f"{one}.service"] for one in _STOPPED],
            "removed": unfit.REMOVED,
            "emptied": unfit.EMPTIED,
            "files": unfit.FILES,
            "texts": unfit.TEXTS,
            "places": unfit.PLACES,
            "passed_over": unfit.PASSED_OVER,
            "largest": unfit.LARGEST,
        }
    )


def verdict(console: str) -> tuple[bool, str]:
    """Whether a machine's console says that it is fit to be an image, and why it never will be."""
    for line in console.splitlines():
        for mark in (FAILED, BOOT_FAILED):
            at = line.find(mark)
            if at >= 0:
                return False, line[at:].strip()
    return READY in console, ""


def _start(launch_key: str) -> str:
    only = f"TARGET.{ATTR_TRIAL} =?= {cc.classad_string(launch_key)}"
    return f"START = ($(START:True)) && ({only})\n"
