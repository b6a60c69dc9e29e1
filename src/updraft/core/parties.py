"""Whose turn it is: a submitter, whose jobs of high priority are a party of their own before all others."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from updraft.core.model import JobGroup
from updraft.core.settings import Policy

_MARK = "\0"  # no name in a ClassAd has one: nobody makes a party of his own with a name that he chooses


def short(submitter: str) -> str:
    """A submitter's name without its domain."""
    return submitter.partition("@")[0].partition(_MARK)[0]


def weight(party: str) -> int:
    """The weight of a party of high priority; 0 for all others."""
    return int(party.partition(_MARK)[2] or 0)


def high(submitter: str, number: int) -> str:
    """The party of a submitter's jobs of this high priority (above 0)."""
    return f"{submitter}{_MARK}{number}"


def parted(
    left: Sequence[tuple[JobGroup, int]], serving: Mapping[str, Sequence[str]], policy: Policy
) -> list[tuple[JobGroup, int]]:
    """The same jobs, those whose high priority counts under the name of their party.

    It counts where the site lets the submitter have one: in the whole pool, or in every class that can run
    the job (`serving`, by group).
    """
    return [
        (replace(group, submitter=high(group.submitter, group.terms.high_priority)), number)
        if group.terms.high_priority > 0 and _may(group, serving.get(group.key, ()), policy)
        else (group, number)
        for group, number in left
    ]


def parties(left: Sequence[tuple[JobGroup, int]]) -> dict[str, tuple[str, ...]]:
    """The parties of high priority among these, by their submitters."""
    found: dict[str, dict[str, None]] = {}
    for group, _ in left:
        if weight(group.submitter):
            found.setdefault(group.submitter.partition(_MARK)[0], {})[group.submitter] = None
    return {name: tuple(each) for name, each in found.items()}


def _may(group: JobGroup, classes: Sequence[str], policy: Policy) -> bool:
    name = short(group.submitter)
    if _among(name, policy.high_priority_users):
        return True
    return bool(classes) and all(_among(name, policy.classes[one].high_priority_users) for one in classes)


def _among(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)
