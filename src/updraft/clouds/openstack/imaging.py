"""Images made, moved and shared: Nova's snapshots, Glance's files and members.

A snapshot of a server that boots from a volume is an image without a file: its blocks are a volume snapshot,
which ends with the image. It can be launched, not downloaded.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any, BinaryIO
from urllib.parse import quote

from updraft.clouds.imaging import ImageState, Imaging, MachineImage, check_form, taken_back
from updraft.clouds.openstack.client import COMPUTE, IMAGE, VOLUME, Connection
from updraft.clouds.openstack.editing import if_there
from updraft.clouds.openstack.errors import Garbled, Refused
from updraft.clouds.openstack.images import PAGE, Raw, described, info, is_id, is_machine
from updraft.clouds.openstack.reading import moment
from updraft.errors import BadRequest

FORMS = ("qcow2", "raw", "vmdk", "vdi", "vhd")
STATES: Mapping[str, ImageState] = {"active": "ready", "killed": "failed", "deactivated": "failed"}
_GONE = ("deleted", "pending_delete")


class OpenStackImaging:
    """Keeps the contract of `updraft.clouds.imaging.Imaging` for one project."""

    forms: tuple[str, ...] = FORMS

    def __init__(self, cloud: str, connection: Connection) -> None:
        self._cloud = cloud
        self._connection = connection

    def all(self) -> tuple[MachineImage, ...]:
        """Those of the project, public ones, and those shared with it that it has accepted."""
        with self._connection.translate("listing images"):
            found = [_image(raw) for raw in self._listed({}) if is_machine(raw) and _is_there(raw)]
        return tuple(sorted(found, key=lambda one: (one.info.name, -(one.info.created or 0.0), one.info.id)))

    def show(self, wanted: str) -> MachineImage | None:
        """By id (also one that isn't listed), else the newest of that name; its members where it is ours."""
        with self._connection.translate(f"looking for image {wanted}"):
            found = self._raw(wanted)
            return None if found is None else _image(found, self._members(found))

    def create(self, machine: str, name: str, tags: Mapping[str, str]) -> str:
        """Nova's snapshot of the server's disk."""
        with self._connection.translate(f"making an image of {machine}"):
            answer = self._connection.act(
                COMPUTE,
                "POST",
                f"/servers/{quote(machine, safe='')}/action",
                {"createImage": {"name": name, "metadata": dict(tags)}},
            )
            made = str(answer.get("image_id") or "")
            if not made:
                raise Garbled("the answer names no image")
        return made

    def halt(self, machine: str) -> bool:
        """Shut the server off; one that is off is success."""
        with self._connection.translate(f"stopping {machine}"):
            try:
                self._connection.act(
                    COMPUTE, "POST", f"/servers/{quote(machine, safe='')}/action", {"os-stop": None}
                )
            except Refused as error:
                if error.status != 409 or "vm_state stopped" not in error.message:
                    raise
        return True

    def upload(self, name: str, form: str, file: BinaryIO, size: int, tags: Mapping[str, str]) -> str:
        """The image's record, then its file; a record whose file didn't arrive is removed."""
        check_form(self._cloud, form, self.forms)
        about = {**tags, "name": name, "disk_format": form, "container_format": "bare"}
        with self._connection.translate(f"uploading image {name}"):
            made = str(self._connection.act(IMAGE, "POST", "/images", about).get("id") or "")
            if not made:
                raise Garbled("the answer names no image")
        with taken_back(self, made), self._connection.translate(f"uploading image {name}"):
            self._connection.send(IMAGE, f"/images/{made}/file", file, size)
        return made

    def download(self, image: str, file: BinaryIO) -> None:
        """The file as Glance keeps it."""
        with self._connection.translate(f"downloading image {image}"):
            found = self._raw(image)
            if found is None:
                raise BadRequest(f"cloud {self._cloud}: there is no image {image}")
            if not found.get("size"):
                raise BadRequest(
                    f"cloud {self._cloud}: image {image} has no file: it is the snapshot of a volume"
                )
            self._connection.receive(IMAGE, f"/images/{found['id']}/file", file)

    def fetch(self, source: Imaging, image: MachineImage, name: str, tags: Mapping[str, str]) -> str | None:
        """Never: Glance gives its files to users only."""
        return None

    def account(self) -> str:
        """The project's id."""
        with self._connection.translate("asking for the project"):
            return self._connection.project

    def share(self, image: str, account: str) -> None:
        """Make the project a member; it sees the image in its list once it has accepted it."""
        with self._connection.translate(f"sharing image {image}"):
            try:
                self._connection.act(IMAGE, "POST", f"/images/{image}/members", {"member": account})
            except Refused as error:
                if error.status != 409:  # it is one already
                    raise

    def accept(self, image: str) -> None:
        """As the member that this project is."""
        with self._connection.translate(f"accepting image {image}"):
            where = f"/images/{image}/members/{self._connection.project}"
            self._connection.act(IMAGE, "PUT", where, {"status": "accepted"})

    def delete(self, image: str) -> None:
        """The image, and the volume snapshots that it alone is made of."""
        with self._connection.translate(f"deleting image {image}"):
            found = self._raw(image) or {}
            if_there(lambda: self._connection.act(IMAGE, "DELETE", f"/images/{image}"))
            for one in _snapshots(found):
                if_there(partial(self._connection.act, VOLUME, "DELETE", f"/snapshots/{one}"))

    def _raw(self, wanted: str) -> Raw | None:
        if is_id(wanted):
            found = described(self._connection, wanted)
            if found is not None and _is_there(found):
                return found
        query = {} if ":" in wanted else {"name": wanted}
        named = [raw for raw in self._listed(query) if raw.get("name") == wanted and _is_there(raw)]
        return max(named, key=lambda raw: (moment(raw.get("created_at")) or 0.0, raw["id"]), default=None)

    def _listed(self, query: Mapping[str, str]) -> tuple[Raw, ...]:
        return tuple(self._connection.pages(IMAGE, "/images", "images", query, PAGE))

    def _members(self, raw: Raw) -> tuple[str, ...]:
        if raw.get("visibility") != "shared" or raw.get("owner") != self._connection.project:
            return ()
        answer = self._connection.get(IMAGE, f"/images/{raw['id']}/members")
        return tuple(sorted(str(one.get("member_id")) for one in answer.get("members") or ()))


def _is_there(raw: Raw) -> bool:
    return raw.get("status") not in _GONE


def _image(raw: Raw, members: tuple[str, ...] = ()) -> MachineImage:
    size = raw.get("size")
    return MachineImage(
        info=info(raw),
        state=STATES.get(str(raw.get("status")), "making"),
        size=None if size is None else int(size),
        form=str(raw.get("disk_format") or "") if size else "",
        checksum=_checksum(raw),
        tags={name: text for name, text in raw.items() if isinstance(text, str)},
        shared=members,
    )


def _checksum(raw: Raw) -> str:
    if raw.get("os_hash_algo") and raw.get("os_hash_value"):
        return f"{raw['os_hash_algo']}:{raw['os_hash_value']}"
    return f"md5:{raw['checksum']}" if raw.get("checksum") else ""


def _snapshots(raw: Raw) -> list[str]:
    """The volume snapshots in an image's block device mapping, which Glance keeps as a text of JSON."""
    try:
        mapping: Any = json.loads(str(raw.get("block_device_mapping") or "[]"))
    except ValueError:
        return []
    return [str(one["snapshot_id"]) for one in mapping if isinstance(one, dict) and one.get("snapshot_id")]
