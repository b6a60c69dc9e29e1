"""Whose jobs are whose, and whose turn it is.

A user is who the schedd has authenticated, whatever the job says. Turns go by submitters, which are users
unless accounting groups are trusted; a submitter's jobs of high priority are a party of their own before all
others, and room that is kept ready is one after all others.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from updraft.core.model import JobGroup
from updraft.core.settings import Policy

_MARK = "\0"  # the library of ClassAds ends a text there: nobody makes a party with a name that he chooses
_READY = "ready"


def short(submitter: str) -> str:
    """A submitter's name without its domain."""
    return submitter.partition("@")[0].partition(_MARK)[0]


def group_of(user: str, submitter: str) -> str:
    """The accounting group of what the negotiator calls a claim, which has the user's name at its end."""
    name, own = short(submitter), short(user)
    if not submitter or name == own:
        return ""
    return name.removesuffix(f".{own}")


def user_of(group: JobGroup) -> str:
    """Whose jobs these are: all that a user has counts together, whatever the jobs say of themselves."""
    return group.user or (group.submitter if group.ready else group.submitter.partition(_MARK)[0])


def names_of(group: JobGroup) -> tuple[str, ...]:
    """By which names tables and patterns of the settings mean these jobs, the most particular one first.

    The name with an accounting group is among them only where groups are trusted (see `trusted`).
    """
    user = user_of(group)
    return tuple(dict.fromkeys((short(group.submitter), user, short(user))))


def trusted(group: JobGroup, policy: Policy) -> JobGroup:
    """The group as it counts: without an accounting group of its own choice, unless groups are trusted."""
    if policy.groups_trusted or not group.user or group.submitter == group.user:
        return group
    return replace(group, submitter=group.user)


def sharing(user: str, submitter: str, policy: Policy) -> str:
    """What the negotiator shares by of a claim of this user: the submitter only where groups are trusted."""
    return (submitter if policy.groups_trusted else "") or user


def ready(worker_class: str) -> str:
    """The party of the room that is kept ready of a class."""
    return f"{worker_class}{_MARK}{_READY}"


def is_ready(party: str) -> bool:
    """Whether a party is room that is kept ready."""
    return party.endswith(f"{_MARK}{_READY}")


def weight(party: str) -> int:
    """The weight of a party of high priority; 0 for all others."""
    mark = party.partition(_MARK)[2]
    return int(mark) if mark and mark != _READY else 0


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
    names = names_of(group)
    if _among(names, policy.high_priority_users):
        return True
    return bool(classes) and all(_among(names, policy.classes[one].high_priority_users) for one in classes)


def _among(names: Sequence[str], patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)
