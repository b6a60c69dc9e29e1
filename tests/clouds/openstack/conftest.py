from collections.abc import Iterator

import pytest

from tests.rigs.clouds.fakecloud import FakeCloud
from tests.rigs.clouds.osfront import Front
from tests.rigs.clouds.osharness import OpenStackHarness, write_clouds


@pytest.fixture(scope="session")
def front() -> Iterator[Front]:
    """The server of all tests; each puts a cloud of its own behind it."""
    made = Front(FakeCloud())
    yield made
    made.stop()


@pytest.fixture(scope="session")
def clouds_file(front: Front, tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_clouds(tmp_path_factory.mktemp("clouds"), front.url))


@pytest.fixture(autouse=True)
def credentials(clouds_file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known credentials, and none of whoever runs the tests."""
    import os

    for name in [name for name in os.environ if name.startswith("OS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", clouds_file)


@pytest.fixture
def harness(front: Front) -> OpenStackHarness:
    return OpenStackHarness(front)
