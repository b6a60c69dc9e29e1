"""Ads that are word for word as they were at the last look are not read again. Lives in a child process.

Most of a large pool's slots say nothing new from look to look, and to read an ad takes longer than to ask
for it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from updraft.core.model import Slot

AtWork = Callable[[Sequence[str]], Iterable[str]]


class Reread:
    """What was made of each ad at the last look, by the ad's text.

    `read` makes a slot of an ad; `settle` corrects ads of which another question must be asked, and says
    which: those are read anew each time.
    """

    def __init__(
        self, read: Callable[[Any, str], Slot], settle: Callable[[Iterable[Any], AtWork], Sequence[Any]]
    ) -> None:
        self._read = read
        self._settle = settle
        self._known: dict[tuple[str, str], Slot] = {}

    def slots(self, ads: Iterable[Any], pool: str, at_work: AtWork) -> list[Slot]:
        """The slot of each ad, as `read` would make them of the settled ads for this pool."""
        before, marked = self._known, [((pool, repr(ad)), ad) for ad in ads]
        fresh = [ad for mark, ad in marked if mark not in before]
        unsure = {id(ad) for ad in self._settle(fresh, at_work)}
        self._known, found = {}, []
        for mark, ad in marked:
            known = before.get(mark)
            one = self._read(ad, pool) if known is None else known
            if id(ad) not in unsure:
                self._known[mark] = one
            found.append(one)
        return found
