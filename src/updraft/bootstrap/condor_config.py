"""HTCondor configuration as text: values in, lines out, nothing interpreted on the way.

A configuration line is one line; `$` begins a macro, and a string in a ClassAd ends at a quote. What comes
from outside passes through `classad_string` or `expression`, so that it can't be anything but what it says.
"""

import re
from collections.abc import Mapping

from updraft.config.values.attributes import IDENTIFIER, is_taken
from updraft.errors import BootstrapError

# The distribution ships the same in 00-security; an image made otherwise may not, and without it a daemon
# has no rights at all. Releases before 23.10 know only the older name.
SECURITY = """\
if version >= 23.10.0
    use security:recommended
else
    use security:recommended_v9_0
endif
"""

_LONG = 400
_ELSE = " ?: TARGET."  # HTCondor joins what is parted here as it was
_LONGER = 800
_WORDS = re.compile(r"(.{150,}? )(?=[A-Za-z(])")  # after a space, and before nothing that has a meaning there
_HOST = re.compile(r"[A-Za-z0-9.\-]+|\[[0-9A-Fa-f:.]+\]")
_DOMAIN = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.\-]*[A-Za-z0-9])?")


def classad_string(value: str) -> str:
    """`value` as a ClassAd string on a configuration line.

    Raises BootstrapError for control characters, quotes and backslashes, which no name of ours has and
    which HTCondor's old and new ClassAd syntax read differently.
    """
    if any(ord(char) < 32 or ord(char) == 127 for char in value) or '"' in value or "\\" in value:
        raise BootstrapError(f"{value!r} cannot be advertised: no quotes, backslashes or control characters")
    return '"' + _literal(value) + '"'


def expression(name: str, value: str) -> str:
    """The ClassAd expression of the attribute `name` as it stands on a configuration line."""
    text = value.strip()
    if not text or any(char in text for char in "\r\n\0") or text.endswith("\\"):
        raise BootstrapError(f"the value of the machine attribute {name} must be one line with an expression")
    return _literal(text)


def attribute_name(name: str) -> str:
    """`name`, if it can be the name of a site's own machine attribute; else BootstrapError."""
    if not IDENTIFIER.fullmatch(name):
        raise BootstrapError(f"{name!r} is no name for a machine attribute: letters, digits and _ only")
    if is_taken(name):
        raise BootstrapError(f"the machine attribute {name} is taken: choose another name")
    return name


def domain(what: str, value: str) -> str:
    """`value`, if it reads as a domain; else BootstrapError that names `what`."""
    if not _DOMAIN.fullmatch(value):
        raise BootstrapError(f"the {what} {value!r} is no domain name")
    return value


def split_address(address: str) -> tuple[str, int]:
    """Host and port (9618 unless said) of a collector's `host[:port]`; IPv6 in brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or address.endswith("]"):
        host, port = address, "9618"
    if not _HOST.fullmatch(host) or not port.isdigit() or not 0 < int(port) < 65536:
        raise BootstrapError(f"the collector address {address!r} is not of the form host or host:port")
    return host.strip("[]"), int(port)


def lines(settings: Mapping[str, str | int | bool]) -> str:
    """`name = value` lines; numbers and truth values as HTCondor writes them.

    A very long one goes on after a backslash: by one line that is too long for MIME's plain text all of it is
    sent as base64, and user-data are twice as large.
    """
    return "".join(_line(f"{name} = {value}") for name, value in settings.items())


def _line(text: str) -> str:
    if len(text) > _LONG:
        text = text.replace(_ELSE, _ELSE.replace("TARGET", "\\\nTARGET"))
    if len(max(text.split("\n"), key=len)) > _LONGER:
        text = _WORDS.sub("\\1\\\\\n", text)
    return text.rstrip(" ") + "\n"  # a space at a line's end makes YAML write all of the file in quotes


def _literal(text: str) -> str:
    return text.replace("$", "$(DOLLAR)")


CLIENT_PROOFS = "SEC_CLIENT_AUTHENTICATION_METHODS"
"""The setting that says by what HTCondor proves who it is where it calls somebody."""

NO_FS = "IDTOKENS, KERBEROS, SCITOKENS, SSL"
"""HTCondor's usual ways of a proof but one: a file that the called daemon names, made by the caller (FS).

Whoever gets a daemon to call him can hand it the file that another daemon has just asked himself for, and is
the caller there: `condor@` of the pool, from an account of the head or root of one worker
(HTCONDOR-2026-0001; tried on 23.9 and, in the collector's place, on 25.14). By the others the caller sees
whom it has reached.
"""


def without_fs(*daemons: str) -> dict[str, str]:
    """The settings with which these daemons prove who they are by NO_FS; people's tools go on as they did."""
    return {f"{daemon}.{CLIENT_PROOFS}": NO_FS for daemon in daemons}
