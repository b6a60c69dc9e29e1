"""How the conformance suite reaches the endpoint."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import boto3

from tests.rigs.clouds.ec2endpoint import REGION, Quirks, Served, Trouble
from tests.rigs.clouds.made import made
from tests.waiting import until
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

IMAGE = "ami-00000000000000001"

TROUBLES: Mapping[type[CloudError], Callable[[], Trouble]] = {
    NoCapacity: lambda: Trouble("RunInstances", "InsufficientInstanceCapacity", 500),
    QuotaExceeded: lambda: Trouble("RunInstances", "InstanceLimitExceeded", 400),
    Throttled: lambda: Trouble("*", "RequestLimitExceeded", 503),
    AuthFailed: lambda: Trouble("*", "AuthFailure", 401),
    BadRequest: lambda: Trouble("RunInstances", "InvalidParameterValue", 400),
    CloudUnavailable: lambda: Trouble("*", "InternalError", 500),
}


@cache
def _tester(url: str) -> Any:
    """The tests' own client, one for all: making one takes as long as twenty calls."""
    return boto3.client(
        "ec2",
        region_name=REGION,
        endpoint_url=url,
        aws_access_key_id="tester",
        aws_secret_access_key="y",  # noqa: S106
    )


class EC2Harness:
    image = IMAGE
    flavor = "t3.small"
    zone = f"{REGION}b"
    market = "on-demand"
    many = 11  # of pages of five
    deadline = 10.0
    boots = True

    def __init__(self, served: Served, quirks: Quirks | None = None, **settings: object) -> None:
        self.endpoint = served.endpoint
        self.endpoint.fresh(quirks)
        self.settings: dict[str, Any] = {
            "endpoint": served.url,
            "region": REGION,
            "flavors": ["t3.*"],
            "page_size": 5,
            **settings,
        }
        self.own = _tester(served.url)

    def driver(self, pool: str = "conformance", **settings: object) -> EC2Driver:
        return made("ec2", "cloud", pool, {**self.settings, **settings})

    def made(self, pool: str) -> Cloud:
        return self.driver(pool).cloud

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, self.deadline, what, every=0.02)

    def foreign(self, tags: Mapping[str, str], user_data: bytes = b"") -> str:
        made = self.own.run_instances(
            ImageId="ami-00000000000000003",
            InstanceType="t3.micro",
            MinCount=1,
            MaxCount=1,
            UserData=user_data,
        )["Instances"][0]["InstanceId"]
        if tags:
            self.own.create_tags(
                Resources=[made], Tags=[{"Key": key, "Value": value} for key, value in tags.items()]
            )
        return str(made)

    def tags(self, machine: str) -> dict[str, str]:
        """The tags that an instance has at the endpoint."""
        found = self.own.describe_tags(Filters=[{"Name": "resource-id", "Values": [machine]}])["Tags"]
        return {tag["Key"]: tag["Value"] for tag in found}

    def exists(self, machine: str) -> bool:
        return self.endpoint.exists(machine)

    def set_quota(self, machines: int) -> bool:
        self.endpoint.quirks.quota = machines
        return True

    def user_data(self, machine: str) -> bytes:
        return self.endpoint.user_data(machine)

    def failing(self, error: type[CloudError]) -> AbstractContextManager[None]:
        return self.endpoint.trouble(TROUBLES[error]())

    @contextmanager
    def shown_oddly(self, machine: str) -> Iterator[None]:
        self.endpoint.odd.add(machine)
        yield
        self.endpoint.odd.clear()

    def mute_after_launch(self) -> AbstractContextManager[None]:
        return self.endpoint.trouble(Trouble("RunInstances", after=True, lose=True))
