"""Machines asked for by hand: how many, until when, for whose jobs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from updraft.core.model.basics import Reason
from updraft.core.model.variants import Variant

NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
"""What an annex may be called; the whole of its name is so."""


@dataclass(frozen=True, slots=True)
class Annex:
    """What was asked for: `machines` of a class, or machines with `cores` in all; the other one is 0.

    Its machines end at `until` (epoch seconds), and each before that once it was `idle` for so many seconds.
    They take the jobs of `owner`, or with `for_all` of everybody. With `spot` True or False only that market
    will do; `max_price` is per hour of one machine. `clouds` (names) and `flavors` (names and patterns) leave
    only those, where there are any; `image` and `security_groups` take the place of the class's and the
    cloud's own. `layer` is the hash of the bootstrap layer that is kept
    apart, "" without one. `since` is when it was asked for: machines of an earlier annex of this name are
    none of its own.

    `left` and `left_cores` are machines that have left for want of work: they are not replaced. `stopped` is
    why its machines are to go before the lease's end, `kill_jobs` that their jobs have no time to finish.
    `deleted` is True where it is to be forgotten once its machines are gone.
    """

    name: str
    owner: str
    worker_class: str
    machines: int
    cores: int
    until: float
    idle: float
    for_all: bool = False
    spot: bool | None = None
    max_price: float | None = None
    clouds: tuple[str, ...] = ()
    flavors: tuple[str, ...] = ()
    image: str = ""
    security_groups: tuple[str, ...] = ()
    layer: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    since: float = 0.0
    left: int = 0
    left_cores: int = 0
    stopped: Reason | None = None
    kill_jobs: bool = False
    deleted: bool = False

    @property
    def variant(self) -> Variant:
        """What its machines are."""
        user = "" if self.for_all else self.owner
        groups = ",".join(self.security_groups)
        return Variant(
            image=self.image, user=user, keep_alive=str(int(self.idle)), annex=self.name, groups=groups
        )

    def over(self, now: float) -> bool:
        """Are its machines to go, and is none to come?"""
        return self.stopped is not None or self.deleted or now >= self.until


@dataclass(frozen=True, slots=True)
class AnnexOutlook:
    """What becomes of an annex.

    `state` is "whole" (all is there or on its way), "growing" (the plan launches some), "held" (some are
    missing, and `reason` says what stops them), "leaving" (its machines are on their way out) or "over" (none
    is left). `machines` and `cores` are what there is, of which `joined` are in the pool and `coming` were
    asked for and are not yet; `busy` have jobs. `launching` are launched now, `missing` are machines (or
    cores, where it counts these) that are wanted beside them. `forget` is True where nothing of it is to be
    kept.
    """

    name: str
    state: str
    reason: Reason
    machines: int = 0
    cores: int = 0
    joined: int = 0
    busy: int = 0
    coming: int = 0
    launching: int = 0
    missing: int = 0
    forget: bool = False
