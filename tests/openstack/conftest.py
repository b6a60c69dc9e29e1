"""A real project for the tests in this folder; they are run only where one is named and asked for."""

import os
from collections.abc import Iterator

import pytest
from keystoneauth1.adapter import Adapter
from openstack.config import OpenStackConfig

from tests.rigs.clouds.realcloud import Project, RealHarness, project_at


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """These take somebody's quota: they run where `-m openstack` asks for them, and nowhere else."""
    if "openstack" in (config.option.markexpr or ""):
        return
    left = [item for item in items if item.get_closest_marker("openstack") is not None]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


@pytest.fixture(scope="session")
def admin() -> Adapter | None:
    """Of the cloud in UPDRAFT_TEST_OS_ADMIN, which may set the project's quota; None without."""
    name = os.environ.get("UPDRAFT_TEST_OS_ADMIN")
    if not name:
        return None
    region = OpenStackConfig().get_one(name)
    return Adapter(region.get_session(), service_type="compute", region_name=region.get_region_name())


@pytest.fixture(scope="session")
def project(admin: Adapter | None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    if not os.environ.get("OS_CLOUD"):
        pytest.skip("no project: set OS_CLOUD, and OS_CLIENT_CONFIG_FILE where clouds.yaml is elsewhere")
    with project_at(tmp_path_factory.mktemp("project")) as found, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OS_CLIENT_CONFIG_FILE", str(found.file))
        patch.delenv("OS_CLOUD")
        yield found


@pytest.fixture
def harness(project: Project, admin: Adapter | None) -> Iterator[RealHarness]:
    made = RealHarness(project, admin)
    project.front.log.clear()
    yield made
    made.clean()
