"""Values of old configurations as settings: numbers, times and addresses, each fault with its line."""

import math
from urllib.parse import urlsplit

from updraft.config.values.units import LONGEST, spell
from updraft.errors import ConfigError
from updraft.importers.formats.reading import Value


def count(value: Value) -> int:
    """A whole number, 0 or more; "3.0" is one, as it was to elastiq."""
    number = _number(value)
    if number < 0 or number != int(number):
        raise ConfigError(f'{value.place}: "{value.text}" is no count; write a whole number, 0 or more')
    return int(number)


def whole(value: Value) -> int:
    """A whole number, of either sign."""
    number = _number(value)
    if number != int(number):
        raise ConfigError(
            f'{value.place}: "{_short(value.text)}" is no whole number; correct it and import again'
        )
    return int(number)


def yes(value: Value) -> bool:
    """True or false, as the old programs wrote them."""
    word = value.text.lower()
    if word in ("true", "yes", "on", "1"):
        return True
    if word in ("false", "no", "off", "0"):
        return False
    raise ConfigError(f'{value.place}: "{_short(value.text)}" is neither true nor false; correct it')


def ceiling(value: Value) -> int | None:
    """A maximum; below 1 there is none, as with elastiq."""
    number = _number(value)
    return int(number) if number >= 1 else None


def duration(value: Value) -> float:
    """A time in seconds, 0 or more."""
    number = _number(value)
    if not 0 <= number <= LONGEST / 2:
        raise ConfigError(
            f'{value.place}: "{value.text}" is no time in seconds that a machine could live to see'
        )
    return number


def in_words(seconds: float) -> str:
    """A time as updraft.toml has it; never nothing at all."""
    return spell(max(1.0, seconds))


def address(value: Value) -> tuple[str, bool]:
    """The address of an endpoint without what doesn't belong there, and whether anything was left out."""
    try:
        parts = urlsplit(value.text)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError(f'{value.place} is no address; it begins with "https://" and names a host')
    shown = f"[{host}]" if ":" in host else host
    plain = f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path}"
    return plain, bool(parts.username or parts.password or parts.query or parts.fragment)


def _number(value: Value) -> float:
    try:
        number = float(value.text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise ConfigError(
            f'{value.place}: "{_short(value.text)}" is not a number; correct it and import again'
        )
    return number


def _short(text: str) -> str:
    return text if len(text) <= 30 else text[:30] + "…"
