"""Machines asked for by hand: how many, until when, for whose jobs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from updraft.core.model.basics import Reason
from updraft.core.model.variants import Variant

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
"""What an annex may be called; the whole of its name is so."""


@dataclass(frozen=True, slots=True)
class Annex:
    """An annex as it was asked for: `machines` of a class, or machines with `cores` in all; the other one is
    0.

    `until` and `since` are epoch seconds: machines of an earlier annex of this name are none of its own.
    `layer` is the hash of the bootstrap layer that is kept apart, "" without one.
    """

    name: Annotated[str, "Its name."]
    owner: Annotated[str, "Who asked for it, or for whom."]
    worker_class: Annotated[str, "The class of its machines."]
    machines: Annotated[int, "So many machines; 0 where it counts cores."]
    cores: Annotated[int, "Machines with so many cores; 0 where it counts machines."]
    until: Annotated[float, "When its lease ends."]
    idle: Annotated[float, "Seconds after which an idle machine leaves."]
    for_all: Annotated[bool, "Whether its machines take the jobs of all users."] = False
    spot: Annotated[bool | None, "Only that market (true), only the other (false), or any (null)."] = None
    max_price: Annotated[float | None, "Per hour, of one machine."] = None
    clouds: Annotated[tuple[str, ...], "Only these clouds; empty for all of the class."] = ()
    flavors: Annotated[tuple[str, ...], "Only these flavors, by name or pattern; empty for the class's."] = ()
    image: Annotated[str, "Booted instead of the class's; empty for that."] = ""
    security_groups: Annotated[tuple[str, ...], "Instead of the cloud's own; empty for those."] = ()
    layer: Annotated[str, "Whether it has user-data of its own."] = ""
    tags: Annotated[Mapping[str, str], "Tags of its machines."] = field(default_factory=dict)
    since: Annotated[float, "When it was asked for."] = 0.0
    left: Annotated[int, "Machines that have left for want of work, and are not replaced."] = 0
    left_cores: Annotated[int, "Their cores."] = 0
    stopped: Annotated[Reason | None, "Why its machines leave before the lease ends, or null."] = None
    kill_jobs: Annotated[bool, "Whether their jobs have no time to finish."] = False
    deleted: Annotated[bool, "Whether it is forgotten once its machines are gone."] = False

    @property
    def variant(self) -> Variant:
        """The variant that its machines are."""
        user = "" if self.for_all else self.owner
        groups = ",".join(self.security_groups)
        return Variant(
            image=self.image, user=user, keep_alive=str(int(self.idle)), annex=self.name, groups=groups
        )

    def over(self, now: float) -> bool:
        """Are its machines to go, and is none to come?"""
        return self.stopped is not None or self.deleted or now >= self.until


AnnexState = Literal["whole", "growing", "held", "leaving", "over"]


@dataclass(frozen=True, slots=True)
class AnnexOutlook:
    """How an annex stands.

    `state` is "whole" (all is there or on its way), "growing" (the plan launches some), "held" (some are
    missing, and `reason` says what stops them), "leaving" (its machines are on their way out) or "over" (none
    is left).
    """

    name: Annotated[str, "Its name."]
    state: Annotated[AnnexState, "How it stands."]
    reason: Reason
    machines: Annotated[int, "Machines that there are, those on their way included."] = 0
    cores: Annotated[int, "Their cores."] = 0
    joined: Annotated[int, "How many are in the pool."] = 0
    busy: Annotated[int, "How many have jobs."] = 0
    coming: Annotated[int, "How many were asked for and are not in the pool yet."] = 0
    launching: Annotated[int, "How many were launched at that look."] = 0
    missing: Annotated[int, "How many more are wanted: machines, or cores where it counts these."] = 0
    forget: Annotated[bool, "Whether it was forgotten then."] = False
