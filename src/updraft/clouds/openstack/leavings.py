"""Volumes, floating addresses and ports of a project that are ours: by metadata, or by description.

Addresses and ports have no place for an identity beside the pool's name: they are told of, and the controller
removes them. Volumes that Nova makes get the labels once their machine is seen; see `belongings`.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.openstack.client import NETWORK, VOLUME, Connection, items
from updraft.clouds.openstack.editing import if_there
from updraft.clouds.openstack.reading import Raw, moment
from updraft.core.leftovers import Belonging, Kind

_PAGE = 200
_FREE = ("available", "error")
_PATHS = {
    Kind.VOLUME: (VOLUME, "volumes"),
    Kind.ADDRESS: (NETWORK, "floatingips"),
    Kind.PORT: (NETWORK, "ports"),
}


class OpenStackLeavings:
    """Keeps the contract of `updraft.clouds.leavings.Leavings` for one project."""

    kinds = (Kind.VOLUME, Kind.ADDRESS, Kind.PORT)

    def __init__(self, cloud: str, pool: str, connection: Connection) -> None:
        self._cloud = cloud
        self._pool = pool
        self._connection = connection

    def of(self, kind: Kind) -> tuple[Belonging, ...]:
        """What was made by people of the same project is left out."""
        with self._connection.translate(f"listing {kind}s"):
            if kind is Kind.VOLUME:
                every = self._connection.pages(VOLUME, "/volumes/detail", "volumes", {}, _PAGE)
                mine = [raw for raw in every if _labels(raw).get(TAG_POOL) == self._pool]
                return tuple(self._volume(raw) for raw in mine)
            what, mark = _PATHS[kind][1], f"{TAG_POOL}={self._pool}"
            found = items(self._connection.get(NETWORK, f"/{what}", {"description": mark}), what)
            return tuple(self._marked(kind, raw) for raw in found if raw.get("description") == mark)

    def remove(self, kind: Kind, one: str) -> None:
        """Cinder refuses a volume that is attached, Neutron the port of a machine."""
        service, what = _PATHS[kind]
        with self._connection.translate(f"removing the {kind} {one}"):
            if_there(lambda: self._connection.act(service, "DELETE", f"/{what}/{quote(one, safe='')}"))

    # ------------------------------------------------------------------------------------------- inside

    def _volume(self, raw: Raw) -> Belonging:
        machines = [str(one.get("server_id")) for one in raw.get("attachments") or ()]
        status = str(raw.get("status") or "")
        user = f"machine {machines[0]}" if machines else "" if status in _FREE else f"something ({status})"
        return Belonging(
            cloud=self._cloud, kind=Kind.VOLUME, id=str(raw["id"]), name=str(raw.get("name") or ""),
            pool=self._pool, identity=_labels(raw).get(TAG_IDENTITY, ""), used_by=user,
            made_at=moment(raw.get("created_at")), broken=status == "error",
        )  # fmt: skip

    def _marked(self, kind: Kind, raw: Raw) -> Belonging:
        user = str(raw.get("device_id" if kind is Kind.PORT else "port_id") or "")
        what = "machine" if kind is Kind.PORT else "port"
        return Belonging(
            cloud=self._cloud, kind=kind, id=str(raw["id"]), name=str(raw.get("floating_ip_address") or ""),
            pool=self._pool, used_by=f"{what} {user}" if user else "", made_at=moment(raw.get("created_at")),
        )  # fmt: skip


def _labels(raw: Raw) -> Mapping[str, Any]:
    return raw.get("metadata") or {}
