"""What a local cloud sells and has: flavors, zones, quotas and addresses, as frozen values."""

import ipaddress
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from updraft.errors import ConfigError

API_PORT = 8774
SOCKET = "api.sock"
CONTROLLER_TOKEN = "controller.token"  # noqa: S105  # the name of a file, beside the socket
METADATA_ADDRESS = "169.254.169.254"
MARKETS = ("on-demand", "spot")
USER_DATA_LIMIT = 16 * 1024
ROLES = ("", "controller")


@dataclass(frozen=True, slots=True)
class Flavor:
    """A size of machine: `memory` in MiB, `disk` in KiB, `prices` per hour by market (None: not published).

    A market that `prices` doesn't name isn't sold.
    """

    name: str
    cpus: int
    memory: int
    disk: int
    gpus: int = 0
    prices: Mapping[str, float | None] = field(default_factory=lambda: {"on-demand": None})


@dataclass(frozen=True, slots=True)
class Zone:
    """A place with `cores` to sell; None is no end of them."""

    name: str
    cores: int | None = None


@dataclass(frozen=True, slots=True)
class Quotas:
    """What one project may have at once; None is no such quota."""

    machines: int | None = 40
    cores: int | None = 160


def default_zones() -> tuple[Zone, ...]:
    """The zones of a cloud that isn't told of others."""
    return (Zone("zone-a", 64), Zone("zone-b", 64))


def default_flavors() -> tuple[Flavor, ...]:
    """What a cloud sells that isn't told otherwise."""
    gib = 1024 * 1024
    return (
        Flavor("small", 1, 1024, 4 * gib, prices={"on-demand": 0.050, "spot": 0.020}),
        Flavor("medium", 2, 4096, 8 * gib, prices={"on-demand": 0.095, "spot": 0.034}),
        Flavor("large", 4, 8192, 16 * gib, prices={"on-demand": 0.184, "spot": 0.062}),
        Flavor("xlarge", 8, 16384, 32 * gib, prices={"on-demand": 0.375}),
    )


@dataclass(frozen=True, slots=True)
class LocalCloudConfig:
    """One local cloud. `images` maps an image's name to its layers, the lowest first (see `image.build`).

    `network` is the bridge's address with its length; machines get the addresses after it. All of it exists
    only inside the cloud's own network namespace, so that two clouds may use the same one.
    """

    images: Mapping[str, tuple[str, ...]]
    flavors: tuple[Flavor, ...] = field(default_factory=default_flavors)
    zones: tuple[Zone, ...] = field(default_factory=default_zones)
    quotas: Quotas = Quotas()
    network: str = "10.77.0.1/22"
    listed_after_end: float = 300.0
    stop_grace: float = 3.0
    spot_notice: float = 20.0
    page_size: int = 100

    def __post_init__(self) -> None:
        try:
            net = ipaddress.IPv4Interface(self.network).network
        except ValueError as error:
            raise ConfigError(
                f"The local cloud's network {self.network!r} is no IPv4 address with length."
            ) from error
        if not 20 <= net.prefixlen <= 29:
            raise ConfigError(f"The local cloud's network {self.network} must be between /20 and /29.")

    @property
    def gateway(self) -> str:
        """The bridge's address: where machines find the API and the rest of the cloud."""
        return str(ipaddress.IPv4Interface(self.network).ip)

    @property
    def endpoint(self) -> str:
        """The API's address for a machine of this cloud."""
        return f"http://{self.gateway}:{API_PORT}"

    def addresses(self) -> list[str]:
        """Every address a machine can have, in order."""
        interface = ipaddress.IPv4Interface(self.network)
        return [str(address) for address in interface.network.hosts() if address != interface.ip]

    def flavor(self, name: str) -> Flavor | None:
        """The flavor of this name."""
        return next((flavor for flavor in self.flavors if flavor.name == name), None)

    def save(self, path: Path) -> None:
        """Write this configuration as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1))


def load(path: Path) -> LocalCloudConfig:
    """Read what `LocalCloudConfig.save` wrote."""
    data: dict[str, Any] = json.loads(path.read_text())
    data["images"] = {name: tuple(layers) for name, layers in data["images"].items()}
    data["flavors"] = tuple(Flavor(**flavor) for flavor in data["flavors"])
    data["zones"] = tuple(Zone(**zone) for zone in data["zones"])
    data["quotas"] = Quotas(**data["quotas"])
    return LocalCloudConfig(**data)


def host_name(address: str) -> str:
    """The name of the machine at this address."""
    return "ip-" + address.replace(".", "-")


DOMAIN = "updraft.internal"


def hosts_file(config: LocalCloudConfig) -> str:
    """One file that names every address of the cloud, so that names and addresses agree both ways."""
    lines = ["127.0.0.1 localhost", "::1 ip6-localhost", f"{config.gateway} gateway.{DOMAIN} gateway"]
    lines += [f"{at} {host_name(at)}.{DOMAIN} {host_name(at)}" for at in config.addresses()]
    return "\n".join(lines) + "\n"
