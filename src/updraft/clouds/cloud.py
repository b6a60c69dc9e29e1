"""A cloud by its parts, and what a driver is: what makes one from the settings.

Every part is a contract of its own: `base` has those of the machines and the smaller ones, `imaging`,
`networking` and `heads` the others. What a cloud hasn't is None, and nobody looks for it anywhere else.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from pydantic import BaseModel

from updraft.clouds.base import (
    Catalogue,
    ImageFinder,
    Leases,
    Leavings,
    Machines,
    Pace,
    Remembering,
    Sold,
    Tending,
)
from updraft.clouds.heads import HeadTraits, PlainHeads
from updraft.clouds.imaging import Imaging
from updraft.clouds.networking import Networking
from updraft.config.drivers import checked_settings, load_driver
from updraft.errors import UsageError

S = TypeVar("S", bound=BaseModel)
_PLAIN = PlainHeads()


@dataclass(frozen=True, slots=True)
class Traits:
    """What a cloud is like, with nothing asked of it.

    `pace` is how seldom it need be asked; None at each look. `leases` says what it does for machines with a
    lease, as far as that is known by now: an endpoint may show it only as it is used. `no_network` is why it
    has no security groups, for people. `credentials_end` is when the credentials end that it is used with, in
    Unix time, as far as that is known by now; None where they don't, or nobody knows it.
    """

    pace: Pace | None = None
    leases: Callable[[], Leases] = Leases
    credentials_end: Callable[[], float | None] = lambda: None
    no_network: str = "its driver does nothing with security groups"


@dataclass(frozen=True, slots=True)
class Cloud:
    """One cloud, for one pool. Only `machines` is there in every cloud.

    `memory` answers for the machines with the age of the answer; `catalogue` tells people what there is to
    choose from, and `finder` which image a launch would boot; `images` makes and moves images, `network`
    keeps security groups, `leavings` finds what else was made. `tending` is what looks after more than
    machines when these are asked for, and can be told to let it be.
    """

    name: str
    machines: Machines
    memory: Remembering | None = None
    catalogue: Catalogue | None = None
    finder: ImageFinder | None = None
    images: Imaging | None = None
    network: Networking | None = None
    leavings: Leavings | None = None
    tending: Tending | None = None
    traits: Traits = Traits()


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose what is made in a cloud will be: the pool's name, and which of the pools of that name it is.

    `identity` is "" while the pool has none: before its controller has first run.
    """

    pool: str
    identity: str = ""


@dataclass(frozen=True, slots=True)
class Driver(Generic[S]):
    """What makes clouds of a kind: the value that an entry point of the group `updraft.drivers` names.

    `settings` are those keys of [clouds.NAME] that are the driver's own: they are read, and refused, before
    anything here is called with them (see `config.drivers`). `make` makes the cloud called NAME, and asks
    nothing of it yet; it raises a CloudError where that can't be done now, such as for want of credentials,
    and UsageError where what the driver needs isn't installed. `heads` says what heads are launched with.
    `sold` tells what such a cloud sells from the settings alone; None where they don't say it.
    """

    settings: type[S]
    make: Callable[[str, Owner, S], Cloud]
    heads: HeadTraits = _PLAIN
    sold: Callable[[str, S], Sold | None] = lambda _name, _settings: None


def driver_of(name: str) -> Driver[Any]:
    """The installed driver of this name. UsageError where there is none that can be used here."""
    try:
        return cast(Driver[Any], load_driver(name))
    except ImportError as error:
        raise UsageError(f'the driver "{name}" can\'t be loaded: {error}') from error


def cloud_of(name: str, driver: str, owner: Owner, own: Mapping[str, object]) -> Cloud:
    """The cloud called `name`, by the driver of that name and its own settings.

    Raises UsageError as `driver_of` and `Driver.make`, ConfigError that names each wrong key, and what `make`
    raises.
    """
    found = driver_of(driver)
    return found.make(name, owner, checked_settings(found.settings, name, own))
