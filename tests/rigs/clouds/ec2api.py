"""How the conformance suite reaches a real `ec2-api` before the project: what UPDRAFT_TEST_EC2_URL names.

What the SDK sends is watched below its signature: there answers can be replaced or lost, and there the ids of
all that is launched are noted, so that it is ended whatever came of it.
"""

import base64
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest import mock
from urllib.parse import parse_qs

import boto3
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.exceptions import EndpointConnectionError
from botocore.httpsession import URLLib3Session
from keystoneauth1.adapter import Adapter

from tests.rigs.clouds.made import made
from tests.rigs.clouds.realcloud import Project, Waiting, quota_set
from updraft.clouds.cloud import Cloud
from updraft.clouds.ec2.driver import EC2Driver
from updraft.errors import (
    AuthFailed,
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
)

REGION = "RegionOne"
_SAID = "<Response><Errors><Error><Code>{}</Code><Message>no</Message></Error></Errors></Response>"


@dataclass(frozen=True)
class Trouble:
    """Calls of this action (any, where "") get this answer, or are carried out and their answer lost."""

    action: str
    status: int = 500
    code: str = ""
    lose: bool = False


TROUBLES: Mapping[type[CloudError], Trouble] = {
    NoCapacity: Trouble("RunInstances", 500, "InsufficientInstanceCapacity"),
    QuotaExceeded: Trouble("RunInstances", 403, "InstanceLimitExceeded"),
    Throttled: Trouble("", 503, "RequestLimitExceeded"),
    AuthFailed: Trouble("", 401, "AuthFailure"),
    BadRequest: Trouble("RunInstances", 400, "InvalidParameterValue"),
    CloudUnavailable: Trouble("", 500, "InternalError"),
}


class Wire:
    """What goes to the endpoint and comes back."""

    def __init__(self) -> None:
        self.made: set[str] = set()
        self.trouble: Trouble | None = None
        self._send = URLLib3Session.send

    def send(self, session: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
        """In place of the SDK's own."""
        action = parse_qs(_text(request.body)).get("Action", [""])[0]
        trouble = self.trouble if self.trouble and self.trouble.action in ("", action) else None
        if trouble is not None and not trouble.lose:
            said = _SAID.format(trouble.code).encode()
            return AWSResponse(request.url, trouble.status, {}, _Raw(said))
        answer = self._send(session, request)
        if action == "RunInstances":
            self.made |= set(re.findall(r"<instanceId>(i-\w+)</instanceId>", _text(answer.content)))
        if trouble is not None:
            raise EndpointConnectionError(endpoint_url=request.url)
        return answer


class _Raw:
    """A body as the SDK reads it."""

    def __init__(self, said: bytes) -> None:
        self._said = said

    def stream(self) -> Iterator[bytes]:
        yield self._said


def _text(body: Any) -> str:
    return body.decode() if isinstance(body, bytes) else str(body or "")


@contextmanager
def watched() -> Iterator[Wire]:
    """The wire of all that this process asks of EC2 endpoints."""
    wire = Wire()

    def send(session: URLLib3Session, request: AWSPreparedRequest) -> AWSResponse:
        return wire.send(session, request)

    with mock.patch.object(URLLib3Session, "send", send):
        yield wire


class EC2ApiHarness(Waiting):
    """The project seen through ec2-api: pools of this test's own, quotas beside others' machines."""

    market = "on-demand"
    many = 2  # it makes them one by one, each a second and more, and a page holds five at the least
    deadline = 150.0
    boots = True

    def __init__(self, url: str, project: Project, admin: Adapter | None, wire: Wire) -> None:
        self.project = project
        self.admin = admin
        self.wire = wire
        self.own = boto3.client("ec2", region_name=REGION, endpoint_url=url)
        flavors = project.compute.get("/flavors/detail").json()["flavors"]
        flavor = min(flavors, key=lambda one: (one["vcpus"], one["ram"]))
        self.flavor = str(flavor["name"])
        size = {"cpus": flavor["vcpus"], "memory": f"{flavor['ram']}MiB", "disk": "10GiB"}
        self.settings: dict[str, Any] = {
            "endpoint": url,
            "region": REGION,
            "instance_types": {self.flavor: size},
        }
        self.zone = str(self.own.describe_availability_zones()["AvailabilityZones"][0]["ZoneName"])
        images = self.own.describe_images()["Images"]
        self.image = str(min(one["ImageId"] for one in images if one.get("ImageType") == "machine"))
        self._made: set[str] = set()
        self._restore: Callable[[], None] | None = None

    def driver(self, pool: str) -> EC2Driver:
        return made("ec2", "cloud", pool, self.settings)

    def made(self, pool: str) -> Cloud:
        return self.driver(pool).cloud

    def foreign(self, tags: Mapping[str, str]) -> str:
        """Somebody else's, as far as the driver can see."""
        made = self.own.run_instances(
            ImageId=self.image, InstanceType=self.flavor, MinCount=1, MaxCount=1, UserData="#cloud-config\n"
        )["Instances"][0]["InstanceId"]
        if tags:
            wanted = [{"Key": name, "Value": text} for name, text in tags.items()]
            self.own.create_tags(Resources=[made], Tags=wanted)
        return str(made)

    def exists(self, machine: str) -> bool:
        return machine in self._standing()

    def _standing(self) -> set[str]:
        found = self.own.describe_instances()["Reservations"]
        return {
            one["InstanceId"]
            for reservation in found
            for one in reservation["Instances"]
            if one["State"]["Name"] not in ("terminated", "shutting-down")
        }

    def set_quota(self, machines: int) -> bool:
        if self.admin is None:
            return False
        undo = quota_set(self.admin, self.project, self.project.settle() + machines)
        self._restore = self._restore or undo
        return True

    def user_data(self, machine: str) -> bytes | None:
        found = self.own.describe_instance_attribute(InstanceId=machine, Attribute="userData")
        return base64.b64decode(found["UserData"]["Value"]) if found.get("UserData") else None

    def failing(self, error: type[CloudError]) -> AbstractContextManager[None]:
        return self._having(TROUBLES[error])

    def shown_oddly(self, machine: str) -> None:
        """A real cloud shows what it shows."""

    def mute_after_launch(self) -> AbstractContextManager[None]:
        return self._having(Trouble("RunInstances", lose=True))

    @contextmanager
    def _having(self, trouble: Trouble) -> Iterator[None]:
        self.wire.trouble = trouble
        try:
            yield
        finally:
            self.wire.trouble = None

    def clean(self) -> None:
        """End all that was made; that it goes is waited for by who needs it gone, or at the very end."""
        self.wire.trouble = None
        self._made, self.wire.made = set(self.wire.made), set()
        try:
            if not self.gone():
                self.project.ending.append(self)
        finally:
            if self._restore is not None:
                self._restore()

    def gone(self) -> bool:
        """Whether nothing of it is left; what isn't on its way out yet is sent there."""
        left = self._made & self._standing()
        if left:
            self.own.terminate_instances(InstanceIds=sorted(left))
        return not left
