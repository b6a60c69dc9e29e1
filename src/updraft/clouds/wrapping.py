"""What goes around the machines of a cloud: counting, the site's prices, a pace, waiting, only watching.

Each of these is a wrapper that fits every driver, and wraps this one part: the others are as the driver made
them, and nobody has to look for them behind a wrapper.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

from updraft.clouds.base import Found, LaunchRequest, Machines
from updraft.clouds.odd import Odd
from updraft.core.model import CloudOffer, Instance, Quota


class Wrapper:
    """Machines that pass every call on to others: a wrapper overrides what it does otherwise.

    All calls go through `_asking`, those that may change something through `_changing` before.
    """

    def __init__(self, machines: Machines) -> None:
        self.name = machines.name
        self._machines = machines

    @contextmanager
    def _asking(self, method: str) -> Iterator[Machines]:
        """Whom to ask, while this method of them is called."""
        yield self._machines

    def _changing(self, method: str) -> AbstractContextManager[Machines]:
        """The same of a method that may change something, also where it fails."""
        return self._asking(method)

    @property
    def odd(self) -> Odd:
        """See `Machines`."""
        return self._machines.odd

    @property
    def odd_offers(self) -> Odd:
        """See `Machines`."""
        return self._machines.odd_offers

    def machines(self) -> tuple[Instance, ...]:
        """See `Machines`."""
        with self._asking("machines") as asked:
            return asked.machines()

    def look_up(self, ids: Iterable[str]) -> Found:
        """See `Machines`."""
        with self._asking("look_up") as asked:
            return asked.look_up(ids)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """See `Machines`."""
        with self._changing("launch") as asked:
            return asked.launch(request)

    def terminate(self, ids: Iterable[str]) -> None:
        """See `Machines`."""
        with self._changing("terminate") as asked:
            asked.terminate(ids)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """See `Machines`."""
        with self._changing("tag") as asked:
            asked.tag(ids, tags)

    def offers(self) -> tuple[CloudOffer, ...]:
        """See `Machines`."""
        with self._asking("offers") as asked:
            return asked.offers()

    def quota(self) -> Quota:
        """See `Machines`."""
        with self._asking("quota") as asked:
            return asked.quota()

    def console(self, machine: str) -> str:
        """See `Machines`."""
        with self._asking("console") as asked:
            return asked.console(machine)


class Priced(Wrapper):
    """Machines whose offers cost what `prices` says, by flavor; None makes a price unknown."""

    def __init__(self, machines: Machines, prices: Mapping[str, float | None]) -> None:
        super().__init__(machines)
        self._prices = prices

    def offers(self) -> tuple[CloudOffer, ...]:
        """The cloud's offers; the price of each flavor that the site names is the site's."""
        return tuple(
            replace(offer, price=self._prices[offer.flavor]) if offer.flavor in self._prices else offer
            for offer in super().offers()
        )
