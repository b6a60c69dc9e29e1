"""What a user of this machine can reach that isn't for users; prints it as JSON. Runs as a job, too.

Called with the metadata's address and that of the cloud's API. Secrets are looked for as they are, and where
user-data may be kept also within what is compressed or written in base64.
"""

import base64
import json
import os
import re
import stat
import sys
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from pathlib import Path

# A token of HTCondor's, and a session key of its daemons.
SECRET = re.compile(rb"eyJ[A-Za-z0-9_-]{10,}[.][A-Za-z0-9_-]{10,}[.]|SessionKey:[0-9a-f]{16}")
FOLDERS = ("/etc", "/run", "/var", "/tmp", "/opt/updraft", "/root", "/home", "/media", "/mnt", "/boot")
PACKED = ("/var/lib/cloud/", "/run/", "/var/log/")
LARGEST, LARGEST_CORE = 1 << 20, 1 << 24
SESSION = {"X_aws_ec2_metadata_token_ttl_seconds": "60"}
PROXY = "http://127.0.0.1:3128"


def ask(url: str, method: str = "GET", data: bytes | None = None, proxy: str = "", **more: str) -> int | str:
    """The status of an answer; `more` are headers."""
    headers = {name.replace("_", "-"): value for name, value in more.items()}
    request = urllib.request.Request(url, data, headers, method=method)  # noqa: S310 (of the test's own)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy} if proxy else {}))
    try:
        with opener.open(request, timeout=8) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return "closed"


def forms(data: bytes) -> Iterator[bytes]:
    """The data, and what is packed in them; of a dump of memory only the data."""
    yield data
    if data.startswith(b"\x7fELF"):
        return
    for found in re.finditer(rb"\x1f\x8b\x08", data):
        try:
            yield from forms(zlib.decompressobj(31).decompress(data[found.start() :], LARGEST))
        except zlib.error:
            continue
    for blob in re.findall(rb"(?:[A-Za-z0-9+/]{60,}={0,2}\n?)+", data):
        text = b"".join(blob.split())
        yield base64.b64decode(text[: len(text) // 4 * 4])


def files() -> Iterator[Path]:
    """All files of these folders, and what the kernel shows of all processes."""
    for folder in FOLDERS:
        for top, _, names in os.walk(folder):
            yield from (Path(top, name) for name in names)
    for what in ("cmdline", "environ"):
        yield from Path("/proc").glob(f"[0-9]*/{what}")


def secrets() -> Iterator[str]:
    """Files that hold one and can be read."""
    for path in files():
        try:
            most = LARGEST_CORE if path.name.startswith("core") else LARGEST
            if path.parts[1] != "proc" and not (path.is_file() and path.stat().st_size < most):
                continue
            data = path.read_bytes()
            if any(map(SECRET.search, forms(data) if str(path).startswith(PACKED) else [data])):
                yield str(path)
        except (OSError, ValueError):
            continue


def environments() -> int:
    """How many other processes let their environment be read."""
    found = 0
    for there in Path("/proc").glob("[0-9]*"):
        try:
            found += there.name != str(os.getpid()) and bool((there / "environ").read_bytes())
        except OSError:
            continue
    return found


def devices() -> Iterator[str]:
    """Disks (a config drive is one), memory and the kernel's log, as far as they can be read."""
    special = [path for path in Path("/dev").rglob("*") if stat.S_ISBLK(path.lstat().st_mode)]
    for path in (*special, *map(Path, ("/dev/mem", "/dev/kmem", "/dev/kmsg", "/proc/kcore", "/dev/console"))):
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            yield str(path)
        except OSError:
            continue


def main(metadata: str, api: str) -> None:
    """Look, and print."""
    user_data = f"http://{metadata}/latest/user-data"
    found = {
        "uid": os.getuid(),
        "groups": sorted({*os.getgroups(), os.getgid()}),
        "user-data": ask(user_data),
        "session": ask(f"http://{metadata}/latest/api/token", "PUT", **SESSION),
        "user-data by a proxy": ask(user_data, proxy=PROXY),
        "api without a token": ask(f"{api}/v1/list", "POST", b"{}"),
        "api with a wrong one": ask(f"{api}/v1/list", "POST", b"{}", Authorization="Bearer wrong"),
        "secrets": sorted(secrets()),
        "environments": environments(),
        "devices": sorted(devices()),
    }
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
