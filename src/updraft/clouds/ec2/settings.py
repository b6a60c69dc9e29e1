"""The settings of an EC2 cloud, as `[clouds.NAME]` of updraft.toml holds them; what heads have apart."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    model_validator,
)

from updraft.clouds.heads import HeadPlace, PlainHeads, refuse
from updraft.config.values.units import Duration, Size
from updraft.core.model import Resources

GIB = 2**30
OURS = "updraft:"  # tags that begin so are updraft's own

Feature = Literal[
    "client-token",
    "tag-on-create",
    "spot",
    "metadata-options",
    "metadata-tags",
    "shutdown-behavior",
    "instance-types",
    "paging",
]


def _many(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, list) else value


def _endpoint(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(f'"{value}" is not an address; write it as in "https://cloud.example.org:8788/"')
    if parts.username or parts.password:
        raise ValueError("holds a name or a password; credentials come from the environment or a profile")
    if parts.query or parts.fragment:
        raise ValueError(f'"{value}" has more than host, port and path; leave the rest out')
    return value


def _own_tags(value: Mapping[str, str]) -> Mapping[str, str]:
    for name in value:
        if name.lower().startswith((OURS, "aws:")) or name == "Name":
            raise ValueError(f'"{name}" is not free; tags may not be "Name" or begin with "{OURS}" or "aws:"')
    return value


Texts = Annotated[tuple[str, ...], BeforeValidator(_many)]
Some = Annotated[Texts, Field(min_length=1)]
Endpoint = Annotated[str, AfterValidator(_endpoint)]
Tags = Annotated[Mapping[str, str], AfterValidator(_own_tags)]
File = Annotated[Path, Field(strict=False)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


class InstanceType(_Model):
    """What an instance type holds, for endpoints that don't tell: [clouds.NAME.instance_types.TYPE]."""

    cpus: int = Field(gt=0)
    """Virtual CPUs."""
    memory: Size
    """Memory, as in "4GiB"."""
    disk: Size | None = None
    """Disk, as in "20GiB". None: that of `root_volume`, or 8GiB."""
    gpus: int = Field(default=0, ge=0)
    """GPUs."""
    arch: Literal["x86_64", "arm64"] = "x86_64"
    """Architecture as EC2 names it."""

    def resources(self, disk: int) -> Resources:
        """The same in the units of the core; `disk` in bytes where this says none."""
        size = disk if self.disk is None else int(self.disk)
        return Resources(self.cpus, int(self.memory) // 2**20, size // 2**10, self.gpus)


class Settings(_Model):
    """An EC2 endpoint, and what machines on it are launched with.

    Credentials are never here: they come from the environment (AWS_ACCESS_KEY_ID, or EC2_ACCESS_KEY with
    EC2_SECRET_KEY as an ec2rc.sh exports them), a profile, or the role of the instance updraft runs on.
    """

    endpoint: Endpoint | None = None
    """The endpoint's address with its path, as in "https://cloud.example.org:8788/services/Cloud". None: the
    address in EC2_URL where EC2_ACCESS_KEY is set as well, else Amazon's for the region."""
    region: str | None = None
    """The region. None: that of the environment or profile; "us-east-1" where the endpoint isn't Amazon's."""
    profile: str | None = None
    """The profile of the AWS configuration files whose credentials are used."""
    ca_bundle: File | None = None
    """File with the certificates of the authority that signed the endpoint's. None: the usual authorities."""
    timeout: Annotated[Duration, Field(gt=0, le=50)] = 30.0
    """How long a launch may take to be answered; reads are given at most 15 seconds, and are tried again."""
    zones: Texts = ()
    """Zones to buy in. Empty: every available one."""
    flavors: Some = ("*",)
    """Instance types to ask the endpoint about, as names or patterns (`m5.*`): the fewer, the quicker. One
    that begins with `!` leaves out."""
    architectures: Annotated[
        tuple[Literal["x86_64", "arm64"], ...], BeforeValidator(_many), Field(min_length=1)
    ] = ("x86_64",)
    """Architectures that the images have; types of others are not offered."""
    instance_types: Mapping[str, InstanceType] = Field(default_factory=dict)
    """What types hold, where the endpoint doesn't tell; what it tells is not taken then."""
    key_name: str | None = None
    """The key pair whose owner may log in to the machines."""
    security_groups: Texts = ()
    """Security groups of the machines, by id (`sg-…`), or all by name where there are no subnets."""
    subnets: Mapping[str, str] = Field(default_factory=dict)
    """The subnet (`subnet-…`) in each zone; only these zones are bought in then. Empty: the default one."""
    public_address: bool | None = None
    """Whether machines get a public address. None: as the subnet says."""
    instance_profile: str | None = None
    """Name or ARN of the instance profile (role) of the machines. None: none, which is best."""
    on_shutdown: Literal["terminate", "stop"] = "terminate"
    """What becomes of a machine that shuts itself down. A worker that does is over; a head comes back."""
    metadata_tokens: Literal["required", "optional"] | None = None
    """Whether machines answer for their user-data by IMDSv2 only ("required"), or by version 1 as well. None:
    required at Amazon, optional elsewhere, since cloud-init asks by version 1 wherever the machine's firmware
    doesn't say that it is Amazon's: there a machine could never read its user-data."""
    root_volume: Size | None = None
    """Size of the root volume, at least the image's own. None: the image's."""
    launch_template: str | None = None
    """Id (`lt-…`) or name of a launch template; what is set here or by updraft comes before it."""
    launch_template_version: str = "$Default"
    """The template's version: a number, "$Default" or "$Latest"."""
    tags: Tags = Field(default_factory=dict)
    """Further tags of every machine."""
    image_owners: Some = ("self",)
    """Whose images an image's *name* may mean: account numbers, "self", "amazon". An id needs no owner.
    A name alone proves nothing: anybody may publish an image of any name."""
    price_file: File | None = None
    """A price table instead of the one that is shipped: same form, see docs/howto/ec2.md."""
    spot_cap: Annotated[float, Field(gt=0, le=1)] | None = None
    """The most that spot may cost, as a part of the on-demand price (0.6). Types without a known on-demand
    price are then not bought on spot. None: the on-demand price, as EC2 has it."""
    lacks: Annotated[tuple[Feature, ...], BeforeValidator(_many)] = ()
    """What this endpoint is known to lack. What isn't named is found out."""
    listing_every: Duration = 10.0
    """How often the machines are listed while nothing changes; longer for more than a thousand."""
    page_size: Annotated[int, Field(ge=5, le=1000)] = 1000
    """Machines on one page of a listing."""

    @property
    def disk(self) -> int:
        """Bytes of disk that a machine has, as far as the settings say."""
        return int(self.root_volume) if self.root_volume is not None else 8 * GIB

    @model_validator(mode="after")
    def _groups_fit(self) -> "Settings":
        by_id = [group.startswith("sg-") for group in self.security_groups]
        if any(by_id) and not all(by_id):
            raise ValueError("security_groups: give all of them by id, or all by name")
        if by_id and not all(by_id) and (self.subnets or self.public_address is not None):
            raise ValueError("security_groups: with subnets or public_address they are given by id (sg-…)")
        return self

    @model_validator(mode="after")
    def _zones_fit(self) -> "Settings":
        missing = sorted(set(self.zones) - set(self.subnets)) if self.subnets else []
        if missing:
            raise ValueError(f"subnets: there is none for zone {missing[0]}, which zones names")
        return self

    def wants(self, zone: str) -> bool:
        """Whether machines may be bought in this zone."""
        chosen = set(self.subnets) or set(self.zones)
        return (not chosen or zone in chosen) and (not self.zones or zone in self.zones)


def rc_environment(environ: Mapping[str, str], profile: str | None = None) -> tuple[str, str, str] | None:
    """Access key, secret key and address ("" for none) as an ec2rc.sh exports them.

    None where they aren't there, or where a profile or AWS's own variables say that others are meant.
    """
    if profile or environ.get("AWS_ACCESS_KEY_ID") or environ.get("AWS_PROFILE"):
        return None
    access, secret = environ.get("EC2_ACCESS_KEY"), environ.get("EC2_SECRET_KEY")
    return (access, secret, environ.get("EC2_URL", "")) if access and secret else None


# What is for workers alone. A launch template may hold any of it.
_WORKERS = ("security_groups", "instance_profile", "launch_template", "launch_template_version")


class EC2Heads(PlainHeads):
    """A head has its own security group and role, a public address, and a life beyond its shutdown.

    See `updraft.clouds.heads.HeadTraits`.
    """

    def settings(self, own: Mapping[str, object], place: HeadPlace) -> Mapping[str, object]:
        """`role` is the instance profile; without one the head has none, whatever the workers have."""
        refuse(place, ("floating",))
        found = {key: value for key, value in own.items() if key not in _WORKERS}
        found |= {"security_groups": [place.group]} if place.group else {}
        found |= {"instance_profile": place.role} if place.role else {}
        found |= {"key_name": place.key_name} if place.key_name else {}
        return {**found, "public_address": not place.private, "on_shutdown": "stop"}
