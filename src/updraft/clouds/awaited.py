"""A cloud that can't be asked yet: its credentials, or its endpoint, are still to come.

A head may be up before its role is, or before somebody has put the credentials there. Its controller runs
meanwhile, for the other clouds, and goes on with this one when it can; until then the cloud is unknown.
"""

import threading
from collections.abc import Callable, Iterable, Mapping

from updraft.clouds.base import Aged, Driver, Found, LaunchRequest, Remembering, credentials_end
from updraft.clouds.odd import NOTHING, Odd, odd_of, odd_offers_of
from updraft.core.model import CloudOffer, Instance, Quota
from updraft.errors import CloudError

Make = Callable[[], Driver]


class Awaited:
    """A driver that is made by the first call that can; each call before raises why it can't be.

    `say` is told why, once as long as that is the same, and None when the driver is there.
    """

    def __init__(self, name: str, make: Make, say: Callable[[CloudError | None], None]) -> None:
        self.name = name
        self._make = make
        self._say = say
        self._lock = threading.Lock()
        self._made: Driver | None = None
        self._told = ""

    def _there(self) -> Driver:
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

    @property
    def odd(self) -> Odd:
        """See `clouds.odd`; nothing before the driver is there."""
        return NOTHING if self._made is None else odd_of(self._made)

    @property
    def odd_offers(self) -> Odd:
        """The same of what the cloud sells."""
        return NOTHING if self._made is None else odd_offers_of(self._made)

    @property
    def credentials_end(self) -> float | None:
        """See `clouds.base.credentials_end`."""
        return None if self._made is None else credentials_end(self._made)

    def machines(self) -> tuple[Instance, ...]:
        """See `Driver`."""
        return self._there().machines()

    def aged_machines(self) -> Aged[tuple[Instance, ...]]:
        """See `Remembering`: an answer from the driver's memory keeps its age."""
        driver = self._there()
        return driver.aged_machines() if isinstance(driver, Remembering) else Aged(driver.machines(), 0.0)

    def aged_quota(self) -> Aged[Quota]:
        """See `Remembering`."""
        driver = self._there()
        return driver.aged_quota() if isinstance(driver, Remembering) else Aged(driver.quota(), 0.0)

    def look_up(self, ids: Iterable[str]) -> Found:
        """See `Driver`."""
        return self._there().look_up(ids)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """See `Driver`."""
        return self._there().launch(request)

    def terminate(self, ids: Iterable[str]) -> None:
        """See `Driver`."""
        self._there().terminate(ids)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """See `Driver`."""
        self._there().tag(ids, tags)

    def offers(self) -> tuple[CloudOffer, ...]:
        """See `Driver`."""
        return self._there().offers()

    def quota(self) -> Quota:
        """See `Driver`."""
        return self._there().quota()

    def console(self, machine: str) -> str:
        """See `Driver`."""
        return self._there().console(machine)
