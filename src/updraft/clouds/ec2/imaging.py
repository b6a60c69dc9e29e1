"""Images made, copied between regions and shared: AMIs and the EBS snapshots that they are made of.

EC2 has no call that takes or gives an image's file: Amazon imports and exports them through S3, by a service
of its own that updraft doesn't speak. Such calls are refused, and say what to do.
"""

import re
from collections.abc import Mapping
from typing import Any, BinaryIO

from botocore.exceptions import ClientError

from updraft.clouds.ec2.capabilities import Capabilities
from updraft.clouds.ec2.client import Connection
from updraft.clouds.ec2.errors import code_of
from updraft.clouds.ec2.images import Images, info, is_id
from updraft.clouds.imaging import ImageState, Imaging, MachineImage, taken_back
from updraft.errors import BadRequest

STATES: Mapping[str, ImageState] = {
    "available": "ready",
    **dict.fromkeys(("failed", "error", "invalid", "disabled"), "failed"),
}
_MADE_FOR = r"(Created by CreateImage ?\([\w-]+\) for|Copied for DestinationAmi) {}\b"
_NO_FILES = (
    "EC2 has no call for image files; `aws ec2 import-image` and `export-image` move them through a bucket "
    "of S3"
)


class EC2Imaging:
    """Keeps the contract of `updraft.clouds.imaging.Imaging` for one account and region."""

    forms: tuple[str, ...] = ()

    def __init__(self, cloud: str, connection: Connection, known: Capabilities, images: Images) -> None:
        self._cloud = cloud
        self._images = images
        self._known = known
        self.connection = connection

    def all(self) -> tuple[MachineImage, ...]:
        """The images of the owners in the settings, with their tags."""
        with self.connection.translate("listing images"):
            found = [
                _image(raw) for raw in self._images.listed() if raw.get("ImageType", "machine") == "machine"
            ]
        return tuple(sorted(found, key=lambda one: (one.info.name, -(one.info.created or 0.0), one.info.id)))

    def show(self, wanted: str) -> MachineImage | None:
        """By id, anybody's, or by name; with the accounts that may launch it where it is ours."""
        by_id = is_id(wanted)
        asked: dict[str, Any] = {"Filters": [{"Name": "image-id" if by_id else "name", "Values": [wanted]}]}
        with self.connection.translate(f"looking for image {wanted}"):
            found = self._images.listed(anybodys=by_id, **asked)
            there = [raw for raw in found if raw.get("ImageId" if by_id else "Name") == wanted]
            raw = max(there, key=lambda one: (info(one).created or 0.0, one["ImageId"]), default=None)
            return None if raw is None else _image(raw, self._may_launch(raw))

    def create(self, machine: str, name: str, tags: Mapping[str, str]) -> str:
        """CreateImage without its reboot: a machine at work goes on working."""
        labels = _labels(tags)
        given = {"InstanceId": machine, "Name": name, "NoReboot": True, "Description": "made by updraft"}
        with self.connection.translate(f"making an image of {machine}"):
            made = str(self._labelled("create_image", given, labels)["ImageId"])
        if not self.connection.amazon:  # an endpoint may leave aside what it doesn't know
            self._tag(made, labels)
        return made

    def halt(self, machine: str) -> bool:
        """Stop the instance; its root volume stays."""
        self.connection.call("stop_instances", f"stopping {machine}", InstanceIds=[machine])
        return True

    def upload(self, name: str, form: str, file: BinaryIO, size: int, tags: Mapping[str, str]) -> str:
        """Refused."""
        raise BadRequest(f"cloud {self._cloud}: {_NO_FILES}")

    def download(self, image: str, file: BinaryIO) -> None:
        """Refused."""
        raise BadRequest(f"cloud {self._cloud}: {_NO_FILES}")

    def fetch(self, source: Imaging, image: MachineImage, name: str, tags: Mapping[str, str]) -> str | None:
        """CopyImage, from another region of the same service."""
        if not isinstance(source, EC2Imaging) or source.connection.amazon != self.connection.amazon:
            return None
        region = source.connection.region
        given = {"SourceImageId": image.info.id, "SourceRegion": region, "Name": name}
        with self.connection.translate(f"copying image {image.info.id} from {region}"):
            made = str(self._labelled("copy_image", given, _labels(tags))["ImageId"])
        self._tag(made, _labels(tags))
        return made

    def account(self) -> str:
        """The account's number, as its own default security group tells it."""
        answer = self.connection.call("describe_security_groups", "asking for the account")
        owners = {str(group.get("OwnerId") or "") for group in answer.get("SecurityGroups", ())}
        return owners.pop() if len(owners) == 1 else ""

    def share(self, image: str, account: str) -> None:
        """A launch permission."""
        self.connection.call(
            "modify_image_attribute",
            f"sharing image {image}",
            ImageId=image,
            LaunchPermission={"Add": [{"UserId": account}]},
        )

    def accept(self, image: str) -> None:
        """Nothing needs to be taken up: the image can be launched by its id."""

    def delete(self, image: str) -> None:
        """Deregister it, and delete the snapshots of its volumes.

        An image in the making doesn't name them yet; they say in words that EC2 gives them what they are for.
        """
        with self.connection.translate(f"deleting image {image}"):
            found = self._images.listed(anybodys=True, Filters=[{"Name": "image-id", "Values": [image]}])
            volumes = [one.get("Ebs", {}) for raw in found for one in raw.get("BlockDeviceMappings", ())]
            snapshots = [str(one["SnapshotId"]) for one in volumes if one.get("SnapshotId")]
            self._unless_gone("deregister_image", ImageId=image)
            for one in snapshots or (self._snapshots_for(image) if found else ()):
                self._unless_gone("delete_snapshot", SnapshotId=one)

    def _snapshots_for(self, image: str) -> list[str]:
        words = [f"Created by CreateImage*for {image}*", f"Copied for DestinationAmi {image} *"]
        filters = [{"Name": "description", "Values": words}]
        found = self.connection.pages("describe_snapshots", "Snapshots", OwnerIds=["self"], Filters=filters)
        mine = re.compile(_MADE_FOR.format(re.escape(image)))
        return [str(one["SnapshotId"]) for one in found if mine.match(str(one.get("Description") or ""))]

    def _labelled(
        self, action: str, given: Mapping[str, Any], labels: list[dict[str, str]]
    ) -> Mapping[str, Any]:
        """The answer to a call that makes an image, with the tags in it where the endpoint takes them."""
        if self._known.may("tag-on-create"):
            kinds = [{"ResourceType": kind, "Tags": labels} for kind in ("image", "snapshot")]
            try:
                return self.connection.ask(action, once=True, **given, TagSpecifications=kinds)
            except ClientError as error:
                if self._known.refused(error, ("tag-on-create",)) is None:
                    raise
        return self.connection.ask(action, once=True, **given)

    def _unless_gone(self, action: str, **parameters: Any) -> None:
        try:
            self.connection.ask(action, **parameters)
        except ClientError as error:
            if not code_of(error).endswith((".NotFound", ".Unavailable")):
                raise

    def _tag(self, image: str, labels: list[dict[str, str]]) -> None:
        """An image without our tags would be nobody's: it is taken back."""
        with taken_back(self, image):
            self.connection.call("create_tags", f"tagging image {image}", Resources=[image], Tags=labels)

    def _may_launch(self, raw: Mapping[str, Any]) -> tuple[str, ...]:
        try:
            answer = self.connection.ask(
                "describe_image_attribute", ImageId=raw["ImageId"], Attribute="launchPermission"
            )
        except ClientError:  # only its owner may know
            return ()
        return tuple(
            sorted(str(one["UserId"]) for one in answer.get("LaunchPermissions", ()) if "UserId" in one)
        )


def _labels(tags: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"Key": name, "Value": value} for name, value in tags.items()]


def _image(raw: Mapping[str, Any], shared: tuple[str, ...] = ()) -> MachineImage:
    sizes = [one.get("Ebs", {}).get("VolumeSize") for one in raw.get("BlockDeviceMappings", ())]
    known = [int(size) for size in sizes if size]
    return MachineImage(
        info=info(raw),
        state=STATES.get(str(raw.get("State", "available")), "making"),
        size=sum(known) * 2**30 if known else None,
        tags={str(tag["Key"]): str(tag["Value"]) for tag in raw.get("Tags", ())},
        shared=shared,
    )
