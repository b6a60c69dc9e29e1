"""The local cloud keeps the contract, with machines that really boot."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clouds.conformance import MachinesConformance
from tests.clouds.parts_conformance import PartsConformance
from tests.rigs.clouds.harness import next_key
from tests.rigs.clouds.made import made
from tests.waiting import until
from updraft.clouds.cloud import Cloud
from updraft.clouds.local import process
from updraft.clouds.local.config import LocalCloudConfig, Quotas, Zone
from updraft.clouds.local.driver import LocalDriver
from updraft.clouds.local.faults import Fault, FaultKind
from updraft.clouds.local.images import image
from updraft.errors import AuthFailed, CloudError, CloudUnavailable, NoCapacity, Throttled

pytestmark = pytest.mark.integration

FAULTS: Mapping[type[CloudError], FaultKind] = {
    AuthFailed: FaultKind.AUTH_FAILED,
    CloudUnavailable: FaultKind.API_DOWN,
    NoCapacity: FaultKind.NO_CAPACITY,
    Throttled: FaultKind.THROTTLED,
}


class LocalHarness:
    image = "forky"
    flavor = "small"
    zone = "zone-a"
    market = "on-demand"
    many = 8  # of pages of three
    deadline = 60.0
    boots = True

    def __init__(self, cloud: process.LocalCloud) -> None:
        self.cloud = cloud
        self.admin = cloud.client()

    def driver(self, pool: str) -> LocalDriver:
        settings = {"endpoint": self.cloud.endpoint, "credential_file": str(self.cloud.credential_file)}
        return made("local", "local", pool, settings)

    def made(self, pool: str) -> Cloud:
        return self.driver(pool).cloud

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        until(condition, self.deadline, what, every=0.05)

    def foreign(self, tags: Mapping[str, str]) -> str:
        order = {"image": self.image, "flavor": self.flavor, "zone": self.zone}
        (made,) = self.admin.run(key=next_key(), count=1, tags=dict(tags), **order)
        return str(made["id"])

    def exists(self, machine: str) -> bool:
        states = {one["id"]: one["state"] for one in self.admin.machines()}
        return states.get(machine) in ("pending", "running")

    def set_quota(self, machines: int) -> bool:
        self.admin.set_quotas(Quotas(machines=machines))
        return True

    def user_data(self, machine: str) -> bytes:
        script = (
            "import sys, urllib.request as r;"
            "sys.stdout.write(r.urlopen('http://169.254.169.254/latest/user-data').read().hex())"
        )
        return bytes.fromhex(process.run_in(self.cloud, machine, ["python3", "-c", script]).stdout)

    @contextmanager
    def _fault(self, kind: FaultKind, call: str = "*") -> Iterator[None]:
        self.admin.set_faults([Fault(kind, seconds=7.0, call=call)])
        yield
        self.admin.set_faults([])

    @contextmanager
    def _no_quota(self) -> Iterator[None]:
        self.admin.set_quotas(Quotas(machines=0))
        yield
        self.admin.set_quotas(Quotas())

    def failing(self, error: type[CloudError]) -> "object | None":
        if error.code == "quota-exceeded":
            return self._no_quota()
        return self._fault(FAULTS[error]) if error in FAULTS else None

    def shown_oddly(self, machine: str) -> None:
        """The cloud is a process of its own, and shows what it has: see `test_local_odd`."""

    def mute_after_launch(self) -> "object":
        return self._fault(FaultKind.LOST_ANSWER, call="run")


class _OnLocal:
    @pytest.fixture
    def harness(self, tmp_path: Path) -> Iterator[LocalHarness]:
        built = image.build()
        config = LocalCloudConfig(
            images={built.name: tuple(str(layer) for layer in built.layers)},
            zones=(Zone("zone-a", None), Zone("zone-b", 4)),
            page_size=3,
            stop_grace=1.0,
        )
        cloud = process.start(config, tmp_path / "cloud", tie_to_parent=True)
        try:
            yield LocalHarness(cloud)
        finally:
            cloud.stop()


class TestLocalParts(_OnLocal, PartsConformance):
    """On a real one, too."""


class TestLocal(_OnLocal, MachinesConformance):
    """On a real one."""
