"""What updraft asks of a pool, and the names by which a machine says in the pool whose it is.

Everything here is synchronous and has a deadline in seconds; what isn't answered by then raises
`updraft.errors.PoolTimeout`. Nothing here decides.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from updraft.core.model import CollectorView, DrainMode, ScheddView, Slot

# Attributes that each worker advertises in its machine ad (STARTD_ATTRS), all strings.
ATTR_POOL = "UpdraftPool"
ATTR_IDENTITY = "UpdraftIdentity"
ATTR_CLASS = "UpdraftClass"
ATTR_CLOUD = "UpdraftCloud"
ATTR_ZONE = "UpdraftZone"
ATTR_IMAGE = "UpdraftImage"
ATTR_FLAVOR = "UpdraftFlavor"
ATTR_MARKET = "UpdraftMarket"
ATTR_LAUNCH = "UpdraftLaunch"
ATTR_GENERATION = "UpdraftGeneration"
ATTR_INSTANCE = "UpdraftInstance"
ATTR_VARIANT = "UpdraftVariant"  # only of a machine that isn't the plain one of its class

SHOWN_IDENTITY = "AuthenticatedIdentity"
"""As whom the collector knows who advertises: it writes it into the ad itself."""

WORKER_USER = "worker-"
"""How the identity of a worker's token begins; the launch key follows, and the trust domain."""

OF_MACHINE = "+"
"""Stands in the identity of a machine's own token between its launch and its instance id."""


@dataclass(frozen=True, slots=True)
class PoolSlots:
    """The collector's answer: the slots as values, and one whole ad text for each kind that was seen."""

    view: CollectorView
    templates: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ControllerAd:
    """A controller that advertises itself in the collector: who acts for this pool, of which `identity`."""

    id: str
    host: str
    since: float
    heard: float
    identity: str = ""


class Pool(Protocol):
    """One HTCondor pool, as updraft needs it."""

    def schedds(self, deadline: float) -> tuple[str, ...]:
        """Names of all schedds that the collector knows."""

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        """Idle job groups of one schedd, and its running jobs where `running` asks for them."""

    def slots(self, deadline: float) -> PoolSlots:
        """Every partitionable or static slot of the pool with its children, and how old the collector is."""

    def drain(self, slots: Sequence[Slot], mode: DrainMode, reason: str, deadline: float) -> None:
        """Close one machine (all its slots belong to one startd).

        EMPTY: in one atomic step, only if nothing runs on it; its startd then exits. BUSY: running jobs go
        on. Raises DrainRefused when the startd says that it is busy; already draining for us is success.
        """

    def undrain(self, slots: Sequence[Slot], deadline: float) -> None:
        """Take back a busy drain. A machine that doesn't drain is success."""

    def requeue(self, schedd: str, jobs: Sequence[str], machine: str, deadline: float) -> tuple[str, ...]:
        """Give jobs of a machine that is gone back to the queue, and those that an earlier try left on hold.

        Returns all that it gave back; a job that runs there no more is left alone. Of what is cut short,
        `demand` tells what it left on hold. Without a machine (""), only what is on hold for us is released.
        """

    def forget(self, slots: Sequence[str], deadline: float) -> None:
        """Invalidate the machine's startd and master ads in the collector."""

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        """All controllers that advertise themselves for this pool's name, this one included."""

    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None:
        """Advertise this controller, for `lifetime` seconds from now."""

    def retract(self, ad: ControllerAd, deadline: float) -> None:
        """Withdraw this controller's ad."""

    def mint_token(self, launch_key: str, lifetime: float) -> str:
        """A token for the machines of one launch: its own identity, advertise rights only, for `lifetime`."""

    def mint_boot_token(self, launch_key: str, boot: float, lifetime: float) -> str:
        """What the user-data of a launch hold. Where machines are handed their own tokens, it is good for
        asking for them only, for `boot` seconds; elsewhere it is the one that `mint_token` makes."""
