"""What settings and requests name, by the ids that OpenStack wants: networks, subnets, groups."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from updraft.clouds.openstack.client import COMPUTE, NETWORK, Connection, items
from updraft.clouds.openstack.settings import Settings
from updraft.errors import BadRequest

KEPT = 600.0
_BY_MAC = ("slaac", "dhcpv6-stateless")

Found = list[Mapping[str, Any]]


class Places:
    """Looks names up, and remembers for ten minutes what they meant. Errors are the SDK's, and BadRequest."""

    def __init__(
        self,
        cloud: str,
        settings: Settings,
        connection: Connection,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cloud = cloud
        self._settings = settings
        self._connection = connection
        self._clock = clock
        self._lock = threading.Lock()
        self._known: dict[str, tuple[float, Found]] = {}

    def networks(self, asked: str = "") -> tuple[str, ...]:
        """The ids of the machines' networks: the one `asked` for, those of the settings, or the only one."""
        here = self._all("networks")
        if asked:
            return (self._id("network", asked, here),)
        if self._settings.networks:
            return tuple(self._id("network", one, here) for one in self._settings.networks)
        inner = [one for one in here if not one.get("router:external")]
        if len(inner) != 1:
            names = ", ".join(sorted(str(one.get("name")) for one in inner)) or "none"
            raise BadRequest(f"cloud {self._cloud}: say in networks which are meant; the project has {names}")
        return (str(inner[0]["id"]),)

    def names(self, ids: Iterable[str]) -> tuple[str, ...]:
        """What people call these networks."""
        called = {str(one["id"]): str(one.get("name") or one["id"]) for one in self._all("networks")}
        return tuple(called.get(one, one) for one in ids)

    def floating_network(self) -> str:
        """The id of the external network that gives floating addresses; "" for none."""
        wanted = self._settings.floating_network
        outer = [one for one in self._all("networks") if one.get("router:external")] if wanted else []
        return self._id("external network", wanted, outer) if wanted else ""

    def subnet(self, wanted: str) -> str:
        """A subnet's id."""
        return self._id("subnet", wanted, self._all("subnets"))

    def ipv6(self) -> bool:
        """Whether the machines' subnet has IPv6; without one, any in their networks, or in all inner ones."""
        port, named = self._settings.port, self._settings.networks
        subnets = self._all("subnets")
        if port is not None and port.subnet is not None:
            chosen = [one for one in subnets if port.subnet in (one["id"], one.get("name"))]
        else:
            networks = {
                str(one["id"])
                for one in self._all("networks")
                if (
                    one["id"] in named or one.get("name") in named
                    if named
                    else not one.get("router:external")
                )
            }
            chosen = [one for one in subnets if str(one.get("network_id")) in networks]
        return any(str(one.get("ip_version")) == "6" for one in chosen)

    def by_mac(self, networks: Sequence[str]) -> bool:
        """Whether any of these networks, by their ids, has a subnet whose addresses are made of MACs."""
        modes = ("ipv6_address_mode", "ipv6_ra_mode")
        here = [one for one in self._all("subnets") if str(one.get("network_id")) in networks]
        return any(one.get(mode) in _BY_MAC for one in here for mode in modes)

    def security_groups(self, asked: Sequence[str] = ()) -> tuple[str, ...]:
        """The ids of those asked for, else of the settings'; none means the project's default one."""
        wanted = asked or self._settings.security_groups
        here = self._all("security-groups") if wanted else []
        return tuple(self._id("security group", one, here) for one in wanted)

    def server_group(self) -> str:
        """The id of the machines' server group; "" for none."""
        wanted = self._settings.server_group
        return self._id("server group", wanted, self._all("os-server-groups")) if wanted else ""

    def _id(self, what: str, wanted: str, here: Iterable[Mapping[str, Any]]) -> str:
        """An id is taken before a name; of a name there must be one."""
        found = list(here)
        ids = {str(one["id"]) for one in found}
        named = [str(one["id"]) for one in found if one.get("name") == wanted]
        if wanted in ids:
            return wanted
        if len(named) == 1:
            return named[0]
        trouble = f"there are {len(named)} of them: give its id" if named else "there is none of this name"
        raise BadRequest(f"cloud {self._cloud}, {what} {wanted}: {trouble}")

    def _all(self, what: str) -> Found:
        with self._lock:
            known = self._known.get(what)
        if known is not None and self._clock() - known[0] < KEPT:
            return known[1]
        path, key = _ASKED[what]
        found = items(self._connection.get(COMPUTE if key == "server_groups" else NETWORK, path), key)
        with self._lock:
            self._known[what] = (self._clock(), found)
        return found


_ASKED: Mapping[str, tuple[str, str]] = {
    "networks": ("/networks", "networks"),
    "subnets": ("/subnets", "subnets"),
    "security-groups": ("/security-groups", "security_groups"),
    "os-server-groups": ("/os-server-groups", "server_groups"),
}
