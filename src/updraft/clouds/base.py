"""The contract of a cloud driver, and the tags by which a machine is known to be ours.

A driver is synchronous, keeps no policy and no clock of its own, retries nothing but a broken connection of
an idempotent read, and raises only `updraft.errors.CloudError`s, always `from` the cause. Metrics, rate
limits and dry-run are wrappers around a driver, never branches inside it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Generic, Literal, Protocol, TypeVar, runtime_checkable

from updraft.core.leftovers import Belonging, Kind
from updraft.core.model import CloudOffer, Instance, Quota

Found = Mapping[str, Instance | None]

T = TypeVar("T")

TAG_POOL = "updraft:pool"
TAG_IDENTITY = "updraft:identity"  # which of the pools of this name; see `core.model.Policy`
TAG_CLASS = "updraft:class"
TAG_LAUNCH = "updraft:launch"
TAG_GENERATION = "updraft:generation"
TAG_RETIRING = "updraft:retiring"
TAG_VARIANT = (
    "updraft:variant"  # of a machine that isn't the plain one of its class; see `core.model.variants`
)

TAG_LEASE = (
    "updraft:lease"  # when the machine's lease ends, whole epoch seconds; only of one that has a lease
)


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """One call for `count` alike machines. `key` makes it happen once; `tags` are written with the launch.

    `network` is the one that they are to be on in place of that of the cloud's settings, by the name or id
    that the cloud knows; "" leaves it to those. So it is with `security_groups`. A cloud that has no such
    choice raises BadRequest.
    """

    key: str
    count: int
    image: str
    flavor: str
    zone: str
    market: str
    user_data: bytes = field(repr=False)  # it holds the launch's token
    tags: Mapping[str, str] = field(default_factory=dict)
    network: str = ""
    security_groups: tuple[str, ...] = ()


class Driver(Protocol):
    """A cloud. The comments are the contract; `tests/clouds/conformance.py` holds every driver to it."""

    name: str

    def machines(self) -> tuple[Instance, ...]:
        """Every instance that carries this pool's tag, also one that the ledger doesn't know; all pages.

        Terminated ones may be listed for a while or not at all. One of which nothing can be made is left out,
        and named in the driver's attribute `odd`: see `clouds.odd`.
        """

    def look_up(self, ids: Iterable[str]) -> Found:
        """What the cloud says of these instances, asked for each by its id; None where it has no such one.

        A listing may leave out what lives: an instance whose tag was removed, or one in a part of the cloud
        that is down. This tells them apart. An instance without this pool's tag is shown too, with `tagged`
        False. Of which the cloud can say nothing now isn't in the answer. Raises as `machines`.
        """

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        """Ask for `request.count` machines, in one API call where the cloud can.

        The same launch key twice never makes more machines: the second call returns those of the first.
        Returns what was accepted, which may be fewer than asked for, and never waits for a boot.
        Raises NoCapacity, QuotaExceeded, Throttled, AuthFailed or BadRequest when none was made, and
        CloudUnavailable when it isn't known: the tags settle it at the next look.
        """

    def terminate(self, ids: Iterable[str]) -> None:
        """End these instances, in batches. One already gone, or never there, is success."""

    def tag(self, ids: Iterable[str], tags: Mapping[str, str | None]) -> None:
        """Write these tags; None removes one. An instance already gone is success."""

    def offers(self) -> tuple[CloudOffer, ...]:
        """What can be bought: flavors with cpus, memory, disk, GPUs, architecture, price, zone, market.

        What nothing can be made of is left out, and named in the driver's attribute `odd_offers`.
        """

    def quota(self) -> Quota:
        """What is left of each quota, machines that updraft doesn't own counted.

        `unlimited` only where the cloud says so; what isn't known is None.
        """

    def console(self, machine: str) -> str:
        """The end of the instance's console output (at most 64 KiB); empty where there is none."""


@dataclass(frozen=True, slots=True)
class ImageInfo:
    """A machine image as the cloud lists it."""

    id: Annotated[str, "Its id."]
    name: Annotated[str, "Its name."]
    state: Annotated[str, "As the cloud says it."]
    arch: Annotated[str, "Architecture; empty where the cloud doesn't say."]
    owner: Annotated[str, "Whose it is."]
    created: Annotated[float | None, "When it was made."] = None


@dataclass(frozen=True, slots=True)
class Leases:
    """What a cloud does for machines with a lease; a driver says it in its attribute `leases`.

    `told`: a running machine reads its own tags, as they are now, from the metadata service, so that a later
    lease reaches it. `ended`: a machine that powers itself off is ended by that, and not only stopped.
    """

    told: bool = False
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How many seconds a driver's last answers may serve while nothing is in motion.

    `machines` is for up to `page` of them: for n times as many it is n times as long.
    """

    machines: float = 10.0
    quota: float = 60.0
    offers: float = 300.0
    page: int = 1000


@dataclass(frozen=True, slots=True)
class Sold:
    """What a cloud sells as far as its settings alone say, with nothing asked of it: for simulations.

    A driver's module may have a function `sold(name, settings)` that returns this, or None where the settings
    don't say it. `machines` and `cores` are quotas, None without end; `boot` is how many seconds a machine
    usually takes to join, None where that isn't known.
    """

    offers: tuple[CloudOffer, ...]
    machines: int | None = None
    cores: int | None = None
    boot: float | None = None


@dataclass(frozen=True, slots=True)
class Aged(Generic[T]):
    """An answer, and how many seconds ago its question was asked of the cloud."""

    value: T
    age: float


@runtime_checkable
class Remembering(Protocol):
    """A driver that may answer from memory, and says how old the answer is."""

    def aged_machines(self) -> Aged[tuple[Instance, ...]]:
        """As `machines()`, with the age of the answer."""

    def aged_quota(self) -> Aged[Quota]:
        """As `quota()`, with the age of the answer."""


@runtime_checkable
class Identified(Protocol):
    """A driver that makes, or at its looks removes, more than machines: it has to know for which pool."""

    identity: str
    """The pool's, "" while it has none: set before anything is asked of the cloud."""


@runtime_checkable
class Tending(Protocol):
    """A driver that looks after more than machines (addresses, volumes) whenever it is asked for them."""

    tends: bool
    """False: it only looks."""


@runtime_checkable
class ImageFinder(Protocol):
    """A driver that can say which image a launch would boot, also one that its catalogue doesn't list."""

    def image(self, wanted: str) -> ImageInfo | None:
        """The usable image of this name or id; None where there is none."""


def layers(driver: Driver) -> Iterator[object]:
    """This driver, and those that it is wrapped around, the outermost first."""
    inner: object = driver
    while inner is not None:
        yield inner
        inner = getattr(inner, "driver", None)


def credentials_end(driver: Driver) -> float | None:
    """When the credentials end that it, or the one it is wrapped around, uses, in Unix time.

    None where they don't, or nobody knows it.
    """
    said = (getattr(one, "credentials_end", None) for one in layers(driver))
    return next((one for one in said if isinstance(one, float)), None)


def image_finder_of(driver: Driver) -> ImageFinder | None:
    """This driver, or the one it is wrapped around, where it can look for an image; else None."""
    return next((one for one in layers(driver) if isinstance(one, ImageFinder)), None)


def catalogue_of(driver: Driver) -> "Catalogue | None":
    """What this driver, or the one it is wrapped around, can tell people; None where it tells nothing."""
    return next((one for one in layers(driver) if isinstance(one, Catalogue)), None)


def leases_of(driver: Driver) -> Leases:
    """What this driver, or the one it is wrapped around, says of leases; nothing is promised by default."""
    said = (getattr(one, "leases", None) for one in layers(driver))
    return next((one for one in said if isinstance(one, Leases)), Leases())


FindingState = Literal["ok", "warning", "problem"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: how it stands, in a sentence, and what to do about it ("" where ok)."""

    what: str
    state: FindingState
    text: str
    remedy: str = ""


@runtime_checkable
class Catalogue(Protocol):
    """What a driver may tell people beyond the contract; ask with `isinstance(driver, Catalogue)`.

    Every method is a call to the cloud and raises the `CloudError`s that a driver raises.
    """

    def images(self) -> tuple[ImageInfo, ...]:
        """The images that can be launched: those of the account, and those that the settings name."""

    def key_pairs(self) -> tuple[str, ...]:
        """The names of the account's key pairs, in order."""

    def create_key_pair(self, name: str) -> str:
        """Make a key pair and return its private key as text; it can't be asked for again.

        Raises BadRequest when there is one of that name already.
        """

    def delete_key_pair(self, name: str) -> None:
        """Delete a key pair; one that isn't there is success."""

    def findings(self) -> tuple[Finding, ...]:
        """What is to be known of this endpoint: what it lacks, and what stands in for it."""


class Leavings(Protocol):
    """What updraft has made in a cloud beyond machines, images and groups, as far as it carries our tag.

    A driver that can tell of it has an attribute `leavings`. As everywhere in this room nothing waits,
    nothing is tried again, and only `CloudError`s are raised.
    """

    kinds: tuple[Kind, ...]
    """What this cloud has of such things."""

    def of(self, kind: Kind) -> tuple[Belonging, ...]:
        """Those of this kind that carry this pool's tag, with who uses them."""

    def remove(self, kind: Kind, one: str) -> None:
        """Remove it; one already gone is success. BadRequest while anything uses it."""


def leavings_of(driver: Driver) -> Leavings | None:
    """What this driver, or the one it is wrapped around, tells of such things; None for nothing."""
    found: Iterator[Leavings | None] = (getattr(one, "leavings", None) for one in layers(driver))
    return next((one for one in found if one is not None), None)
