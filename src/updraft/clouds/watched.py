"""A driver that may only be looked at: what the controller gets where updraft only watches.

Only what is named here reaches the cloud. A method that is added to the contract, or that a driver has
besides, is refused until it is written down here as one that changes nothing.
"""

from collections.abc import Iterable, Mapping

from updraft.clouds.base import (
    Aged,
    Driver,
    Found,
    LaunchRequest,
    Leases,
    Remembering,
    Tending,
    credentials_end,
    layers,
    leases_of,
)
from updraft.clouds.odd import Odd, odd_of, odd_offers_of
from updraft.core.model import CloudOffer, Instance, Quota
from updraft.errors import WatchOnly


class WatchedDriver:
    """A driver of which only the answers are had; each change raises WatchOnly, and none is asked for.

    A driver that looks after more than machines when it is asked for them no longer does.
    """

    def __init__(self, driver: Driver) -> None:
        self.name = driver.name
        self._driver = driver
        for one in layers(driver):
            if isinstance(one, Tending):
                one.tends = False

    @property
    def leases(self) -> Leases:
        """As the driver says it."""
        return leases_of(self._driver)

    @property
    def odd(self) -> Odd:
        """See `clouds.odd`."""
        return odd_of(self._driver)

    @property
    def odd_offers(self) -> Odd:
        """The same of what the cloud sells."""
        return odd_offers_of(self._driver)

    @property
    def credentials_end(self) -> float | None:
        """See `clouds.base.credentials_end`."""
        return credentials_end(self._driver)

    def machines(self) -> tuple[Instance, ...]:
        """As the driver."""
        return self._driver.machines()

    def aged_machines(self) -> Aged[tuple[Instance, ...]]:
        """See `Remembering`: an answer from the driver's memory keeps its age."""
        driver = self._driver
        return driver.aged_machines() if isinstance(driver, Remembering) else Aged(driver.machines(), 0.0)

    def look_up(self, ids: Iterable[str]) -> Found:
        """As the driver."""
        return self._driver.look_up(ids)

    def offers(self) -> tuple[CloudOffer, ...]:
        """As the driver."""
        return self._driver.offers()

    def quota(self) -> Quota:
        """As the driver."""
        return self._driver.quota()

    def aged_quota(self) -> Aged[Quota]:
        """See `Remembering`."""
        driver = self._driver
        return driver.aged_quota() if isinstance(driver, Remembering) else Aged(driver.quota(), 0.0)

    def console(self, machine: str) -> str:
        """As the driver."""
        return self._driver.console(machine)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """Refused."""
        raise WatchOnly(f"cloud {self.name}: nothing is launched: updraft only watches")

    def terminate(self, ids: Iterable[str]) -> None:
        """Refused."""
        raise WatchOnly(f"cloud {self.name}: nothing is ended: updraft only watches")

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Refused."""
        raise WatchOnly(f"cloud {self.name}: nothing is tagged: updraft only watches")
