"""What can be had: flavors × availability zones, with what their extra specs say of GPUs."""

import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from updraft.clouds.odd import NOTHING, Odd, quantity, readable
from updraft.clouds.openstack.client import COMPUTE, Connection, items
from updraft.clouds.openstack.settings import GIB, Settings
from updraft.core.model import CloudOffer, Resources
from updraft.core.slots.choice import chosen
from updraft.errors import BadRequest

KEPT = 3600.0
PAGE = 1000
DISK = 8  # GiB, of a flavor that has no size of its own and boots an image of unknown size
ARCHITECTURES: Mapping[str, str] = {"x86_64": "X86_64", "aarch64": "aarch64"}
_GPU_RESOURCE = re.compile(r"resources\d*:(VGPU|PGPU|CUSTOM_.*GPU.*)")
_ARCH_TRAIT = re.compile(r"trait\d*:HW_ARCH_(X86_64|AARCH64)")
_LEAST_MEMORY = 64  # MiB


@dataclass(frozen=True, slots=True)
class Flavor:
    """A flavor: its id, what it holds and for which architecture. `aliases` are those taken for GPUs."""

    id: str
    resources: Resources
    arch: str
    aliases: tuple[str, ...] = ()


class Offers:
    """Asks for zones and flavors once an hour."""

    def __init__(
        self,
        cloud: str,
        settings: Settings,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cloud = cloud
        self._settings = settings
        self._connection = connection
        self._clock = clock
        self._lock = threading.Lock()
        self._shop: tuple[float, tuple[str, ...], Mapping[str, Flavor]] | None = None
        self.odd: Odd = NOTHING

    def all(self) -> tuple[CloudOffer, ...]:
        """Every offer. What an OpenStack cloud costs nobody says but the site. Raises CloudError."""
        with self._connection.translate("asking for flavors and zones"):
            zones, flavors = self._stock()
        return tuple(
            CloudOffer(
                self._cloud, zone, name, "on-demand", flavor.resources, arch=ARCHITECTURES[flavor.arch]
            )
            for zone in zones
            for name, flavor in flavors.items()
        )

    def flavors(self) -> Mapping[str, Flavor]:
        """The flavors on offer, by name. Errors are the SDK's."""
        return self._stock()[1]

    def flavor_id(self, name: str) -> str:
        """A flavor's id; one that came lately is looked for. Raises BadRequest for none; else as the SDK."""
        if name not in self._stock()[1]:
            with self._lock:
                self._shop = None
        found = self._stock()[1].get(name)
        if found is None:
            raise BadRequest(f"cloud {self._cloud}: there is no flavor {name}; see `updraft offers`")
        return found.id

    def size(self, name: str) -> Resources:
        """What a flavor holds as far as is known without asking: nothing for one that was never listed."""
        with self._lock:
            known = {} if self._shop is None else self._shop[2]
        return known[name].resources if name in known else Resources(0, 0, 0)

    # ------------------------------------------------------------------------------------------- inside

    def _stock(self) -> tuple[tuple[str, ...], Mapping[str, Flavor]]:
        with self._lock:
            known = self._shop
        if known is None or self._clock() - known[0] > KEPT:
            (zones, odd_zones), (flavors, odd_flavors) = self._zones(), self._flavors()
            known = (self._clock(), zones, flavors)
            with self._lock:
                self._shop = known
            self.odd = {**odd_zones, **odd_flavors}
        return known[1], known[2]

    def _zones(self) -> tuple[tuple[str, ...], Odd]:
        raws = items(self._connection.get(COMPUTE, "/os-availability-zone"), "availabilityZoneInfo")
        found, odd = readable(raws, self._zone, lambda raw: str(raw["zoneName"]))
        return tuple(sorted(zone for zone in found if zone)), odd

    def _zone(self, raw: Mapping[str, Any]) -> str:
        """The zone's name; empty where nothing can be had in it, or the site doesn't want it."""
        name = str(raw["zoneName"])
        here = (raw.get("zoneState") or {}).get("available", True)
        return name if here and self._settings.wants(name) else ""

    def _flavors(self) -> tuple[dict[str, Flavor], Odd]:
        raws = self._connection.pages(COMPUTE, "/flavors/detail", "flavors", {}, PAGE)
        read, odd = readable(raws, self._flavor, lambda raw: str(raw.get("name") or raw["id"]))
        return dict(sorted(one for one in read if one is not None)), odd

    def _flavor(self, raw: Mapping[str, Any]) -> tuple[str, Flavor] | None:
        """The flavor and its name; None where the site doesn't want it, or no worker can be of it."""
        name = str(raw["name"])
        wanted = chosen(name, self._settings.flavors)
        if not wanted or raw.get("OS-FLV-DISABLED:disabled"):
            return None
        flavor = flavor_of(raw, self._settings)
        fits = flavor.resources.cpus > 0 and flavor.resources.memory >= _LEAST_MEMORY
        return (name, flavor) if fits else None


def flavor_of(raw: Mapping[str, Any], settings: Settings) -> Flavor:
    """A flavor as Nova describes it, in the units of the core. Raises KeyError, ValueError for an odd one."""
    specs = {str(key): str(value) for key, value in (raw.get("extra_specs") or {}).items()}
    counted = _aliases(specs, settings)
    told = sum(counted.values()) + sum(
        _number(value) for key, value in specs.items() if _GPU_RESOURCE.fullmatch(key)
    )
    said = _said(str(raw["name"]), settings.gpus)
    gib = settings.volume_gib(quantity(raw["vcpus"])) or quantity(raw.get("disk") or 0) or DISK
    return Flavor(
        str(raw["id"]),
        Resources(
            quantity(raw["vcpus"]), quantity(raw["ram"]), gib * GIB // 2**10, told if said is None else said
        ),
        _arch(specs, settings.arch),
        tuple(sorted(counted)) if said is None else (),
    )


def _arch(specs: Mapping[str, str], usual: str) -> str:
    traits = (match for match in map(_ARCH_TRAIT.fullmatch, specs) if match)
    required = (match[1].lower() for match in traits if specs[match[0]] == "required")
    return next(required, usual)


def _aliases(specs: Mapping[str, str], settings: Settings) -> dict[str, int]:
    """The PCI aliases that are GPUs, and how many of each: written as "a100:2,nic:1"."""
    found: dict[str, int] = {}
    for part in specs.get("pci_passthrough:alias", "").split(","):
        name, _, count = part.strip().partition(":")
        if name and any(fnmatchcase(name, pattern) for pattern in settings.gpu_aliases):
            found[name] = found.get(name, 0) + (_number(count) if count else 1)
    return found


def _said(name: str, gpus: Mapping[str, int]) -> int | None:
    if name in gpus:
        return gpus[name]
    return next((count for pattern, count in gpus.items() if fnmatchcase(name, pattern)), None)


def _number(text: str) -> int:
    return int(text) if text.strip().isdigit() else 0
