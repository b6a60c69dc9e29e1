#!/usr/bin/python3 -I
"""Keeps the cloud's metadata address closed to all but root: what takes the rules away has them back at once.

The kernel tells when rules of nftables or of routing change, so that waiting costs nothing; it is looked at
once a minute all the same. As long as the address can't be closed, a file says why: with it there, a worker's
guard lets no new job in. Needs nothing but Python 3.6.
"""

import select
import socket
import subprocess
from pathlib import Path

CLOSE = ["sh", "/usr/local/lib/updraft/close-metadata"]
OPEN = Path("/run/updraft/metadata-open")
PATIENCE, RETRY = 60.0, 2.0  # seconds until the next look; the latter while it is open, or nobody tells
# Netlink's protocols, and the groups of each: NFNLGRP_NFTABLES; RTNLGRP_IPV4_RULE and RTNLGRP_IPV6_RULE.
TOLD = ((12, 1 << 6), (0, 1 << 7 | 1 << 18))


def listeners() -> "list[socket.socket]":
    """Sockets that can be read once rules have changed; fewer where the kernel has no such thing."""
    found = []
    for protocol, groups in TOLD:
        try:
            one = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
            one.setblocking(False)
            one.bind((0, groups))
        except OSError:
            continue
        found.append(one)
    return found


def wait(told: "list[socket.socket]", seconds: float) -> None:
    """Until something has changed, or so many seconds are over."""
    for one in select.select(told, [], [], seconds)[0]:
        try:
            while one.recv(1 << 16):
                pass
        except OSError:
            continue  # there is no more; or it was more than the kernel keeps, and that is a change as well


def close() -> str:
    """Close the address unless it is; why it can't be, or nothing."""
    try:
        done = subprocess.run(
            CLOSE, timeout=60, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    return " ".join(done.stdout.decode(errors="replace").split()) or "no reason was given"


def note(why: str) -> None:
    """Leave word of why it is open, or take it away."""
    try:
        if why:
            OPEN.parent.mkdir(parents=True, exist_ok=True)
            OPEN.write_text(why + "\n")
        elif OPEN.exists():
            OPEN.unlink()
    except OSError as error:
        say(f"cannot write {OPEN}: {error}")


def say(text: str) -> None:
    """One line on the console, and on the standard output for the journal."""
    line = "updraft-door: " + text
    print(line, flush=True)  # noqa: T201 (the journal reads it)
    try:
        with Path("/dev/console").open("a") as console:
            console.write(line + "\n")
    except OSError:
        return


def main() -> None:
    """Look, and look again whenever rules have changed; say what is new."""
    told, before = listeners(), ""
    while True:
        why = close()
        note(why)
        if why != before:
            say(f"the metadata address is open: {why}" if why else "the metadata address is closed again")
        before = why
        wait(told, RETRY if why or len(told) < len(TOLD) else PATIENCE)


if __name__ == "__main__":
    main()
