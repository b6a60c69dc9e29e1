"""A worker's old user-data as layers: without its secrets, and without what updraft does itself."""

import base64
import binascii
import email
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from email.message import Message

from updraft.config.values.checks import HEAD_VARIABLES
from updraft.errors import UsageError
from updraft.importers.formats.scripts import Script, without_condor
from updraft.importers.formats.secrets import masked
from updraft.importers.output.report import on_lines

_GZIP = b"\x1f\x8b"
_LARGEST = 1 << 20


@dataclass(frozen=True, slots=True)
class Part:
    """One layer: its text, and the variables that it asks for."""

    text: str = field(repr=False)
    variables: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class UserData:
    """What a user-data comes to: layers, sentences for the report, and what its workers had."""

    parts: tuple[Part, ...] = ()
    remarks: tuple[str, ...] = ()
    installs_condor: bool = False
    docker: bool = False
    cernvm: bool = False


def decoded(place: str, text: str) -> str:
    """The text that stands in base64. Raises UsageError that names the place alone."""
    try:
        data = base64.b64decode("".join(text.split()), validate=True)
        if data.startswith(_GZIP):
            data = _unpacked(data)
        return data.decode("utf-8")
    except (binascii.Error, UnicodeDecodeError, EOFError, zlib.error) as error:
        raise UsageError(f"{place} is not the base64 of a text; copy it again, or give its file") from error


def _unpacked(data: bytes) -> bytes:
    """What gzip has packed, up to a mebibyte of it."""
    unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS)
    plain = unpacker.decompress(data, _LARGEST)
    if not unpacker.eof:
        raise EOFError("cut short, or far too large")
    return plain


def layers(text: str, known: Iterable[str] = ()) -> UserData:
    """The layers of a user-data. `known` are secrets that stand elsewhere in the configuration."""
    found = UserData()
    secrets = tuple(known)
    for part in _parts(text):
        found = _joined(found, _layer(part, secrets))
    return found


def _parts(text: str) -> Iterator[str]:
    """A multi-part message in its parts; anything else whole."""
    head = text.lstrip()[:2000].lower()
    if not head.startswith(("content-type:", "mime-version:", "from ")):
        yield text
        return
    for piece in email.message_from_string(text.lstrip()).walk():
        if not piece.is_multipart():
            yield _payload(piece)


def _payload(piece: Message) -> str:
    data = piece.get_payload(decode=True)
    return data.decode("utf-8", errors="replace") if isinstance(data, bytes) else ""


def _layer(text: str, known: tuple[str, ...]) -> UserData:
    start = text.lstrip("\ufeff\r\n\t ").replace("\r\n", "\n")
    if not start.strip():
        return UserData()
    if start.startswith("#!"):
        return _script(start, known)
    if start.startswith("#cloud-config"):
        return _settings(start, known)
    if start.startswith("["):
        remark = (
            "it is for CernVM's own contextualisation, which sets HTCondor up by itself: look at its [condor]"
        )
        found = _settings(start, known)
        return UserData(found.parts, (remark, *found.remarks), cernvm=True)
    return UserData(remarks=("a part that is neither a script nor #cloud-config was left out",))


def _script(text: str, known: tuple[str, ...]) -> UserData:
    found: Script = without_condor(text)
    part, remarks = _part(found.text, known, text)
    kept = () if found.empty else (part,)
    return UserData(kept, (*found.remarks, *remarks), found.installs_condor, found.docker)


def _settings(text: str, known: tuple[str, ...]) -> UserData:
    part, remarks = _part(text, known, text)
    lines = [number for number, line in enumerate(text.split("\n"), 1) if "condor" in line.lower()]
    if lines:
        remarks = (
            *remarks,
            f"HTCondor is named in it ({on_lines(lines)}), which may contradict updraft's: look there",
        )
    return UserData((part,), remarks)


def _part(text: str, known: tuple[str, ...], before: str) -> tuple[Part, tuple[str, ...]]:
    clean, _ = masked(text, known)
    _, lines = masked(before, known)
    remarks = (f"passwords and keys in it were left out ({on_lines(lines)})",) if lines else ()
    return Part(clean, tuple(name for name in HEAD_VARIABLES if f"%{name}%" in clean)), remarks


def _joined(one: UserData, other: UserData) -> UserData:
    return UserData(
        one.parts + other.parts,
        one.remarks + other.remarks,
        one.installs_condor or other.installs_condor,
        one.docker or other.docker,
        one.cernvm or other.cernvm,
    )
