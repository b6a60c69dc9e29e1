"""What one job of a group asks for, read from expressions that strangers wrote.

An expression is evaluated only where that is known to be cheap beforehand: plain arithmetic and a few
harmless functions over few other attributes. Everything else makes the group one that cannot be evaluated.
"""

import re
from typing import Any

import classad2

from updraft.condor.advalues import has, value
from updraft.condor.demand.references import references
from updraft.core.model import Resources
from updraft.core.model.basics import Custom
from updraft.core.slots.kinds import LARGEST

MAX_ATTRIBUTE = 16_384
MAX_AD = 65_536
_MAX_STEPS = 2_000
# What the library and its bindings raise where an expression has no value, or none that they can hand over.
_NO_VALUE = (classad2.ClassAdException, ValueError, TypeError, OverflowError, SystemError)

_HARMLESS = frozenset(
    (
        "max",
        "min",
        "ifthenelse",
        "ceiling",
        "floor",
        "round",
        "int",
        "real",
        "quantize",
        "isundefined",
        "iserror",
    )
)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_WORD = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\s*(\()?")
_REQUEST = re.compile(r"request(?!(?:cpus|memory|disk|gpus)$)[a-z_]\w{0,63}", re.IGNORECASE | re.ASCII)
_MOST_CUSTOM = 16
_NAMES = (("RequestCpus", 1, 1), ("RequestMemory", 1, 1), ("RequestDisk", 1, 1), ("RequestGPUs", 0, 0))


class UndecidableError(Exception):
    """The request cannot be evaluated; the message is one sentence for the group's owner."""


def request_of(ad: Any) -> Resources:
    """The resources that a job with this ad asks for: cpus and GPUs, MiB of memory, KiB of disk, and custom
    resources.

    Or UndecidableError.
    """
    if problem := _circular(ad):
        raise UndecidableError(problem)
    cpus, memory, disk, gpus = (_quantity(ad, *how) for how in _NAMES)
    return Resources(cpus, memory, disk, gpus, _custom(ad))


def _custom(ad: Any) -> Custom:
    """Every further number that the job requests. (A text there is a pattern for the requirements.)

    An attribute may have such a name for another reason: one without a value counts only where the
    requirements speak of it.
    """
    found: dict[str, int] = {}
    for name in sorted((one for one in ad if _REQUEST.fullmatch(one)), key=str.lower)[:_MOST_CUSTOM]:
        try:
            if isinstance(value(ad, name), str):
                continue
            found[name[len("request") :].lower()] = _quantity(ad, name, 0, 0)
        except UndecidableError:
            if has(ad, "Requirements") and name.lower() in str(ad.lookup("Requirements")).lower():
                raise
    return tuple(sorted((name, amount) for name, amount in found.items() if amount))


def too_large(ad: Any) -> str:
    """Why this ad is larger than one that is planned with; empty where it isn't."""
    total = 0
    for name in ad:
        size = len(str(ad.lookup(name)))
        if size > MAX_ATTRIBUTE:
            return f"the attribute {name[:60]} is longer than {MAX_ATTRIBUTE} characters"
        total += size
    return f"the job's ad is longer than {MAX_AD} characters" if total > MAX_AD else ""


def _quantity(ad: Any, name: str, missing: int, least: int) -> int:
    if not has(ad, name):
        return missing
    cost(ad, name)
    try:
        value = ad.eval(name)
    except _NO_VALUE as error:
        raise UndecidableError(f"{name} cannot be evaluated") from error
    if value is classad2.Value.Undefined:
        return missing
    if (
        isinstance(value, bool | classad2.Value)
        or not isinstance(value, int | float)
        or not abs(value) < LARGEST
    ):
        raise UndecidableError(f"{name} is no number that a machine could have")
    # A part of a cpu is rounded up, as the startd does.
    return max(least, -int(-value // 1))


def _circular(ad: Any) -> str:
    """Which attribute that decides where the job runs has no value because it refers to itself; empty where
    none does.

    HTCondor 25 takes it for undefined where it meets itself: what says what to do then has a value all the
    same. (23.9 has no value for it, and doesn't run such a job: then it is one whose room isn't taken.)
    """
    for name in references(ad).circles:
        try:
            cost(ad, name)
            found = ad.eval(name)
        except UndecidableError as error:
            return str(error)
        except _NO_VALUE:
            found = classad2.Value.Error
        if isinstance(found, classad2.Value):
            return f"the attribute {name[:60]} refers to itself, and has no value"
    return ""


def cost(ad: Any, name: str) -> int:
    """How many steps an evaluation may take, counted before it is done. UndecidableError if too many."""
    return _steps(ad, name, frozenset())


def _steps(ad: Any, name: str, above: frozenset[str]) -> int:
    if name.lower() in above:
        return 1  # the library goes no further
    if len(above) > 12:
        raise UndecidableError(f"{name[:60]} refers to too many others in a row")
    text = str(ad.lookup(name))
    if len(text) > 4096:
        raise UndecidableError(f"{name[:60]} is too long to evaluate")
    steps = 1
    for word, call in _WORD.findall(_STRING.sub('""', text)):
        steps += 1
        if call and word.lower() not in _HARMLESS:
            raise UndecidableError(f"{name[:60]} uses {word[:60]}(), which is not evaluated here")
        if not call and has(ad, word):
            steps += _steps(ad, word, above | {name.lower()})
        if steps > _MAX_STEPS:
            raise UndecidableError(f"{name[:60]} is too costly to evaluate")
    return steps
