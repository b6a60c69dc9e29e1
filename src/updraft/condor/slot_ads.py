"""The ads of slots, asked so that one that can't be read costs itself. Runs in a child process.

HTCondor's library gives a whole answer up for one ad in it that it can't read, and what is written into an ad
is its machine's owner's. Which ads those are is found by halves, and of each as much is asked for as can be
read: fewer and fewer attributes, in the end only its name. How few is remembered, so that the search is paid
for once.
"""

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
from updraft.condor.byname import among
from updraft.condor.reread import MARKS

SLOTS = 'MyType == "Machine" && DynamicSlot =!= true'
PROJECTION = [
    *("Name", "Machine", "MyAddress", "State", "Activity", "PartitionableSlot", "Draining", "DrainReason"),
    *("Cpus", "Memory", "Disk", "GPUs", "TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk", "TotalSlotGPUs"),
    *("ChildState", "ChildActivity", "ChildCpus", "ChildMemory", "ChildDisk", "ChildGPUs", "ChildRemoteUser"),
    *("ChildName", "ChildAccountingGroup", "RemoteUser", "AccountingGroup"),
    *("ChildRetirementTimeRemaining", "RetirementTimeRemaining", "ChildGlobalJobId", "GlobalJobId"),
    *("JobStarts", "ClaimRequests", "Offline", "Start", "LastHeardFrom", "DaemonStartTime"),
    "UpdateSequenceNumber",
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
# Ads are asked for by name up to this many; for more, all are read once.
_BY_NAME = 1_000
# Questions that fail, in one search: what is not told apart by then is read with less, until the next look.
_FAILURES = 100
_TRY_AGAIN = 30  # looks after which those are tried anew that couldn't be read: they may say another thing


class _Steps:
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
        if self.looks % _TRY_AGAIN == 0:
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
    """What is remembered between looks of the slots whose ads can't be read whole."""

    def __init__(self) -> None:
        self.ads, self.marks = _Steps(_ADS), _Steps(_MARKS)

    def names(self) -> set[str]:
        """Of which slots it is."""
        return {*self.ads.step, *self.marks.step}


class SlotAds:
    """Implements `reread.Source` with a collector of the bindings."""

    def __init__(self, source: Any, odd: Odd) -> None:
        self._source = source
        self._odd = odd

    def marks(self) -> Iterable[Any]:
        found = self._told(None, self._odd.marks)
        self._odd.ads.forget(self._odd.ads.step.keys() - {text(ad, "Name") for ad in found})
        return found

    def ads(self, names: Sequence[str] | None) -> Iterable[Any]:
        return self._told(names, self._odd.ads)

    def at_work(self, names: Sequence[str]) -> Iterable[str]:
        busy = named('MyType == "Machine" && DynamicSlot && Activity == "Busy"', names)
        return [text(ad, "Name") for ad in self._ask(busy, ["Name"])]

    def _told(self, names: Sequence[str] | None, steps: _Steps) -> list[Any]:
        """The ads of these slots, of each as much as can be read."""
        steps.begin()
        wanted = None if names is None or len(names) > _BY_NAME else set(names)
        odd = {name for name in steps.step if wanted is None or name in wanted}
        untold = odd - steps.alone
        steps.forget(untold)
        found = self._usual(wanted, odd, steps)
        found += self._halves([sorted(untold)], 0, steps)
        for step in range(1, len(steps.ladder)):
            here = {name for name, at in steps.step.items() if at == step}
            there = sorted(here if wanted is None else here & wanted)
            ads = self._halves([there], step, steps)
            steps.forget(set(there) - {text(ad, "Name") for ad in ads} - _below(steps, step))
            for ad in ads:
                ad[UNREAD] = True
            found += ads
        return found

    def _usual(self, wanted: set[str] | None, odd: set[str], steps: _Steps) -> list[Any]:
        """The ads of all that aren't odd: where there is no other way, in parts."""
        import htcondor2

        if wanted is not None:
            return self._halves([sorted(wanted - odd)], 0, steps)
        if len(odd) <= _BY_NAME:
            others = f"{SLOTS} && !{among('Name', odd)}" if odd else SLOTS
            try:
                return list(self._ask(others, steps.ladder[0]))
            except htcondor2.HTCondorException:
                pass  # which it is for, the parts will tell
        every = sorted({text(ad, "Name") for ad in self._ask(SLOTS, ["Name"])} - odd)
        return self._halves([every[at : at + _BY_NAME] for at in range(0, len(every), _BY_NAME)], 0, steps)

    def _halves(self, parts: list[list[str]], step: int, steps: _Steps) -> list[Any]:
        """The ads of these slots that can be read at this step; the others go one down."""
        import htcondor2

        found: list[Any] = []
        failures = 0
        while parts:
            part = parts.pop()
            if not part:
                continue
            try:
                found += self._ask(f"{SLOTS} && {among('Name', part)}", steps.ladder[step])
            except htcondor2.HTCondorException:
                failures += 1
                half = len(part) // 2
                if half and failures < _FAILURES:
                    parts += [part[:half], part[half:]]
                    continue
                self._ask("false", ["Name"])  # raises where it is the collector that fails
                if step + 1 == len(steps.ladder):
                    raise
                steps.down(part, step)
        return found

    def _ask(self, constraint: str, projection: list[str]) -> Iterable[Any]:
        import htcondor2

        return self._source.query(htcondor2.AdType.Startd, constraint, projection)  # type: ignore[no-any-return]


def _below(steps: _Steps, step: int) -> set[str]:
    return {name for name, at in steps.step.items() if at > step}


def whole(source: Any, names: Sequence[str]) -> Iterable[Any]:
    """The whole ads of these slots; without those that can't be read."""
    import htcondor2

    if not names:
        return ()
    try:
        return source.query(htcondor2.AdType.Startd, named(SLOTS, names))  # type: ignore[no-any-return]
    except htcondor2.HTCondorException:
        if len(names) == 1:
            return ()  # nothing can be learned of one that can't be read
        half = len(names) // 2
        return [*whole(source, names[:half]), *whole(source, names[half:])]


def named(constraint: str, names: Sequence[str]) -> str:
    """The constraint for ads of these names; for many names, that of all ads."""
    return constraint if len(names) > _BY_NAME else f"{constraint} && {among('Name', names)}"
