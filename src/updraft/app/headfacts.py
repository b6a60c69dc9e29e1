"""What a layer's variables stand for at a launch: the head's addresses and its name."""

import socket
from collections.abc import Callable

from updraft.bootstrap.condor_config import split_address
from updraft.bootstrap.variables import fill
from updraft.config.model import Pool
from updraft.config.tables.worker import Layer
from updraft.errors import PoolError

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
