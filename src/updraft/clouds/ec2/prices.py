"""What an hour costs on demand: from the shipped table of Amazon's prices, or the site's own file."""

import json
from collections.abc import Mapping
from importlib.resources import files
from math import inf
from typing import Any

from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.settings import Settings
from updraft.errors import ConfigError


class Prices:
    """Prices of one cloud. What is in no table isn't known, and stays None."""

    def __init__(self, cloud: str, settings: Settings, connection: Connection) -> None:
        self._settings = settings
        self._connection = connection
        self._own = None if settings.price_file is None else _own_table(cloud, settings)
        self._table: Mapping[str, float] | None = None

    def on_demand(self, flavor: str) -> float | None:
        """The price of an hour, None where it isn't known. The shipped table speaks of Amazon only."""
        if self._table is None:
            tables = self._own
            if tables is None:
                tables = shipped()["regions"] if self._connection.amazon else {}
            self._table = tables.get(self._connection.region, {})
        return self._table.get(flavor)

    def spot_cap(self, flavor: str) -> float | None:
        """The most to pay for an hour on spot; None leaves it to the cloud."""
        price = self.on_demand(flavor)
        return None if self._settings.spot_cap is None or price is None else self._settings.spot_cap * price

    def may_spot(self, flavor: str, price: float | None) -> bool:
        """Whether spot at this price is within the site's cap; without a known cap or price it isn't."""
        if self._settings.spot_cap is None:
            return True
        cap = self.spot_cap(flavor)
        return cap is not None and price is not None and price <= cap


def shipped() -> dict[str, Any]:
    """The table that comes with updraft: its source, its date, and prices by region and instance type."""
    text = (files("updraft.clouds.ec2") / "files" / "prices.json").read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


def _own_table(cloud: str, settings: Settings) -> Mapping[str, Mapping[str, float]]:
    try:
        table = json.loads(settings.price_file.read_text(encoding="utf-8")) if settings.price_file else {}
        return {
            str(region): {str(flavor): _price(price) for flavor, price in flavors.items()}
            for region, flavors in table["regions"].items()
        }
    except OSError as error:
        raise ConfigError(
            f"clouds.{cloud}.price_file: {settings.price_file} can't be read: {error.strerror}"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"clouds.{cloud}.price_file: {settings.price_file} is no price table; it is written as "
            '{"regions": {"REGION": {"TYPE": 0.1}}}'
        ) from error


def _price(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < inf:
        raise ValueError("not a price")
    return float(value)
