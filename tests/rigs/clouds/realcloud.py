"""How the conformance suite reaches a real project: whatever OS_CLIENT_CONFIG_FILE and OS_CLOUD name.

Every machine that is made here carries a label of this run, and nothing without it is touched or counted on.
Before the compute service stands a front of our own, which can refuse calls or lose answers.
"""

import base64
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from uuid import uuid4

import yaml
from keystoneauth1.adapter import Adapter
from openstack.config import OpenStackConfig

from tests.rigs.clouds.made import made
from tests.rigs.clouds.osfront import Front, Trouble, forwarded_to
from tests.rigs.clouds.osharness import CREATE, TROUBLES
from tests.waiting import until
from updraft.clouds.base import TAG_POOL, LaunchRequest
from updraft.clouds.cloud import Cloud
from updraft.clouds.openstack.client import Connection
from updraft.clouds.openstack.driver import OpenStackDriver
from updraft.clouds.openstack.reading import label
from updraft.clouds.openstack.selling.places import Places
from updraft.clouds.openstack.settings import Settings
from updraft.config.drivers import checked_settings
from updraft.core.model import CloudState, Instance
from updraft.errors import CloudError

# As they were before a fixture put clouds of its own there: for tests that take the projects as they are.
GIVEN = {name: os.environ.get(name, "") for name in ("OS_CLOUD", "OS_CLIENT_CONFIG_FILE")}
VERSION = "2.52"
LOOKED_EVERY = 0.3  # seconds
SETTLED_AFTER = 240.0
COUNTED_AFTER = 15.0
GOING = (CloudState.STOPPING, CloudState.TERMINATED)


class Ending(Protocol):
    """A test that is over, whose machines may be on their way out still."""

    def gone(self) -> bool:
        """Whether they are gone."""


class Project:
    """A project: its compute service called past any driver, and the front before it."""

    def __init__(self, where: Path) -> None:
        self.region = OpenStackConfig().get_one()
        self.compute = Adapter(
            self.region.get_session(),
            service_type="compute",
            region_name=self.region.get_region_name(),
            interface=self.region.get_interface(),
            default_microversion=VERSION,
        )
        address = urlsplit(self.compute.get_endpoint())
        self.front = Front(forwarded_to(f"{address.scheme}://{address.netloc}"))
        config = {
            "region_name": self.region.get_region_name(),
            "interface": self.region.get_interface(),
            "auth_type": self.region.config["auth_type"],
            "auth": dict(self.region.config["auth"]),
            "verify": self.region.config.get("verify", True),
            "cacert": self.region.config.get("cacert"),
            "compute_endpoint_override": self.front.url + address.path,
        }
        self.file = where / "clouds.yaml"
        self.file.touch(mode=0o600)
        self.file.write_text(yaml.safe_dump({"clouds": {"project": config}}))
        self.before = self.used()
        self.ending: list[Ending] = []

    def servers(self, mark: str) -> list[dict[str, Any]]:
        answer = self.compute.get(f"/servers/detail?tags={mark}")
        return [one for one in answer.json()["servers"] if one.get("OS-EXT-STS:task_state") != "deleting"]

    def has(self, server: str) -> bool:
        answer = self.compute.get(f"/servers/{server}", raise_exc=False)
        found = answer.json().get("server") if answer.status_code == 200 else None
        return (
            found is not None
            and found["status"] != "DELETED"
            and found.get("OS-EXT-STS:task_state") != "deleting"
        )

    def used(self) -> int:
        return int(self.compute.get("/limits").json()["limits"]["absolute"]["totalInstancesUsed"])

    def settle(self) -> int:
        """Wait until nothing is left of tests that are over; how many machines the project has then.

        More than before may be others': they aren't waited for.
        """

        def gone() -> bool:
            self.ending = [one for one in self.ending if not one.gone()]
            return not self.ending

        until(gone, SETTLED_AFTER, "the machines of tests that are over go", every=LOOKED_EVERY)
        end = time.monotonic() + COUNTED_AFTER
        while self.used() > self.before and time.monotonic() < end:
            time.sleep(LOOKED_EVERY)
        return self.used()


class Noting:
    """A driver, and a note of what it made, so that it can be ended whatever its tags say by then."""

    def __init__(self, driver: OpenStackDriver) -> None:
        self.driver = driver
        self.made: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.driver, name)

    def launch(self, request: LaunchRequest) -> tuple[Instance, ...]:
        found = self.driver.launch(request)
        self.made += [one.id for one in found]
        return found


class Waiting:
    """What the harnesses have in common that wait for a real cloud."""

    deadline: float

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, self.deadline, what, every=LOOKED_EVERY)


def quota_set(admin: Adapter, project: Project, machines: int) -> Callable[[], None]:
    """Allow so many machines, everybody's counted; what is returned puts it back as it was."""
    where = f"/os-quota-sets/{project.compute.get_project_id()}"
    before = admin.get(where).json()["quota_set"]["instances"]

    def put(number: int) -> None:
        admin.put(where, json={"quota_set": {"instances": number, "force": True}})

    put(machines)
    return partial(put, before)


class RealHarness(Waiting):
    """A project as if it were fresh and empty: pools of this run's own, quotas beside others' machines."""

    market = "on-demand"
    many = 3  # of pages of two; each takes a second and more
    deadline = 150.0
    boots = True

    def __init__(self, project: Project, admin: Adapter | None, **settings: object) -> None:
        self.project = project
        self.admin = admin
        self.run = uuid4().hex[:8]
        self.mark = f"updraft-test={self.run}"
        self.settings: dict[str, Any] = {"os_cloud": "project", "page_size": 2, **settings}
        self.settings |= {"tags": {"updraft-test": self.run}}
        for name, setting in (("NETWORK", "networks"), ("KEY", "key_name"), ("FLOATING", "floating_network")):
            if given := os.environ.get(f"UPDRAFT_TEST_OS_{name}"):
                self.settings.setdefault(setting, given)
        self.pools: dict[str, str] = {}  # with the identities
        self.drivers: list[Noting] = []
        self._enders: list[OpenStackDriver] = []
        self.foreigners: list[str] = []
        self.restore: Callable[[], None] | None = None
        driver = self.driver("conformance")
        offers = sorted(driver.offers(), key=lambda one: (one.resources.cpus, one.resources.memory))
        self.flavor = os.environ.get("UPDRAFT_TEST_OS_FLAVOR", offers[0].flavor)
        self.zone = offers[0].zone
        wanted = os.environ.get("UPDRAFT_TEST_OS_IMAGE")
        image = driver.image(wanted) if wanted else driver.images()[0]
        assert image is not None, f"the project has no image {wanted}"
        self.image = image.id

    def made(self, pool: str) -> Cloud:
        noting = self.driver(pool)
        return replace(noting.driver.cloud, machines=noting)  # type: ignore[arg-type]

    def driver(self, pool: str, identity: str = "") -> Noting:
        made = Noting(self._made(self.pool(pool), identity))
        self.drivers.append(made)
        self.pools[self.pool(pool)] = identity
        return made

    def _made(self, pool: str, identity: str) -> OpenStackDriver:
        found: OpenStackDriver = made("openstack", "cloud", pool, self.settings, identity)
        return found

    def pool(self, pool: str) -> str:
        return f"t{self.run}-{pool}"

    def foreign(self, tags: Mapping[str, str]) -> str:
        """Somebody else's, as far as the driver can see; this run's all the same."""
        own = {name: self.pool(text) if name == TAG_POOL else text for name, text in tags.items()}
        labels = [self.mark, *(label(name, text) for name, text in own.items())]
        flavors = self.project.compute.get("/flavors").json()["flavors"]
        settings = checked_settings(Settings, "cloud", self.settings)
        network = Places("cloud", settings, Connection("cloud", settings)).networks()[0]
        server = {
            "name": f"foreign-{self.run}",
            "imageRef": self.image,
            "flavorRef": next(one["id"] for one in flavors if one["name"] == self.flavor),
            "networks": [{"uuid": network}],
            "metadata": {**own, "updraft-test": self.run},
            "tags": labels,
        }
        made = self.project.compute.post("/servers", json={"server": server}).json()["server"]["id"]
        self.foreigners.append(made)
        return str(made)

    def exists(self, machine: str) -> bool:
        return self.project.has(machine)

    def set_quota(self, machines: int) -> bool:
        if self.admin is None:
            return False
        undo = quota_set(self.admin, self.project, self.project.settle() + machines)
        self.restore = self.restore or undo
        return True

    def user_data(self, machine: str) -> bytes | None:
        answer = self.project.compute.get(f"/servers/{machine}").json()["server"]
        text = answer.get("OS-EXT-SRV-ATTR:user_data")  # shown to some only
        return base64.b64decode(text) if text else self._sent()

    def _sent(self) -> bytes | None:
        calls = self.project.front.calls(CREATE)
        return base64.b64decode(calls[-1].body["server"]["user_data"]) if calls else None

    def failing(self, error: type[CloudError]) -> AbstractContextManager[None]:
        return self.project.front.trouble(TROUBLES[error]())

    def shown_oddly(self, machine: str) -> None:
        """A real cloud shows what it shows."""

    def mute_after_launch(self) -> AbstractContextManager[None]:
        return self.project.front.trouble(Trouble(CREATE, after=True, lose=True))

    def clean(self) -> None:
        """End all that this run made. That it goes is waited for by who needs it gone, or at the very end."""
        self.project.front.troubles.clear()
        try:
            if not self.gone():
                self.project.ending.append(self)
        finally:
            if self.restore is not None:
                self.restore()

    def gone(self) -> bool:
        """Whether nothing of this run is left; what isn't on its way out yet is sent there."""
        if not self._enders:
            self._enders = [self._made(*pool) for pool in sorted(self.pools.items())]
        noted = [one for driver in self.drivers for one in driver.made]
        listed = [one for driver in self._enders for one in driver.machines()]
        standing = {one.id for one in listed if one.state not in GOING}
        standing |= {one for one in (*noted, *self.foreigners) if self.project.has(one)}
        standing |= {one["id"] for one in self.project.servers(self.mark)}
        self._enders[0].terminate(standing)
        return not listed and not standing


@contextmanager
def project_at(where: Path) -> Iterator[Project]:
    project = Project(where)
    try:
        yield project
        project.settle()
    finally:
        project.front.stop()
