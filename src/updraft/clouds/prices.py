"""The site's own prices, put over what a driver says: a wrapper, so that no driver need know of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from updraft.clouds.base import Driver, Found, LaunchRequest
from updraft.core.model import CloudOffer, Instance, Quota


@dataclass(slots=True)
class Priced:
    """A driver whose offers cost what `prices` says, by flavor; None makes a price unknown."""

    driver: Driver
    prices: Mapping[str, float | None]
    name: str

    def machines(self) -> tuple[Instance, ...]:
        """As the driver."""
        return self.driver.machines()

    def look_up(self, ids: Iterable[str]) -> Found:
        """As the driver."""
        return self.driver.look_up(ids)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """As the driver."""
        return self.driver.launch(request)

    def terminate(self, ids: Iterable[str]) -> None:
        """As the driver."""
        self.driver.terminate(ids)

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """As the driver."""
        self.driver.tag(ids, tags)

    def offers(self) -> tuple[CloudOffer, ...]:
        """The driver's offers; the price of each flavor that the site names is the site's."""
        return tuple(
            replace(offer, price=self.prices[offer.flavor]) if offer.flavor in self.prices else offer
            for offer in self.driver.offers()
        )

    def quota(self) -> Quota:
        """As the driver."""
        return self.driver.quota()

    def console(self, machine: str) -> str:
        """As the driver."""
        return self.driver.console(machine)
