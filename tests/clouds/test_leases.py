"""What clouds say of leases."""

import pytest

from tests.rigs.clouds.made import made
from updraft.clouds.base import Leases
from updraft.clouds.cloud import Traits
from updraft.clouds.local import driver as local


def test_a_driver_that_says_nothing_promises_nothing() -> None:
    assert Traits().leases() == Leases(told=False, ended=False)


def test_the_local_cloud_tells_and_ends() -> None:
    here = local.LocalDriver("here", "pool", None)  # type: ignore[arg-type]
    assert here.cloud.traits.leases() == Leases(told=True, ended=True)


@pytest.mark.parametrize(("drive", "told"), [(None, True), (False, True), (True, False)])
def test_openstack_tells_unless_metadata_are_on_a_drive(
    drive: bool | None, told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "URL": "http://127.0.0.1:1",
        "USERNAME": "u",
        "PASSWORD": "p",
        "PROJECT_NAME": "p",
    }.items():
        monkeypatch.setenv(f"OS_AUTH_{name}" if name == "URL" else f"OS_{name}", value)
    settings = {} if drive is None else {"config_drive": drive}
    leases = made("openstack", "os", "pool", settings).cloud.traits.leases()
    assert leases == Leases(told=told, ended=False)
