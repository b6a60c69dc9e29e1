"""Machines that advertise more slots than any has: of each only so many are read. Runs in a child process.

A worker's own token is good for any number of slots of that machine's name, and the collector keeps them all.
Once such a machine was seen, the collector is asked for all but its slots, and for those of its slots that
are kept by their names; now and then anew how many there are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from updraft.condor.advalues import text
from updraft.condor.collector.slot_ads import SLOTS, SlotAds, whole_of
from updraft.condor.demand.reread import MARKS
from updraft.core.model import Slot

MOST = 1_000
"""Slots of one machine, dynamic ones not counted: no flavor of any cloud has as many processors."""
_COUNT_AGAIN = 30  # looks


@dataclass
class Crowds:
    """The memory between looks: of each such machine how many slots it had, and which are kept."""

    machines: dict[str, tuple[int, tuple[str, ...]]] = field(default_factory=dict)
    looks: int = 0


class Uncrowded:
    """Implements `reread.AdSource`: what `ads` has, and of machines in `crowds` no more than MOST slots."""

    def __init__(self, ads: SlotAds, source: Any, crowds: Crowds) -> None:
        self._ads, self._source, self._crowds = ads, source, crowds

    def marks(self) -> Iterable[Any]:
        """See there."""
        self._crowds.looks += 1
        if self._crowds.looks % _COUNT_AGAIN == 0:
            self._crowds.machines.clear()
        kept = self._kept(None, MARKS)
        return [*kept, *self._bounded(self._ads.marks())]

    def ads(self, names: Sequence[str] | None) -> Iterable[Any]:
        """See there."""
        kept = self._kept(names, self._ads.projection)
        known = {name for _, names in self._crowds.machines.values() for name in names}
        others = names if names is None or not known else [name for name in names if name not in known]
        return [*kept, *self._bounded(self._ads.ads(others) if others is None or others else ())]

    def at_work(self, names: Sequence[str]) -> Iterable[str]:
        """See there."""
        return self._ads.at_work(names)

    def _kept(self, names: Sequence[str] | None, projection: Sequence[str]) -> list[Any]:
        """What is read of the slots that are kept of such machines, as far as it is asked for."""
        self._ads.leave_out(self._crowds.machines)
        wanted = None if names is None else set(names)
        found: list[Any] = []
        for _, kept in self._crowds.machines.values():
            mine = [name for name in kept if wanted is None or name in wanted]
            found += whole_of(self._source, SLOTS, mine, projection) if mine else ()
        return found

    def _bounded(self, ads: Iterable[Any]) -> list[Any]:
        """The ads without those beyond MOST of a machine, which is remembered."""
        found, count = list(ads), dict[str, int]()
        for ad in found:
            machine = _machine(text(ad, "Name"))
            count[machine] = count.get(machine, 0) + 1
        over = {machine for machine, number in count.items() if machine and number > MOST}
        if not over:
            return found
        kept: set[str] = set()
        for machine in over:
            names = sorted(
                {name for ad in found if _machine(name := text(ad, "Name")) == machine},
                key=lambda name: (len(name), name),
            )
            self._crowds.machines[machine] = count[machine], tuple(names[:MOST])
            kept.update(names[:MOST])
        return [ad for ad in found if _machine(text(ad, "Name")) not in over or text(ad, "Name") in kept]


def named_crowds(slots: Sequence[Slot], crowds: Crowds) -> list[Slot]:
    """The slots, the first of each such machine with what is wrong with it."""
    told = {names[0]: count for count, names in crowds.machines.values()}
    return [
        replace(one, fault=f"its machine has {told[one.name]} slots, of which {MOST} are read")
        if one.name in told
        else one
        for one in slots
    ]


def _machine(name: str) -> str:
    """The machine in a worker's slot's name, `slot1@MACHINE@host`; "" for a name of another form."""
    parts = name.split("@", 2)
    return parts[1] if len(parts) == 3 else ""
