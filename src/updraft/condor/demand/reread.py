"""Ads that are as they were at the last look are neither asked for nor read again. Lives in a child process.

Most of a large pool's slots say nothing new from look to look, and collector and reader both take long over
thousands of ads. So the collector is asked for a few marks of every slot, and then for the ads of those
whose marks have changed.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol

from updraft.condor.advalues import integer, text, value
from updraft.core.model import Slot

AtWork = Callable[[Sequence[str]], Iterable[str]]

MARKS = ("Name", "MyAddress", "LastHeardFrom", "UpdateSequenceNumber", "DaemonStartTime", "Offline")
"""What tells an ad from the one before it: the collector stamps each, the startd counts them, and `Offline`
is what a collector writes into an ad by itself."""


class AdSource(Protocol):
    """The collector, as it is asked for slots."""

    def marks(self) -> Iterable[Any]:
        """The marks of every slot, as ads."""

    def ads(self, names: Sequence[str] | None) -> Iterable[Any]:
        """What is read of the slots with these names, and maybe of more; None asks for every slot."""

    def at_work(self, names: Sequence[str]) -> Iterable[str]:
        """Those of these dynamic slots that are busy."""


class Reread:
    """What was made of each ad at the last look, by its marks.

    `read` makes a slot of an ad; `settle` corrects ads of which another question must be asked, and says
    which: those are asked for anew each time.
    """

    def __init__(
        self, read: Callable[[Any, str], Slot], settle: Callable[[Iterable[Any], AtWork], Sequence[Any]]
    ) -> None:
        self._read = read
        self._settle = settle
        self._pool = ""
        self._known: dict[tuple[str, str], tuple[tuple[object, ...], Slot]] = {}

    def slots(self, source: AdSource, pool: str) -> list[Slot]:
        """The slot of each ad that has a name, as `read` would make them of all settled ads for this pool."""
        before = self._known if pool == self._pool else {}
        marks = dict(_mark(ad) for ad in source.marks() if text(ad, "Name")) if before else {}
        known = {
            key: before[key] for key, stamp in marks.items() if key in before and before[key][0] == stamp
        }
        changed = {name for name, _ in marks.keys() - known.keys()}
        news = [ad for ad in self._ads(source, bool(marks), changed) if text(ad, "Name")]
        unsure = {id(ad) for ad in self._settle(news, source.at_work)}
        for ad in news:
            key, stamp = _mark(ad)
            # No ad has an empty stamp: what is unsure is asked for again.
            known[key] = (() if id(ad) in unsure else stamp, self._read(ad, pool))
        self._pool, self._known = pool, known
        return [one for _, one in known.values()]

    def _ads(self, source: AdSource, marked: bool, changed: set[str]) -> Iterable[Any]:
        # A slot that has changed and has no ad any more has left between the two questions.
        return source.ads(sorted(changed) if marked else None) if changed or not marked else ()


def _mark(ad: Any) -> tuple[tuple[str, str], tuple[object, ...]]:
    """Which ad this is, and which of its versions."""
    name, address, *numbers, offline = MARKS
    stamp = (*(integer(ad, one) for one in numbers), value(ad, offline) is True)
    return (text(ad, name), text(ad, address)), stamp
