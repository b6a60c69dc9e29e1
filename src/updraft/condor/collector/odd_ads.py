"""What is asked of each slot's ad, and what is remembered of those that can't be read whole."""

from collections.abc import Iterable, Sequence
from typing import Any

from updraft.condor.advalues import text
from updraft.condor.base import (
    ATTR_CLASS,
    ATTR_CLOUD,
    ATTR_FLAVOR,
    ATTR_GENERATION,
    ATTR_INSTANCE,
    ATTR_LAUNCH,
    ATTR_POOL,
    ATTR_VARIANT,
    SHOWN_IDENTITY,
)
from updraft.condor.demand.reread import MARKS
from updraft.core.slots.kinds import custom_names

MACHINE_RESOURCES = "MachineResources"
PROJECTION = [
    *("Name", "Machine", "MyAddress", "State", "Activity", "PartitionableSlot", "Draining", "DrainReason"),
    *("Cpus", "Memory", "Disk", "GPUs", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk", "TotalSlotGPUs"),
    *("ChildState", "ChildActivity", "ChildCpus", "ChildMemory", "ChildDisk", "ChildGPUs", "ChildRemoteUser"),
    *("ChildName", "ChildAccountingGroup", "RemoteUser", "AccountingGroup"),
    *("ChildRetirementTimeRemaining", "RetirementTimeRemaining", "ChildGlobalJobId", "GlobalJobId"),
    *("ChildEnteredCurrentState", "EnteredCurrentState"),
    *("JobStarts", "ClaimRequests", "Offline", "Start", "LastHeardFrom", "DaemonStartTime"),
    *("UpdateSequenceNumber", MACHINE_RESOURCES),
    *(ATTR_POOL, ATTR_CLASS, ATTR_CLOUD, ATTR_FLAVOR, ATTR_GENERATION, ATTR_INSTANCE, ATTR_LAUNCH),
    *(ATTR_VARIANT, SHOWN_IDENTITY),
]
UNREAD = "UpdraftUnread"
"""Set by us in an ad that can't be read whole, and never asked for."""

# First without what a site writes expressions into, then without what only tells an ad from the one before
# it. If even that can't be read, what tells whose it is; then what the collector itself writes into every ad.
_SAFE = [name for name in PROJECTION if name not in ("Start", "DrainReason")]
_SURE = ["Name", "LastHeardFrom", SHOWN_IDENTITY]
_ADS = (
    PROJECTION,
    _SAFE,
    [name for name in _SAFE if name not in MARKS or name in ("Name", "MyAddress", "LastHeardFrom")],
    [*_SURE, "MyAddress", ATTR_POOL, ATTR_INSTANCE, ATTR_LAUNCH],
    [*_SURE, "MyAddress"],
    _SURE,
)
_MARKS = (list(MARKS), ["Name", "MyAddress", "LastHeardFrom"], ["Name", "LastHeardFrom"])
TRY_AGAIN = 30  # looks after which those are tried anew that couldn't be read: they may say another thing
_MOST_CUSTOM = 64  # custom resources of all of a pool's slots together


class Steps:
    """How few attributes each slot is asked for, by name: a step down this ladder; none for nearly all.

    Of those `alone` it is known that it takes that; the others couldn't be told apart yet.
    """

    def __init__(self, ladder: Sequence[list[str]]) -> None:
        self.ladder = ladder
        self.step: dict[str, int] = {}
        self.alone: set[str] = set()
        self.looks = 0

    def begin(self) -> None:
        self.looks += 1
        if self.looks % TRY_AGAIN == 0:
            self.alone.clear()

    def down(self, names: Sequence[str], step: int) -> None:
        """These couldn't be read at this step."""
        self.step.update(dict.fromkeys(names, step + 1))
        if len(names) == 1:
            self.alone.update(names)

    def forget(self, names: Iterable[str]) -> None:
        for name in names:
            self.step.pop(name, None)
            self.alone.discard(name)


class Odd:
    """The memory between looks of the slots whose ads can't be read whole."""

    def __init__(self) -> None:
        self.ads, self.marks = Steps(_ADS), Steps(_MARKS)
        self.custom: dict[str, None] = {}
        """Custom resources that slots have, in lower case: their amounts are asked for, too."""
        self.nameless: set[str] = set()
        """What those go by now that have no name."""
        self.hidden: set[tuple[str, str]] = set()
        """Whose slots have names that are no texts to the library: an attribute, `Machine` or that of the
        identity that advertised them, and its text."""

    def begin(self) -> None:
        """Another look begins."""
        if self.marks.looks % TRY_AGAIN == 0:
            self.hidden.clear()

    def learns(self, ads: Iterable[Any]) -> bool:
        """Whether any of these has custom resources that weren't asked for: from now on they are."""
        names = {name.lower() for ad in ads for name in custom_names(text(ad, MACHINE_RESOURCES))}
        fresh = sorted(names - self.custom.keys())[: _MOST_CUSTOM - len(self.custom)]
        self.custom.update(dict.fromkeys(fresh))
        if fresh:
            more = [of + name for name in self.custom for of in ("", "TotalSlot", "Child")]
            self.ads.ladder = ([*_ADS[0], *more], [*_ADS[1], *more], *_ADS[2:])
        return bool(fresh)

    def names(self) -> set[str]:
        """Of which slots it is."""
        return {*self.ads.step, *self.marks.step, *self.nameless}
