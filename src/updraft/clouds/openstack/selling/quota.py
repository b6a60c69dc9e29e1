"""What is left of the project's quotas: of Nova, and of the sisters without which it makes no machine."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any

from updraft.clouds.openstack.client import COMPUTE, NETWORK, VOLUME, Answer, Connection
from updraft.clouds.openstack.errors import Refused
from updraft.clouds.openstack.settings import Settings
from updraft.core.model import Quota
from updraft.errors import CloudUnavailable, Throttled

SISTERS_SERVE = 300.0
ASKED_AGAIN = 30.0
_UNLIMITED = -1


class Quotas:
    """The quotas of one project. What the sisters said serves for minutes, less what was made since:

    they are slow when many machines are made, and what Nova tells is what mostly counts.
    """

    def __init__(
        self, connection: Connection, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._sisters: tuple[int | None, ...] = ()
        self._due = 0.0
        self._used = 0

    def left(self) -> Quota:
        """What is left for one more launch, everybody's machines in the project counted. Raises CloudError.

        A machine needs an instance, ports and perhaps an address and a volume: the scarcest of them counts.
        """
        with self._connection.translate("asking for quotas"):
            told = _absolute(self._connection.get(COMPUTE, "/limits"))
        used = _count(told.get("totalInstancesUsed")) or 0
        return _quota(told, self._of_sisters(used))

    def _of_sisters(self, used: int) -> list[int | None]:
        """What the sisters suffice for; while they don't answer, what they said last, or nothing."""
        with self._lock:
            asked = self._clock() >= self._due
            if asked:
                self._due = self._clock() + ASKED_AGAIN  # who asks meanwhile has the last answer
        if asked:
            with suppress(CloudUnavailable, Throttled), self._connection.translate("asking for quotas"):
                found = list(_of_network(self._connection, self._settings))
                if self._settings.from_volume:  # of the smallest machine: what is refused is told then
                    found += _of_volumes(self._connection, self._settings.volume_gib(1))
                with self._lock:
                    self._sisters, self._used = tuple(found), used
                    self._due = self._clock() + SISTERS_SERVE
        with self._lock:
            since = max(0, used - self._used)
            return [one if one in (None, _UNLIMITED) else max(0, one - since) for one in self._sisters]


def _quota(told: Mapping[str, Any], sisters: Iterable[int | None]) -> Quota:
    machines = left(told.get("maxTotalInstances"), told.get("totalInstancesUsed"))
    cores = left(told.get("maxTotalCores"), told.get("totalCoresUsed"))
    memory = left(told.get("maxTotalRAMSize"), told.get("totalRAMUsed"))
    scarcest = [number for number in (machines, *sisters) if number is not None and number != _UNLIMITED]
    found = {"machines": min(scarcest, default=machines), "cores": cores, "memory": memory}
    return Quota(
        **{name: number for name, number in found.items() if number != _UNLIMITED},
        unlimited=frozenset(name for name, number in found.items() if number == _UNLIMITED),
        used_machines=_count(told.get("totalInstancesUsed")),
        used_cores=_count(told.get("totalCoresUsed")),
    )


def _count(told: Any) -> int | None:
    return told if isinstance(told, int) and not isinstance(told, bool) and told >= 0 else None


def left(most: Any, used: Any) -> int | None:
    """What is left; -1 where there is no end, None where it isn't known."""
    if not isinstance(most, int) or isinstance(most, bool):
        return None
    if most < 0:
        return _UNLIMITED
    return max(0, most - used) if isinstance(used, int) else None


def _absolute(answer: Answer) -> Mapping[str, Any]:
    limits = answer.get("limits") or {}
    found = limits.get("absolute") if isinstance(limits, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _of_network(connection: Connection, settings: Settings) -> list[int | None]:
    """Machines that the ports, and the floating addresses where they are wanted, suffice for."""
    try:
        answer = connection.get(NETWORK, f"/quotas/{connection.project}/details.json")
    except Refused as error:
        if error.status in (403, 404, 501):  # an extension, and a right, that not every cloud gives
            return []
        raise
    told = answer.get("quota") or {}
    networks = max(1, len(settings.networks))
    found = [_shared(_counted(told.get("port")), networks)]
    if settings.floating_network:
        found.append(_counted(told.get("floatingip")))
    return found


def _counted(one: Any) -> int | None:
    if not isinstance(one, Mapping):
        return None
    used, reserved = one.get("used"), one.get("reserved", 0)
    return left(one.get("limit"), used + reserved if isinstance(used, int) else None)


def _shared(number: int | None, each: int) -> int | None:
    return number // each if number is not None and number >= 0 else number


def _of_volumes(connection: Connection, gib: int) -> list[int | None]:
    told = _absolute(connection.get(VOLUME, "/limits"))
    return [
        left(told.get("maxTotalVolumes"), told.get("totalVolumesUsed")),
        _shared(left(told.get("maxTotalVolumeGigabytes"), told.get("totalGigabytesUsed")), gib),
    ]
