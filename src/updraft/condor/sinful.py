"""Addresses of daemons, as HTCondor writes them: `<10.0.0.7:9618?addrs=10.0.0.7-9618&sock=startd_34_e6>`."""

import re
from urllib.parse import unquote

_PRIMARY = re.compile(r"<([^?>]+)")
_BROKER = re.compile(r"CCBID=([^&>]*)", re.IGNORECASE)


def is_at(told: str, advertised: str) -> bool:
    """Whether the address that a tool has talked to is one of those that a daemon's ad gives.

    A tool may prefer another of them than the first one, and leave away what it doesn't need. Two daemons
    behind different brokers may have the same address of their own.
    """
    primary = _PRIMARY.match(told)
    # In lists of addresses a port comes after a dash, and an IPv6 address has dashes for its colons.
    known = re.split(r"[<>?&=+,\s]", unquote(unquote(advertised)).replace("-", ":"))
    if primary is None or primary[1].replace("-", ":") not in known:
        return False
    brokers, others = (sorted(_BROKER.findall(unquote(unquote(one)))) for one in (told, advertised))
    return not brokers or not others or set(brokers) <= set(others)
