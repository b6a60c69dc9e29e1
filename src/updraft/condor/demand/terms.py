"""The terms of a job, from its ad: updraft's names and Cloud Scheduler's.

An ad is a stranger's text. Only literal values count, of bounded length and of signs that names are made of;
nothing is evaluated, opened or fetched. What is anything else is a fault: its owner is told, and no machine
is bought for the job.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

from updraft.condor.advalues import has
from updraft.condor.advalues import value as advalue
from updraft.core.matching.clauses import clauses, parse
from updraft.core.model import NO_TERMS, Reason, Terms
from updraft.core.slots import terms as core

TERM_REFUSED = "term-refused"
KEEP_ALIVE, KEEP_ALIVE_MINUTES = "UpdraftKeepAlive", "VMKeepAlive"
NAME, HIGH_PRIORITY, TYPE_LIMIT = "VMName", "VMHighPriority", "VMTypeLimit"
NAMES = (
    *core.RESTRICTIVE,
    KEEP_ALIVE,
    KEEP_ALIVE_MINUTES,
    NAME,
    HIGH_PRIORITY,
    TYPE_LIMIT,
    core.OWN_REQUIREMENTS,
    core.TARGET_ANNEX,
    core.MAY_USE_ANNEX,
)
"""Every attribute that terms are read from; the requirements besides."""

LONGEST = 2_048
LONGEST_NAME = 200
MOST = 64
_KNOWN = frozenset(name.lower() for name in NAMES)
_SAFE = re.compile(r"[^\x00-\x1f\x7f\"'\\$`]+")
_CLOUD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
_NUMBER = re.compile(r" *[0-9]{1,15}(\.[0-9]{1,15})? *")
_LARGEST = float(1 << 53)
_GIB = 1024 * 1024
_DEFAULT = "default"


class _FaultError(Exception):
    """A term that is refused; the message is a sentence for the job's owner."""


def terms_of(ad: Any) -> Terms:
    """The terms of the job with this ad. Raises nothing for any ad."""
    said = any(name.lower() in _KNOWN for name in ad)
    label = _label(ad)
    return _TermsReading(ad).run(label) if said or label else NO_TERMS


class _TermsReading:
    def __init__(self, ad: Any) -> None:
        self._ad = ad
        self._faults: list[Reason] = []

    def run(self, label: str) -> Terms:
        read = Terms(
            images=self._each(_choices, core.IMAGE, {}),
            flavors=self._each(_choices, core.FLAVOR, {}),
            networks=self._each(_choices, core.NETWORK, {}),
            clouds=self._each(_clouds, core.CLOUDS, ()),
            layers=self._each(_layers, core.LAYERS, ()),
            label=self._guarded(_name, core.LABEL, label, "") if label else "",
            name=self._each(_any_text, (NAME,), ""),
            max_price=self._price(),
            spot=self._each(_flag, (core.SPOT,), None),
            keep_alive=self._keep_alive(),
            cpus=self._each(_count, (core.CPUS,), 0),
            memory=self._each(_count, (core.MEMORY,), 0),
            disk=self._each(_count, (core.DISK,), 0) * _GIB,
            type_limit=self._type_limit(),
            high_priority=self._each(_count, (HIGH_PRIORITY,), 0),
            annex=self._each(_plain_name, (core.TARGET_ANNEX,), ""),
            annexes=self._each(_flag_or_nothing, (core.MAY_USE_ANNEX,), None),
        )
        self._each(_nothing, (core.FETCHED,), None)
        return replace(read, faults=tuple(self._faults))

    def _each(self, read: Callable[[str, Any], Any], names: Sequence[str], missing: Any) -> Any:
        """The value by the first of these names that the job has, read by `read`; `missing` without any."""
        for name in names:
            value = advalue(self._ad, name)
            if value is None or (isinstance(value, Enum) and value.name == "Undefined"):
                continue
            return self._guarded(read, name, value, missing)
        return missing

    def _guarded(self, read: Callable[[str, Any], Any], name: str, value: Any, missing: Any) -> Any:
        try:
            return read(name, value)
        except _FaultError as fault:
            self._faults.append(Reason(TERM_REFUSED, _printable(str(fault))))
            return missing

    def _price(self) -> float | None:
        found = [self._each(_number, (core.MAX_PRICE,), None)]
        cents = self._each(_number, (core.MAX_CENTS,), None)
        found.append(cents / 100 if cents else None)
        return min((price for price in found if price is not None), default=None)

    def _keep_alive(self) -> float | None:
        seconds: float | None = self._each(_number, (KEEP_ALIVE,), None)
        if seconds is not None:
            return seconds
        minutes: float | None = self._each(_number, (KEEP_ALIVE_MINUTES,), None)
        return None if minutes is None else minutes * 60

    def _type_limit(self) -> int | None:
        """Below zero it is Cloud Scheduler's word for none."""
        value = advalue(self._ad, TYPE_LIMIT)
        if str(value).strip().startswith("-"):
            return None
        found: int | None = self._each(_count, (TYPE_LIMIT,), None)
        return found


# ------------------------------------------------------------------------------------------- single values


def _choices(name: str, value: Any) -> dict[str, str]:
    """By cloud, "" for every one that isn't named: one value, or `cloud:value` pairs."""
    parts = _parts(name, value)
    if len(parts) == 1 and ":" not in parts[0]:
        return {"": _name(name, parts[0])}
    found: dict[str, str] = {}
    for part in parts:
        _no_address(name, part)
        cloud, colon, chosen = part.partition(":")
        if not colon or not _CLOUD.fullmatch(cloud):
            raise _FaultError(
                f'+{name} has the part "{_shown(part)}": write one value, or cloud:value pairs with "," '
                f'between them and no blank around ":"; "{_DEFAULT}" stands for every cloud that isn\'t named'
            )
        cloud = "" if cloud == _DEFAULT else cloud
        if cloud in found:
            raise _FaultError(f'+{name} says twice what it wants for "{cloud or _DEFAULT}"')
        found[cloud] = _name(name, chosen)
    return found


def _clouds(name: str, value: Any) -> tuple[str, ...]:
    parts = _parts(name, value)
    for part in parts:
        if not _CLOUD.fullmatch(part):
            raise _FaultError(f'+{name} names "{_shown(part)}", which is no name of a cloud')
    if not parts:
        raise _FaultError(f"+{name} names no cloud")
    return tuple(dict.fromkeys(parts))


def _layers(name: str, value: Any) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_name(name, part) for part in _parts(name, value)))


def _any_text(name: str, value: Any) -> str:
    """A name that nothing is done with but to show it."""
    text = _text(name, value)
    return text[:LONGEST_NAME] if text.isprintable() else ""


def _number(name: str, value: Any) -> float:
    if isinstance(value, str) and _NUMBER.fullmatch(value):
        return float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LARGEST:
        raise _FaultError(f"+{name} is no plain number, 0 or more: an expression in it is not evaluated")
    return float(value)


def _count(name: str, value: Any) -> int:
    number = _number(name, value)
    if not number.is_integer():
        raise _FaultError(f"+{name} is {number:g}, which is no whole number")
    return int(number)


def _flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise _FaultError(f"+{name} is neither True nor False")
    return value


def _flag_or_nothing(_name: str, value: Any) -> bool | None:
    """What isn't a truth value is no objection, as for the machine: `+MayUseAWS = "True"` is often seen."""
    return value if isinstance(value, bool) else None


def _nothing(name: str, value: Any) -> None:
    if value != "":
        raise _FaultError(
            f"+{name} would have the controller fetch what a job names, which it never does: the site can "
            f"offer layers by name, for +{core.LAYERS[0]}"
        )


def _parts(name: str, value: Any) -> list[str]:
    parts = [part.strip(" ") for part in _text(name, value).split(",")]
    if len(parts) > MOST:
        raise _FaultError(f"+{name} has more than {MOST} parts")
    return [part for part in parts if part]


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise _FaultError(f"+{name} is no plain text: an expression or a list in it is not evaluated")
    if len(value) > LONGEST:
        raise _FaultError(f"+{name} is longer than {LONGEST} characters")
    return value


def _no_address(name: str, text: str) -> None:
    if "://" in text or text.startswith(("/", ".", "~")) or "/../" in text or text.endswith("/.."):
        raise _FaultError(
            f'+{name} has "{_shown(text)}", an address or a path: only names are taken, nothing is opened or '
            "fetched because a job says so"
        )


def _name(name: str, text: str) -> str:
    """A name of something; what could be taken for an address, a path or a command is none."""
    _no_address(name, text)
    plain = text.isprintable() and _SAFE.fullmatch(text)
    if not text or len(text) > LONGEST_NAME or not plain:
        raise _FaultError(
            f'+{name} has "{_shown(text)}", which is no name: up to {LONGEST_NAME} characters, no quotes, '
            'backslashes, "$" or control characters among them'
        )
    return text


def _plain_name(name: str, value: Any) -> str:
    return _name(name, _text(name, value))


def _shown(text: str) -> str:
    return _printable(text[:60])


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in text)


# ----------------------------------------------------------------------------------------------- VMType


def _label(ad: Any) -> str:
    """The text that a clause of the job's requirements compares the machine's VMType with; "" without any."""
    if not has(ad, "Requirements"):
        return ""
    text = str(ad.lookup(core.OWN_REQUIREMENTS if has(ad, core.OWN_REQUIREMENTS) else "Requirements"))
    if core.LABEL.lower() not in text.lower():
        return ""
    scopes = ("target",) if has(ad, core.LABEL) else ("target", "")
    compared = (clause.args for clause in clauses(parse(text)) if clause.op in ("==", "is"))
    found = (
        constant.value
        for args in compared
        for attribute, constant in (args, args[::-1])
        if attribute.op == "attr" and attribute.value == core.LABEL.lower() and attribute.scope in scopes
        if constant.op == "const" and isinstance(constant.value, str)
    )
    return next(found, "")
