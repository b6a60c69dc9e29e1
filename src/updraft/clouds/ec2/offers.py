"""What can be bought: instance types × zones × markets, with what they hold and cost."""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from botocore.exceptions import ClientError

from updraft.clouds.ec2.capabilities import Capabilities
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.errors import code_of, is_unknown_call
from updraft.clouds.ec2.prices import Prices
from updraft.clouds.ec2.settings import Settings
from updraft.core.model import CloudOffer, Resources

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
    """What changes once in a blue moon. `sold` is None where the endpoint doesn't say what is sold where."""

    zones: tuple[str, ...]
    kinds: Mapping[str, Kind]
    sold: frozenset[tuple[str, str]] | None


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

    def all(self) -> tuple[CloudOffer, ...]:
        """Every offer. Raises CloudError."""
        shop = self._stock()
        spot = self._spot_prices(shop)
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
        def offer(market: str, price: float | None) -> CloudOffer:
            return CloudOffer(
                self._cloud, zone, flavor, market, kind.resources, price, arch=ARCHITECTURES[kind.arch]
            )

        yield offer("on-demand", self._prices.on_demand(flavor))
        if spot is not None and kind.spot and self._known.may("spot"):
            price = spot.get((zone, flavor))
            if self._prices.may_spot(flavor, price):
                yield offer("spot", price)

    def _stock(self) -> Shop:
        if self._shop is None or self._clock() - self._shop[0] > KEPT:
            with self._connection.translate("asking for zones and instance types"):
                kinds = self._kinds()
                shop = Shop(self._zones(), kinds, self._sold(kinds))
            self._shop = (self._clock(), shop)
        return self._shop[1]

    # -------------------------------------------------------------------------------------- the questions

    def _zones(self) -> tuple[str, ...]:
        settings = self._settings
        named = tuple(settings.subnets) or settings.zones
        try:
            found = self._connection.ask("describe_availability_zones").get("AvailabilityZones", ())
        except ClientError as error:
            if not is_unknown_call(error):
                raise
            return tuple(zone for zone in named if settings.wants(zone)) or ("",)
        here = [
            zone["ZoneName"]
            for zone in found
            if zone.get("State", "available") in ("available", "information", "impaired")
            and zone.get("OptInStatus", "opt-in-not-required") != "not-opted-in"
            and (
                zone.get("ZoneType", "availability-zone") == "availability-zone" or zone["ZoneName"] in named
            )
        ]
        return tuple(sorted(zone for zone in here if settings.wants(zone)))

    def _kinds(self) -> dict[str, Kind]:
        found = {
            name: Kind(described.resources(self._settings.disk), described.arch)
            for name, described in self._settings.instance_types.items()
        }
        for raw in self._told():
            kind = self._kind(raw)
            if kind is not None:
                found.setdefault(raw["InstanceType"], kind)
        return {
            name: kind
            for name, kind in sorted(found.items())
            if kind.arch in self._settings.architectures and self._wanted(name)
        }

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

    def _sold(self, kinds: Mapping[str, Kind]) -> frozenset[tuple[str, str]] | None:
        if not kinds or not self._known.may("instance-types"):
            return None
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
            return None
        return frozenset((one["Location"], one["InstanceType"]) for one in found) or None

    def _spot_prices(self, shop: Shop) -> dict[tuple[str, str], float] | None:
        """The newest price by zone and type; None where there is no spot market."""
        if not self._known.may("spot") or not shop.kinds:
            return None
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
                return None
        return _newest(found)

    # ------------------------------------------------------------------------------------------- inside

    def _narrowed(self) -> dict[str, Any]:
        """The settings' patterns, for the endpoint to look through; it knows only * and ?."""
        patterns = self._settings.flavors
        if "*" in patterns or any("[" in pattern for pattern in patterns):
            return {}
        return {"Filters": [{"Name": "instance-type", "Values": list(patterns)}]}

    def _wanted(self, name: str) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in self._settings.flavors)

    def _kind(self, raw: Mapping[str, Any]) -> Kind | None:
        """A type as it was told; None for what no worker can be, or what was told too shortly."""
        arches = raw.get("ProcessorInfo", {}).get("SupportedArchitectures", ("x86_64",))
        arch = next((arch for arch in ARCHITECTURES if arch in arches), None)
        cpus = raw.get("VCpuInfo", {}).get("DefaultVCpus", 0)
        memory = raw.get("MemoryInfo", {}).get("SizeInMiB", 0)
        # A bare machine boots in twenty minutes and is all the host: only for who names it.
        bare = raw.get("BareMetal") and not any("metal" in pattern for pattern in self._settings.flavors)
        if arch is None or cpus < 1 or memory < 64 or bare:
            return None
        gpus = sum(gpu.get("Count", 0) for gpu in raw.get("GpuInfo", {}).get("Gpus", ()))
        return Kind(
            Resources(cpus, memory, self._settings.disk // 2**10, gpus),
            arch,
            "spot" in raw.get("SupportedUsageClasses", ("on-demand", "spot")),
        )


def _newest(history: list[Mapping[str, Any]]) -> dict[tuple[str, str], float]:
    """The price of each zone and type at its latest time."""
    prices: dict[tuple[str, str], tuple[datetime, float]] = {}
    for one in history:
        try:
            where, price = (one["AvailabilityZone"], one["InstanceType"]), float(one["SpotPrice"])
            at = one.get("Timestamp") or datetime.min.replace(tzinfo=UTC)
        except (KeyError, ValueError):
            continue
        if where not in prices or at >= prices[where][0]:
            prices[where] = (at, price)
    return {where: price for where, (_, price) in prices.items()}
