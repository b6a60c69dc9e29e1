"""Snapshots and volumes of EC2 with the pool's tag. updraft makes no addresses or launch templates there."""

from collections.abc import Mapping
from typing import Any

from botocore.exceptions import ClientError

from updraft.clouds.base import TAG_IDENTITY, TAG_POOL
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.errors import code_of
from updraft.clouds.ec2.reading import tags_of
from updraft.core.leftovers import Belonging, Kind


class EC2Leavings:
    """Keeps the contract of `updraft.clouds.base.Leavings` for one account and region."""

    kinds: tuple[Kind, ...] = (Kind.SNAPSHOT, Kind.VOLUME)

    def __init__(self, cloud: str, pool: str, connection: Connection) -> None:
        self._cloud = cloud
        self._pool = pool
        self._connection = connection

    def of(self, kind: Kind) -> tuple[Belonging, ...]:
        """By the tag; an endpoint that leaves filters aside tells of everybody's."""
        with self._connection.translate(f"listing {kind}s"):
            if kind is Kind.SNAPSHOT:
                users = self._snapshot_users()
                found = [
                    self._snapshot(raw, users) for raw in self._tagged("describe_snapshots", "Snapshots")
                ]
            else:
                found = [self._volume(raw) for raw in self._tagged("describe_volumes", "Volumes")]
        return tuple(found)

    def remove(self, kind: Kind, one: str) -> None:
        """EC2 itself refuses what an image or a machine uses."""
        with self._connection.translate(f"removing the {kind} {one}"):
            try:
                if kind is Kind.SNAPSHOT:
                    self._connection.ask("delete_snapshot", SnapshotId=one)
                else:
                    self._connection.ask("delete_volume", VolumeId=one)
            except ClientError as error:
                if not code_of(error).endswith(".NotFound"):
                    raise

    # ------------------------------------------------------------------------------------------- inside

    def _tagged(self, action: str, key: str) -> list[Mapping[str, Any]]:
        filters = [{"Name": f"tag:{TAG_POOL}", "Values": [self._pool]}]
        found = self._connection.pages(action, key, Filters=filters)
        return [raw for raw in found if tags_of(raw).get(TAG_POOL) == self._pool]

    def _snapshot_users(self) -> Mapping[str, str]:
        """The images of this account by their snapshots, those that nobody can launch any more too."""
        mapped = [
            (str(mapping.get("Ebs", {}).get("SnapshotId") or ""), str(raw.get("ImageId")))
            for raw in self._connection.pages("describe_images", "Images", Owners=["self"])
            for mapping in raw.get("BlockDeviceMappings", ())
        ]
        return {snapshot: f"image {image}" for snapshot, image in mapped if snapshot}

    def _snapshot(self, raw: Mapping[str, Any], users: Mapping[str, str]) -> Belonging:
        one = str(raw["SnapshotId"])
        state = str(raw.get("State") or "")
        return self._thing(raw, Kind.SNAPSHOT, one, users.get(one, ""), "StartTime", broken=state == "error")

    def _volume(self, raw: Mapping[str, Any]) -> Belonging:
        machines = [str(one.get("InstanceId")) for one in raw.get("Attachments") or ()]
        # What isn't "available" is on its way to a machine or from one.
        free = raw.get("State") in ("available", "error")
        user = f"machine {machines[0]}" if machines else "" if free else "something"
        return self._thing(raw, Kind.VOLUME, str(raw["VolumeId"]), user, "CreateTime", broken=False)

    def _thing(
        self, raw: Mapping[str, Any], kind: Kind, one: str, user: str, when: str, *, broken: bool
    ) -> Belonging:
        tags, made = tags_of(raw), raw.get(when)
        return Belonging(
            cloud=self._cloud,
            kind=kind,
            id=one,
            name=tags.get("Name", ""),
            pool=tags.get(TAG_POOL, ""),
            identity=tags.get(TAG_IDENTITY, ""),
            used_by=user,
            made_at=None if made is None else made.timestamp(),
            broken=broken,
        )
