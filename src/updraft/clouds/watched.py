"""A cloud that may only be looked at: what the controller gets where updraft only watches.

Only what is named here reaches the cloud. A method of the machines or a part of a cloud that is added is
refused, or isn't there, until it is written down here as one that changes nothing.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from updraft.clouds.base import Aged, Machines, Remembering
from updraft.clouds.cloud import Cloud
from updraft.clouds.wrapping import Wrapper
from updraft.core.model import Instance, Quota
from updraft.errors import WatchOnly

_ANSWERS = frozenset({"machines", "look_up", "offers", "quota", "console"})
_REFUSED = {"launch": "nothing is launched", "terminate": "nothing is ended", "tag": "nothing is tagged"}


def watched(cloud: Cloud) -> Cloud:
    """The same cloud, of which only the answers are had.

    What looks after more than machines when it is asked for them no longer does.
    """
    if cloud.tending is not None:
        cloud.tending.tends = False
    memory = None if cloud.memory is None else WatchedMemory(cloud.memory)
    return Cloud(cloud.name, WatchedMachines(cloud.machines), memory=memory, traits=cloud.traits)


class WatchedMachines(Wrapper):
    """Machines of which only the answers are had; each change raises WatchOnly, and none is asked for."""

    @contextmanager
    def _asking(self, method: str) -> Iterator[Machines]:
        if method not in _ANSWERS:
            what = _REFUSED.get(method, f"`{method}` isn't asked for")
            raise WatchOnly(f"cloud {self.name}: {what}: updraft only watches")
        yield self._machines


class WatchedMemory:
    """What answers from memory, and does nothing else that it may be able to."""

    def __init__(self, memory: Remembering) -> None:
        self._memory = memory

    def aged_machines(self) -> Aged[tuple[Instance, ...]]:
        """As it says."""
        return self._memory.aged_machines()

    def aged_quota(self) -> Aged[Quota]:
        """As it says."""
        return self._memory.aged_quota()
