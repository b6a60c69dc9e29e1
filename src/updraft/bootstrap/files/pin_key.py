#!/usr/bin/python3 -I
"""Takes the pinned keys out of a file of OpenPGP keys, and leaves what else is in it.

Arguments: the file as it was fetched (armoured or not), the file to write (armoured), fingerprints. Ends with
1 where none of them is there. A fingerprint covers the primary key, which signs its subkeys. Python 3.6.
"""

import base64
import hashlib
import re
import sys
from collections.abc import Iterator
from pathlib import Path

BLOCK = re.compile(
    rb"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(.*?)-----END PGP PUBLIC KEY BLOCK-----", re.DOTALL
)
NAME = " PGP PUBLIC KEY BLOCK-----"
PRIMARY = 6  # the packet with which each key begins


def raw(data: bytes) -> bytes:
    """The packets of a file, without the armour of all its blocks."""
    blocks = BLOCK.findall(data)
    if not blocks:
        return data
    found = b""
    for block in blocks:
        lines = [line.strip() for line in block.splitlines()]
        body = lines[lines.index(b"") + 1 :]
        found += base64.b64decode(b"".join(line for line in body if not line.startswith(b"=")))
    return found


def packets(data: bytes) -> "Iterator[tuple[int, bytes, bytes]]":
    """(tag, the whole packet, its body) of each packet. Raises ValueError for what no key file has."""
    at = 0
    while at < len(data):
        start, first = at, data[at]
        if not first & 0x80:
            raise ValueError("these are no OpenPGP packets")
        if first & 0x40:
            tag, at, size = first & 0x3F, *new_length(data, at + 1)
        else:
            octets = 1 << (first & 3)
            if octets == 8:
                raise ValueError("a packet without a length")
            tag, size = first >> 2 & 0xF, int.from_bytes(data[at + 1 : at + 1 + octets], "big")
            at += 1 + octets
        if at + size > len(data):
            raise ValueError("the file is cut off")
        yield tag, data[start : at + size], data[at : at + size]
        at += size


def new_length(data: bytes, at: int) -> "tuple[int, int]":
    """(where the body begins, its length) of a packet in the new format."""
    first = data[at]
    if first < 192:
        return at + 1, first
    if first < 224:
        return at + 2, ((first - 192) << 8) + data[at + 1] + 192
    if first == 255:
        return at + 5, int.from_bytes(data[at + 1 : at + 5], "big")
    raise ValueError("a packet in pieces")


def keys(data: bytes) -> "list[tuple[str, bytes]]":
    """(fingerprint, packets) of each primary key with all that belongs to it; no print but of version 4."""
    names, wholes = [], []
    for tag, whole, body in packets(data):
        if tag == PRIMARY:
            size = len(body).to_bytes(2, "big")
            digest = hashlib.sha1(b"\x99" + size + body).hexdigest().upper()  # noqa: S324 (it is what they are)
            names.append(digest if body[:1] == b"\x04" else "")
            wholes.append(b"")
        if wholes:
            wholes[-1] += whole
    return list(zip(names, wholes))  # noqa: B905 (Python 3.6)


def armoured(data: bytes) -> str:
    """The packets as text, with the check sum that rpm wants."""
    crc = 0xB704CE
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1864CFB
    text = base64.b64encode(data).decode()
    lines = [text[at : at + 64] for at in range(0, len(text), 64)]
    check = base64.b64encode((crc & 0xFFFFFF).to_bytes(3, "big")).decode()
    lines = ["-----BEGIN" + NAME, "", *lines, "=" + check, "-----END" + NAME, ""]
    return "\n".join(lines)


def main(source: str, target: str, pinned: "list[str]") -> int:
    """0 where the target was written; 1, with a word about why, where nothing of the source is pinned."""
    wanted = {name.replace(" ", "").upper() for name in pinned}
    try:
        found = keys(raw(Path(source).read_bytes()))
    except (OSError, ValueError, IndexError) as error:
        sys.stderr.write(f"pin-key: {error}\n")
        return 1
    kept = b"".join(whole for name, whole in found if name and name in wanted)
    if not kept:
        there = ", ".join(name or "an unknown kind of key" for name, _ in found)
        sys.stderr.write(f"pin-key: it has only {there or 'nothing'}\n")
        return 1
    Path(target).write_text(armoured(kept))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
