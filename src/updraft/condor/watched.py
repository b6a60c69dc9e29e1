"""A pool that may only be looked at: what the controller gets where updraft only watches.

Only what is named here reaches HTCondor, as in `clouds.watched`. No ad of a controller is sent either: one
would make another updraft wait that acts for this pool.
"""

from collections.abc import Sequence

from updraft.condor.base import ControllerAd, Pool, PoolSlots
from updraft.core.model import DrainMode, ScheddView, Slot
from updraft.errors import WatchOnly


class WatchedPool:
    """A pool of which only the answers are had; each change raises WatchOnly, and none is asked for."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    def close(self) -> None:
        """End the pool's own children."""
        getattr(self._pool, "close", lambda: None)()

    def schedds(self, deadline: float) -> tuple[str, ...]:
        """As the pool."""
        return self._pool.schedds(deadline)

    def demand(self, schedd: str, *, running: bool, deadline: float) -> ScheddView:
        """As the pool."""
        return self._pool.demand(schedd, running=running, deadline=deadline)

    def slots(self, deadline: float) -> PoolSlots:
        """As the pool."""
        return self._pool.slots(deadline)

    def controllers(self, deadline: float) -> tuple[ControllerAd, ...]:
        """As the pool."""
        return self._pool.controllers(deadline)

    def drain(self, slots: Sequence[Slot], mode: DrainMode, reason: str, deadline: float) -> None:
        """Refused."""
        raise _refused("no machine is drained")

    def undrain(self, slots: Sequence[Slot], deadline: float) -> None:
        """Refused."""
        raise _refused("no drain is taken back")

    def requeue(self, schedd: str, jobs: Sequence[str], machine: str, deadline: float) -> tuple[str, ...]:
        """Refused."""
        raise _refused("no job is given back")

    def forget(self, slots: Sequence[str], deadline: float) -> None:
        """Refused."""
        raise _refused("no ad is invalidated")

    def announce(self, ad: ControllerAd, lifetime: float, deadline: float) -> None:
        """Refused."""
        raise _refused("no ad is sent")

    def retract(self, ad: ControllerAd, deadline: float) -> None:
        """Refused."""
        raise _refused("no ad is withdrawn")

    def mint_token(self, launch_key: str, lifetime: float) -> str:
        """Refused."""
        raise _refused("no token is made")

    def mint_boot_token(self, launch_key: str, boot: float, lifetime: float) -> str:
        """Refused."""
        raise _refused("no token is made")


def _refused(what: str) -> WatchOnly:
    return WatchOnly(f"the pool: {what}: updraft only watches")
