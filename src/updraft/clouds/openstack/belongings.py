"""What a machine has beside itself, and what must go with it: floating addresses, ports, volumes.

Everything that is made here carries the pool's name and identity in its description. Nothing without the name
or with another identity is touched, but volumes that Nova made for a machine of ours and was told to end with
it.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from updraft.clouds.base import TAG_IDENTITY, TAG_POOL, LaunchRequest
from updraft.clouds.openstack.client import COMPUTE, NETWORK, VOLUME, Connection, found_or_none, items
from updraft.clouds.openstack.editing import each
from updraft.clouds.openstack.errors import Garbled, Refused
from updraft.clouds.openstack.reading import (
    TAG_FLOATING,
    Raw,
    address_of,
    described,
    state_of,
    tags_of,
    volumes_of,
)
from updraft.clouds.openstack.selling.places import Places
from updraft.clouds.openstack.settings import Port, Settings
from updraft.core.model import CloudState
from updraft.errors import CloudError

SPARED = 300.0  # a port without its server may belong to a launch that is still under way
SWEPT_EVERY = 300.0
RETRIED_AFTER = 60.0
_IDS_AT_ONCE = 40  # of 36 characters each: an address of a call may have some thousand
_LABELLED_AT_ONCE = 20
_FIELDS = ("id", "device_id", "description", "fixed_ips")
_ON_ITS_WAY = ("creating", "downloading", "attaching", "detaching", "deleting")  # of a volume
_UP = (CloudState.PENDING, CloudState.RUNNING)


class Belongings:
    """The ports, floating addresses and volumes of one pool's machines. Errors are the SDK's unless said."""

    def __init__(
        self,
        pool: str,
        settings: Settings,
        connection: Connection,
        places: Places,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.identity = ""
        self._pool = pool
        self._settings = settings
        self._connection = connection
        self._places = places
        self._clock = clock
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}  # ports without a server, since when
        self._doomed: dict[str, str] = {}  # ports that go with their server
        self._addressed: set[str] = set()
        self._volumes: dict[str, tuple[str, ...]] = {}
        self._labelled: set[str] = set()  # volumes
        # A pool without such things asks the network service nothing, and doesn't wait for it.
        self._used = settings.port is not None or settings.floating_network is not None
        self._due = {"sweep": 0.0, "addresses": 0.0}

    @property
    def mark(self) -> str:
        """What is written on what is made."""
        return described({TAG_POOL: self._pool, TAG_IDENTITY: self.identity})

    @property
    def _marks(self) -> tuple[str, ...]:
        """What is written on what is ours, also from before the pool had an identity."""
        return tuple(dict.fromkeys((self.mark, described({TAG_POOL: self._pool}))))

    # -------------------------------------------------------------------------------------------- ports

    def make_ports(self, port: Port, request: LaunchRequest) -> list[list[str]]:
        """Ports for the machines that are asked for, one in each network; all or none.

        One call makes them, but where addresses are made of MACs: there Neutron can't make several at once.
        """
        networks = self._places.networks(request.network)
        groups = self._places.security_groups(request.security_groups)
        plain: dict[str, Any] = {"description": self.mark, "binding:vnic_type": port.vnic_type}
        if port.port_security is not None:
            plain["port_security_enabled"] = port.port_security
        if groups and port.port_security is not False:
            plain["security_groups"] = list(groups)
        if port.subnet is not None:
            plain["fixed_ips"] = [{"subnet_id": self._places.subnet(port.subnet)}]
        wanted = [{"network_id": network, **plain} for _ in range(request.count) for network in networks]
        if self._places.by_mac(networks):
            ids = self._made_singly(wanted)
        else:
            answer = self._connection.act(NETWORK, "POST", "/ports", {"ports": wanted})
            ids = [str(one["id"]) for one in items(answer, "ports")]
        each_has = len(networks)
        return [ids[at : at + each_has] for at in range(0, len(ids), each_has)]

    def drop_ports(self, ids: Iterable[str]) -> None:
        """These ports are no one's. What can't be removed now is swept up later; nothing is raised."""
        with contextlib.suppress(CloudError), self._connection.translate("removing ports"):
            each(lambda one: self._remove("ports", one), ids)

    # ----------------------------------------------------------------------------------------- at a look

    def settle(self, servers: Sequence[Raw]) -> None:
        """Give addresses to those that are to have one, and remove what belongs to no machine any more.

        The machines were looked at, and that is the answer: what can't be done now is tried again in a
        minute and more, and nothing is raised. Those of another identity are another controller's to serve.
        """
        own = [raw for raw in servers if tags_of(raw).get(TAG_IDENTITY, "") in ("", self.identity)]
        with contextlib.suppress(CloudError), self._connection.translate("looking after volumes"):
            self._end_volumes(own)
        with contextlib.suppress(CloudError), self._connection.translate("labelling volumes"):
            self._label_volumes(own)
        with contextlib.suppress(CloudError), self._connection.translate("looking after addresses"):
            self._give_addresses(own)
        standing = {str(raw["id"]) for raw in servers if state_of(raw) is not CloudState.TERMINATED}
        with contextlib.suppress(CloudError), self._connection.translate("removing ports"):
            self._end_ports(standing)
        self._used = self._used or any(TAG_FLOATING in tags_of(raw) for raw in servers)
        if self._used and self._is_due("sweep", SWEPT_EVERY):
            with contextlib.suppress(CloudError), self._connection.translate("removing what is left over"):
                self._sweep(standing)

    def release(self, ids: Collection[str]) -> None:
        """These machines are about to end: their floating addresses go before them.

        The ports that were made for them go at the first look that doesn't show the machine any more; before,
        Nova is at them too, and each waits for the other.
        """
        if not self._used or not ids:
            return
        with self._lock:  # what isn't done here is left over at the next look
            self._due["sweep"] = 0.0
        ports = list(self._ports_of(ids))
        with self._lock:
            self._doomed |= {
                str(port["id"]): str(port["device_id"])
                for port in ports
                if port.get("description") in self._marks
            }
        here = {port["id"] for port in ports}
        addresses = self._addresses() if here else ()
        gone = [str(one["id"]) for one in addresses if one.get("port_id") in here]
        each(lambda one: self._remove("floatingips", one), gone)

    # ------------------------------------------------------------------------------------------- inside

    def _made_singly(self, wanted: Iterable[Mapping[str, Any]]) -> list[str]:
        ids: list[str] = []
        try:
            for one in wanted:
                made = self._connection.act(NETWORK, "POST", "/ports", {"port": one}).get("port") or {}
                if not made.get("id"):
                    raise Garbled("the answer names no port")
                ids.append(str(made["id"]))
        except Exception:
            self.drop_ports(ids)
            raise
        return ids

    def _is_due(self, what: str, every: float) -> bool:
        with self._lock:
            now = self._clock()
            if now < self._due[what]:
                return False
            self._due[what] = now + every
            return True

    def _give_addresses(self, servers: Sequence[Raw]) -> None:
        with self._lock:
            self._addressed &= {str(raw["id"]) for raw in servers}
            known, resting = set(self._addressed), self._clock() < self._due["addresses"]
        wanting = {
            str(raw["id"]): raw
            for raw in servers
            if TAG_FLOATING in tags_of(raw) and state_of(raw) in _UP and address_of(raw)
        }
        wanting = {one: raw for one, raw in wanting.items() if one not in known}
        if not wanting or resting:
            return
        ports, taken = list(self._ports_of(wanting)), {one.get("port_id") for one in self._addresses()}
        done = {str(port["device_id"]) for port in ports if port["id"] in taken}
        for port in ports:
            server = str(port["device_id"])
            raw = wanting[server]
            if server not in done and _has(port, address_of(raw)):
                self._give_address(str(port["id"]), tags_of(raw)[TAG_FLOATING])
                done.add(server)
        with self._lock:
            self._addressed |= done

    def _give_address(self, port: str, network: str) -> None:
        wanted = {"floating_network_id": network, "port_id": port, "description": self.mark}
        try:
            self._connection.act(NETWORK, "POST", "/floatingips", {"floatingip": wanted})
        except Exception:
            with self._lock:  # a quota that is used up stays so for a while
                self._due["addresses"] = self._clock() + RETRIED_AFTER
            raise

    def _end_ports(self, standing: set[str]) -> None:
        with self._lock:
            due = [port for port, server in self._doomed.items() if server not in standing]

        def end(port: str) -> None:
            self._remove("ports", port)
            with self._lock:
                self._doomed.pop(port, None)

        each(end, due)

    def _sweep(self, standing: set[str]) -> None:
        """Remove addresses without a port, and ports whose server has been gone for long enough."""
        addresses, ports = list(self._addresses()), list(self._marked("ports"))
        lost = {str(one["id"]) for one in ports if one.get("device_id", "") not in standing}
        with self._lock:
            now = self._clock()
            self._seen = {one: self._seen.get(one, now) for one in lost}
            old = {one for one, since in self._seen.items() if now - since >= SPARED}
        each(
            lambda one: self._remove("floatingips", one),
            [str(one["id"]) for one in addresses if not one.get("port_id")],
        )
        # A machine that was let go of keeps its ports.
        gone = [str(one["id"]) for one in ports if one["id"] in old and not self._is_there(one)]
        each(lambda one: self._remove("ports", one), gone)

    def _is_there(self, port: Mapping[str, Any]) -> bool:
        server = str(port.get("device_id") or "")
        where = f"/servers/{quote(server, safe='')}"
        return bool(server) and found_or_none(lambda: self._connection.get(COMPUTE, where)) is not None

    def _end_volumes(self, servers: Sequence[Raw]) -> None:
        """Nova ends a machine's volume with it, but may lose it where the machine broke half-way."""
        here = {str(raw["id"]): volumes_of(raw) for raw in servers}
        with self._lock:
            gone = {one: volumes for one, volumes in self._volumes.items() if one not in here}
            self._volumes = {one: volumes for one, volumes in here.items() if volumes} | gone
        for server, volumes in gone.items():
            still = tuple(volume for volume in volumes if not self._end_volume(volume))
            with self._lock:
                self._volumes.pop(server, None)
                if still:
                    self._volumes[server] = still

    def _label_volumes(self, servers: Sequence[Raw]) -> None:
        """Nova makes them without a word on whose they are; some at each look, since each takes a call."""
        owners = {volume: tags_of(raw) for raw in servers for volume in volumes_of(raw)}
        with self._lock:
            self._labelled &= owners.keys()
            bare = [volume for volume in owners if volume not in self._labelled][:_LABELLED_AT_ONCE]

        def write(volume: str) -> None:
            labels = {key: owners[volume][key] for key in (TAG_POOL, TAG_IDENTITY) if owners[volume].get(key)}
            where = f"/volumes/{quote(volume, safe='')}/metadata"
            found_or_none(lambda: self._connection.act(VOLUME, "POST", where, {"metadata": labels}))
            with self._lock:
                self._labelled.add(volume)

        each(write, bare)

    def _end_volume(self, volume: str) -> bool:
        """Whether nothing is left to do: it is gone, it is ended now, or somebody else has it."""
        where = f"/volumes/{quote(volume, safe='')}"
        found = found_or_none(lambda: self._connection.get(VOLUME, where))
        state = "" if found is None else (found.get("volume") or {}).get("status", "")
        if state in ("available", "error"):
            found_or_none(lambda: self._connection.act(VOLUME, "DELETE", where))
        return state not in _ON_ITS_WAY

    def _ports_of(self, servers: Collection[str]) -> Iterator[Mapping[str, Any]]:
        named = list(servers)
        for at in range(0, len(named), _IDS_AT_ONCE):
            query = {"device_id": named[at : at + _IDS_AT_ONCE], "fields": _FIELDS}
            yield from items(self._connection.get(NETWORK, "/ports", query), "ports")

    def _addresses(self) -> Iterator[Mapping[str, Any]]:
        return self._marked("floatingips")

    def _marked(self, what: str) -> Iterator[Mapping[str, Any]]:
        """Those of ours; a service that leaves the filter aside tells of everybody's."""
        query = {"description": self._marks}
        found = items(self._connection.get(NETWORK, f"/{what}", query), what)
        return (one for one in found if one.get("description") in self._marks)

    def _remove(self, what: str, one: str) -> None:
        try:
            self._connection.act(NETWORK, "DELETE", f"/{what}/{quote(one, safe='')}")
        except Refused as error:
            if error.status != 404:
                raise


def _has(port: Mapping[str, Any], address: str) -> bool:
    """Whether this is the port of the machine's own address: others may lead nowhere."""
    return any(one.get("ip_address") == address for one in port.get("fixed_ips") or ())
