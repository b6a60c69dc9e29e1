#!/usr/bin/python3 -I
"""Has HTCondor advertise the public address that the cloud's metadata tells, at each boot. Python 3.6.

Ends with 1, and what is wrong on the standard error, where the metadata tells none.
"""

import ipaddress
import sys
import urllib.error
import urllib.request
from pathlib import Path

METADATA = "http://169.254.169.254"
CONFIG = "/etc/condor/config.d/93-updraft-address.conf"


def ask(base: str, path: str, method: str, header: "dict[str, str]") -> str:
    """What the metadata service says; nothing where it has no such thing. OSError without an answer."""
    request = urllib.request.Request(base + path, headers=header, method=method)  # noqa: S310 (ours)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310
            return str(answer.read(4096).decode(errors="replace")).strip()
    except urllib.error.HTTPError:
        return ""


def main(base: str, config: str) -> int:
    """Write the setting; a service without session tokens is asked without one."""
    token = ask(base, "/latest/api/token", "PUT", {"X-aws-ec2-metadata-token-ttl-seconds": "60"})
    shown = {"X-aws-ec2-metadata-token": token} if token else {}
    said = ask(base, "/latest/meta-data/public-ipv4", "GET", shown)
    try:
        address = ipaddress.ip_address(said)
    except ValueError:
        if Path(config).exists():  # that of an earlier boot
            Path(config).unlink()
        sys.stderr.write("the cloud's metadata tells no public address of this machine\n")
        return 1
    Path(config).write_text(f"TCP_FORWARDING_HOST = {address}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*(sys.argv[1:] or (METADATA, CONFIG))))
