"""What is left of the project's quotas: of Nova, and of the sisters without which it makes no machine."""

from collections.abc import Mapping
from typing import Any

from updraft.clouds.openstack.client import COMPUTE, NETWORK, VOLUME, Answer, Connection
from updraft.clouds.openstack.errors import Refused
from updraft.clouds.openstack.settings import Settings
from updraft.core.model import Quota

_UNLIMITED = -1


def quota(connection: Connection, settings: Settings) -> Quota:
    """What is left for one more launch, everybody's machines in the project counted. Raises CloudError.

    A machine needs an instance, ports and perhaps an address and a volume: the scarcest of them counts.
    """
    with connection.translate("asking for quotas"):
        told = _absolute(connection.get(COMPUTE, "/limits"))
        sisters = list(_of_network(connection, settings))
        if settings.root_volume is not None:
            sisters += _of_volumes(connection, settings.volume_gib)
    machines = left(told.get("maxTotalInstances"), told.get("totalInstancesUsed"))
    cores = left(told.get("maxTotalCores"), told.get("totalCoresUsed"))
    memory = left(told.get("maxTotalRAMSize"), told.get("totalRAMUsed"))
    scarcest = [number for number in (machines, *sisters) if number is not None and number != _UNLIMITED]
    found = {"machines": min(scarcest, default=machines), "cores": cores, "memory": memory}
    return Quota(
        **{name: number for name, number in found.items() if number != _UNLIMITED},
        unlimited=frozenset(name for name, number in found.items() if number == _UNLIMITED),
    )


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
