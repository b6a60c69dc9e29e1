"""What `updraft.toml` says of one kind of worker: the table [classes.NAME]. See `updraft.config.model`.

Among it how the pool reaches its machines (`Reached`), and what slots say that can run containers.
"""

import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from updraft.config.tables.cvmfs import Software
from updraft.config.tables.part import Part
from updraft.config.tables.spare import Spare
from updraft.config.tables.spending import Spendable
from updraft.config.values.checks import (
    checked_attribute_name,
    checked_expression,
    checked_fingerprint,
    checked_image,
    checked_layer,
    checked_name,
    checked_pattern,
    checked_repository,
    checked_resource,
    checked_slots,
    checked_version,
    tuple_of_one,
)
from updraft.config.values.units import Duration
from updraft.core import settings as core

BROKER = re.compile(r"([A-Za-z0-9.\-]+(:[0-9]{1,5})?(\?sock=[A-Za-z0-9_-]+)?)?")


def checked_broker(address: str) -> str:
    """A broker's address; empty stands for the head's own."""
    if not BROKER.fullmatch(address):
        raise ValueError(f'"{address}" is no broker; write "host:port", or "host:port?sock=name"')
    return address


def checked_forwarding(host: str) -> str:
    """An address, or the word that has the cloud asked for it."""
    if host != "metadata":
        try:
            ipaddress.ip_address(host)
        except ValueError as error:
            raise ValueError(f'"{host}" is no address; write one, or "metadata"') from error
    return host


class Reached(Part):
    """The keys of a worker class that say how its machines are reached."""

    reach: Literal["direct", "ccb", "forwarded"] = "direct"
    """How the pool connects to its machines. "direct": at their own addresses. "ccb": nothing can connect to
    them, because they are behind NAT or a firewall; they keep a connection to a broker open. "forwarded":
    connections to another address, a public or floating one, reach them."""
    ccb: Annotated[str, AfterValidator(checked_broker)] = ""
    """The broker, with `reach = "ccb"`. Empty: the one that `updraft userdata head` gives the head."""
    forwarding_host: Annotated[str, AfterValidator(checked_forwarding)] = "metadata"
    """The address to advertise, with `reach = "forwarded"`. "metadata": the public one that the cloud's
    metadata tells each machine when it boots; without one the boot fails."""

    @model_validator(mode="after")
    def _one_way(self) -> "Reached":
        if self.ccb and self.reach != "ccb":
            raise ValueError('ccb names a broker, and reach is not "ccb"')
        if self.forwarding_host != "metadata" and self.reach != "forwarded":
            raise ValueError('forwarding_host names an address, and reach is not "forwarded"')
        return self


Names = Annotated[tuple[str, ...], BeforeValidator(tuple_of_one), Field(min_length=1)]
Market = Literal["on-demand", "spot"]
Markets = Annotated[tuple[Market, ...], BeforeValidator(tuple_of_one), Field(min_length=1)]
Attributes = Mapping[
    Annotated[str, AfterValidator(checked_attribute_name)],
    Annotated[str, BeforeValidator(checked_expression)],
]
Version = Annotated[str, AfterValidator(checked_version)]
Fingerprint = Annotated[str, AfterValidator(checked_fingerprint)]
NamePattern = Annotated[str, AfterValidator(checked_pattern)]
Slots = Annotated[Literal["partitionable"] | int, BeforeValidator(checked_slots)]


class Layer(Part):
    """One layer of a worker's user-data: `name` is its path, or "inline"; `text` its content.

    `variables` are the `%name%` in it that are replaced at the launch, each with its value.
    """

    name: str
    text: str
    variables: Mapping[str, str] = Field(default_factory=dict)


Layers = Annotated[
    tuple[Annotated[Layer, BeforeValidator(checked_layer)], ...], BeforeValidator(tuple_of_one)
]


class WorkerClass(Software, Reached, Spendable):
    """A kind of worker: [classes.NAME]."""

    image: Annotated[str | Mapping[str, str], BeforeValidator(checked_image)]
    """The image it boots: a name or id as the cloud knows it, or a table with one for each cloud."""
    clouds: Names | None = None
    """The clouds it may run on. None: all of them."""
    flavors: Names = ("*",)
    """The flavors it may have, as names or patterns (`m5.*`, `*large`); the cheapest that fits is bought. One
    that begins with `!` leaves out: `["*", "!t*"]`."""
    markets: Markets = ("on-demand",)
    """"on-demand", "spot" or both. Spot machines are cheaper and the cloud takes them back when it likes."""
    min: Annotated[int, Field(ge=0)] = 0
    """Machines that are kept even when nothing waits."""
    max: Annotated[int, Field(ge=0)] | None = None
    """Machines of this class at one time. None: only the limits hold."""
    max_cores: Annotated[int, Field(ge=0)] | None = None
    """Cores of all machines of this class together, at one time."""
    max_per_user: Annotated[int, Field(ge=0)] | None = None
    """Machines of this class that jobs of one user may be on, those on their way included: no machine is
    bought for more, though room that is there anyway may be used."""
    max_cores_per_user: Annotated[int, Field(ge=0)] | None = None
    """Cores that the jobs of one user may have on machines of this class, in the same way."""
    high_priority_users: Annotated[tuple[str, ...], BeforeValidator(tuple_of_one)] = ()
    """Users (patterns: `alice`, or `physics.*` where groups are trusted) whose `+VMHighPriority` counts
    here."""
    idle_limit: Annotated[Duration, Field(gt=0)] = 600.0
    """How long a machine may be without a claim before it goes. Shorter costs less and boots more often."""
    wait_target: Duration | None = None
    """How long short jobs may wait for others to end on the same machines, before more machines are bought
    for them; it matters where the run time can be told. Longer costs less. None: as long as a boot takes;
    "0s": room for each at once."""
    spare: Annotated[tuple[Spare, ...], BeforeValidator(tuple_of_one)] = ()
    """Room kept ready for jobs that are yet to come, by schedule: any number of tables
    [[classes.NAME.spare]]."""
    boot_deadline: Annotated[Duration, Field(gt=0)] = 1800.0
    """How long a machine may take to join the pool, at most. The deadline in force is learned from the
    boots that were seen, and is usually much shorter."""
    lifetime: Annotated[Duration, Field(gt=0)] = 7 * core.DAY
    """How long a machine may live. After that it closes to new jobs and goes; its token dies with it. It is
    also what running jobs may take to finish in a drain (MAXJOBRETIREMENTTIME)."""
    drain_deadline: Duration = 3600.0
    """How long jobs may run on after the end of a machine's lifetime before they go back to the queue."""
    head_gone_after: Annotated[Duration, Field(gt=0)] = 3600.0
    """A worker without a claim that hasn't heard from its head for so long powers itself off. Never shorter
    than the pool's `job_lease`."""
    attributes: Attributes = Field(default_factory=dict)
    """Further attributes of its machine ad: name to ClassAd expression. A text is quoted twice, once for TOML
    and once for ClassAds: `Site = '"CERN"'`. Numbers, true and false may be written as they are."""
    slots: Slots = "partitionable"
    """"partitionable" (one slot that is cut to what each job asks for), or a number of equal static slots."""
    resources: Annotated[
        Mapping[Annotated[str, AfterValidator(checked_resource)], Annotated[int, Field(ge=0, le=1_000_000)]],
        Field(max_length=16),
    ] = Field(default_factory=dict)
    """Custom resources of each machine and how many of each it has: `resources = { FPGAs = 2 }` for jobs that
    say `request_FPGAs`. They become HTCondor's `MACHINE_RESOURCE_FPGAs`. Name those of the image's own
    configuration too: until a machine was seen, nobody else knows of them, and none is bought for such
    jobs."""
    condor: Literal["image", "install"] = "image"
    """"image": HTCondor is in the image. "install": the first boot installs it, on Enterprise Linux 8 to 10,
    Debian and Ubuntu (see `condor_version`); an image that has it already is left as it is."""
    condor_version: Version = ""
    """The HTCondor to install: "25.0" (the long-term series), "25.x" (the feature series), "25.14" or
    "25.14.1". Empty: what the head has."""
    condor_repository: Annotated[str, AfterValidator(checked_repository)] = ""
    """A mirror of HTCondor's repositories to install from, laid out as they are: an address that begins with
    `https://`, or `file:///` for one in the image. Empty: HTCondor's own, or the distribution's package where
    that has the version."""
    condor_keys: Annotated[tuple[Fingerprint, ...], BeforeValidator(tuple_of_one)] = ()
    """Fingerprints (40 hexadecimal digits): the repository's signing key must have one of them, or nothing is
    installed. Empty: those of HTCondor's own keys, which updraft knows."""
    universes: Annotated[tuple[Literal["docker", "apptainer"], ...], BeforeValidator(tuple_of_one)] = ()
    """Kinds of container that its jobs may ask for: "docker", "apptainer" or both. The first boot installs
    what the image lacks of them, and fails where that can't be had."""
    contextualisation: Literal["cloud-init", "cernvm"] = "cloud-init"
    """"cernvm" sends user-data of a form that CernVM's own contextualisation reads as well: layers that begin
    with `[` are for it."""
    layers: Layers = ()
    """Further user-data: files beside the configuration (cloud-config or script), read when the
    configuration is read, or the text itself, beginning with `#cloud-config` or `#!` (or `[`, see
    `contextualisation`). In a table instead, `{ file = "site.sh", variables = { ipv4 = "" } }` (or `text`),
    each `%ipv4%` is replaced at the launch; `ipv4`, `ipv6` and `fqdn` left empty are the head's own."""

    images_allowed: Annotated[tuple[NamePattern, ...], BeforeValidator(tuple_of_one)] = ()
    """Images that a job may ask for instead of the class's own (`+UpdraftImage`, `+VMAMI`), as names or
    patterns (`alma9-*`). Empty: none. Whoever may submit jobs may boot any of them."""
    networks_allowed: Annotated[tuple[NamePattern, ...], BeforeValidator(tuple_of_one)] = ()
    """Networks that a job may ask for instead of the class's own (`+UpdraftNetwork`, `+VMNetwork`), as names
    or patterns. Empty: none."""
    vm_types: Annotated[tuple[NamePattern, ...], BeforeValidator(tuple_of_one)] = ()
    """What else its machines may call themselves (VMType) where a job's requirements ask for it, as names or
    patterns; a machine has the class's name without being asked. Empty: nothing else."""
    offered_layers: Mapping[
        Annotated[str, AfterValidator(checked_name)], Annotated[Layer, BeforeValidator(checked_layer)]
    ] = Field(default_factory=dict)
    """Further layers, written as in `layers` and each with a name, that a job may ask for by that name
    (`+UpdraftLayers`): its machine then has them behind those of the class, and takes only jobs that ask for
    the same."""
    keep_alive_max: Duration | None = None
    """How long a machine may be without a claim, at most, where a job says how long (`+UpdraftKeepAlive`,
    `+VMKeepAlive`). None: `idle_limit`, so that a job can only make it shorter."""
    owner_only: bool = False
    """Each machine is made for one user, and takes that user's jobs only. No machine is kept for want of
    work: `min` and `spare` have to be left out."""

    @model_validator(mode="after")
    def _somebody_to_make_it_for(self) -> "WorkerClass":
        for key, value in {"min": self.min, "spare": self.spare}.items():
            if value and self.owner_only:
                raise ValueError(
                    f"{key} keeps machines that nobody waits for, and with owner_only each is made for a "
                    f"user whose jobs wait: leave {key} out"
                )
        return self

    @model_validator(mode="after")
    def _something_to_install(self) -> "WorkerClass":
        told = {"condor_version": self.condor_version, "condor_repository": self.condor_repository}
        for key, value in {**told, "condor_keys": self.condor_keys}.items():
            if value and self.condor == "image":
                raise ValueError(
                    f'{key} says what to install, and condor is "image": write condor = "install"'
                )
        return self


_READY_FOR: Mapping[str, Mapping[str, str]] = {
    "docker": {"HasDocker": "true", "HasContainer": "true", "HasDockerURL": "true"},
    "apptainer": {
        "HasSingularity": "true",
        "HasContainer": "true",
        "HasDockerURL": "true",
        "HasSIF": "true",
        "HasSandboxImage": "true",
    },
}


def container_attributes(universes: Iterable[str]) -> Mapping[str, str]:
    """The attributes (name to ClassAd expression) of a machine that is ready for these universes.

    A job of such a universe requires them: without a machine that is believed to have them, none would ever
    be launched for it. A real machine finds them out for itself.
    """
    return {name: value for universe in universes for name, value in _READY_FOR[universe].items()}
