"""Variables of a site's layer: `%name%` is replaced by a word when a machine is launched.

Only the names that the layer asks for are replaced; any other text between percent signs stays. A value is
one plain word, so that it can change neither the form of a script nor that of a YAML document. Those that the
site gives no value are the head's addresses and its name.
"""

import re
import socket
from collections.abc import Callable, Iterable, Mapping

from updraft.bootstrap.condor_config import split_address
from updraft.config.model import Pool
from updraft.config.tables.worker import Layer
from updraft.errors import BootstrapError, PoolError

_SETTINGS = {"ipv4": "IPV4_ADDRESS", "ipv6": "IPV6_ADDRESS", "fqdn": "FULL_HOSTNAME"}
_FAMILIES = {"ipv4": socket.AF_INET, "ipv6": socket.AF_INET6}


def filled(layer: Layer, pool: Pool, ask: Callable[[str], str]) -> str:
    """The text of a site's layer with its variables replaced. Raises BootstrapError without a value."""
    return fill(layer.name, layer.text, layer.variables, lambda name: head_fact(name, pool, ask))


def head_fact(name: str, pool: Pool, ask: Callable[[str], str]) -> str:
    """The head's `ipv4`, `ipv6` or `fqdn`; empty where it can't be found.

    On the head itself HTCondor says it (`ask`); elsewhere it follows from the collector's name.
    """
    if name not in _SETTINGS:
        return ""
    if not pool.collector:
        return _asked(_SETTINGS[name], ask)
    host, _ = split_address(pool.collector.replace(",", " ").split()[0])
    return host if name == "fqdn" else _address(host, _FAMILIES[name])


def _asked(setting: str, ask: Callable[[str], str]) -> str:
    try:
        return ask(setting)
    except PoolError:
        return ""


def _address(host: str, family: socket.AddressFamily) -> str:
    try:
        found = socket.getaddrinfo(host, None, family, socket.SOCK_STREAM)
    except OSError:
        return ""
    return str(found[0][4][0])


OF_THE_HEAD = ("ipv4", "ipv6", "fqdn")
"""Names that need no value: the head's own addresses and its full name, found at the launch."""

WORD = re.compile(r"[A-Za-z0-9._:/@+-]+")


def used(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Those of the names that occur in the text as `%name%`."""
    return tuple(name for name in names if f"%{name}%" in text)


def fill(layer: str, text: str, variables: Mapping[str, str], of_the_head: Callable[[str], str]) -> str:
    """The text with its variables replaced; a variable without a value is asked of `of_the_head`.

    Raises BootstrapError that names the layer where a value can't be found or isn't one word.
    """
    names = used(text, variables)
    if not names:
        return text
    values = {f"%{name}%": _value(layer, name, variables[name], of_the_head) for name in names}
    # In one pass: a value is never looked at again.
    return re.sub("|".join(map(re.escape, values)), lambda found: values[found[0]], text)


def _value(layer: str, name: str, given: str, of_the_head: Callable[[str], str]) -> str:
    value = given or of_the_head(name)
    if not value:
        raise BootstrapError(
            f"bootstrap layer '{layer}' asks for %{name}%, and the head has none that is known; write it "
            f'into updraft.toml: variables = {{ {name} = "…" }}'
        )
    if not WORD.fullmatch(value):
        raise BootstrapError(f"bootstrap layer '{layer}': the value of %{name}% is not one plain word")
    return value
