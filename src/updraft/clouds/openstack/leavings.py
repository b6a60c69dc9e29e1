"""Volumes, floating addresses and ports of a project that are ours: by metadata, or by description.

Volumes that Nova makes get the labels once their machine is seen; see `belongings`. Descriptions are found by
the whole of them only, so that all are asked for: another identity's are told of, too.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.openstack.client import NETWORK, VOLUME, Connection, found_or_none
from updraft.clouds.openstack.editing import if_there
from updraft.clouds.openstack.reading import Raw, described, described_of, moment
from updraft.core.leftovers import Belonging, Kind
from updraft.errors import BadRequest

_PAGE = 200
_FREE = ("available", "error")
_PATHS = {
    Kind.VOLUME: (VOLUME, "volumes"),
    Kind.ADDRESS: (NETWORK, "floatingips"),
    Kind.PORT: (NETWORK, "ports"),
}
_USER = {Kind.ADDRESS: ("port", "port_id"), Kind.PORT: ("machine", "device_id")}
_FIELDS = ("id", "description", "created_at", "floating_ip_address")


class OpenStackLeavings:
    """Keeps the contract of `updraft.clouds.base.Leavings` for one project."""

    kinds: tuple[Kind, ...] = (Kind.VOLUME, Kind.ADDRESS, Kind.PORT)

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
            what = _PATHS[kind][1]
            shown = {"fields": (*_FIELDS, _USER[kind][1])}
            found = self._connection.pages(NETWORK, f"/{what}", what, shown, _PAGE)
            return tuple(self._marked(kind, raw) for raw in found if self._is_mine(raw))

    def remove(self, kind: Kind, one: str) -> None:
        """Cinder refuses a volume that is attached; Neutron takes a port from under its machine."""
        service, what = _PATHS[kind]
        where = f"/{what}/{quote(one, safe='')}"
        with self._connection.translate(f"removing the {kind} {one}"):
            if kind in _USER:
                found = found_or_none(lambda: self._connection.get(service, where)) or {}
                user = _user(kind, found.get(what.removesuffix("s")) or {})
                if user:
                    raise BadRequest(f"cloud {self._cloud}: {user} uses the {kind} {one}")
            if_there(lambda: self._connection.act(service, "DELETE", where))

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

    def _is_mine(self, raw: Raw) -> bool:
        """Nothing but what updraft writes: people who write of the pool haven't given theirs away."""
        tags = described_of(raw)
        return tags.get(TAG_POOL) == self._pool and described(tags) == raw.get("description")

    def _marked(self, kind: Kind, raw: Raw) -> Belonging:
        return Belonging(
            cloud=self._cloud, kind=kind, id=str(raw["id"]), name=str(raw.get("floating_ip_address") or ""),
            pool=self._pool, identity=described_of(raw).get(TAG_IDENTITY, ""), used_by=_user(kind, raw),
            made_at=moment(raw.get("created_at")),
        )  # fmt: skip


def _user(kind: Kind, raw: Raw) -> str:
    what, field = _USER[kind]
    return f"{what} {raw[field]}" if raw.get(field) else ""


def _labels(raw: Raw) -> Mapping[str, Any]:
    return raw.get("metadata") or {}
