"""What an endpoint lacks: told by the settings or found out once, by what it refuses or leaves out."""

import re
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any, get_args

from botocore.exceptions import ClientError

from updraft.clouds.base import Finding
from updraft.clouds.ec2.errors import code_of, message_of
from updraft.clouds.ec2.settings import Feature

# The parameter by which a request asks for a feature: as an endpoint names it when it refuses it.
PARAMETERS: Mapping[Feature, str] = {
    "client-token": r"client.?token",
    "tag-on-create": r"tag.?specification",
    "spot": r"(instance.?)?market.?options",
    "metadata-tags": r"instance.?metadata.?tags",
    "metadata-options": r"metadata.?options",
    "shutdown-behavior": r"instance.?initiated.?shutdown",
    "paging": r"max.?results",
}
_REFUSALS = re.compile(r"(Unknown|Invalid|Unsupported|Missing|Malformed|NotImplemented|Parameter)")
# OpenStack's ec2-api says only this of a parameter that it doesn't know, not of which: one newer than itself.
_UNNAMED = "TypeError"
_NEWER: tuple[Feature, ...] = ("tag-on-create", "metadata-tags", "metadata-options")

# What stands in for it, and what a person can do about it.
_TEXTS: Mapping[Feature, tuple[str, str]] = {
    "client-token": (
        "no client tokens: before each launch the machines are looked through for its launch key",
        "none needed; let no second updraft act for this pool",
    ),
    "tag-on-create": (
        "no tags at launch: they are written right after, and until then the launch key in the user-data "
        "says whose a machine is",
        "none needed; the credentials must be allowed CreateTags and DescribeInstanceAttribute",
    ),
    "spot": ("no spot market: only on-demand machines are bought", "take spot out of the classes' markets"),
    "metadata-options": (
        "no metadata options: IMDSv2 can't be required, and jobs are kept from the metadata service by the "
        "machine's own firewall alone",
        "keep credentials out of the machines: give them no instance profile",
    ),
    "metadata-tags": (
        "machines can't read their own tags: an annex is not extended beyond the lease it was launched with",
        "none needed; launch a further annex where more time is wanted",
    ),
    "shutdown-behavior": (
        "no shutdown behaviour: a machine that powers itself off stays as stopped until updraft ends it",
        "none needed while updraft runs; after taking it out of service, look for stopped machines",
    ),
    "instance-types": (
        "no DescribeInstanceTypes: only the types described in the configuration are offered",
        "describe the flavors in [clouds.NAME.instance_types.TYPE], with cpus and memory",
    ),
    "paging": ("no paged listings: all machines come in one answer", "none needed"),
}
_HARMLESS: frozenset[Feature] = frozenset({"paging"})


class Capabilities:
    """Which features are there (True), lacking (False) or not yet known (None). Safe for many threads."""

    def __init__(self, lacks: Iterable[Feature] = ()) -> None:
        self._lock = threading.Lock()
        self._known: dict[Feature, bool] = dict.fromkeys(lacks, False)
        self._how: dict[Feature, str] = dict.fromkeys(lacks, "says the configuration")

    def has(self, feature: Feature) -> bool | None:
        """True, False, or None while nobody knows."""
        with self._lock:
            return self._known.get(feature)

    def may(self, feature: Feature) -> bool:
        """Whether to try it."""
        return self.has(feature) is not False

    def seen(self, feature: Feature) -> None:
        """The endpoint showed that it has it. What was found lacking stays so."""
        with self._lock:
            self._known.setdefault(feature, True)

    def lacking(self, feature: Feature, how: str) -> None:
        """The endpoint showed, by `how`, that it lacks it."""
        with self._lock:
            if self._known.get(feature) is not False:
                self._known[feature] = False
                self._how[feature] = how

    def refused(self, error: ClientError, asked: Iterable[Feature]) -> Feature | None:
        """The feature of those asked for that this error refuses, noted as lacking; None for other errors."""
        if code_of(error) == _UNNAMED:
            return self._newer(asked)
        text = f"{code_of(error)} {message_of(error)}"
        if not _REFUSALS.search(code_of(error)):
            return None
        for feature in asked:
            if feature in PARAMETERS and re.search(PARAMETERS[feature], text, re.IGNORECASE):
                self.lacking(feature, f"refused with {code_of(error)}")
                return feature
        return None

    def _newer(self, asked: Iterable[Feature]) -> Feature | None:
        """What the endpoint must be too old for, where it says no more than that: all of it at once."""
        newer = [feature for feature in asked if feature in _NEWER and not self.has(feature)]
        for feature in newer:
            self.lacking(feature, f"refused with {_UNNAMED}")
        return next(iter(newer), None)

    def findings(self) -> tuple[Finding, ...]:
        """A line for each feature that is lacking, or one that says that nothing is known to be."""
        with self._lock:
            lacking = [(feature, self._how[feature]) for feature, has in self._known.items() if not has]
            unknown = [feature for feature in get_args(Feature) if feature not in self._known]
        if not lacking:
            text = "nothing is known to be lacking"
            more = f"; shown by the first launch: {', '.join(unknown)}" if unknown else ""
            return (Finding("endpoint", "ok", text + more),)
        return tuple(
            Finding(
                f"endpoint: {feature}",
                "ok" if feature in _HARMLESS else "warning",
                f"{_TEXTS[feature][0]} ({how})",
                "" if feature in _HARMLESS else _TEXTS[feature][1],
            )
            for feature, how in sorted(lacking)
        )


def learn_from_launch(
    known: Capabilities,
    asked: Iterable[Feature],
    made: Iterable[Mapping[str, Any]],
    tokens: str = "required",
) -> None:
    """What the answer to a launch shows and what it leaves out of what was asked for.

    `tokens` is what was asked of the metadata service ("required" or "optional").
    """
    shows: Mapping[str, Callable[[Mapping[str, Any]], bool]] = {
        "client-token": lambda one: bool(one.get("ClientToken")),
        "tag-on-create": lambda one: bool(one.get("Tags")),
        "spot": lambda one: one.get("InstanceLifecycle") == "spot",
        "metadata-options": lambda one: one.get("MetadataOptions", {}).get("HttpTokens") == tokens,
        "metadata-tags": lambda one: one.get("MetadataOptions", {}).get("InstanceMetadataTags") == "enabled",
    }
    instances = list(made)
    for feature in asked:
        if feature not in shows or not instances:
            continue
        if all(shows[feature](one) for one in instances):
            known.seen(feature)
        else:
            known.lacking(feature, "left out of the answer to a launch")
