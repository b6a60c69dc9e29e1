"""How the conformance suite reaches the project in memory."""

import base64
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from tests.rigs.clouds.fakecloud import IMAGE, FakeCloud
from tests.rigs.clouds.osfront import Front, Reply, Trouble
from updraft.clouds.cloud import Cloud
from updraft.clouds.openstack.client import Connection
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.openstack.settings import Settings
from updraft.config.drivers import checked_settings
from updraft.errors import (
    AuthFailed,
    BadRequest,
    CloudError,
    CloudUnavailable,
    NoCapacity,
    QuotaExceeded,
    Throttled,
)

BEGUN = 1_790_000_000.0  # what the clock of the cloud shows when a test begins
CREATE = r"^POST .*/servers$"
ANY = r"/(servers|flavors|images)"

CLOUDS = """
clouds:
  test:
    auth_type: v3applicationcredential
    region_name: RegionOne
    auth:
      auth_url: {url}/identity/v3
      application_credential_id: 0123456789abcdef
      application_credential_secret: not-to-be-seen
  wrong:
    region_name: RegionOne
    auth:
      auth_url: {url}/identity/v3
      username: somebody
      password: a-wrong-one
      project_name: p
      user_domain_name: Default
      project_domain_name: Default
"""


def refused(status: int, message: str, **headers: str) -> Reply:
    return Reply(status, {"fault": {"code": status, "message": message}}, headers)


TROUBLES: Mapping[type[CloudError], Callable[[], Trouble]] = {
    NoCapacity: lambda: Trouble(CREATE, refused(400, "No valid host was found.")),
    QuotaExceeded: lambda: Trouble(CREATE, refused(403, "Quota exceeded for instances: Requested 1")),
    Throttled: lambda: Trouble(ANY, refused(429, "This request was rate-limited.", **{"Retry-After": "7"})),
    AuthFailed: lambda: Trouble(ANY, refused(401, "The request requires authentication.")),
    BadRequest: lambda: Trouble(CREATE, refused(400, "Invalid input for field/attribute name.")),
    CloudUnavailable: lambda: Trouble(ANY, refused(503, "Unexpected API Error.")),
}


class OpenStackHarness:
    image = IMAGE
    flavor = "m1.small"
    zone = "nova"
    market = "on-demand"
    many = 11  # of pages of four
    deadline = 40.0  # a look at servers that aren't counted yet serves for ten seconds
    boots = True

    def __init__(self, front: Front, **settings: object) -> None:
        self.front = front
        self.now = 0.0
        self.cloud = FakeCloud(front.url, lambda: BEGUN + self.now)
        front.backend = self.cloud
        front.log.clear()
        front.troubles.clear()
        self.settings: dict[str, Any] = {"os_cloud": "test", "page_size": 4, **settings}

    def driver(self, pool: str = "conformance", identity: str = "", **settings: object) -> OpenStackDriver:
        checked = checked_settings(Settings, "cloud", {**self.settings, **settings})
        clock = lambda: self.now  # noqa: E731
        connection = Connection("cloud", checked, clock)
        return OpenStackDriver("cloud", pool, checked, connection, clock, identity=identity)

    def made(self, pool: str) -> Cloud:
        return self.driver(pool).cloud

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Let the driver's time pass until the condition holds."""
        until = self.now + self.deadline
        while not condition():
            assert self.now < until, f"never happened: {what}"
            self.now += 1.0

    def foreign(self, tags: Mapping[str, str]) -> str:
        flavor = self.cloud.told["flavors"]["flavors"][0]
        labels = [f"{name}={value}" for name, value in tags.items()]
        wanted = {"name": "theirs", "imageRef": IMAGE, "metadata": dict(tags), "tags": labels}
        return self.cloud.make(wanted, flavor, 0, 1)

    def own_end(self, machine: str) -> None:
        """End it past any driver; its ports stay, as those do that Nova didn't make."""
        self.cloud.inside[machine]["ends"] = 1.0

    def exists(self, machine: str) -> bool:
        return machine in self.cloud.standing()

    def set_quota(self, machines: int) -> bool:
        self.cloud.absolute["maxTotalInstances"] = machines
        return True

    def user_data(self, machine: str) -> bytes:
        return base64.b64decode(self.cloud.inside[machine]["wanted"]["user_data"])

    def failing(self, error: type[CloudError]) -> AbstractContextManager[None]:
        return self.front.trouble(TROUBLES[error]())

    @contextmanager
    def shown_oddly(self, machine: str) -> Iterator[None]:
        self.front.odd.add(machine)
        yield
        self.front.odd.clear()

    def mute_after_launch(self) -> AbstractContextManager[None]:
        return self.front.trouble(Trouble(CREATE, after=True, lose=True))


def write_clouds(where: Path, url: str) -> Path:
    file = where / "clouds.yaml"
    file.write_text(CLOUDS.format(url=url))
    return file
