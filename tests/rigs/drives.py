"""Drives on which clouds bring user-data: real file systems, small enough to be sent along."""

import base64
import gzip
import subprocess
from pathlib import Path


def made_drive(folder: Path, label: str, text: str) -> Path:
    """A file with a file system of this label, and `text` as the user-data in it, for all to read."""
    held = folder / f"{label}.held"
    (held / "openstack/latest").mkdir(parents=True)
    (held / "openstack/latest/user_data").write_text(text)
    made = folder / f"{label}.img"
    words = ["mke2fs", "-q", "-L", label, "-d", str(held), "-N", "32", "-b", "1024", str(made), "128k"]
    subprocess.run(words, check=True, capture_output=True)
    return made


def mounting(drive: Path, place: str) -> str:
    """A script that mounts this drive on a machine of the local cloud, and keeps what all could read there in
    /root/read-by-all."""
    packed = base64.encodebytes(gzip.compress(drive.read_bytes(), 9)).decode()
    return f"""#!/bin/sh
set -e
mknod -m 660 /dev/loop-control c 10 237
for n in 0 1 2 3 4 5 6 7; do mknod -m 660 /dev/loop$n b 7 $n; chown root:disk /dev/loop$n; done
base64 -d <<'END' | gunzip >/root/drive.img
{packed}END
mkdir -p {place}
mount -o loop,ro /root/drive.img {place}
umask 077
setpriv --reuid 65534 --regid 65534 --clear-groups cat {place}/openstack/latest/user_data >/root/read-by-all
"""
