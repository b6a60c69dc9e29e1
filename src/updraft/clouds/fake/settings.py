"""The settings of a fake cloud, as `[clouds.NAME]` of updraft.toml holds them: all have a default."""

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from pydantic import BaseModel, ByteSize, ConfigDict, Field

from updraft.clouds.fake.faults import Fault
from updraft.config.drivers import checked_settings
from updraft.config.values.units import Duration, Size
from updraft.core.model import CloudOffer, Resources


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=False)


class Flavor(_Model):
    """A size of machine and what an hour of it costs; a price that is left out isn't known."""

    cpus: int = Field(gt=0)
    memory: Size
    disk: Size = ByteSize(20 * 2**30)
    gpus: int = Field(default=0, ge=0)
    price: float | None = Field(default=None, ge=0)
    spot_price: float | None = Field(default=None, ge=0)
    arch: str = "X86_64"

    @property
    def resources(self) -> Resources:
        """The same in the units of the core: MiB of memory, KiB of disk."""
        return Resources(self.cpus, int(self.memory) // 2**20, int(self.disk) // 2**10, self.gpus)


class Boot(_Model):
    """How machines come to life, of the zones, flavors and images whose names match.

    `start` is the time from request to running, `join` from running to the slot in the pool; each is
    drawn evenly from within `spread` (a fraction) around it. `never_joins`, `breaks` (the instance ends
    in the cloud's error state with `fault`) and `dies` (suddenly, `dies_after` the request) are
    probabilities.
    """

    zone: str = "*"
    flavor: str = "*"
    image: str = "*"
    start: Duration = 8.0
    join: Duration = 12.0
    spread: float = Field(default=0.25, ge=0, lt=1)
    never_joins: float = Field(default=0.0, ge=0, le=1)
    breaks: float = Field(default=0.0, ge=0, le=1)
    fault: str = "No valid host was found."
    dies: float = Field(default=0.0, ge=0, le=1)
    dies_after: Duration = 600.0

    def covers(self, zone: str, flavor: str, image: str) -> bool:
        """True if this is how a machine of that zone, flavor and image boots."""
        pairs = ((zone, self.zone), (flavor, self.flavor), (image, self.image))
        return all(fnmatchcase(name, pattern) for name, pattern in pairs)


def _usual_flavors() -> dict[str, Flavor]:
    sizes = {"small": (2, 4, 0.05), "medium": (4, 8, 0.10), "large": (8, 32, 0.24)}
    return {
        name: Flavor.model_validate({"cpus": cpus, "memory": f"{gib}GiB", "price": price})
        for name, (cpus, gib, price) in sizes.items()
    }


class Settings(_Model):
    """What a fake cloud sells, how much of it, how fast, and what goes wrong.

    `images` empty takes any image. A quota that is None has no end. `capacity` maps "zone/flavor" to how
    many machines of it there are; what isn't named has no end. `partial` False makes a launch all or
    nothing. `shows_after` and `hides_after` are how long the listing lags behind for new and for ended
    machines; `keeps_terminated` is how long ended ones are listed. `stop_takes` is the time from the order
    to end to the end, `image_takes` how long an image is in the making. `key_name` is a key pair that opens
    nothing. The first `boots` entry that covers a machine decides about it.
    """

    zones: tuple[str, ...] = Field(default=("a", "b"), min_length=1)
    flavors: dict[str, Flavor] = Field(default_factory=_usual_flavors)
    images: tuple[str, ...] = ()
    boots: tuple[Boot, ...] = ()
    quota_machines: int | None = Field(default=None, ge=0)
    quota_cores: int | None = Field(default=None, ge=0)
    quota_memory: Size | None = None
    capacity: dict[str, int] = Field(default_factory=dict)
    partial: bool = True
    tells_left: bool = False
    page_size: int = Field(default=100, gt=0)
    shows_after: Duration = 0.0
    hides_after: Duration = 0.0
    keeps_terminated: Duration = 60.0
    stop_takes: Duration = 3.0
    user_data_limit: Size = ByteSize(16 * 2**10)
    key_name: str | None = None
    image_takes: Duration = 0.0
    seed: int = 0
    faults: tuple[Fault, ...] = ()

    def boot(self, zone: str, flavor: str, image: str) -> Boot:
        """How a machine of this zone, flavor and image comes to life."""
        return next((boot for boot in self.boots if boot.covers(zone, flavor, image)), Boot())

    def offers(self, cloud: str) -> tuple[CloudOffer, ...]:
        """Every flavor in every zone on the markets that have a price for it; on demand always."""
        return tuple(
            CloudOffer(cloud, zone, name, market, flavor.resources, price, arch=flavor.arch)
            for zone in self.zones
            for name, flavor in self.flavors.items()
            for market, price in (("on-demand", flavor.price), ("spot", flavor.spot_price))
            if market == "on-demand" or price is not None
        )


def site_settings(name: str, settings: Mapping[str, Any]) -> Settings:
    """Check the settings of the cloud `name`. Raises ConfigError that names each wrong key."""
    return checked_settings(Settings, name, settings)
