"""A cloud that can't be asked yet: its credentials, or its endpoint, are still to come.

A head may be up before its role is, or before somebody has put the credentials there. Its controller runs
meanwhile, for the other clouds, and goes on with this one when it can; until then the cloud is unknown.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from updraft.clouds.base import Aged, Leases, Machines
from updraft.clouds.cloud import Cloud, Traits
from updraft.clouds.odd import NOTHING, Odd
from updraft.clouds.wrapping import Wrapper
from updraft.core.model import Instance, Quota
from updraft.errors import CloudError

Make = Callable[[], Cloud]


class Awaited(Wrapper):
    """The machines of a cloud that the first call makes that can; each call before raises why it can't be.

    `say` is told why, once as long as that is the same, and None when the cloud is there.
    """

    def __init__(self, name: str, make: Make, say: Callable[[CloudError | None], None]) -> None:
        self.name = name
        self._make = make
        self._say = say
        self._lock = threading.Lock()
        self._made: Cloud | None = None
        self._told = ""

    @property
    def cloud(self) -> Cloud:
        """The cloud as it is meanwhile: its machines, from memory or not, and what it is like."""
        return Cloud(
            self.name,
            self,
            memory=self,
            traits=Traits(leases=self._leases, credentials_end=self._credentials_end),
        )

    def _there(self) -> Cloud:
        with self._lock:
            if self._made is None:
                try:
                    self._made = self._make()
                except CloudError as error:
                    if str(error) != self._told:
                        self._told = str(error)
                        self._say(error)
                    raise
                if self._told:
                    self._say(None)
            return self._made

    def _leases(self) -> Leases:
        return Leases() if self._made is None else self._made.traits.leases()

    def _credentials_end(self) -> float | None:
        return None if self._made is None else self._made.traits.credentials_end()

    @contextmanager
    def _asking(self, method: str) -> Iterator[Machines]:
        yield self._there().machines

    @property
    def odd(self) -> Odd:
        """See `Machines`; nothing before the cloud is there."""
        return NOTHING if self._made is None else self._made.machines.odd

    @property
    def odd_offers(self) -> Odd:
        """See `Machines`; nothing before the cloud is there."""
        return NOTHING if self._made is None else self._made.machines.odd_offers

    def aged_machines(self) -> Aged[tuple[Instance, ...]]:
        """See `Remembering`: an answer from the cloud's memory keeps its age."""
        cloud = self._there()
        return Aged(cloud.machines.machines(), 0.0) if cloud.memory is None else cloud.memory.aged_machines()

    def aged_quota(self) -> Aged[Quota]:
        """See `Remembering`."""
        cloud = self._there()
        return Aged(cloud.machines.quota(), 0.0) if cloud.memory is None else cloud.memory.aged_quota()
