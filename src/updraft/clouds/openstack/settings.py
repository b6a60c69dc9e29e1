"""Settings of an OpenStack cloud, as `[clouds.NAME]` of updraft.toml holds them; what heads have apart."""

import math
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from updraft.clouds.heads import HeadPlace, PlainHeads, refuse
from updraft.config.tables.part import Part
from updraft.config.values.checks import tuple_of_one
from updraft.config.values.units import Duration, Size

GIB = 2**30
OURS = "updraft:"  # metadata that begin so are updraft's own
TEXT_LIMIT = 255  # what Nova takes as a name or value of metadata


def _own_tags(value: Mapping[str, str]) -> Mapping[str, str]:
    for name, text in value.items():
        if name.lower().startswith(OURS):
            raise ValueError(f'"{name}" is not free; tags may not begin with "{OURS}"')
        if not 0 < len(name) <= TEXT_LIMIT or len(text) > TEXT_LIMIT:
            raise ValueError(f'"{name[:40]}": Nova takes names and values of at most {TEXT_LIMIT} characters')
    return value


Texts = Annotated[tuple[str, ...], BeforeValidator(tuple_of_one)]
Some = Annotated[Texts, Field(min_length=1)]
Tags = Annotated[Mapping[str, str], AfterValidator(_own_tags)]
Count = Annotated[int, Field(ge=0)]


class Port(Part):
    """Ports that Nova can't make by itself: [clouds.NAME.port].

    Each machine then gets ports made for it, and is asked for by a call of its own.
    """

    vnic_type: Literal["normal", "direct", "direct-physical", "macvtap", "virtio-forwarder"] = "normal"
    """How the port reaches the network; "direct" is SR-IOV."""
    port_security: bool | None = None
    """Whether addresses and security groups are enforced on it. None: as the network says."""
    subnet: str | None = None
    """The subnet, by name or id, that gives the address. None: any of the network's."""


class Settings(Part):
    """A project on an OpenStack cloud, and what machines in it are launched with.

    Credentials are never here: they are in a `clouds.yaml`, best as an application credential, or in the
    OS_* variables of the environment.
    """

    os_cloud: str | None = None
    """The cloud's name in `clouds.yaml`. None: what OS_CLOUD names, or the OS_* variables, or the only one
    there is. The file is OS_CLIENT_CONFIG_FILE, or `clouds.yaml` in the working directory, in
    ~/.config/openstack or in /etc/openstack, the first that is there."""
    region: str | None = None
    """The region. None: that of `clouds.yaml` or the environment."""
    timeout: Annotated[Duration, Field(gt=0, le=50)] = 50.0
    """How long a launch may take to be answered: Nova takes up to a fifth of a second for each machine of it.
    Reads are given at most 30 seconds."""
    zones: Texts = ()
    """Availability zones to launch in. Empty: every available one."""
    flavors: Some = ("*",)
    """Flavors to launch, as names or patterns (`m1.*`); one that begins with `!` leaves out (`!gpu.*`)."""
    arch: Literal["x86_64", "aarch64"] = "x86_64"
    """Architecture of flavors that don't tell theirs (by the trait HW_ARCH_…)."""
    gpus: Mapping[str, Count] = Field(default_factory=dict)
    """GPUs that a machine of a flavor has, by name or pattern: { "g1.*" = 1 }. It comes before what the
    flavor's extra specs tell; a name comes before a pattern."""
    gpu_aliases: Texts = ("*",)
    """Which PCI aliases in extra specs (`pci_passthrough:alias`) are GPUs, as names or patterns."""
    key_name: str | None = None
    """The key pair whose owner may log in to the machines."""
    networks: Texts = ()
    """Networks of the machines, by name or id, the first one's address being the machine's. Empty: the only
    one that the project has."""
    security_groups: Texts = ()
    """Security groups of the machines, by name or id. Empty: the project's default one."""
    server_group: str | None = None
    """Server group, by name or id, that all machines are members of. Mind its quota, often ten."""
    config_drive: bool | None = None
    """Whether machines have their metadata on a drive, for networks without metadata service. None: as the
    cloud and the image say."""
    root_volume: Size | None = None
    """Boot from a volume of this size, at least the image's least, made for the machine and ended with it.
    None: boot from the flavor's own disk."""
    root_volume_per_core: Size | None = None
    """So much more of that volume for each core of the flavor. None: one size for all."""
    volume_type: str | None = None
    """Type of that volume. None: the cloud's default."""
    floating_network: str | None = None
    """External network, by name or id, of which each machine gets a floating address. None: no such."""
    port: Port | None = None
    """Ports made for each machine beforehand. None: Nova makes them, and any number of machines with them
    in one call."""
    tags: Tags = Field(default_factory=dict)
    """Further metadata of every machine."""
    listing_every: Duration = 10.0
    """How often the machines are listed while nothing changes; longer for more than a thousand."""
    page_size: Annotated[int, Field(ge=1, le=1000)] = 1000
    """Machines on one page of a listing."""

    @property
    def from_volume(self) -> bool:
        """Whether machines boot from volumes."""
        return self.root_volume is not None or self.root_volume_per_core is not None

    def volume_gib(self, cores: int) -> int:
        """GiB of the root volume of a machine with so many cores, rounded up; zero where there is none."""
        return math.ceil((int(self.root_volume or 0) + cores * int(self.root_volume_per_core or 0)) / GIB)

    def wants(self, zone: str) -> bool:
        """Whether machines may be launched in this zone."""
        return not self.zones or zone in self.zones


class OpenStackHeads(PlainHeads):
    """A head has its own security group, and a floating address where one is asked for.

    See `updraft.clouds.heads.HeadTraits`.
    """

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """Without a server group: that is for workers."""
        refuse(place, ("role",))
        found = {key: value for key, value in own.items() if key not in ("security_groups", "server_group")}
        found |= {"security_groups": [place.group]} if place.group else {}
        found |= {"key_name": place.key_name} if place.key_name else {}
        if place.private:
            found.pop("floating_network", None)
        elif place.floating:
            found["floating_network"] = place.floating
        return found
