"""What can be bought: instance types × zones × markets, with what they hold and cost."""

import time
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from botocore.exceptions import ClientError

from updraft.clouds.ec2.capabilities import Capabilities
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.errors import code_of, is_unknown_call
from updraft.clouds.ec2.prices import Prices
from updraft.clouds.ec2.settings import Settings
from updraft.clouds.odd import NOTHING, Odd, price, quantity, readable
from updraft.core.model import CloudOffer, Resources
from updraft.core.slots.choice import OUT, chosen

KEPT = 3600.0
ARCHITECTURES: Mapping[str, str] = {"x86_64": "X86_64", "arm64": "aarch64"}
_NAMES_AT_ONCE = 100


@dataclass(frozen=True, slots=True)
class Kind:
    """One instance type: what it holds, and whether it is sold on spot."""

    resources: Resources
    arch: str
    spot: bool = True


@dataclass(frozen=True, slots=True)
class Shop:
    """What changes once in a blue moon. `sold` is None where the endpoint doesn't say what is sold where.

    `odd` is what is left out, and why.
    """

    zones: tuple[str, ...]
    kinds: Mapping[str, Kind]
    sold: frozenset[tuple[str, str]] | None
    odd: Odd


class Offers:
    """Asks for zones and types once an hour, and for spot prices each time."""

    def __init__(
        self,
        cloud: str,
        settings: Settings,
        connection: Connection,
        known: Capabilities,
        prices: Prices,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cloud = cloud
        self._settings = settings
        self._connection = connection
        self._known = known
        self._prices = prices
        self._clock = clock
        self._shop: tuple[float, Shop] | None = None
        self.odd: Odd = NOTHING

    def all(self) -> tuple[CloudOffer, ...]:
        """Every offer. Raises CloudError."""
        shop = self._stock()
        spot, odd = self._spot_prices(shop)
        self.odd = {**shop.odd, **odd}
        return tuple(
            offer
            for zone in shop.zones
            for flavor, kind in shop.kinds.items()
            if shop.sold is None or (zone, flavor) in shop.sold
            for offer in self._offers(zone, flavor, kind, spot)
        )

    def _offers(
        self, zone: str, flavor: str, kind: Kind, spot: Mapping[tuple[str, str], float] | None
    ) -> Iterator[CloudOffer]:
        def offer(market: str, costs: float | None) -> CloudOffer:
            return CloudOffer(
                self._cloud, zone, flavor, market, kind.resources, costs, arch=ARCHITECTURES[kind.arch]
            )

        yield offer("on-demand", self._prices.on_demand(flavor))
        if spot is not None and kind.spot and self._known.may("spot"):
            costs = spot.get((zone, flavor))
            if self._prices.may_spot(flavor, costs):
                yield offer("spot", costs)

    def _stock(self) -> Shop:
        if self._shop is None or self._clock() - self._shop[0] > KEPT:
            with self._connection.translate("asking for zones and instance types"):
                (kinds, odd_kinds), (zones, odd_zones) = self._kinds(), self._zones()
                sold, odd_sold = self._sold(kinds)
                shop = Shop(zones, kinds, sold, {**odd_kinds, **odd_zones, **odd_sold})
            self._shop = (self._clock(), shop)
        return self._shop[1]

    # -------------------------------------------------------------------------------------- the questions

    def _zones(self) -> tuple[tuple[str, ...], Odd]:
        settings = self._settings
        named = tuple(settings.subnets) or settings.zones
        try:
            found = self._connection.ask("describe_availability_zones").get("AvailabilityZones", ())
        except ClientError as error:
            if not is_unknown_call(error):
                raise
            return tuple(zone for zone in named if settings.wants(zone)) or ("",), NOTHING
        here, odd = readable(found, lambda raw: _zone(raw, named), lambda raw: str(raw["ZoneName"]))
        return tuple(sorted(zone for zone in here if zone and settings.wants(zone))), odd

    def _kinds(self) -> tuple[dict[str, Kind], Odd]:
        found = {
            name: Kind(described.resources(self._settings.disk), described.arch)
            for name, described in self._settings.instance_types.items()
        }
        read, odd = readable(self._told(), self._kind, lambda raw: str(raw["InstanceType"]))
        found = {**{name: kind for name, kind in read if kind is not None}, **found}
        kinds = {
            name: kind
            for name, kind in sorted(found.items())
            if kind.arch in self._settings.architectures and self._wanted(name)
        }
        return kinds, {name: why for name, why in odd.items() if name not in found}

    def _told(self) -> list[Mapping[str, Any]]:
        if not self._known.may("instance-types"):
            return []
        try:
            found = list(
                self._connection.pages(
                    "describe_instance_types", "InstanceTypes", MaxResults=100, **self._narrowed()
                )
            )
        except ClientError as error:
            if not is_unknown_call(error):
                raise
            self._known.lacking("instance-types", f"refused with {code_of(error)}")
            return []
        self._known.seen("instance-types")
        return found

    def _sold(self, kinds: Mapping[str, Kind]) -> tuple[frozenset[tuple[str, str]] | None, Odd]:
        if not kinds or not self._known.may("instance-types"):
            return None, NOTHING
        try:
            found = list(
                self._connection.pages(
                    "describe_instance_type_offerings",
                    "InstanceTypeOfferings",
                    LocationType="availability-zone",
                    **self._narrowed(),
                )
            )
        except ClientError as error:
            if not is_unknown_call(error):
                raise
            return None, NOTHING
        sold, odd = readable(found, lambda one: (one["Location"], one["InstanceType"]), _whats_sold)
        return frozenset(sold) or None, odd

    def _spot_prices(self, shop: Shop) -> tuple[dict[tuple[str, str], float] | None, Odd]:
        """The newest price by zone and type, None where there is no spot market; and what is left out."""
        if not self._known.may("spot") or not shop.kinds:
            return None, NOTHING
        names = [name for name, kind in shop.kinds.items() if kind.spot]
        narrowed: dict[str, Any] = {"InstanceTypes": names} if len(names) <= _NAMES_AT_ONCE else {}
        with self._connection.translate("asking for spot prices"):
            try:
                found = list(
                    self._connection.pages(
                        "describe_spot_price_history",
                        "SpotPriceHistory",
                        StartTime=datetime.now(UTC),
                        ProductDescriptions=["Linux/UNIX", "Linux/UNIX (Amazon VPC)"],
                        **narrowed,
                    )
                )
            except ClientError as error:
                if not is_unknown_call(error):
                    raise
                self._known.lacking("spot", f"refused with {code_of(error)}")
                return None, NOTHING
        return _newest(found)

    # ------------------------------------------------------------------------------------------- inside

    def _narrowed(self) -> dict[str, Any]:
        """The settings' patterns, for the endpoint to look through; it knows only * and ?."""
        patterns = [pattern for pattern in self._settings.flavors if not pattern.startswith(OUT)]
        if not patterns or "*" in patterns or any("[" in pattern for pattern in patterns):
            return {}
        return {"Filters": [{"Name": "instance-type", "Values": patterns}]}

    def _wanted(self, name: str) -> bool:
        return chosen(name, self._settings.flavors)

    def _kind(self, raw: Mapping[str, Any]) -> tuple[str, Kind | None]:
        """A type and its name; None for what no worker can be. Raises KeyError, ValueError for an odd one."""
        name = str(raw["InstanceType"])
        arches = raw.get("ProcessorInfo", {}).get("SupportedArchitectures", ("x86_64",))
        arch = next((arch for arch in ARCHITECTURES if arch in arches), None)
        # A bare machine boots in twenty minutes and is all the host: only for who names it.
        bare = raw.get("BareMetal") and not any("metal" in pattern for pattern in self._settings.flavors)
        if arch is None or bare or not self._wanted(name):
            return name, None
        cpus = quantity(raw["VCpuInfo"]["DefaultVCpus"])
        memory = quantity(raw["MemoryInfo"]["SizeInMiB"])
        if cpus < 1 or memory < 64:
            return name, None
        gpus = sum(quantity(gpu.get("Count", 0)) for gpu in raw.get("GpuInfo", {}).get("Gpus", ()))
        return name, Kind(
            Resources(cpus, memory, self._settings.disk // 2**10, gpus),
            arch,
            "spot" in raw.get("SupportedUsageClasses", ("on-demand", "spot")),
        )


def _zone(raw: Mapping[str, Any], named: Collection[str]) -> str:
    """The zone's name; empty where nothing can be had in it."""
    name = str(raw["ZoneName"])
    here = (
        raw.get("State", "available") in ("available", "information", "impaired")
        and raw.get("OptInStatus", "opt-in-not-required") != "not-opted-in"
        and (raw.get("ZoneType", "availability-zone") == "availability-zone" or name in named)
    )
    return name if here else ""


def _whats_sold(one: Mapping[str, Any]) -> str:
    return f"{one.get('InstanceType', 'something')} in {one.get('Location', 'an unknown zone')}"


def _newest(history: list[Mapping[str, Any]]) -> tuple[dict[tuple[str, str], float], Odd]:
    """The price of each zone and type at its latest time; and of which rows nothing can be made."""
    rows, odd = readable(history, _spot_price, _what_costs)
    return {where: costs for where, _, costs in sorted(rows, key=lambda row: row[1])}, odd


def _spot_price(one: Mapping[str, Any]) -> tuple[tuple[str, str], datetime, float]:
    at = one.get("Timestamp") or datetime.min.replace(tzinfo=UTC)
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return (one["AvailabilityZone"], one["InstanceType"]), at, price(float(one["SpotPrice"]))


def _what_costs(one: Mapping[str, Any]) -> str:
    what, where = one.get("InstanceType", "something"), one.get("AvailabilityZone", "an unknown zone")
    return f"{what}'s spot price in {where}"
